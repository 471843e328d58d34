// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "event_sink.hpp"
#include "lib/decision.hpp"
#include "log.hpp"
#include "metrics.hpp"

namespace rayhook {

/// Appends the log line of a decision (docs/audit-log.md): who asked for what, what was decided and
/// why, what the user was told, what was replaced by what. No bodies, and of the user only the
/// name. Every text is cut to a sane length; at Log::kLineBytes the list of changes ends with
/// `changesOmitted`. Pure, but for the time.
void append_decision_line(std::string& out, const Review& review, const Decision& decision,
                          Mode mode, std::size_t patch_bytes,
                          std::chrono::steady_clock::duration took, LogLevel level);

/// Logs decisions: those of concern at info, all at debug; and tells those of concern as Events, if
/// there is a sink. Keeps its memory between lines, so one
/// per thread; not thread-safe (the log behind it is).
class DecisionLog {
 public:
  /// `log` and `events` must outlive this; `events` may be null.
  explicit DecisionLog(Log& log, EventSink* events = nullptr) : log_(log), events_(events) {}

  void decided(const Review& review, const Decision& decision, Mode mode, std::size_t patch_bytes,
               std::chrono::steady_clock::duration took);

  [[nodiscard]] Log& log() { return log_; }

 private:
  Log& log_;
  EventSink* events_;
  std::string line_;
};

}  // namespace rayhook
