// SPDX-License-Identifier: Apache-2.0
#include "cluster.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

namespace rayhook {
namespace {

/// A Service without a headless form is not in the watch: while a review is held it is asked for
/// again after so long.
constexpr std::chrono::milliseconds kAskAgain{250};

/// A pod that is admitted is stored a moment later, and until then no list shows it. Pods and their
/// head Service are often made together, so a Service waits so long before its readers are listed.
constexpr std::chrono::milliseconds kSettle{250};

bool any_absent(const ClusterQuestion& question, const std::vector<ServiceFact>& named) {
  for (std::size_t i = 0; i < named.size(); ++i)
    if (question.needs.services[i].ray_address && named[i].known == Known::absent) return true;
  return false;
}

}  // namespace

/// A review that waits for Services.
struct Cluster::Held {
  const ClusterQuestion& question;
  Timer timer;
};

Cluster::Cluster(const ClusterAccess& access, std::shared_ptr<boost::asio::ssl::context> tls,
                 const ClusterOptions& options, const Policy& policy, const Clock& clock,
                 Metrics& metrics, Log& log)
    : policy_(policy),
      clock_(clock),
      metrics_(metrics),
      log_(log),
      index_(policy),
      client_(context_, std::move(tls), access, clock),
      gets_(context_.get_executor(), client_, cache_, clock, metrics, log),
      readers_(context_.get_executor(), client_, clock, metrics, log),
      split_pods_(context_.get_executor(), client_, index_, policy, clock, options.split_pods_every,
                  metrics, log),
      events_(context_.get_executor(), client_, clock, metrics, log),
      watch_(context_.get_executor(), client_, index_, policy, clock, options.watch_idle, metrics,
             log,
             {[this](std::string_view ns, std::string_view name) { changed(ns, name); },
              [this](std::string_view ns) { split_pods_.look_soon(ns); },
              [this] { split_pods_.look_now(); }}),
      misses_(policy.unknown_service),
      events_wanted_(options.events) {}

Cluster::~Cluster() { stop(); }

void Cluster::start() {
  asio::co_spawn(context_, watch_.run(), asio::detached);
  asio::co_spawn(context_, split_pods_.run(), asio::detached);
  thread_ = std::thread([this] {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception& error) {
        log_.event(LogLevel::error, "internal error; please report it", {{"what", error.what()}});
      }
    }
  });
}

void Cluster::stop() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

bool Cluster::try_now(const Needs& needs, bool may_wait, Facts& facts) {
  if (needs.running_readers) return false;
  const bool healthy = watch_.healthy();
  if (needs.converted_services) facts.services = index_.of(needs.ns);
  const std::size_t indexed = facts.services.size();
  std::uint64_t cached = 0;
  for (const NeededService& service : needs.services) {
    const auto end = facts.services.begin() + static_cast<std::ptrdiff_t>(indexed);
    if (healthy && std::find_if(facts.services.begin(), end, [&service](const ServiceFact& fact) {
                     return fact.name == service.name;
                   }) != end)
      continue;
    const std::optional<ServiceFact> fact = cache_.find(needs.ns, service.name, clock_.now());
    const bool wait = fact && fact->known == Known::absent && service.ray_address && may_wait;
    if (!fact || wait) {
      facts.services.clear();
      return false;
    }
    std::erase_if(facts.services,
                  [&service](const ServiceFact& f) { return f.name == service.name; });
    facts.services.push_back(*fact);
    ++cached;
  }
  metrics_.lookups_cached(cached);
  return true;
}

void Cluster::ask(ClusterQuestion question, std::function<void(Facts)> done) {
  auto shared = std::make_shared<const ClusterQuestion>(std::move(question));
  asio::post(context_, [this, shared = std::move(shared), done = std::move(done)]() mutable {
    asio::co_spawn(context_, answer(std::move(shared)),
                   [done = std::move(done)](const std::exception_ptr& error, Facts facts) {
                     // Whoever asked gives up at its deadline, with nothing known.
                     if (!error) done(std::move(facts));
                   });
  });
}

void Cluster::decided(const Review& review, const Decision& decision, Mode mode) {
  asio::post(context_, [this, event = kube_event(review, decision, mode)]() mutable {
    events_.add(std::move(event));
  });
}

