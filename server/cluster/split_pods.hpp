// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "lib/policy.hpp"
#include "lib/review.hpp"
#include "server/kube/client.hpp"
#include "server/log.hpp"
#include "server/metrics.hpp"
#include "server/timer.hpp"
#include "service_index.hpp"

namespace rayhook {

/// The command that makes a pod anew, and so through Rayhook. Pure.
[[nodiscard]] std::string mending_command(const Review& pod, std::string_view ns);

/// Looks for *split pods*: pods beside a converted Service that were made without Rayhook, and so
/// have neither the variables nor the name. At start, every `every`, and when `look_now` is called,
/// the pods of each namespace with a converted Service are listed, page by page and without haste;
/// those that Rayhook would change now are counted, and logged with what mends them. Lives on one
/// thread; not thread-safe.
class SplitPods {
 public:
  /// Lines logged in one round; the rest is only counted.
  static constexpr std::int64_t kLines = 100;

  /// All references must outlive it. `every` 0: never.
  SplitPods(Executor executor, KubeClient& client, const ServiceIndex& index, const Policy& policy,
            const Clock& clock, std::chrono::seconds every, Metrics& metrics, Log& log);

  /// Looks until the io_context ends. Never throws.
  [[nodiscard]] Task<void> run();

  /// A round is due: the index is in step with the API server (again).
  void look_now();

 private:
  [[nodiscard]] Task<std::int64_t> look();
  [[nodiscard]] Task<void> look_at(std::string ns, std::int64_t& found);
  [[nodiscard]] bool is_split(const Review& pod, std::string_view ns) const;
  void say(const Review& pod, std::string_view ns);

  KubeClient& client_;
  const ServiceIndex& index_;
  const Policy& policy_;
  const Clock& clock_;
  std::chrono::seconds every_;
  Metrics& metrics_;
  Log& log_;
  Timer timer_;  // until the next round
  Timer pause_;
  bool due_ = false;
};

}  // namespace rayhook
