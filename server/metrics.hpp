// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lib/decision.hpp"
#include "lib/review.hpp"

namespace rayhook {

/// Requests that got no AdmissionReview for an answer: the closed list of why.
enum class HttpFault : std::uint8_t {
  bad_request,       ///< 400: no HTTP/1.x request, or one that could be framed in two ways
  not_found,         ///< 404
  bad_method,        ///< 405
  bad_content_type,  ///< 400
  bad_body,          ///< 400: no AdmissionReview that could be answered
  too_large,         ///< 413
  head_too_large,    ///< 431
  bad_expectation,   ///< 417
  header_timeout,    ///< cut off: the header took too long
  body_timeout,      ///< cut off: the body took too long
  write_timeout,     ///< cut off: the answer was not taken
  truncated,         ///< the peer went away in the middle of a request
  starting,          ///< 503: the Services are not known yet
  busy,              ///< 503: too many large bodies at once
  too_late,          ///< dropped: it took longer to come than its `?timeout=`
  internal,          ///< 500
};
inline constexpr std::size_t kHttpFaults = static_cast<std::size_t>(HttpFault::internal) + 1;
[[nodiscard]] std::string_view word(HttpFault fault);

/// How a look-up of one Service ended.
enum class LookupResult : std::uint8_t {
  cached,   ///< known from before
  present,  ///< by GET
  absent,   ///< by GET: 404
  failed,   ///< any other answer, or none: unknown
  late,     ///< not in time for the review: unknown
  busy,     ///< too many, at once or a second, not tried: unknown
};
inline constexpr std::size_t kLookupResults = static_cast<std::size_t>(LookupResult::busy) + 1;
[[nodiscard]] std::string_view word(LookupResult result);

/// Why a list or watch of Services ended before its time.
enum class WatchFault : std::uint8_t {
  gone,         ///< 410: the version is too old; a new list follows
  busy,         ///< 429
  forbidden,    ///< 401, 403
  refused,      ///< any other status
  malformed,    ///< bytes that make no sense
  unreachable,  ///< no connection, silence, or broken off
  short_lived,  ///< ended by the API server at once
  internal,
};
inline constexpr std::size_t kWatchFaults = static_cast<std::size_t>(WatchFault::internal) + 1;
[[nodiscard]] std::string_view word(WatchFault fault);

/// How the holding of a review ended.
enum class HoldResult : std::uint8_t {
  came,     ///< the Service came
  gone,     ///< the time was over
  refused,  ///< not held: too many were
};
inline constexpr std::size_t kHoldResults = static_cast<std::size_t>(HoldResult::refused) + 1;
[[nodiscard]] std::string_view word(HoldResult result);

/// How a list of a namespace's pods ended.
enum class PodListResult : std::uint8_t {
  complete,
  reader_found,  ///< stopped: there is a running reader
  late,          ///< not in time for the review
  failed,
  busy,  ///< too many, at once or a second, not tried
};
inline constexpr std::size_t kPodListResults = static_cast<std::size_t>(PodListResult::busy) + 1;
[[nodiscard]] std::string_view word(PodListResult result);

/// What became of a Kubernetes Event.
enum class EventResult : std::uint8_t {
  written,
  repeated,  ///< the same was written a short while ago
  dropped,   ///< too many were waiting
  failed,
};
inline constexpr std::size_t kEventResults = static_cast<std::size_t>(EventResult::failed) + 1;
[[nodiscard]] std::string_view word(EventResult result);

/// Why a TLS handshake failed.
enum class HandshakeFault : std::uint8_t {
  timeout,
  closed,              ///< by the peer, or its network
  protocol,            ///< what came was no TLS that we speak
  client_certificate,  ///< none, or one that `--client-ca` and `--client-name` do not take
};
inline constexpr std::size_t kHandshakeFaults =
    static_cast<std::size_t>(HandshakeFault::client_certificate) + 1;
[[nodiscard]] std::string_view word(HandshakeFault fault);

/// A path's way with reviews.
enum class Mode : std::uint8_t { mutate, audit };
[[nodiscard]] std::string_view word(Mode mode);

[[nodiscard]] std::string_view word(ObjectKind kind);
[[nodiscard]] std::string_view word(Outcome outcome);

/// Counts of what came to nothing, in the order of their enums. A value.
struct FaultCounts {
  std::array<std::uint64_t, kHandshakeFaults> handshakes{};
  std::array<std::uint64_t, kHttpFaults> requests{};
  std::uint64_t refused = 0;  ///< connections cut off, or not taken: there were too many
  bool operator==(const FaultCounts&) const = default;
};

/// All counts of the server. Every label has a closed set of values, so a counter is a place in an
/// array and counting one atomic addition. Thread-safe; counting never fails or allocates.
class Metrics {
 public:
  Metrics() = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Counts a review that was answered, and the time from its last byte to the answer.
  void reviewed(const Review& review, const Decision& decision, Mode mode,
                std::chrono::steady_clock::duration took) noexcept;
  void fault(HttpFault fault) noexcept { add(faults_[index(fault)]); }
  void lookup(LookupResult result) noexcept { add(lookups_[index(result)]); }
  void lookups_cached(std::uint64_t count) noexcept {
    lookups_[index(LookupResult::cached)].fetch_add(count, std::memory_order_relaxed);
  }
  void watch_broke(WatchFault fault) noexcept { add(watch_faults_[index(fault)]); }
  /// An event or a bookmark came, or a list was read.
  void watch_heard() noexcept;
  void set_watch_healthy(bool healthy) noexcept { watch_healthy_.store(healthy); }
  void set_indexed(std::size_t services) noexcept {
    indexed_.store(static_cast<std::int64_t>(services));
  }
  void hold_ended(HoldResult result) noexcept { add(holds_[index(result)]); }
  void set_held(std::int64_t reviews) noexcept { held_.store(reviews); }
  void pod_list(PodListResult result) noexcept { add(pod_lists_[index(result)]); }
  void kube_event(EventResult result) noexcept { add(events_[index(result)]); }
  void set_split_pods(std::int64_t pods) noexcept { split_pods_.store(pods); }
  void handshake_failed(HandshakeFault fault) noexcept { add(handshakes_[index(fault)]); }
  void accept_failed() noexcept { add(accept_failures_); }
  void connection_refused() noexcept { add(connections_refused_); }