Task<Facts> Cluster::answer(std::shared_ptr<const ClusterQuestion> question) {
  const Needs& needs = question->needs;
  Facts facts;
  if (needs.running_readers) {
    if (question->may_wait) {
      // It is being made: whatever was missed for too long is worth waiting for again.
      misses_.seen(needs.ns, question->service);
      Timer settled(context_, std::min(question->began + kSettle, question->deadline));
      co_await wait(settled);
    }
    ReaderQuestion asked{needs.ns, question->service, question->selector,
                         std::min(question->deadline, question->began + question->timeout / 3)};
    ReaderAnswer found = co_await readers_.ask(std::move(asked));
    facts.running_readers = found.readers;
    facts.running_reader = std::move(found.reader);
    facts.matches_workers = found.matches_workers;
  }
  std::vector<ServiceFact> named;
  co_await look_up(*question, named, false);
  if (question->may_wait && any_absent(*question, named)) co_await hold(*question, named);
  if (needs.converted_services) facts.services = index_.of(needs.ns);
  std::erase_if(facts.services, [&named](const ServiceFact& fact) {
    return std::ranges::find(named, fact.name, &ServiceFact::name) != named.end();
  });
  std::ranges::move(named, std::back_inserter(facts.services));
  co_return facts;
}

/// What is known of each Service that is needed by name, in the order of the needs. `again`: those
/// that were absent are looked for anew.
Task<void> Cluster::look_up(const ClusterQuestion& question, std::vector<ServiceFact>& named,
                            bool again) {
  const Needs& needs = question.needs;
  named.resize(needs.services.size());
  // All at once; they are answered in any order.
  struct Pending {
    std::size_t left = 0;
    Timer timer;
  };
  const auto pending = std::make_shared<Pending>(Pending{0, Timer(context_)});
  pending->timer.expires_at(question.deadline);
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::string& name = needs.services[i].name;
    if (again && named[i].known != Known::absent) continue;
    const std::optional<ServiceFact> indexed = index_.find(needs.ns, name);
    if (indexed && watch_.healthy()) {
      named[i] = *indexed;
      continue;
    }
    if (!again)
      if (const std::optional<ServiceFact> fact = cache_.find(needs.ns, name, clock_.now())) {
        metrics_.lookups_cached(1);
        named[i] = *fact;
        continue;
      }
    if (!again) named[i].name = name;
    ServiceGets::Wanted wanted{needs.ns, name, question.deadline, !question.dry_run};
    ++pending->left;
    asio::co_spawn(
        context_, gets_.get(std::move(wanted)),
        [pending, &named, i, indexed](const std::exception_ptr& error, ServiceFact fact) {
          // While the watch is broken: what was known, if nothing else is.
          const bool unknown = error || fact.known == Known::unknown;
          if (unknown && indexed)
            named[i] = *indexed;
          else if (!error)
            named[i] = std::move(fact);
          --pending->left;
          pending->timer.cancel();
        });
  }
  // Each GET ends by the deadline of itself, so none is left behind.
  while (pending->left > 0) {
    pending->timer.expires_at(TimePoint::max());
    co_await wait(pending->timer);
  }
}

/// Notes which of the needed Services are missed, and what that allows.
void Cluster::note_misses(const ClusterQuestion& question, std::vector<ServiceFact>& named,
                          bool& hold) {
  hold = false;
  const TimePoint now = clock_.now();
  for (std::size_t i = 0; i < named.size(); ++i) {
    const NeededService& needed = question.needs.services[i];
    if (named[i].known == Known::present) misses_.seen(question.needs.ns, needed.name);
    if (!needed.ray_address || named[i].known != Known::absent) continue;
    const MissWindows::Window window = misses_.missed(question.needs.ns, needed.name, now);
    named[i].retry = window.retry;
    hold = hold || window.hold;
  }
}

/// Waits a while for Services that are not there yet: head and workers are often made together.
Task<void> Cluster::hold(const ClusterQuestion& question, std::vector<ServiceFact>& named) {
  bool worth_it = false;
  note_misses(question, named, worth_it);
  const std::chrono::milliseconds configured(policy_.unknown_service.hold_ms);
  const auto longest = std::min(configured, question.timeout / 2);
  const TimePoint until = std::min(question.deadline, question.began + longest);
  if (!worth_it || clock_.now() >= until) co_return;
  if (static_cast<std::int64_t>(held_.size()) >= kHeld) {
    metrics_.hold_ended(HoldResult::refused);
    co_return;
  }
  Held held{question, Timer(context_)};
  held_.push_back(&held);
  metrics_.set_held(static_cast<std::int64_t>(held_.size()));
  while (any_absent(question, named) && clock_.now() < until) {
    held.timer.expires_at(std::min(until, clock_.now() + kAskAgain));
    co_await wait(held.timer);
    co_await look_up(question, named, true);
  }
  std::erase(held_, &held);
  metrics_.set_held(static_cast<std::int64_t>(held_.size()));
  const bool gone = any_absent(question, named);
  metrics_.hold_ended(gone ? HoldResult::gone : HoldResult::came);
  note_misses(question, named, worth_it);
}

void Cluster::changed(std::string_view ns, std::string_view name) {
  if (ns.empty()) {
    cache_.clear();
  } else {
    cache_.forget(ns, name);
    misses_.seen(ns, name);
  }
  for (Held* held : held_)
    if (ns.empty() || held->question.needs.ns == ns) held->timer.cancel();
}

}  // namespace rayhook
