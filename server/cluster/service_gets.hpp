// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server/kube/client.hpp"
#include "server/log.hpp"
#include "server/lookup/fact_cache.hpp"
#include "server/metrics.hpp"
#include "server/token_bucket.hpp"

namespace rayhook {

/// What a KubeAnswer to the GET of a Service says of it: present, absent, or (for anything odd)
/// unknown, with the reason. Pure.
struct ServiceAnswer {
  ServiceFact fact;
  std::string trouble;  ///< empty unless unknown
};
[[nodiscard]] ServiceAnswer read_service_answer(std::string_view ns, std::string_view name,
                                                const Result<KubeAnswer>& answer);

/// GETs of single Services. Those for the same name are shared, and asked anew for whoever has more
/// time than the one that is under way; at most kActive run at once and
/// kWaiting wait their turn, more are *unknown*, as is what would be more than kASecond: whoever
/// makes up names and sends reviews of their own has the API server asked no more often. Whatever
/// is not a clear answer is *unknown*, counted, and logged now and then. Lives on one thread; not
/// thread-safe.
class ServiceGets {
 public:
  static constexpr std::size_t kActive = 8;
  static constexpr std::size_t kWaiting = 256;
  /// GETs a second, and at once after a quiet while. 200 pods a second that each name two Services
  /// of a fresh namespace, beside 32 holds that ask again each 250 ms, are 528 a second, which
  /// replicas share; the watch answers for all other heads.
  static constexpr double kASecond = 600;
  static constexpr double kAtOnce = 1200;

  /// All references must outlive it. What is found goes into `cache`.
  ServiceGets(Executor executor, KubeClient& client, FactCache& cache, const Clock& clock,
              Metrics& metrics, Log& log);
  ~ServiceGets();

  struct Wanted {
    std::string ns, name;
    TimePoint deadline;
    bool remember = true;  ///< not for dry runs, which write no state
  };
  /// What is known by the deadline. A name that is none of a Service is unknown. Never throws.
  [[nodiscard]] Task<ServiceFact> get(Wanted wanted);

 private:
  struct Flight;

  [[nodiscard]] std::shared_ptr<Flight> join(const Wanted& wanted);
  void start_next();
  [[nodiscard]] Task<void> fly(std::shared_ptr<Flight> flight);
  void land(Flight& flight, const ServiceAnswer& answer);
  void say(std::string_view ns, std::string_view name, std::string_view trouble);

  Executor executor_;
  KubeClient& client_;
  FactCache& cache_;
  const Clock& clock_;
  Metrics& metrics_;
  Log& log_;
  LogGate gate_{std::chrono::seconds(10)};
  TokenBucket rate_{kASecond, kAtOnce};
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;  // by ns/name
  std::deque<std::shared_ptr<Flight>> waiting_;
  std::size_t active_ = 0;
};

}  // namespace rayhook
