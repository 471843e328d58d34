// SPDX-License-Identifier: Apache-2.0
#include "miss_windows.hpp"

#include <algorithm>

namespace rayhook {

std::string MissWindows::key(std::string_view ns, std::string_view name) {
  std::string out(ns);
  out += '/';
  out += name;
  return out;
}

MissWindows::Window MissWindows::missed(std::string_view ns, std::string_view name, TimePoint now) {
  const auto length = std::max(hold_, retry_for_);
  if (length.count() == 0) return {};
  const std::string which = key(ns, name);
  auto found = entries_.find(which);
  if (found != entries_.end() && now - found->second.first >= length + kPeace) {
    seen(ns, name);
    found = entries_.end();
  }
  if (found == entries_.end()) {
    if (entries_.size() >= kNames) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(which);
    found = entries_.emplace(which, Entry{now, std::prev(order_.end())}).first;
  }
  const auto age = now - found->second.first;
  return {hold_.count() > 0 && age < length, age < retry_for_};
}

void MissWindows::seen(std::string_view ns, std::string_view name) {
  const auto found = entries_.find(key(ns, name));
  if (found == entries_.end()) return;
  order_.erase(found->second.place);
  entries_.erase(found);
}

}  // namespace rayhook
