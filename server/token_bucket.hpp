// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "clock.hpp"

namespace rayhook {

/// So many things a second, and so many at once after a quiet while. Time is handed in and must not
/// run backwards. Not thread-safe.
class TokenBucket {
 public:
  /// Full at first. Both at least 1.
  TokenBucket(double a_second, double at_once)
      : a_second_(a_second), at_once_(at_once), tokens_(at_once) {}

  /// True, and one less: it may be done. False: it is too much just now.
  [[nodiscard]] bool take(TimePoint now) {
    if (filled_ != TimePoint{}) {
      const std::chrono::duration<double> since = now - filled_;
      tokens_ = std::min(at_once_, tokens_ + since.count() * a_second_);
    }
    filled_ = now;
    if (tokens_ < 1) return false;
    --tokens_;
    return true;
  }

 private:
  double a_second_, at_once_, tokens_;
  TimePoint filled_{};
};

}  // namespace rayhook
