// SPDX-License-Identifier: Apache-2.0
#include "metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include "lib/version.hpp"

namespace rayhook {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::array<std::string_view, 5> kOperationWords = {"CREATE", "UPDATE", "DELETE",
                                                             "CONNECT", "other"};

std::size_t operation_index(std::string_view operation) {
  std::size_t i = 0;
  while (i + 1 < kOperationWords.size() && kOperationWords[i] != operation) ++i;
  return i;
}

/// A review as alerts and the dashboard ask for it.
struct AskedFor {
  ObjectKind kind;
  Outcome outcome;
  Reason reason;
  bool operator==(const AskedFor&) const = default;
};

/// These are told from the start, at zero: `increase` does not see the event with which a series
/// appears. All others (there are thousands) appear with their first review.
constexpr std::array<AskedFor, 5> kToldAtZero = {
    {{ObjectKind::service, Outcome::patch, Reason::converted},
     {ObjectKind::pod, Outcome::patch, Reason::rewritten},
     {ObjectKind::pod, Outcome::patch, Reason::restored},
     {ObjectKind::service, Outcome::leave, Reason::patch_refused},
     {ObjectKind::pod, Outcome::leave, Reason::patch_refused}}};

bool told_at_zero(std::string_view operation, const AskedFor& review) {
  return operation == "CREATE" && std::ranges::find(kToldAtZero, review) != kToldAtZero.end();
}

MetricFamily family(std::string_view name, std::string_view help, MetricType type) {
  return {std::string(name), std::string(help), type, {}};
}

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

ClientMetric sample(MetricType type, double value, Labels labels = {}) {
  ClientMetric out;
  for (const auto& [name, text] : labels)
    out.label.push_back({std::string(name), std::string(text)});
  if (type == MetricType::Counter)
    out.counter.value = value;
  else
    out.gauge.value = value;
  return out;
}

MetricFamily single(std::string_view name, std::string_view help, MetricType type, double value) {
  MetricFamily out = family(name, help, type);
  out.metric.push_back(sample(type, value));
  return out;
}

/// A family of counters with one label, whose values are the words of an enum.
template <class E, class Counters>
MetricFamily by_word(std::string_view name, std::string_view help, std::string_view label,
                     const Counters& counters) {
  MetricFamily out = family(name, help, MetricType::Counter);
  for (std::size_t i = 0; i < counters.size(); ++i)
    out.metric.push_back(sample(MetricType::Counter, static_cast<double>(counters[i].load()),
                                {{label, word(static_cast<E>(i))}}));
  return out;
}

}  // namespace

std::string_view word(HttpFault fault) {
  constexpr std::array<std::string_view, kHttpFaults> kWords = {
      "bad_request",    "not_found",    "bad_method",     "bad_content_type",
      "bad_body",       "too_large",    "head_too_large", "bad_expectation",
      "header_timeout", "body_timeout", "write_timeout",  "truncated",
      "starting",       "busy",         "too_late",       "internal"};
  return kWords[static_cast<std::size_t>(fault)];
}

std::string_view word(LookupResult result) {
  constexpr std::array<std::string_view, kLookupResults> kWords = {"cached", "present", "absent",
                                                                   "failed", "late",    "busy"};
  return kWords[static_cast<std::size_t>(result)];
}

std::string_view word(WatchFault fault) {
  constexpr std::array<std::string_view, kWatchFaults> kWords = {
      "gone",      "busy",        "forbidden",   "refused",
      "malformed", "unreachable", "short_lived", "internal"};
  return kWords[static_cast<std::size_t>(fault)];
}

std::string_view word(HoldResult result) {
  constexpr std::array<std::string_view, kHoldResults> kWords = {"came", "gone", "refused"};
  return kWords[static_cast<std::size_t>(result)];
}

std::string_view word(PodListResult result) {
  constexpr std::array<std::string_view, kPodListResults> kWords = {"complete", "reader_found",
                                                                    "late", "failed", "busy"};
  return kWords[static_cast<std::size_t>(result)];
}

std::string_view word(EventResult result) {
  constexpr std::array<std::string_view, kEventResults> kWords = {"written", "repeated", "dropped",
                                                                  "failed"};
  return kWords[static_cast<std::size_t>(result)];
}

