// SPDX-License-Identifier: Apache-2.0
#include "cluster_lookup.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "fact_cache.hpp"

namespace rayhook {
namespace {

using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
constexpr asio::use_awaitable_t<Executor> kTask;

/// A DNS label, as namespaces and Services are called: anything else must not get into a path.
bool is_label(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

/// A GET that is under way or waits its turn, and the reviews that wait for it.
struct Flight {
  std::string ns, name;
  TimePoint deadline;
  ServiceFact fact;  // unknown until done
  bool done = false;
  bool remember = false;  // someone other than a dry run has asked
  std::vector<std::shared_ptr<Timer>> waiters;
};

bool says_not_found(const std::string& body) {
  if (body.size() > 64 * 1024) return false;
  const auto status = nlohmann::json::parse(body, nullptr, false);
  if (!status.is_object()) return false;
  const auto kind = status.find("kind"), reason = status.find("reason");
  return kind != status.end() && *kind == "Status" && reason != status.end() &&
         *reason == "NotFound";
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

struct ClusterLookup::State : std::enable_shared_from_this<State> {
  State(asio::io_context& context, std::shared_ptr<boost::asio::ssl::context> tls,
        const ClusterAccess& access, const Policy& policy, const Clock& time, Metrics& counts,
        Log& lines)
      : executor(context.get_executor()),
        client(context, std::move(tls), access, time),
        cache(policy),
        clock(time),
        metrics(counts),
        log(lines) {}

  Executor executor;
  KubeClient client;
  FactCache cache;
  const Clock& clock;
  Metrics& metrics;
  Log& log;
  LogGate gate{std::chrono::seconds(10)};
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights;  // by ns/name
  std::deque<std::shared_ptr<Flight>> waiting;
  std::size_t active = 0;

  [[nodiscard]] std::shared_ptr<Flight> join(const std::string& ns, const std::string& name,
                                             TimePoint deadline, bool remember);
  void start_next();
  static Task<void> fly(std::shared_ptr<State> self, std::shared_ptr<Flight> flight);
  void land(Flight& flight, const ServiceAnswer& answer);
};

/// The flight for a name: the one that is under way, or a new one; nullptr if there are too many.
std::shared_ptr<Flight> ClusterLookup::State::join(const std::string& ns, const std::string& name,
                                                   TimePoint deadline, bool remember) {
  std::shared_ptr<Flight>& flight = flights[ns + "/" + name];
  if (!flight) {
    if (waiting.size() >= kWaiting) {
      flights.erase(ns + "/" + name);
      return nullptr;
    }
    flight = std::make_shared<Flight>();
    flight->ns = ns;
    flight->name = name;
    flight->fact.name = name;
    flight->deadline = deadline;
    waiting.push_back(flight);
  }
  flight->remember = flight->remember || remember;
  flight->deadline = std::max(flight->deadline, deadline);
  const std::shared_ptr<Flight> out = flight;
  start_next();
  return out;
}

void ClusterLookup::State::start_next() {
  while (active < kActive && !waiting.empty()) {
    std::shared_ptr<Flight> flight = std::move(waiting.front());
    waiting.pop_front();
    ++active;
    asio::co_spawn(executor, fly(shared_from_this(), std::move(flight)), asio::detached);
  }
}

Task<void> ClusterLookup::State::fly(std::shared_ptr<State> self, std::shared_ptr<Flight> flight) {
  ServiceAnswer answer;
  answer.fact.name = flight->name;
  try {
    std::string path = "/api/v1/namespaces/" + flight->ns + "/services/" + flight->name;
    const Result<KubeAnswer> got = co_await self->client.get(std::move(path), flight->deadline);
    answer = read_service_answer(flight->ns, flight->name, got);
  } catch (const std::exception& error) {
    answer.trouble = error.what();
  }
  self->land(*flight, answer);
}

void ClusterLookup::State::land(Flight& flight, const ServiceAnswer& answer) {
  --active;
  flights.erase(flight.ns + "/" + flight.name);
  flight.fact = answer.fact;
  flight.done = true;
  const TimePoint now = clock.now();
  metrics.lookup(answer.fact.known == Known::present  ? LookupResult::present
                 : answer.fact.known == Known::absent ? LookupResult::absent
                                                      : LookupResult::failed);
  if (flight.remember) cache.put(flight.ns, flight.fact, now);
  if (!answer.trouble.empty())
    if (const auto held_back = gate.pass(now))
      log.event(LogLevel::warn, "a Service could not be looked up",
                {{"namespace", flight.ns},
                 {"name", flight.name},
                 {"error", answer.trouble},
                 {"alsoBefore", *held_back}});
  for (const auto& waiter : flight.waiters) waiter->cancel();
  flight.waiters.clear();
  start_next();
}

ClusterLookup::ClusterLookup(asio::io_context& context,
                             std::shared_ptr<boost::asio::ssl::context> tls,
                             const ClusterAccess& access, const Policy& policy, const Clock& clock,
                             Metrics& metrics, Log& log)
    : state_(
          std::make_shared<State>(context, std::move(tls), access, policy, clock, metrics, log)) {}

ClusterLookup::~ClusterLookup() = default;

void ClusterLookup::close() {
  state_->client.close();
  state_->flights.clear();
  state_->waiting.clear();
}

bool ClusterLookup::try_now(const Needs& needs, const Review&, Facts& facts) {
  if (needs.services.empty()) return true;  // nothing else is known without a watch
  const TimePoint now = state_->clock.now();
  for (const NeededService& service : needs.services) {
    const ServiceFact* fact = state_->cache.find(needs.ns, service.name, now);
    if (!fact) {
      facts.services.clear();
      return false;
    }
    facts.services.push_back(*fact);
  }
  for (std::size_t i = 0; i < needs.services.size(); ++i)
    state_->metrics.lookup(LookupResult::cached);
  return true;
}

Task<Facts> ClusterLookup::fulfil(const Needs& needs, const Review& review, TimePoint deadline) {
  const std::shared_ptr<State> state = state_;
  Facts facts = unknown_facts(needs);
  std::vector<std::pair<std::size_t, std::shared_ptr<Flight>>> awaited;
  if (!is_label(needs.ns)) co_return facts;
  const auto timer = std::make_shared<Timer>(state->executor, deadline);
  for (std::size_t i = 0; i < facts.services.size(); ++i) {
    const std::string& name = facts.services[i].name;
    if (!is_label(name)) continue;
    if (const ServiceFact* fact = state->cache.find(needs.ns, name, state->clock.now())) {
      state->metrics.lookup(LookupResult::cached);
      facts.services[i] = *fact;
    } else if (auto flight = state->join(needs.ns, name, deadline, !review.dry_run)) {
      flight->waiters.push_back(timer);
      awaited.emplace_back(i, std::move(flight));
    } else {
      state->metrics.lookup(LookupResult::busy);
    }
  }
  const auto all_done = [&awaited] {
    return std::ranges::all_of(awaited, [](const auto& one) { return one.second->done; });
  };
  while (!all_done() && state->clock.now() < deadline) {
    boost::system::error_code ignored;
    co_await timer->async_wait(asio::redirect_error(kTask, ignored));
  }
  for (const auto& [i, flight] : awaited) {
    if (flight->done)
      facts.services[i] = flight->fact;
    else
      state->metrics.lookup(LookupResult::late);
    std::erase(flight->waiters, timer);
  }
  co_return facts;
}

}  // namespace rayhook
