// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

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

/// Looks for *split pods*: pods beside a converted Service that were made without Rayhook, or at
/// the very moment in which it was converted, and so have neither the variables nor the name. At
/// start, every `every`, and when `look_now` is called, the pods of each namespace with a converted
/// Service are listed, page by page and without haste; those of one namespace soon after
/// `look_soon`. Those that Rayhook would change now are counted, and logged with what mends them.
/// Lives on one thread; not thread-safe.
class SplitPods {
 public:
  /// Lines logged in one round; the rest is only counted.
  static constexpr std::int64_t kLines = 100;
  /// From `look_soon` to the look: by then what was under way is stored.
  static constexpr std::chrono::seconds kSoon{2};
  /// Namespaces that wait for such a look; more wait for the next round.
  static constexpr std::size_t kMostSoon = 1024;

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
  [[nodiscard]] TimePoint next() const;
  [[nodiscard]] Task<void> look(std::vector<std::string> namespaces);
  [[nodiscard]] Task<void> look_at(std::string ns, std::int64_t& lines);
  [[nodiscard]] std::vector<std::string> take_due();
  [[nodiscard]] bool is_split(const Review& pod, std::string_view ns) const;
  void say(const Review& pod, std::string_view ns);

  KubeClient& client_;
  const ServiceIndex& index_;
  const Policy& policy_;
  const Clock& clock_;
  std::chrono::seconds every_;
  Metrics& metrics_;
  Log& log_;
  Timer timer_;  // until the next look
  Timer pause_;
  bool due_ = false;                            // a round
  TimePoint round_ = TimePoint::max();          // the first one is asked for
  std::map<std::string, TimePoint> soon_;       // namespaces to look at, and when
  std::map<std::string, std::int64_t> counts_;  // split pods of each namespace
};

}  // namespace rayhook
