// SPDX-License-Identifier: Apache-2.0
#include "own_names.hpp"

#include <algorithm>

namespace rayhook {

void OwnNames::fill(const Pod& pod, const Container& container) {
  sorted_.clear();
  sorted_.reserve(container.env_end - container.env_begin);
  for (std::uint32_t i = container.env_begin; i < container.env_end; ++i)
    sorted_.emplace_back(pod.env[i].name, i - container.env_begin);
  std::ranges::sort(sorted_);
}

std::uint32_t OwnNames::first(std::string_view name) const {
  const auto found = std::ranges::lower_bound(sorted_, std::pair{name, std::uint32_t{0}});
  return found != sorted_.end() && found->first == name ? found->second : kNone;
}

const EnvEntry* OwnNames::entry(const Pod& pod, const Container& container,
                                std::string_view name) const {
  const auto after = std::ranges::upper_bound(sorted_, std::pair{name, kNone});
  if (after == sorted_.begin() || std::prev(after)->first != name) return nullptr;
  return &pod.env[container.env_begin + std::prev(after)->second];
}

}  // namespace rayhook