  void connection_opened() noexcept {
    add(connections_total_);
    connections_.fetch_add(1, std::memory_order_relaxed);
  }
  void connection_closed() noexcept { connections_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t connections() const noexcept { return connections_.load(); }

  void review_began() noexcept { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  void review_ended() noexcept { in_flight_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t in_flight() const noexcept { return in_flight_.load(); }

  /// When certificates end, as Unix time; 0: there is none.
  struct CertificateEnds {
    std::int64_t leaf = 0, ca = 0, client_ca = 0;
  };
  /// A certificate is served from now on.
  void certificate_loaded(const CertificateEnds& ends) noexcept {
    add(cert_loads_);
    cert_end_.store(ends.leaf);
    ca_end_.store(ends.ca);
    client_ca_end_.store(ends.client_ca);
  }
  void certificate_refused() noexcept { add(cert_refusals_); }
  /// Where the number of lost log lines is read from. Set once, before the first scrape.
  void watch_lost_lines(std::function<std::uint64_t()> lost) { lost_lines_ = std::move(lost); }
  /// Where it is read whether reviews should be sent here. Set once, before the first scrape.
  void watch_readiness(std::function<bool()> ready) { ready_ = std::move(ready); }

  /// Since the start.
  [[nodiscard]] FaultCounts faults() const noexcept;

  /// Everything in the Prometheus text format 0.0.4.
  [[nodiscard]] std::string text() const;

 private:
  using Counter = std::atomic<std::uint64_t>;
  static constexpr std::size_t kKinds = 3, kOperations = 5, kOutcomes = 3;
  static constexpr std::size_t kReviews = kKinds * kOperations * kOutcomes * kReasonCount * 2 * 2;

  /// Upper bounds of the duration's buckets, in microseconds.
  static constexpr std::array<std::uint32_t, 16> kBuckets = {
      50,     100,    250,     500,     1'000,     2'500,     5'000,     10'000,
      25'000, 50'000, 100'000, 250'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000};

  template <class E>
  static constexpr std::size_t index(E value) {
    return static_cast<std::size_t>(value);
  }
  static void add(Counter& counter) noexcept { counter.fetch_add(1, std::memory_order_relaxed); }

  std::array<Counter, kReviews> reviews_{};
  std::array<Counter, kBuckets.size() + 1> durations_{};
  Counter duration_nanoseconds_{0};
  std::array<Counter, kHttpFaults> faults_{};
  std::array<Counter, kLookupResults> lookups_{};
  std::array<Counter, kWatchFaults> watch_faults_{};
  std::array<Counter, kHoldResults> holds_{};
  std::array<Counter, kPodListResults> pod_lists_{};
  std::array<Counter, kEventResults> events_{};
  std::array<Counter, kHandshakeFaults> handshakes_{};
  Counter accept_failures_{0}, connections_refused_{0}, connections_total_{0};
  Counter cert_loads_{0}, cert_refusals_{0};
  std::atomic<std::int64_t> connections_{0}, in_flight_{0};
  std::atomic<std::int64_t> cert_end_{0}, ca_end_{0}, client_ca_end_{0};
  std::atomic<std::int64_t> watch_heard_{0}, indexed_{0}, held_{0}, split_pods_{0};
  std::atomic<bool> watch_healthy_{false};
  std::function<std::uint64_t()> lost_lines_;
  std::function<bool()> ready_;
};

}  // namespace rayhook
