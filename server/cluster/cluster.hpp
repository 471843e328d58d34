// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <functional>
#include <memory>
#include <thread>

#include "kube_events.hpp"
#include "miss_windows.hpp"
#include "reader_lists.hpp"
#include "server/lookup/lookup.hpp"
#include "service_gets.hpp"
#include "service_watch.hpp"
#include "split_pods.hpp"

namespace rayhook {

/// What `--lookup cluster` can be told.
struct ClusterOptions {
  std::chrono::seconds watch_idle{90};         ///< longest silence of a watch
  std::chrono::seconds split_pods_every{600};  ///< 0: never
  bool events = false;                         ///< tell decisions of concern as Kubernetes Events
};

/// What a review asks of the cluster: a copy, since the review's own memory is another thread's.
struct ClusterQuestion {
  Needs needs;
  bool may_wait = false, dry_run = false;
  TimePoint began;                    ///< of the request
  std::chrono::milliseconds timeout;  ///< the API server's patience, from `began`
  TimePoint deadline;                 ///< by when the facts must be there
  std::string service;                ///< under review: its name …
  StringMap selector;                 ///< … and selector
};

/// All that is known of a cluster, and how it comes to be known: the watch of headless Services,
/// single GETs, the waiting for Services that are not there yet, the lists of pods. A thread of its
/// own does it all, so none of it needs a lock but what reviews read directly.
class Cluster final : public EventSink {
 public:
  /// Reviews that may be held at once.
  static constexpr std::int64_t kHeld = 32;

  /// All references must outlive it.
  Cluster(const ClusterAccess& access, std::shared_ptr<boost::asio::ssl::context> tls,
          const ClusterOptions& options, const Policy& policy, const Clock& clock, Metrics& metrics,
          Log& log);
  ~Cluster() override;

  /// Begins to watch.
  void start();
  /// Ends the thread; nothing is answered after it. May be called twice.
  void stop();

  /// Thread-safe. The Services are known.
  [[nodiscard]] bool ready() const { return watch_.synced(); }

  /// Thread-safe. Answers a pod's needs from memory: true and the facts, or false.
  [[nodiscard]] bool try_now(const Needs& needs, bool may_wait, Facts& facts);

  /// This, if Events are wanted.
  [[nodiscard]] EventSink* events() { return events_wanted_ ? this : nullptr; }
  void decided(const Review& review, const Decision& decision, Mode mode) override;

  /// Thread-safe. Answers by the question's deadline; `done` is called on the cluster's thread,
  /// once, unless the cluster stops before.
  void ask(ClusterQuestion question, std::function<void(Facts)> done);

 private:
  [[nodiscard]] Task<Facts> answer(std::shared_ptr<const ClusterQuestion> question);
  [[nodiscard]] Task<void> look_up(const ClusterQuestion& question, std::vector<ServiceFact>& named,
                                   bool again);
  [[nodiscard]] Task<void> hold(const ClusterQuestion& question, std::vector<ServiceFact>& named);
  void note_misses(const ClusterQuestion& question, std::vector<ServiceFact>& named, bool& hold);
  void changed(std::string_view ns, std::string_view name);

  const Policy& policy_;
  const Clock& clock_;
  Metrics& metrics_;
  Log& log_;
  ServiceIndex index_;
  FactCache cache_;
  asio::io_context context_{1};
  asio::executor_work_guard<Executor> work_{context_.get_executor()};
  KubeClient client_;
  ServiceGets gets_;
  ReaderLists readers_;
  SplitPods split_pods_;
  KubeEvents events_;
  ServiceWatch watch_;
  MissWindows misses_;
  bool events_wanted_;
  struct Held;
  std::vector<Held*> held_;
  std::thread thread_;
};

}  // namespace rayhook
