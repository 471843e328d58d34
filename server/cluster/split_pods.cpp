// SPDX-License-Identifier: Apache-2.0
#include "split_pods.hpp"

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
      pause_(executor),
      plan_(every) {}

void SplitPods::look_now() {
  plan_.round_now();
  timer_.cancel();
}

void SplitPods::look_soon(std::string_view ns) {
  if (every_.count() == 0) return;
  plan_.converted(ns, clock_.now());
  timer_.cancel();
}

Task<void> SplitPods::run() {
  if (every_.count() == 0) co_return;
  for (;;) {
    while (clock_.now() < plan_.next()) {
      timer_.expires_at(plan_.next());
      co_await wait(timer_);
    }
    try {
      co_await look(plan_.take_due(index_.converted_namespaces(), clock_.now()));
    } catch (const std::exception& error) {
      log_.event(LogLevel::error, "internal error; please report it", {{"what", error.what()}});
    }
  }
}

Task<void> SplitPods::look(std::vector<LookPlan::Look> looks) {
  std::int64_t lines = 0;
  for (const LookPlan::Look& one : looks) co_await look_at(one, lines);
  metrics_.set_split_pods(plan_.found());
  if (lines > kLines)
    log_.event(LogLevel::warn, "more split pods than are listed here", {{"found", lines}});
}

Task<void> SplitPods::look_at(LookPlan::Look look, std::int64_t& lines) {
  PodPages pages(client_, look.ns);
  std::int64_t found = 0;
  const PodPages::OnPod on_pod = [this, &look, &found, &lines](const Review& pod) {
    const Split split = split_of(pod, look.ns);
    if (split >= Split::suspected) ++found;
    const LookPlan::Tell least =
        split == Split::older ? LookPlan::Tell::older : LookPlan::Tell::split;
    if (split != Split::no && look.tell >= least && ++lines <= kLines) say(split, pod, look.ns);
    return true;
  };
  Result<bool> more = true;
  while (more && *more) {
    more = co_await pages.next(clock_, clock_.now() + kPageTime, on_pod);
    metrics_.pod_list(more ? PodListResult::complete : PodListResult::failed);
    pause_.expires_after(kPause);
    co_await wait(pause_);
  }
  if (more) {
    plan_.counted(look, found, clock_.now());
    co_return;
  }
  plan_.failed(look, found, clock_.now());
  log_.event(LogLevel::warn, "pods could not be listed to look for split ones",
             {{"namespace", look.ns}, {"error", more.error().what}});
}

Split SplitPods::split_of(const Review& pod, std::string_view ns) const {
  Review review = pod;
  review.ns = ns;
  return split(review, policy_, index_.of(ns));
}

void SplitPods::say(Split split, const Review& pod, std::string_view ns) {
  if (split == Split::older) {
    log_.event(LogLevel::info,
               "a pod that is older than the converted Service beside it and names none of its "
               "variables: nothing is to be done, unless its code reads them",
               {{"namespace", ns}, {"pod", pod.pod.name}});
  } else if (split == Split::suspected) {
    log_.event(LogLevel::warn,
               "a split pod: admitted without the variables of a converted Service, which its text "
               "does not name, but its code may read; if it does, make it anew",
               {{"namespace", ns}, {"pod", pod.pod.name}, {"command", mending_command(pod, ns)}});
  } else {
    log_.event(LogLevel::warn,
               "a split pod: its text names variables of a converted Service, and it was admitted "
               "without them; make it anew",
               {{"namespace", ns}, {"pod", pod.pod.name}, {"command", mending_command(pod, ns)}});
  }
}

}  // namespace rayhook
