// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"
#include "server/timer.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <vector>

namespace rayhook {
namespace {

constexpr asio::use_awaitable_t<Executor> kTask;

/// Says what no coroutine of ours should ever throw.
struct LogException {
  Log& log;
  void operator()(const std::exception_ptr& pointer) const {
    if (!pointer) return;
    try {
      std::rethrow_exception(pointer);
    } catch (const std::exception& error) {
      log.event(LogLevel::error, "internal error; please report it", {{"what", error.what()}});
    } catch (...) {
      log.event(LogLevel::error, "internal error; please report it");
    }
  }
};

}  // namespace

Worker::Worker(const WorkerShared& shared, LookupSource& lookups)
    : shared_(shared),
      decision_log_(shared.log, lookups.events()),
      lookup_(lookups.make(context_)),
      session_context_(new SessionContext{shared.policy, shared.limits, shared.clock,
                                          shared.draining, shared.load, shared.metrics, *lookup_,
                                          readers_, decision_log_}) {}

Worker::~Worker() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
  lookup_->close();
}

void Worker::start() {
  asio::co_spawn(context_, tick(), LogException{shared_.log});
  thread_ = std::thread([this] {
    // What handlers throw would be a fault of Asio's or ours: say it and go on with the others.
    for (;;) {
      try {
        context_.run();
        return;
      } catch (...) {
        LogException{shared_.log}(std::current_exception());
      }
    }
  });
}

void Worker::adopt(TcpSocket socket, std::shared_ptr<asio::ssl::context> tls,
                   std::unique_ptr<ConnectionToken> token) {
  load_.fetch_add(1);
  asio::post(context_, [this, socket = std::move(socket), tls = std::move(tls),
                        token = std::move(token)]() mutable {
    if (!make_room()) {
      load_.fetch_sub(1);
      return;  // and so closes it
    }
    auto connection = std::make_unique<Connection>(
        std::move(socket), std::move(tls), *session_context_, connections_, std::move(token));
    asio::co_spawn(context_, Connection::run(std::move(connection)),
                   [this](const std::exception_ptr& pointer) {
                     load_.fetch_sub(1);
                     LogException{shared_.log}(pointer);
                   });
  });
}

/// For a new connection, where there are as many as may be, the one is cut off whose client has
/// been awaited longest, whatever it has sent before: the one that came last is the last to go. So
/// whoever fills all places with silent, slow or idle connections would have to fill them anew in
/// the time that the API server takes from its connect to its request. False if all are at work.
bool Worker::make_room() {
  std::size_t open = 0, handshakes = 0;
  Connection* longest = nullptr;
  Connection* oldest_handshake = nullptr;
  const auto keep_longer = [](Connection*& kept, Connection* other) {
    if (!kept || *other->waits_since() < *kept->waits_since()) kept = other;
  };
  for (Connection* connection : connections_) {
    if (connection->is_cut_off()) continue;
    ++open;
    if (!connection->waits_since()) continue;
    keep_longer(longest, connection);
    if (!connection->in_handshake()) continue;
    ++handshakes;
    keep_longer(oldest_handshake, connection);
  }
  const bool all_handshakes = handshakes >= part(shared_.limits.handshakes);
  if (!all_handshakes && open < part(shared_.limits.connections)) return true;
  shared_.metrics.connection_refused();
  Connection* const given_up = all_handshakes ? oldest_handshake : longest;
  if (given_up) given_up->cut_off();
  return given_up != nullptr;
}

void Worker::close_idle() {
  asio::post(context_, [this] {
    for (Connection* connection : connections_) connection->stop_if_idle();
  });
}

Task<void> Worker::tick() {
  Timer timer(context_.get_executor());
  for (;;) {
    timer.expires_after(std::chrono::seconds(1));
    boost::system::error_code error;
    co_await timer.async_wait(asio::redirect_error(kTask, error));
    if (error) co_return;
    const TimePoint now = shared_.clock.now();
    for (Connection* connection : connections_) connection->check(now);
  }
}

}  // namespace rayhook
