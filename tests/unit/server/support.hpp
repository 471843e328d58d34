// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "server/http/session.hpp"

namespace rayhook::test {

/// A clock that stands still until told otherwise.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }
  void advance(std::chrono::milliseconds time) { now_ += time; }

 private:
  TimePoint now_{std::chrono::hours(1)};
};

/// A look-up that answers at once, later or never, as the test says.
class FakeLookup final : public Lookup {
 public:
  bool now = true;  // whether it knows without the network
  bool is_ready = true;
  std::function<void()> on_try;  // may throw
  Facts facts;

  bool try_now(const LookupRequest& request, Facts& out) override {
    if (on_try) on_try();
    if (!now) return false;
    out = facts.services.empty() ? unknown_facts(request.needs) : facts;
    return true;
  }
  Task<Facts> fulfil(LookupRequest) override { co_return facts; }
  [[nodiscard]] bool ready() const override { return is_ready; }
};

/// A log into a file without a name; `text()` waits until it is written.
class FileLog {
 public:
  explicit FileLog(LogLevel level)
      : fd_(::open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)),
        log_(std::make_unique<Log>(level, fd_)) {}
  ~FileLog() {
    log_.reset();  // its thread writes to the descriptor until then
    ::close(fd_);
  }
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;

  Log& log() { return *log_; }
  /// Ends the log.
  std::string text() {
    log_.reset();
    std::string out(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), '\0');
    [[maybe_unused]] const auto read = ::pread(fd_, out.data(), out.size(), 0);
    return out;
  }

 private:
  int fd_;
  std::unique_ptr<Log> log_;
};

/// Everything a session needs.
struct World {
  Policy policy;
  Limits limits;
  FakeClock clock;
  std::atomic<bool> draining{false};
  Load load;
  Metrics metrics;
  FakeLookup lookup;
  ReviewReaders readers;
  FileLog log{LogLevel::debug};
  DecisionLog decisions{log.log()};
  SessionContext context{policy,  limits, clock,   draining, load,
                         metrics, lookup, readers, decisions};

  /// How many faults of that kind were counted.
  [[nodiscard]] std::uint64_t faults(HttpFault kind) const {
    const std::string line =
        "rayhook_http_errors_total{reason=\"" + std::string(word(kind)) + "\"} ";
    const std::string text = metrics.text();
    return std::stoull(text.substr(text.find(line) + line.size()));
  }
};

/// Sends bytes to a session and collects what it answers, until it wants more or ends.
class Client {
 public:
  explicit Client(SessionContext& context) : session(context) {}

  Session session;
  std::string out;
  bool closed = false;
  bool waits_for_facts = false;

  /// In pieces of at most `piece` bytes. Stops when the session has ended.
  void send(std::string_view bytes, std::size_t piece = 1 << 20) {
    while (!bytes.empty() && !closed && !waits_for_facts) {
      const std::span<char> space = session.space();
      const std::size_t size = std::min({bytes.size(), piece, space.size()});
      std::ranges::copy(bytes.substr(0, size), space.begin());
      bytes.remove_prefix(size);
      follow(session.received(size));
    }
    unsent = bytes.size();
  }

  void follow(Session::Step step) {
    while (step == Session::Step::write) {
      out += session.output();
      step = session.written();
    }
    closed = step == Session::Step::close;
    waits_for_facts = step == Session::Step::facts;
  }

  std::string take() { return std::exchange(out, {}); }

  std::size_t unsent = 0;
};

/// A review that is answered with a leave: a pod without references.
inline std::string review_body(std::string_view uid = "u1") {
  return R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":")" +
         std::string(uid) +
         R"(","kind":{"group":"","version":"v1","kind":"Pod"},"namespace":"team-a",)"
         R"("operation":"CREATE","userInfo":{"username":"alice"},"object":{"metadata":{"name":"p"},)"
         R"("spec":{"containers":[{"name":"c"}]}},"dryRun":false}})";
}

/// A review of a head Service, which is converted.
inline std::string head_service_body() {
  return R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u2",)"
         R"("kind":{"group":"","version":"v1","kind":"Service"},"namespace":"team-a",)"
         R"("operation":"CREATE","userInfo":{"username":"alice"},"object":{"metadata":)"
         R"({"name":"ray-head"},"spec":{"type":"ClusterIP","selector":{"app":"ray-head"},)"
         R"("ports":[{"name":"gcs-server","port":6379,"targetPort":6379}]}},"dryRun":false}})";
}

/// A well-formed request; `fields` are further header lines, each with its CRLF.
inline std::string post(std::string_view body, std::string_view fields = {},
                        std::string_view target = "/mutate?timeout=10s") {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: rayhook.ray.svc:443\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

/// What review_body() is answered with.
inline const std::string leave_body =
    R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u1",)"
    R"("allowed":true,"auditAnnotations":{"reason":"no-reference","review-uid":"u1"}}})"
    "\n";
inline const std::string leave_answer =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
    std::to_string(leave_body.size()) + "\r\n\r\n" + leave_body;

/// A well-formed request in chunks of at most `size` bytes.
inline std::string chunked(std::string_view body, std::size_t size) {
  std::string out =
      "POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  while (!body.empty()) {
    const std::string_view piece = body.substr(0, size);
    char length[20];
    std::snprintf(length, sizeof length, "%zx", piece.size());
    out += std::string(length) + "\r\n" + std::string(piece) + "\r\n";
    body.remove_prefix(piece.size());
  }
  return out + "0\r\n\r\n";
}

}  // namespace rayhook::test
