// SPDX-License-Identifier: Apache-2.0
#include "split_pods.hpp"

#include <algorithm>

#include "lib/decision.hpp"
#include "pod_pages.hpp"

namespace rayhook {
namespace {

constexpr std::chrono::seconds kPageTime{30};
/// Between pages: the API server has better things to do.
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

std::string mending_command(const Review& pod, std::string_view ns) {
  const std::string where = "kubectl -n " + std::string(ns) + " ";
  const std::string name(pod.pod.name);
  if (!pod.pod.controller.empty()) return where + "delete pod " + name;
  return where + "get pod " + name + " -o json | " + where + "replace --force -f -";
}

SplitPods::SplitPods(const Executor& executor, KubeClient& client, const ServiceIndex& index,
                     const Policy& policy, const Clock& clock, std::chrono::seconds every,
                     Metrics& metrics, Log& log)
    : client_(client),
      index_(index),
      policy_(policy),
      clock_(clock),
      every_(every),
      metrics_(metrics),
      log_(log),
      timer_(executor),
      pause_(executor) {}

void SplitPods::look_now() {
  due_ = true;
  timer_.cancel();
}

void SplitPods::look_soon(std::string_view ns) {
  if (every_.count() == 0 || soon_.size() >= kMostSoon) return;
  soon_.try_emplace(std::string(ns), clock_.now() + kSoon);
  timer_.cancel();
}

TimePoint SplitPods::next() const {
  TimePoint out = round_;
  for (const auto& [ns, when] : soon_) out = std::min(out, when);
  return out;
}

/// The namespaces that are to be looked at now.
std::vector<std::string> SplitPods::take_due() {
  const TimePoint now = clock_.now();
  if (due_ || now >= round_) {
    due_ = false;
    round_ = now + every_;
    counts_.clear();
    // Those that were converted just now have their own look.
    return index_.converted_namespaces();
  }
  std::vector<std::string> out;
  for (const auto& [ns, when] : soon_)
    if (now >= when) out.push_back(ns);
  for (const std::string& ns : out) soon_.erase(ns);
  return out;
}

Task<void> SplitPods::run() {
  if (every_.count() == 0) co_return;
  for (;;) {
    while (!due_ && clock_.now() < next()) {
      timer_.expires_at(next());
      co_await wait(timer_);
    }
    try {
      co_await look(take_due());
    } catch (const std::exception& error) {
      log_.event(LogLevel::error, "internal error; please report it", {{"what", error.what()}});
    }
  }
}

Task<void> SplitPods::look(std::vector<std::string> namespaces) {
  std::int64_t lines = 0;
  for (const std::string& ns : namespaces) co_await look_at(ns, lines);
  std::int64_t found = 0;
  for (const auto& [ns, count] : counts_) found += count;
  metrics_.set_split_pods(found);
  if (lines > kLines)
    log_.event(LogLevel::warn, "more split pods than are listed here", {{"found", lines}});
}

Task<void> SplitPods::look_at(std::string ns, std::int64_t& lines) {
  PodPages pages(client_, ns);
  std::int64_t found = 0;
  const PodPages::OnPod on_pod = [this, &ns, &found, &lines](const Review& pod) {
    if (!is_split(pod, ns)) return true;
    ++found;
    if (++lines <= kLines) say(pod, ns);
    return true;
  };
  for (bool more = true; more;) {
    const TimePoint end = clock_.now() + kPageTime;
    const Result<bool> page = co_await pages.next(clock_, end, on_pod);
    metrics_.pod_list(page ? PodListResult::complete : PodListResult::failed);
    if (!page) {
      log_.event(LogLevel::warn, "pods could not be listed to look for split ones",
                 {{"namespace", ns}, {"error", page.error().what}});
      break;
    }
    more = *page;
    pause_.expires_after(kPause);
    co_await wait(pause_);
  }
  if (found > 0)
    counts_[ns] = found;
  else
    counts_.erase(ns);
}

bool SplitPods::is_split(const Review& pod, std::string_view ns) const {
  if (pod.pod.finished || pod.pod.terminating) return false;
  Review review = pod;
  review.ns = ns;
  Facts facts;
  facts.services = index_.of(ns);
  return decide(review, policy_, facts).outcome == Outcome::patch;
}

void SplitPods::say(const Review& pod, std::string_view ns) {
  log_.event(LogLevel::warn,
             "a split pod: made without Rayhook beside a converted Service, so it lacks what "
             "Kubernetes no longer gives it; make it anew",
             {{"namespace", ns}, {"pod", pod.pod.name}, {"command", mending_command(pod, ns)}});
}

}  // namespace rayhook
