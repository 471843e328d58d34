// SPDX-License-Identifier: Apache-2.0
#include "own_names.hpp"

#include <algorithm>
#include <iterator>

namespace rayhook {

void OwnNames::fill(const Container& container) {
  if (container_ == &container) return;
  container_ = &container;
  names_.clear();
  names_.reserve(container.env_end - container.env_begin);
  for (std::uint32_t i = container.env_begin; i < container.env_end; ++i)
    names_.emplace_back(pod_.env[i].name, i - container.env_begin);
  if (!few()) std::ranges::sort(names_);
}

std::uint32_t OwnNames::first(std::string_view name) const {
  const auto found = few() ? std::ranges::find(names_, name, &Name::first)
                           : std::ranges::lower_bound(names_, Name{name, 0});
  return found != names_.end() && found->first == name ? found->second : kNone;
}

const EnvEntry* OwnNames::entry(std::string_view name) const {
  const auto last =
      few() ? std::ranges::find(names_.rbegin(), names_.rend(), name, &Name::first)
            : std::reverse_iterator(std::ranges::upper_bound(names_, Name{name, kNone}));
  if (last == names_.rend() || last->first != name) return nullptr;
  return &pod_.env[container_->env_begin + last->second];
}

}  // namespace rayhook
