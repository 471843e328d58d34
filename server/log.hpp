// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace rayhook {

/// What is logged: `error`: something that needs a person; `warn`: degraded, mends itself or needs
/// a person soon; `info`: decisions of concern, start and end; `debug`: every decision.
enum class LogLevel : std::uint8_t { debug, info, warn, error };

[[nodiscard]] std::string_view word(LogLevel level);
[[nodiscard]] std::optional<LogLevel> log_level(std::string_view word);

/// A member of a log line beyond time, level and message.
struct LogField {
  std::string_view key;
  std::variant<std::string_view, std::int64_t> value;
};

/// The log: one JSON object per line on a file descriptor, written by a thread of its own. Never
/// blocks a caller: when the reader of the log is slow, the oldest waiting lines are lost, and
/// counted. Thread-safe.
class Log {
 public:
  /// Lines that may wait; longer than this many bytes a line should not be.
  static constexpr std::size_t kQueue = 1024;
  static constexpr std::size_t kLineBytes = 8 * 1024;

  /// Writes lines of `level` and above to `fd`, which must outlive the log and is not closed.
  explicit Log(LogLevel level, int fd = 1);
  /// Writes what is waiting, for at most two seconds.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  [[nodiscard]] bool enabled(LogLevel level) const noexcept { return level >= level_; }

  /// Logs `{"ts":…,"level":…,"msg":…, fields…}` if the level is enabled.
  void event(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

  /// Logs a line that is one JSON object already (see `begin_line`).
  void write(LogLevel level, std::string_view line);

  /// Lines lost so far.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  struct State;
  LogLevel level_;
  std::unique_ptr<State> state_;
};

/// The members that each line begins with, and the first of them: the time of now, UTC, RFC 3339
/// with milliseconds. For lines that are built by hand: `JsonLine line(out); stamp(line, …)`.
class JsonLine;
void stamp(JsonLine& line, LogLevel level, std::string_view message);

/// Lets one event in `every` pass and counts the others, so that a repeated fault cannot fill the
/// log. Not thread-safe.
class LogGate {
 public:
  explicit LogGate(std::chrono::steady_clock::duration every) : every_(every) {}
  /// The number of events held back since the last one that passed, if this one may pass.
  [[nodiscard]] std::optional<std::int64_t> pass(std::chrono::steady_clock::time_point now);

 private:
  std::chrono::steady_clock::duration every_;
  std::optional<std::chrono::steady_clock::time_point> last_;
  std::int64_t held_back_ = 0;
};

}  // namespace rayhook
