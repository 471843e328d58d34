// SPDX-License-Identifier: Apache-2.0
#include "reader_lists.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "pod_pages.hpp"
#include "server/timer.hpp"

namespace rayhook {

struct ReaderLists::Asked {
  Asked(const Executor& executor, ReaderQuestion asked)
      : question(std::move(asked)), timer(executor, question.until) {}
  ReaderQuestion question;
  ReaderAnswer answer;
  bool done = false;
  Timer timer;

  void finish() {
    done = true;
    timer.cancel();
  }

  /// Takes one pod into account.
  void see(const Pod& pod) {
    if (done) return;
    if (selects(question.selector, pod) && is_worker(pod)) answer.matches_workers = true;
    if (!reads(pod, question.service)) return;
    answer.readers = Known::present;
    answer.reader = pod.name;
    finish();
  }
};

struct ReaderLists::Batch {
  std::string ns;
  std::vector<std::shared_ptr<Asked>> asked;

  [[nodiscard]] bool all_done(TimePoint now) const {
    return std::ranges::all_of(
        asked, [now](const auto& one) { return one->done || now >= one->question.until; });
  }
  [[nodiscard]] TimePoint until() const {
    TimePoint out{};
    for (const auto& one : asked) out = std::max(out, one->question.until);
    return out;
  }
};

ReaderLists::ReaderLists(Executor executor, KubeClient& client, const Clock& clock,
                         Metrics& metrics, Log& log)
    : executor_(std::move(executor)),
      client_(client),
      clock_(clock),
      metrics_(metrics),
      log_(log) {}

ReaderLists::~ReaderLists() = default;

Task<ReaderAnswer> ReaderLists::ask(ReaderQuestion question) {
  const auto asked = std::make_shared<Asked>(executor_, std::move(question));
  const std::string& ns = asked->question.ns;
  const auto found = std::ranges::find(waiting_, ns, [](const auto& batch) { return batch->ns; });
  if (found != waiting_.end()) {
    (*found)->asked.push_back(asked);
  } else if (waiting_.size() < kWaiting) {
    waiting_.push_back(std::make_shared<Batch>(Batch{ns, {asked}}));
    start_next();
  } else {
    metrics_.pod_list(PodListResult::busy);
    co_return ReaderAnswer{};
  }
  while (!asked->done && clock_.now() < asked->question.until) co_await wait(asked->timer);
  co_return asked->answer;
}

void ReaderLists::start_next() {
  while (active_ < kActive && !waiting_.empty()) {
    std::shared_ptr<Batch> batch = std::move(waiting_.front());
    waiting_.pop_front();
    ++active_;
    asio::co_spawn(executor_, read(std::move(batch)), asio::detached);
  }
}

Task<void> ReaderLists::read(std::shared_ptr<Batch> batch) {
  Result<bool> more = true;
  bool stopped = false, too_many = false;
  try {
    PodPages pages(client_, batch->ns);
    const PodPages::OnPod on_pod = [this, &batch, &stopped](const Review& review) {
      const Pod& pod = review.pod;
      if (!pod.finished && !pod.terminating)
        for (const auto& one : batch->asked) one->see(pod);
      stopped = batch->all_done(clock_.now());
      return !stopped;
    };
    while (more && *more && !batch->all_done(clock_.now())) {
      too_many = !rate_.take(clock_.now());
      if (too_many)
        more = fail(Errc::unreachable, "more lists a second than one replica makes");
      else
        more = co_await pages.next(clock_, batch->until(), on_pod);
    }
  } catch (const std::exception& error) {
    more = fail(Errc::internal, error.what());
  }
  --active_;
  const bool complete = more && !*more && !stopped;
  bool unfinished = false;
  for (const auto& one : batch->asked) {
    if (one->done) continue;
    unfinished = true;
    if (complete && clock_.now() < one->question.until) {
      one->answer.readers = Known::absent;
      if (!one->answer.matches_workers) one->answer.matches_workers = false;
    }
    one->finish();
  }
  metrics_.pod_list(complete      ? PodListResult::complete
                    : !unfinished ? PodListResult::reader_found
                    : more        ? PodListResult::late
                    : too_many    ? PodListResult::busy
                                  : PodListResult::failed);
  if (!complete && unfinished)
    if (const auto held_back = gate_.pass(clock_.now()))
      log_.event(LogLevel::warn, "the pods of a namespace could not be listed in time",
                 {{"namespace", batch->ns},
                  {"error", more ? std::string_view("it took too long") : more.error().what},
                  {"alsoBefore", *held_back}});
  start_next();
}

}  // namespace rayhook
