// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/facts.hpp"
#include "server/kube/client.hpp"
#include "server/log.hpp"
#include "server/metrics.hpp"
#include "server/token_bucket.hpp"

namespace rayhook {

/// Which running pods read a Service's variables: asked for when it is created.
struct ReaderQuestion {
  std::string ns;
  std::string service;
  StringMap selector;
  TimePoint until;
};

struct ReaderAnswer {
  Known readers = Known::unknown;
  std::string reader;                   ///< name of such a pod
  std::optional<bool> matches_workers;  ///< known only if all pods were seen, or one was found
};

/// Answers such questions from lists of pods: shared by all that ask about a namespace before a
/// list of it begins, stopped as soon as all have their answer, never more than two at once, and no
/// more than kASecond: beyond that the answer is unknown, at once.
/// Lives on one thread; not thread-safe.
class ReaderLists {
 public:
  static constexpr std::size_t kActive = 2;
  static constexpr std::size_t kWaiting = 64;  ///< namespaces that wait their turn; more: unknown
  /// Pages a second, and at once after a quiet while: five hundred Ray clusters applied in one go,
  /// or fifty each second for ever, in fresh namespaces.
  static constexpr double kASecond = 50;
  static constexpr double kAtOnce = 500;

  /// All references must outlive it.
  ReaderLists(Executor executor, KubeClient& client, const Clock& clock, Metrics& metrics,
              Log& log);
  ~ReaderLists();

  /// Answers by the question's `until`; unfinished means unknown. Never throws.
  [[nodiscard]] Task<ReaderAnswer> ask(ReaderQuestion question);

 private:
  struct Asked;
  struct Batch;

  void start_next();
  [[nodiscard]] Task<void> read(std::shared_ptr<Batch> batch);

  Executor executor_;
  KubeClient& client_;
  const Clock& clock_;
  Metrics& metrics_;
  Log& log_;
  LogGate gate_{std::chrono::seconds(10)};
  TokenBucket rate_{kASecond, kAtOnce};
  std::deque<std::shared_ptr<Batch>> waiting_;
  std::size_t active_ = 0;
};

}  // namespace rayhook
