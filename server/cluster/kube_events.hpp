// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <unordered_map>

#include "lib/decision.hpp"
#include "server/kube/client.hpp"
#include "server/log.hpp"
#include "server/metrics.hpp"

namespace rayhook {

/// A decision as an Event tells it. `api_version` to `uid` are whom it is about: a pod's controller
/// if it has one, since a pod that is being created has no uid yet, and often no name.
struct KubeEvent {
  std::string ns, api_version, kind, name, uid;
  std::string reason;   ///< the decision's, as Kubernetes writes such words: RunningReaders
  std::string message;  ///< at most 1,024 bytes, as the API server has it
  bool warning = false;
};

[[nodiscard]] KubeEvent kube_event(const Review& review, const Decision& decision, Mode mode);

/// Writes Events, one after the other. The same word about the same object is written once in ten
/// minutes, few may wait, and what cannot be written is counted and forgotten: nothing depends on
/// them. Lives on one thread and its io_context; not thread-safe.
class KubeEvents {
 public:
  static constexpr std::size_t kWaiting = 64;
  static constexpr std::size_t kRemembered = 1024;
  static constexpr std::chrono::minutes kRepeatAfter{10};

  /// All references must outlive it.
  KubeEvents(Executor executor, KubeClient& client, const Clock& clock, Metrics& metrics, Log& log)
      : executor_(std::move(executor)),
        client_(client),
        clock_(clock),
        metrics_(metrics),
        log_(log) {}

  void add(KubeEvent event);

 private:
  [[nodiscard]] bool told_before(const KubeEvent& event);
  [[nodiscard]] Task<void> write_all();

  Executor executor_;
  KubeClient& client_;
  const Clock& clock_;
  Metrics& metrics_;
  Log& log_;
  LogGate trouble_{kRepeatAfter};
  std::deque<KubeEvent> waiting_;
  std::unordered_map<std::string, TimePoint> told_;
  bool writing_ = false;
};

}  // namespace rayhook
