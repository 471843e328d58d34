// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <thread>

#include "connection.hpp"

namespace rayhook {

/// What all workers share; it outlives them.
struct WorkerShared {
  const Policy& policy;
  const Limits& limits;
  const Clock& clock;
  const std::atomic<bool>& draining;
  Load& load;
  Metrics& metrics;
  Log& log;
  std::size_t workers;  ///< how many there are: the limits of connections are shared evenly
};

/// One thread with everything its connections need: an io_context, a look-up, readers. It looks at
/// all deadlines once a second.
class Worker {
 public:
  Worker(const WorkerShared& shared, LookupSource& lookups);
  /// Stops the thread at once; connections that are still open are dropped.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();

  /// For the listener: where a new connection's socket is to live.
  [[nodiscard]] Executor executor() { return context_.get_executor(); }

  /// Thread-safe: connections that it has.
  [[nodiscard]] std::size_t load() const { return load_.load(std::memory_order_relaxed); }

  /// Thread-safe: takes over a connection, if there is room or can be made.
  void adopt(TcpSocket socket, std::shared_ptr<asio::ssl::context> tls,
             std::unique_ptr<ConnectionToken> token);

  /// Thread-safe: ends, in good order, all connections without a request under way.
  void close_idle();

 private:
  [[nodiscard]] Task<void> tick();
  [[nodiscard]] bool make_room();
  /// This worker's part of a limit.
  [[nodiscard]] std::size_t part(std::size_t limit) const {
    return (limit + shared_.workers - 1) / shared_.workers;
  }

  const WorkerShared& shared_;
  ReviewReaders readers_;
  DecisionLog decision_log_;
  Connections connections_;
  std::atomic<std::size_t> load_{0};
  std::unique_ptr<Lookup> lookup_;
  std::unique_ptr<SessionContext> session_context_;
  // Dies before all of the above: the coroutines that it holds refer to them.
  asio::io_context context_{1};
  asio::executor_work_guard<Executor> work_{context_.get_executor()};
  std::thread thread_;
};

}  // namespace rayhook
