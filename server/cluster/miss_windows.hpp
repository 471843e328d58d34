// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/policy.hpp"
#include "server/clock.hpp"

namespace rayhook {

/// Remembers since when a Service has been missed. The first miss of a name opens a window in which
/// reviews that need it are held, and may be refused; when it is over the name is left in peace for
/// a while: whatever is wrong there, waiting does not mend it. Time is handed in. Not thread-safe.
class MissWindows {
 public:
  static constexpr std::chrono::minutes kPeace{10};
  /// Names remembered; the oldest go first.
  static constexpr std::size_t kNames = 4096;

  struct Window {
    bool hold = false;   ///< a review may be held
    bool retry = false;  ///< a pod may be refused, to be made again
  };

  explicit MissWindows(const UnknownService& times)
      : hold_(times.hold_ms), retry_for_(times.retry_for_ms) {}

  /// A Service that is needed is not there: opens a window if there is none.
  [[nodiscard]] Window missed(std::string_view ns, std::string_view name, TimePoint now);

  /// It is there: the next miss is a first one.
  void seen(std::string_view ns, std::string_view name);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    TimePoint first;
    std::list<std::string>::iterator place;
  };
  static std::string key(std::string_view ns, std::string_view name);

  std::chrono::milliseconds hold_, retry_for_;
  std::unordered_map<std::string, Entry> entries_;
  std::list<std::string> order_;  // keys, the oldest first
};

}  // namespace rayhook
