// SPDX-License-Identifier: Apache-2.0
#include "split_pods.hpp"

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

SplitPods::SplitPods(Executor executor, KubeClient& client, const ServiceIndex& index,
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

Task<void> SplitPods::run() {
  if (every_.count() == 0) co_return;
  TimePoint next = TimePoint::max();  // the first round is asked for
  for (;;) {
    timer_.expires_at(next);
    while (!due_ && clock_.now() < next) co_await wait(timer_);
    due_ = false;
    try {
      const std::int64_t found = co_await look();
      metrics_.set_split_pods(found);
      if (found > kLines)
        log_.event(LogLevel::warn, "more split pods than are listed here", {{"found", found}});
    } catch (const std::exception& error) {
      log_.event(LogLevel::error, "internal error; please report it", {{"what", error.what()}});
    }
    next = clock_.now() + every_;
  }
}

Task<std::int64_t> SplitPods::look() {
  std::int64_t found = 0;
  const std::vector<std::string> namespaces = index_.converted_namespaces();
  for (const std::string& ns : namespaces) co_await look_at(ns, found);
  co_return found;
}

Task<void> SplitPods::look_at(std::string ns, std::int64_t& found) {
  PodPages pages(client_, ns);
  const PodPages::OnPod on_pod = [this, &ns, &found](const Review& pod) {
    if (is_split(pod, ns) && ++found <= kLines) say(pod, ns);
    return true;
  };
  for (bool more = true; more;) {
    const TimePoint end = clock_.now() + kPageTime;
    const Result<bool> page = co_await pages.next(clock_, end, on_pod);
    metrics_.pod_list(page ? PodListResult::complete : PodListResult::failed);
    if (!page) {
      log_.event(LogLevel::warn, "pods could not be listed to look for split ones",
                 {{"namespace", ns}, {"error", page.error().what}});
      co_return;
    }
    more = *page;
    pause_.expires_after(kPause);
    co_await wait(pause_);
  }
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
