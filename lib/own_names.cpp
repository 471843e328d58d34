// SPDX-License-Identifier: Apache-2.0
#include "own_names.hpp"

#include <algorithm>

namespace rayhook {

void OwnNames::fill(const Pod& pod, const Container& container) {
  names_.clear();
  names_.reserve(container.env_end - container.env_begin);
  for (std::uint32_t i = container.env_begin; i < container.env_end; ++i)
    names_.emplace_back(pod.env[i].name, i - container.env_begin);
  if (!few()) std::ranges::sort(names_);
}

std::uint32_t OwnNames::first(std::string_view name) const {
  const auto found = few() ? std::ranges::find(names_, name, &Name::first)
                           : std::ranges::lower_bound(names_, Name{name, 0});
  return found != names_.end() && found->first == name ? found->second : kNone;
}

const EnvEntry* OwnNames::entry(const Pod& pod, const Container& container,
                                std::string_view name) const {
  // The last of that name, in either order.
  auto after = few() ? names_.end() : std::ranges::upper_bound(names_, Name{name, kNone});
  while (few() && after != names_.begin() && std::prev(after)->first != name) --after;
  if (after == names_.begin() || std::prev(after)->first != name) return nullptr;
  return &pod.env[container.env_begin + std::prev(after)->second];
}

}  // namespace rayhook
