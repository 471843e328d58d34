// SPDX-License-Identifier: Apache-2.0
#include "cluster_lookup.hpp"

#include <boost/asio/post.hpp>

#include "server/timer.hpp"

namespace rayhook {
namespace {

/// Where the cluster's thread leaves its answer; read on the thread of the review.
struct Mailbox {
  Facts facts;
  bool full = false;
  std::weak_ptr<Timer> waiting;
};

ClusterQuestion question_of(const LookupRequest& request) {
  ClusterQuestion out;
  out.needs = request.needs;
  out.may_wait = request.may_wait;
  out.dry_run = request.review.dry_run;
  out.began = request.began;
  out.timeout = request.timeout;
  out.deadline = request.deadline;
  if (request.review.kind != ObjectKind::service) return out;
  out.service = request.review.name;
  out.selector = request.review.service.selector;
  return out;
}

}  // namespace

bool ClusterLookup::try_now(const LookupRequest& request, Facts& facts) {
  return cluster_.try_now(request.needs, request.may_wait, facts);
}

Task<Facts> ClusterLookup::fulfil(LookupRequest request) {
  const auto mailbox = std::make_shared<Mailbox>();
  const auto timer = std::make_shared<Timer>(executor_, request.deadline);
  mailbox->waiting = timer;
  std::function<void(Facts)> done = [executor = executor_, mailbox](Facts facts) {
    asio::post(executor, [mailbox, facts = std::move(facts)]() mutable {
      mailbox->facts = std::move(facts);
      mailbox->full = true;
      if (const auto waiting = mailbox->waiting.lock()) waiting->cancel();
    });
  };
  cluster_.ask(question_of(request), std::move(done));
  while (!mailbox->full && std::chrono::steady_clock::now() < request.deadline)
    co_await wait(*timer);
  if (mailbox->full) co_return std::move(mailbox->facts);
  Facts nothing = unknown_facts(request.needs);
  if (request.needs.running_readers) nothing.running_readers = Known::unknown;
  co_return nothing;
}

}  // namespace rayhook
