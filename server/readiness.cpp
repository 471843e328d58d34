// SPDX-License-Identifier: Apache-2.0
#include "readiness.hpp"

#include <algorithm>
#include <utility>

namespace rayhook {

std::string_view word(Hindrance hindrance) {
  constexpr std::array<std::string_view, kHindrances> kWords = {"certificate", "services",
                                                                "draining"};
  return kWords[static_cast<std::size_t>(hindrance)];
}

void Readiness::hinder(Hindrance hindrance, std::string reason) {
  const std::lock_guard lock(mutex_);
  reasons_[static_cast<std::size_t>(hindrance)] = std::move(reason);
}

void Readiness::clear(Hindrance hindrance) { hinder(hindrance, {}); }

bool Readiness::ready() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(reasons_, &std::string::empty);
}

std::string Readiness::hindrances() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (std::size_t i = 0; i < kHindrances; ++i) {
    if (reasons_[i].empty()) continue;
    out += word(static_cast<Hindrance>(i));
    out += ": " + reasons_[i] + "\n";
  }
  return out;
}

}  // namespace rayhook
