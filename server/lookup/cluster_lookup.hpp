// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lookup.hpp"
#include "server/kube/client.hpp"
#include "server/log.hpp"
#include "server/metrics.hpp"

namespace rayhook {

/// What a KubeAnswer to the GET of a Service says of it: present, absent, or (for anything odd)
/// unknown, with the reason. Pure.
struct ServiceAnswer {
  ServiceFact fact;
  std::string trouble;  ///< empty unless unknown
};
[[nodiscard]] ServiceAnswer read_service_answer(std::string_view ns, std::string_view name,
                                                const Result<KubeAnswer>& answer);

/// `--lookup cluster`: one GET for each Service that a pod mentions, with a short memory
/// (FactCache; dry runs write nothing to it). GETs for the same name are shared; at most kActive
/// run at once on a thread and kWaiting wait their turn, more are *unknown*. No review ever waits
/// beyond its deadline, whatever the API server does. Whatever is not a clear answer is *unknown*,
/// counted, and logged now and then.
///
/// The Services of a namespace that are converted are not known before there is a watch: pods that
/// mention none of them are left.
class ClusterLookup final : public Lookup {
 public:
  static constexpr std::size_t kActive = 8;
  static constexpr std::size_t kWaiting = 256;

  /// All references must outlive it.
  ClusterLookup(asio::io_context& context, std::shared_ptr<boost::asio::ssl::context> tls,
                const ClusterAccess& access, const Policy& policy, const Clock& clock,
                Metrics& metrics, Log& log);
  ~ClusterLookup() override;

  bool try_now(const Needs& needs, const Review& review, Facts& facts) override;
  Task<Facts> fulfil(const Needs& needs, const Review& review, TimePoint deadline) override;
  void close() override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rayhook
