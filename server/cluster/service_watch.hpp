// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "lib/list_splitter.hpp"
#include "lib/watch_event.hpp"
#include "server/kube/client.hpp"
#include "server/log.hpp"
#include "server/metrics.hpp"
#include "server/timer.hpp"
#include "service_index.hpp"

namespace rayhook {

/// Keeps the ServiceIndex in step with the API server: a list of the headless Services, then a
/// watch from there on, for ever. By field selector where the API server serves it (1.31), else all
/// Services are read and the others passed over. Whatever goes wrong is counted, said once, and
/// tried again after a while that grows; meanwhile what is known stays. Lives on one thread.
class ServiceWatch {
 public:
  struct Handlers {
    /// A Service was made, changed or removed: namespace and name; empty: any could have been.
    std::function<void(std::string_view, std::string_view)> changed;
    /// A converted Service is new in this namespace.
    std::function<void(std::string_view)> converted;
    /// In step again after an interruption, or for the first time.
    std::function<void()> back;
  };

  /// All references must outlive it. `idle`: longest silence of the API server, which sends a
  /// bookmark every minute (kubernetes staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go).
  ServiceWatch(Executor executor, KubeClient& client, ServiceIndex& index, const Policy& policy,
               const Clock& clock, std::chrono::seconds idle, Metrics& metrics, Log& log,
               Handlers handlers);

  /// Lists and watches until the io_context ends. Never throws.
  [[nodiscard]] Task<void> run();

  /// Thread-safe. The first list is in.
  [[nodiscard]] bool synced() const { return synced_.load(); }
  /// Thread-safe. What the index says is of now, as far as can be told.
  [[nodiscard]] bool healthy() const { return healthy_.load(); }

 private:
  [[nodiscard]] Task<bool> list();
  [[nodiscard]] Task<bool> watch();
  [[nodiscard]] Task<Result<ListEnd>> list_page(const std::string& continue_token,
                                                CaredServices& services);
  [[nodiscard]] std::string path(const std::string& query) const;
  bool event(std::string_view line);
  bool refused(const KubeAnswer& answer);
  void in_step();
  void broken(WatchFault fault, std::string_view error);
  [[nodiscard]] Task<void> pause();

  Executor executor_;
  KubeClient& client_;
  ServiceIndex& index_;
  const Policy& policy_;
  const Clock& clock_;
  std::chrono::seconds idle_;
  Metrics& metrics_;
  Log& log_;
  Handlers handlers_;
  Timer timer_;
  std::minstd_rand random_{std::random_device{}()};

  std::string version_;    // where the watch goes on; empty: a list is needed
  bool selector_ = true;   // the API server knows the field selector
  unsigned failures_ = 0;  // in a row
  std::chrono::seconds retry_after_{0};
  std::optional<TimePoint> broken_since_;
  LogGate gate_{std::chrono::seconds(60)};
  std::atomic<bool> synced_{false}, healthy_{false};
};

}  // namespace rayhook