std::string_view word(HandshakeFault fault) {
  constexpr std::array<std::string_view, kHandshakeFaults> kWords = {
      "timeout", "closed", "protocol", "client_certificate"};
  return kWords[static_cast<std::size_t>(fault)];
}

std::string_view word(Mode mode) { return mode == Mode::mutate ? "mutate" : "audit"; }

std::string_view word(ObjectKind kind) {
  return kind == ObjectKind::pod ? "Pod" : kind == ObjectKind::service ? "Service" : "other";
}

std::string_view word(Outcome outcome) {
  return outcome == Outcome::patch ? "patch" : outcome == Outcome::leave ? "leave" : "deny";
}

void Metrics::reviewed(const Review& review, const Decision& decision, Mode mode,
                       std::chrono::steady_clock::duration took) noexcept {
  std::size_t place = index(review.kind);
  place = place * kOperations + operation_index(review.operation);
  place = place * kOutcomes + index(decision.outcome);
  place = place * kReasonCount + index(decision.reason);
  place = place * 2 + (review.dry_run ? 1 : 0);
  place = place * 2 + index(mode);
  add(reviews_[place]);

  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
  const auto time = nanoseconds > 0 ? static_cast<std::uint64_t>(nanoseconds) : 0;
  std::size_t bucket = 0;
  while (bucket < kBuckets.size() && time > std::uint64_t{kBuckets[bucket]} * 1000) ++bucket;
  add(durations_[bucket]);
  duration_nanoseconds_.fetch_add(time, std::memory_order_relaxed);
}

void Metrics::watch_heard() noexcept { watch_heard_.store(std::time(nullptr)); }

FaultCounts Metrics::faults() const noexcept {
  FaultCounts out;
  for (std::size_t i = 0; i < handshakes_.size(); ++i) out.handshakes[i] = handshakes_[i].load();
  for (std::size_t i = 0; i < faults_.size(); ++i) out.requests[i] = faults_[i].load();
  out.refused = connections_refused_.load();
  return out;
}

