// SPDX-License-Identifier: Apache-2.0
#include "service_watch.hpp"

#include <algorithm>

#include "pod_pages.hpp"

namespace rayhook {
namespace {

constexpr unsigned kPage = 500;
constexpr std::chrono::seconds kListTime{60};
/// The API server ends a watch after so long; spread, so that replicas do not come back together.
constexpr int kWatchSeconds = 300, kWatchSpread = 120;
/// A watch that ended sooner was no good one: not asked for again at once.
constexpr std::chrono::seconds kShortest{1};
constexpr std::chrono::milliseconds kFirstPause{200}, kLongestPause{15'000};
constexpr std::chrono::seconds kLongestRetryAfter{60};

WatchFault fault_of(unsigned status) {
  if (status == 410) return WatchFault::gone;
  if (status == 429) return WatchFault::busy;
  if (status == 401 || status == 403) return WatchFault::forbidden;
  return WatchFault::refused;
}

std::string complaint(const KubeAnswer& answer) {
  std::string out = "the API server answered with status " + std::to_string(answer.status);
  if (answer.status == 401) out += ": the token or client certificate is not accepted";
  if (answer.status == 403) out += ": list and watch of Services in all namespaces is not allowed";
  return out;
}

}  // namespace

ServiceWatch::ServiceWatch(Executor executor, KubeClient& client, ServiceIndex& index,
                           const Policy& policy, const Clock& clock, std::chrono::seconds idle,
                           Metrics& metrics, Log& log, Handlers handlers)
    : executor_(std::move(executor)),
      client_(client),
      index_(index),
      policy_(policy),
      clock_(clock),
      idle_(idle),
      metrics_(metrics),
      log_(log),
      handlers_(std::move(handlers)),
      timer_(executor_) {}

std::string ServiceWatch::path(const std::string& query) const {
  return "/api/v1/services?" +
         std::string(selector_ ? "fieldSelector=spec.clusterIP%3DNone&" : "") + query;
}

Task<void> ServiceWatch::run() {
  for (;;) {
    bool fine = false;
    try {
      if (version_.empty())
        fine = co_await list();
      else
        fine = co_await watch();
    } catch (const std::exception& error) {
      broken(WatchFault::internal, error.what());
    }
    if (!fine) co_await pause();
  }
}

/// Reads all pages into the index. False: try again after a pause.
Task<bool> ServiceWatch::list() {
  CaredServices services(policy_);
  std::string next, version;
  do {
    const Result<ListEnd> page = co_await list_page(next, services);
    if (!page) co_return false;
    next = page->continue_token;
    version = page->resource_version;
  } while (!next.empty());
  if (version.empty()) {
    broken(WatchFault::malformed, "the API server's list has no resourceVersion");
    co_return false;
  }
  version_ = std::move(version);
  index_.replace(std::move(services));
  metrics_.set_indexed(index_.size());
  metrics_.watch_heard();
  handlers_.changed({}, {});
  if (!synced_.exchange(true)) in_step();
  co_return true;
}

Task<Result<ListEnd>> ServiceWatch::list_page(const std::string& continue_token,
                                              CaredServices& services) {
  std::string query = "limit=" + std::to_string(kPage);
  if (!continue_token.empty()) query += "&continue=" + percent_encoded(continue_token);
  ListSplitter splitter;
  std::optional<Error> fault;
  const ListSplitter::OnItem on_item = [&](std::string_view item) {
    // One that cannot be read is no reason to know nothing of the others.
    if (Result<Service> service = parse_service(item)) services.put(std::move(*service));
    return true;
  };
  OnBytes on_bytes = [&](std::string_view bytes) {
    const Result<bool> fed = splitter.feed(bytes, on_item);
    if (!fed) fault = fed.error();
    return fed.has_value();
  };
  const TimePoint end = clock_.now() + kListTime;
  const StreamTimes times{end, idle_, end};
  std::string where = path(query);
  const Result<KubeAnswer> answer =
      co_await client_.stream(std::move(where), times, std::move(on_bytes));
  if (!answer) {
    broken(WatchFault::unreachable, answer.error().what);
    co_return std::unexpected(answer.error());
  }
  if (refused(*answer)) co_return fail(Errc::unreachable, complaint(*answer));
  Result<ListEnd> list_end = fault ? std::unexpected(*fault) : splitter.end();
  if (!list_end) broken(WatchFault::malformed, list_end.error().what);
  co_return list_end;
}

/// Follows the changes until the stream ends. False: go on after a pause.
Task<bool> ServiceWatch::watch() {
  const int seconds = kWatchSeconds + static_cast<int>(random_() % kWatchSpread);
  const std::string query = "watch=1&allowWatchBookmarks=true&resourceVersion=" + version_ +
                            "&timeoutSeconds=" + std::to_string(seconds);
  LineSplitter lines;
  bool stopped = false;
  OnBytes on_bytes = [&](std::string_view bytes) {
    if (bytes.empty()) in_step();  // the header is there
    stopped = !lines.feed(bytes, [this](std::string_view line) { return event(line); });
    if (stopped && lines.pending() > LineSplitter::kMostLine)
      broken(WatchFault::malformed, "watch: a line without end");
    return !stopped;
  };
  const TimePoint began = clock_.now();
  const StreamTimes times{began + idle_, idle_, TimePoint::max()};
  std::string where = path(query);
  const Result<KubeAnswer> answer =
      co_await client_.stream(std::move(where), times, std::move(on_bytes));
  if (stopped) co_return false;
  if (!answer) {
    broken(WatchFault::unreachable, answer.error().what);
    co_return false;
  }
  if (refused(*answer)) co_return false;
  if (clock_.now() - began >= kShortest) co_return true;  // its time was over
  broken(WatchFault::short_lived, "the API server ended the watch at once");
  co_return false;
}

/// Takes in one line of the watch; false ends it.
bool ServiceWatch::event(std::string_view line) {
  using Kind = WatchEvent::Kind;
  Result<WatchEvent> read = parse_watch_event(line);
  if (!read) {
    version_.clear();  // what was missed nobody knows
    broken(WatchFault::malformed, read.error().what);
    return false;
  }
  if (read->kind == Kind::error) {
    version_.clear();
    broken(fault_of(read->code),
           "watch: status " + std::to_string(read->code) + " " + read->message);
    return false;
  }
  version_ = std::move(read->resource_version);
  failures_ = 0;
  metrics_.watch_heard();
  if (read->kind == Kind::bookmark) return true;
  const std::string ns = read->service.ns, name = read->service.name;
  const std::optional<ServiceFact> before = index_.find(ns, name);
  const bool was_converted = before && before->service && before->service->converted();
  const bool is_converted = read->kind != Kind::deleted && read->service.converted();
  if (read->kind == Kind::deleted)
    index_.remove(ns, name);
  else
    index_.put(std::move(read->service));
  metrics_.set_indexed(index_.size());
  handlers_.changed(ns, name);
  if (is_converted && !was_converted) handlers_.converted(ns);
  return true;
}

/// True if the answer is no 200: what follows from it is noted.
bool ServiceWatch::refused(const KubeAnswer& answer) {
  if (answer.status == 200) return false;
  if (answer.status == 410) version_.clear();
  if (answer.status == 400 && selector_) {
    // Field selectors on spec.clusterIP came with Kubernetes 1.31.
    selector_ = false;
    version_.clear();
    log_.event(LogLevel::info,
               "the API server has no field selector for headless Services (it came with "
               "Kubernetes 1.31): all Services are read, and the others passed over");
  }
  retry_after_ = std::min(answer.retry_after, kLongestRetryAfter);
  broken(fault_of(answer.status), complaint(answer));
  return true;
}

void ServiceWatch::in_step() {
  failures_ = 0;
  if (healthy_.exchange(true)) return;
  metrics_.set_watch_healthy(true);
  const auto away = broken_since_ ? clock_.now() - *broken_since_ : std::chrono::nanoseconds(0);
  broken_since_.reset();
  log_.event(
      LogLevel::info, "the Service watch is in step with the API server",
      {{"services", static_cast<std::int64_t>(index_.size())},
       {"awayMilliseconds", std::chrono::duration_cast<std::chrono::milliseconds>(away).count()}});
  handlers_.back();
}

void ServiceWatch::broken(WatchFault fault, std::string_view error) {
  ++failures_;
  metrics_.watch_broke(fault);
  // A watch that is too old, or was ended, is an everyday matter: a new one follows at once.
  if (failures_ == 1 && (fault == WatchFault::gone || fault == WatchFault::short_lived)) return;
  if (!broken_since_) broken_since_ = clock_.now();
  const bool was_healthy = healthy_.exchange(false);
  if (was_healthy) metrics_.set_watch_healthy(false);
  const auto held_back = gate_.pass(clock_.now());
  if (!was_healthy && !held_back) return;
  log_.event(LogLevel::warn,
             synced_ ? "the Service watch is broken: reviews are answered from what is known and "
                       "from single look-ups until it is back"
                     : "Services cannot be listed yet: not ready",
             {{"error", error}, {"failures", static_cast<std::int64_t>(failures_)}});
}

Task<void> ServiceWatch::pause() {
  auto time = kFirstPause * (1U << std::min(failures_ > 0 ? failures_ - 1 : 0U, 10U));
  time = std::min<std::chrono::milliseconds>(time, kLongestPause);
  time = time / 2 +
         std::chrono::milliseconds(random_() % static_cast<unsigned long>(time.count() / 2 + 1));
  time = std::max<std::chrono::milliseconds>(time, retry_after_);
  retry_after_ = std::chrono::seconds(0);
  timer_.expires_after(time);
  co_await wait(timer_);
}

}  // namespace rayhook
