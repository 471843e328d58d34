// SPDX-License-Identifier: Apache-2.0
#include "service_gets.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "server/kube/dns_label.hpp"
#include "server/timer.hpp"

namespace rayhook {
namespace {

bool says_not_found(const std::string& body) {
  if (body.size() > 64 * 1024) return false;
  const auto status = nlohmann::json::parse(body, nullptr, false);
  if (!status.is_object()) return false;
  const auto kind = status.find("kind"), reason = status.find("reason");
  return kind != status.end() && *kind == "Status" && reason != status.end() &&
         *reason == "NotFound";
}

ServiceFact unknown_service(std::string name) {
  ServiceFact out;
  out.name = std::move(name);
  return out;
}

}  // namespace

ServiceAnswer read_service_answer(std::string_view ns, std::string_view name,
                                  const Result<KubeAnswer>& answer) {
  ServiceAnswer out;
  out.fact.name = name;
  if (!answer) {
    out.trouble = answer.error().what;
  } else if (answer->status == 200) {
    Result<Service> service = parse_service(answer->body);
    if (service && service->name == name && service->ns == ns) {
      out.fact.known = Known::present;
      out.fact.service = std::make_shared<const Service>(std::move(*service));
    } else {
      out.trouble = "the API server's answer is not this Service";
    }
  } else if (answer->status == 404 && says_not_found(answer->body)) {
    out.fact.known = Known::absent;
  } else {
    out.trouble = "the API server answered with status " + std::to_string(answer->status);
  }
  return out;
}

/// A GET that is under way or waits its turn, and the coroutines that wait for it.
struct ServiceGets::Flight {
  std::string key, ns, name;
  TimePoint deadline;  // the latest of all that wait; once it is under way, later ones do not count
  ServiceFact fact;    // unknown until done
  bool done = false;
  bool ran_out = false;   // of time, so that nothing was learned
  bool remember = false;  // someone other than a dry run has asked
  std::vector<std::shared_ptr<Timer>> waiters;
};

ServiceGets::ServiceGets(Executor executor, KubeClient& client, FactCache& cache,
                         const Clock& clock, Metrics& metrics, Log& log)
    : executor_(std::move(executor)),
      client_(client),
      cache_(cache),
      clock_(clock),
      metrics_(metrics),
      log_(log) {}

ServiceGets::~ServiceGets() = default;

Task<ServiceFact> ServiceGets::get(Wanted wanted) {
  if (!is_dns_label(wanted.ns) || !is_dns_label(wanted.name))
    co_return unknown_service(wanted.name);
  for (;;) {
    const std::shared_ptr<Flight> flight = join(wanted);
    if (!flight) co_return unknown_service(wanted.name);
    const auto timer = std::make_shared<Timer>(executor_, wanted.deadline);
    flight->waiters.push_back(timer);
    while (!flight->done && clock_.now() < wanted.deadline) co_await wait(*timer);
    std::erase(flight->waiters, timer);
    if (!flight->done) metrics_.lookup(LookupResult::late);
    // One that was under way ends with the time of those who had begun it.
    if (!flight->ran_out || clock_.now() >= wanted.deadline) co_return flight->fact;
  }
}

/// The flight for that name, a new one if there is none; null if there may be no more of them.
std::shared_ptr<ServiceGets::Flight> ServiceGets::join(const Wanted& wanted) {
  std::string key = wanted.ns + "/" + wanted.name;
  std::shared_ptr<Flight> flight;
  if (const auto found = flights_.find(key); found != flights_.end()) {
    flight = found->second;
  } else if (waiting_.size() >= kWaiting) {
    metrics_.lookup(LookupResult::busy);
    return nullptr;
  } else if (!rate_.take(clock_.now())) {
    metrics_.lookup(LookupResult::busy);
    say(wanted.ns, wanted.name, "more look-ups a second than one replica makes");
    return nullptr;
  } else {
    flight = std::make_shared<Flight>();
    flight->ns = wanted.ns;
    flight->name = wanted.name;
    flight->fact = unknown_service(wanted.name);
    flights_.emplace(key, flight);
    flight->key = std::move(key);
    waiting_.push_back(flight);
  }
  flight->remember = flight->remember || wanted.remember;
  flight->deadline = std::max(flight->deadline, wanted.deadline);
  start_next();
  return flight;
}

void ServiceGets::start_next() {
  while (active_ < kActive && !waiting_.empty()) {
    std::shared_ptr<Flight> flight = std::move(waiting_.front());
    waiting_.pop_front();
    ++active_;
    asio::co_spawn(executor_, fly(std::move(flight)), asio::detached);
  }
}

Task<void> ServiceGets::fly(std::shared_ptr<Flight> flight) {
  ServiceAnswer answer;
  answer.fact.name = flight->name;
  const TimePoint until = flight->deadline;
  try {
    std::string path = "/api/v1/namespaces/" + flight->ns + "/services/" + flight->name;
    const Result<KubeAnswer> got = co_await client_.get(std::move(path), until);
    answer = read_service_answer(flight->ns, flight->name, got);
  } catch (const std::exception& error) {
    answer.trouble = error.what();
  }
  flight->ran_out = !answer.trouble.empty() && clock_.now() >= until;
  land(*flight, answer);
}

void ServiceGets::land(Flight& flight, const ServiceAnswer& answer) {
  --active_;
  flights_.erase(flight.key);
  flight.fact = answer.fact;
  flight.done = true;
  const TimePoint now = clock_.now();
  metrics_.lookup(answer.fact.known == Known::present  ? LookupResult::present
                  : answer.fact.known == Known::absent ? LookupResult::absent
                                                       : LookupResult::failed);
  if (flight.remember) cache_.put(flight.ns, flight.fact, now);
  if (!answer.trouble.empty()) say(flight.ns, flight.name, answer.trouble);
  for (const auto& waiter : flight.waiters) waiter->cancel();
  flight.waiters.clear();
  start_next();
}

void ServiceGets::say(std::string_view ns, std::string_view name, std::string_view trouble) {
  if (const auto held_back = gate_.pass(clock_.now()))
    log_.event(LogLevel::warn, "a Service could not be looked up",
               {{"namespace", ns}, {"name", name}, {"error", trouble}, {"alsoBefore", *held_back}});
}

}  // namespace rayhook