std::string Metrics::text() const {
  const auto load = [](const auto& counter) { return static_cast<double>(counter.load()); };
  std::vector<MetricFamily> all;

  MetricFamily reviews = family("rayhook_reviews_total", "Reviews answered.", MetricType::Counter);
  for (std::size_t i = 0; i < reviews_.size(); ++i) {
    const std::uint64_t count = reviews_[i].load(std::memory_order_relaxed);
    std::size_t rest = i;
    const auto take = [&rest](std::size_t size) { return std::exchange(rest, rest / size) % size; };
    const auto mode = static_cast<Mode>(take(2));
    const bool dry_run = take(2) == 1;
    const auto reason = static_cast<Reason>(take(kReasonCount));
    const auto outcome = static_cast<Outcome>(take(kOutcomes));
    const std::string_view operation = kOperationWords[take(kOperations)];
    const auto kind = static_cast<ObjectKind>(rest);
    if (count == 0 && !told_at_zero(operation, {kind, outcome, reason})) continue;
    reviews.metric.push_back(sample(MetricType::Counter, static_cast<double>(count),
                                    {{"kind", word(kind)},
                                     {"operation", operation},
                                     {"outcome", word(outcome)},
                                     {"reason", word(reason)},
                                     {"dry_run", dry_run ? "true" : "false"},
                                     {"mode", word(mode)}}));
  }
  all.push_back(std::move(reviews));

  MetricFamily durations = family(
      "rayhook_review_duration_seconds",
      "Time from a review's last byte to its answer, look-ups included.", MetricType::Histogram);
  ClientMetric histogram;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kBuckets.size(); ++i) {
    count += durations_[i].load();
    histogram.histogram.bucket.push_back({count, static_cast<double>(kBuckets[i]) / 1e6});
  }
  histogram.histogram.sample_count = count + durations_.back().load();
  histogram.histogram.sample_sum = load(duration_nanoseconds_) / 1e9;
  durations.metric.push_back(std::move(histogram));
  all.push_back(std::move(durations));

  all.push_back(by_word<HttpFault>("rayhook_http_errors_total",
                                   "Requests that were not answered with an AdmissionReview.",
                                   "reason", faults_));
  all.push_back(by_word<LookupResult>(
      "rayhook_lookups_total", "Look-ups of Services that pods refer to.", "result", lookups_));
  all.push_back(single("rayhook_watch_healthy",
                       "1 while the watch of headless Services is in step with the API server.",
                       MetricType::Gauge, watch_healthy_.load() ? 1 : 0));
  all.push_back(single("rayhook_watch_last_event_seconds",
                       "When the watch last heard of the API server, as Unix time.",
                       MetricType::Gauge, load(watch_heard_)));
  all.push_back(by_word<WatchFault>("rayhook_watch_restarts_total",
                                    "Lists and watches of Services that failed, by reason.",
                                    "reason", watch_faults_));
  all.push_back(single("rayhook_services_indexed", "Headless Services that pods are cared for by.",
                       MetricType::Gauge, load(indexed_)));
  all.push_back(single("rayhook_held_reviews", "Reviews that wait for a Service just now.",
                       MetricType::Gauge, load(held_)));
  all.push_back(by_word<HoldResult>("rayhook_holds_total",
                                    "Reviews held for a Service that was not there yet.", "result",
                                    holds_));
  all.push_back(by_word<PodListResult>("rayhook_pod_lists_total", "Lists of a namespace's pods.",
                                       "result", pod_lists_));
  all.push_back(by_word<EventResult>("rayhook_events_total", "Kubernetes Events (--events).",
                                     "result", events_));
  all.push_back(single("rayhook_split_pods",
                       "Pods that lack variables of a converted Service which their text names or "
                       "their code may read.",
                       MetricType::Gauge, load(split_pods_)));
  all.push_back(by_word<HandshakeFault>("rayhook_handshake_failures_total",
                                        "TLS handshakes that failed.", "reason", handshakes_));
  all.push_back(single("rayhook_in_flight_reviews", "Reviews being worked on.", MetricType::Gauge,
                       load(in_flight_)));
  all.push_back(
      single("rayhook_connections", "Open connections.", MetricType::Gauge, load(connections_)));
  all.push_back(single("rayhook_connections_total", "Connections accepted.", MetricType::Counter,
                       load(connections_total_)));
  all.push_back(single("rayhook_connections_refused_total",
                       "Connections cut off: there were too many.", MetricType::Counter,
                       load(connections_refused_)));
  all.push_back(single("rayhook_accept_failures_total",
                       "Connections that could not be accepted (descriptors, memory).",
                       MetricType::Counter, load(accept_failures_)));
  all.push_back(single("rayhook_ready", "1 while /readyz says so.", MetricType::Gauge,
                       ready_ && ready_() ? 1 : 0));
  MetricFamily reloads = family(
      "rayhook_certificate_reloads_total",
      "Certificates read from the files and served (ok), or not (refused).", MetricType::Counter);
  reloads.metric.push_back(sample(MetricType::Counter, load(cert_loads_), {{"result", "ok"}}));
  reloads.metric.push_back(
      sample(MetricType::Counter, load(cert_refusals_), {{"result", "refused"}}));
  all.push_back(std::move(reloads));
  all.push_back(single("rayhook_certificate_not_after_seconds",
                       "When the served certificate ends, as Unix time; 0: there is none.",
                       MetricType::Gauge, load(cert_end_)));
  all.push_back(single("rayhook_ca_not_after_seconds",
                       "When the CA of the served certificate ends, as Unix time; 0: it is not in "
                       "the ca.crt beside --tls-cert.",
                       MetricType::Gauge, load(ca_end_)));
  all.push_back(
      single("rayhook_client_ca_not_after_seconds",
             "When the first certificate of --client-ca ends, as Unix time; 0: no such flag.",
             MetricType::Gauge, load(client_ca_end_)));
  all.push_back(single("rayhook_log_lines_lost_total",
                       "Log lines lost because the log was read too slowly.", MetricType::Counter,
                       lost_lines_ ? static_cast<double>(lost_lines_()) : 0));
  MetricFamily build = family("rayhook_build_info", "Always 1.", MetricType::Gauge);
  build.metric.push_back(sample(MetricType::Gauge, 1, {{"version", kVersion}}));
  all.push_back(std::move(build));
  return prometheus::TextSerializer{}.Serialize(all);
}

}  // namespace rayhook
