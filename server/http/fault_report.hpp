// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/clock.hpp"
#include "server/log.hpp"
#include "server/metrics.hpp"

namespace rayhook {

/// Tells in the log of connections and requests that came to nothing (port scans, health checks of
/// load balancers, broken clients): not each, but in one line a minute with their counts, under the
/// words of the metrics. The first after a quiet minute is told at once. Not thread-safe.
class FaultReport {
 public:
  /// What it refers to must outlive it.
  FaultReport(const Metrics& metrics, const Clock& clock, Log& log)
      : metrics_(metrics), clock_(clock), log_(log) {}

  /// To be called about once a second.
  void look();
  /// What has not been told yet, at the end.
  void tell();

 private:
  static constexpr std::chrono::minutes kEvery{1};

  const Metrics& metrics_;
  const Clock& clock_;
  Log& log_;
  FaultCounts told_{};
  TimePoint next_{};  // not before that
};

}  // namespace rayhook
