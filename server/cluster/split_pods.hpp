// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lib/policy.hpp"
#include "lib/review.hpp"
#include "lib/split_rule.hpp"
#include "look_plan.hpp"
#include "server/kube/client.hpp"
#include "server/log.hpp"
#include "server/metrics.hpp"
#include "server/timer.hpp"
#include "service_index.hpp"

namespace rayhook {

/// The command that makes a pod anew, and so through Rayhook. Pure.
[[nodiscard]] std::string mending_command(const Review& pod, std::string_view ns);

/// Looks for *split pods*: pods that lack variables of a converted Service which their text names,
/// or their code may read (lib/split_rule.hpp). They were admitted without Rayhook, or at the very
/// moment in which the Service was converted. At start, every `every`, and when `look_now` is
/// called, the pods of each namespace with a converted Service are listed, page by page and without
/// haste; those of one namespace soon after `look_soon`, and again as LookPlan says. They are
/// counted, and logged with what mends them. Lives on one thread; not thread-safe.
class SplitPods {
 public:
  /// Lines logged in one look; the rest is only counted.
  static constexpr std::int64_t kLines = 100;

  /// All references must outlive it. `every` 0: never.
  SplitPods(const Executor& executor, KubeClient& client, const ServiceIndex& index,
            const Policy& policy, const Clock& clock, std::chrono::seconds every, Metrics& metrics,
            Log& log);

  /// Looks until the io_context ends. Never throws.
  [[nodiscard]] Task<void> run();

  /// A round is due: the index is in step with the API server (again).
  void look_now();

  /// A Service of this namespace was converted just now.
  void look_soon(std::string_view ns);

 private:
  [[nodiscard]] Task<void> look(std::vector<LookPlan::Look> looks);
  [[nodiscard]] Task<void> look_at(LookPlan::Look look, std::int64_t& lines);
  [[nodiscard]] Split split_of(const Review& pod, std::string_view ns) const;
  void say(Split split, const Review& pod, std::string_view ns);

  KubeClient& client_;
  const ServiceIndex& index_;
  const Policy& policy_;
  const Clock& clock_;
  std::chrono::seconds every_;
  Metrics& metrics_;
  Log& log_;
  Timer timer_;  // until the next look
  Timer pause_;
  LookPlan plan_;
};

}  // namespace rayhook
