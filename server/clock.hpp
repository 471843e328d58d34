// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace rayhook {

using TimePoint = std::chrono::steady_clock::time_point;

/// Where time comes from, so that tests can hand it in. Thread-safe; never fails.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
};

}  // namespace rayhook
