// SPDX-License-Identifier: Apache-2.0
#include "log.hpp"

#include <poll.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <utility>

#include "json_line.hpp"

namespace rayhook {
namespace {

constexpr std::array<std::string_view, 4> kWords = {"debug", "info", "warn", "error"};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  constexpr std::array kLevels = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                  spdlog::level::err};
  return kLevels[static_cast<std::size_t>(level)];
}

/// Writes lines as they are to a descriptor. Only the log's thread calls it. Where the descriptor
/// takes nothing it waits, but not beyond `hurry()`.
class DescriptorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit DescriptorSink(int fd) : fd_(fd) {}

  /// From now on a reader that takes nothing gets two more seconds in all.
  void hurry() { hurry_.store(true); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    line_.assign(message.payload.data(), message.payload.size());
    line_ += '\n';
    std::string_view left = line_;
    while (!left.empty()) {
      if (!writable()) return;
      // A pipe that polls as writable has room for PIPE_BUF: so this never blocks.
      const ssize_t written =
          ::write(fd_, left.data(), std::min<std::size_t>(left.size(), PIPE_BUF));
      if (written > 0)
        left.remove_prefix(static_cast<std::size_t>(written));
      else if (errno != EINTR && errno != EAGAIN)
        return;  // nobody reads the log any more
    }
  }
  void flush_() override {}

  bool writable() {
    for (;;) {
      if (patience_ <= 0) return false;
      pollfd poll{fd_, POLLOUT, 0};
      constexpr int kStep = 100;  // ms
      if (::poll(&poll, 1, kStep) != 0) return true;
      if (hurry_.load()) patience_ -= kStep;
    }
  }

  int fd_;
  std::atomic<bool> hurry_{false};
  int patience_ = 2000;  // ms
  std::string line_;
};

}  // namespace

std::string_view word(LogLevel level) { return kWords[static_cast<std::size_t>(level)]; }

std::optional<LogLevel> log_level(std::string_view text) {
  for (std::size_t i = 0; i < kWords.size(); ++i)
    if (kWords[i] == text) return static_cast<LogLevel>(i);
  return std::nullopt;
}

struct Log::State {
  std::shared_ptr<DescriptorSink> sink;
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

Log::Log(LogLevel level, int fd) : level_(level), state_(std::make_unique<State>()) {
  state_->sink = std::make_shared<DescriptorSink>(fd);
  state_->pool = std::make_shared<spdlog::details::thread_pool>(kQueue, 1);
  state_->logger = std::make_shared<spdlog::async_logger>(
      "rayhook", state_->sink, state_->pool, spdlog::async_overflow_policy::overrun_oldest);
  state_->logger->set_level(spdlog::level::trace);
}

Log::~Log() {
  state_->sink->hurry();
  state_->logger.reset();
  state_->pool.reset();  // joins its thread once the queue is empty
}

void Log::write(LogLevel level, std::string_view line) {
  state_->logger->log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

void Log::event(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!enabled(level)) return;
  std::string out;
  JsonLine line(out);
  stamp(line, level, message);
  for (const LogField& field : fields) {
    if (const auto* text = std::get_if<std::string_view>(&field.value))
      line.text(field.key, *text);
    else
      line.number(field.key, std::get<std::int64_t>(field.value));
  }
  line.end();
  write(level, out);
}

std::uint64_t Log::lost() const { return state_->pool->overrun_counter(); }

void stamp(JsonLine& line, LogLevel level, std::string_view message) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  thread_local std::time_t second = -1;
  thread_local std::array<char, 32> text{};
  if (now.tv_sec != second) {
    std::tm parts{};
    gmtime_r(&now.tv_sec, &parts);
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.000Z", &parts);
    second = now.tv_sec;
  }
  const auto milliseconds = static_cast<int>(now.tv_nsec / 1'000'000);
  text[20] = static_cast<char>('0' + milliseconds / 100);
  text[21] = static_cast<char>('0' + milliseconds / 10 % 10);
  text[22] = static_cast<char>('0' + milliseconds % 10);
  line.text("ts", std::string_view(text.data(), 24));
  line.text("level", word(level));
  line.text("msg", message);
}

std::optional<std::int64_t> LogGate::pass(std::chrono::steady_clock::time_point now) {
  if (last_ && now - *last_ < every_) {
    ++held_back_;
    return std::nullopt;
  }
  last_ = now;
  return std::exchange(held_back_, 0);
}

}  // namespace rayhook
