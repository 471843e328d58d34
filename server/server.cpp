// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include <sys/resource.h>

#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "cert_watcher.hpp"
#include "cpu_quota.hpp"
#include "http/fault_report.hpp"
#include "http/listener.hpp"
#include "lib/version.hpp"
#include "ops.hpp"
#include "timer.hpp"

namespace rayhook {
namespace {

using ErrorCode = boost::system::error_code;
constexpr asio::use_awaitable_t<Executor> kTask;

/// While draining, connections without a request are left open this long: a client that just
/// decided to use one gets its answer, with `Connection: close`.
constexpr std::chrono::milliseconds kIdleGrace{1000};
constexpr std::chrono::milliseconds kDrainStep{20};
constexpr std::chrono::milliseconds kReadyStep{20};

/// Each connection is a descriptor: ask for as many as the system allows.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// The running program. Members die in reverse order.
class Server {
 public:
  explicit Server(const ServeOptions& options) : options_(options), log_(options.log_level) {
    metrics_.watch_lost_lines([this] { return log_.lost(); });
    metrics_.watch_readiness([this] { return readiness_.ready(); });
  }

  [[nodiscard]] Result<void> start();
  [[nodiscard]] int run();

 private:
  [[nodiscard]] Task<void> live();
  [[nodiscard]] Task<void> drain();
  [[nodiscard]] Task<void> watch_log();
  [[nodiscard]] Task<void> become_ready();
  [[nodiscard]] Task<void> end_on_second_signal();
  void spawn(Task<void> task);

  ServeOptions options_;
  Log log_;
  Metrics metrics_;
  SteadyClock clock_;
  FaultReport faults_{metrics_, clock_, log_};
  Readiness readiness_;
  std::atomic<bool> draining_{false};
  Load load_;
  WorkerShared shared_{options_.policy, options_.limits, clock_, draining_,
                       load_,           metrics_,        log_,   1};
  int exit_code_ = 0;
  std::unique_ptr<LookupSource> lookups_;
  // The order matters: an accept that is under way on the control thread holds a socket of a
  // worker's, and acceptors must not outlive their io_context.
  std::vector<std::unique_ptr<Worker>> workers_;
  asio::io_context control_{1};
  std::optional<Listener> listener_;
  std::optional<CertWatcher> certificates_;
  std::optional<OpsServer> ops_;
  asio::basic_signal_set<Executor> signals_{control_.get_executor()};
};

Result<void> Server::start() {
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);
  Result<std::unique_ptr<LookupSource>> lookups =
      lookup_source(options_.lookup, options_.policy, clock_, metrics_, log_);
  if (!lookups) return std::unexpected(lookups.error());
  lookups_ = std::move(*lookups);
  Result<TcpAcceptor> https = listen_on(control_, options_.listen, "--listen");
  if (!https) return std::unexpected(https.error());
  Result<TcpAcceptor> ops = listen_on(control_, options_.ops_listen, "--ops-listen");
  if (!ops) return std::unexpected(ops.error());
  ErrorCode error;
  signals_.add(SIGTERM, error);
  signals_.add(SIGINT, error);
  if (error) return fail(Errc::internal, "signals cannot be handled: " + error.message());

  const unsigned threads = options_.threads ? options_.threads : default_threads();
  shared_.workers = threads;
  std::vector<Worker*> workers;
  for (unsigned i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(shared_, *lookups_));
    workers.push_back(workers_.back().get());
  }
  const std::string https_address = bound_address(*https), ops_address = bound_address(*ops);
  listener_.emplace(std::move(*https), std::move(workers), shared_);
  certificates_.emplace(
      control_, options_.tls,
      [this](std::shared_ptr<asio::ssl::context> tls) { listener_->serve(std::move(tls)); },
      [] { return std::int64_t{std::time(nullptr)}; }, log_, metrics_, readiness_);
  certificates_->load();
  ops_.emplace(std::move(*ops), readiness_, metrics_);
  log_.event(LogLevel::info, "starting",
             {{"version", kVersion},
              {"lookup", options_.lookup.source},
              {"config", options_.config.value_or("none")},
              {"threads", static_cast<std::int64_t>(threads)}});
  log_.event(LogLevel::info, "ops listening", {{"address", ops_address}});
  log_.event(LogLevel::info, "listening", {{"address", https_address}});
  return {};
}

void Server::spawn(Task<void> task) {
  asio::co_spawn(control_, std::move(task), [this](const std::exception_ptr& pointer) {
    if (!pointer) return;
    // Nothing of ours throws here; should it, better to be started anew than to limp on.
    try {
      std::rethrow_exception(pointer);
    } catch (const std::exception& fault) {
      log_.event(LogLevel::error, "internal error; please report it", {{"what", fault.what()}});
    } catch (...) {
      log_.event(LogLevel::error, "internal error; please report it");
    }
    exit_code_ = 1;
    control_.stop();
  });
}

int Server::run() {
  for (const auto& worker : workers_) worker->start();
  spawn(ops_->run());
  spawn(listener_->run());
  spawn(certificates_->run());
  spawn(certificates_->listen());
  spawn(watch_log());
  spawn(live());
  spawn(become_ready());
  lookups_->start();
  control_.run();
  return exit_code_;
}

Task<void> Server::become_ready() {
  Timer timer(control_.get_executor());
  while (!lookups_->ready()) {
    timer.expires_after(kReadyStep);
    ErrorCode error;
    co_await timer.async_wait(asio::redirect_error(kTask, error));
    if (error || draining_) co_return;
  }
  readiness_.clear(Hindrance::services);
}

Task<void> Server::live() {
  ErrorCode error;
  const int signal = co_await signals_.async_wait(asio::redirect_error(kTask, error));
  if (error) co_return;
  readiness_.hinder(Hindrance::draining, "told to end");
  draining_.store(true);
  log_.event(LogLevel::info, "draining", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  spawn(end_on_second_signal());
  co_await drain();
  control_.stop();
}

Task<void> Server::drain() {
  Timer timer(control_.get_executor());
  ErrorCode error;
  timer.expires_after(options_.shutdown_delay);
  co_await timer.async_wait(asio::redirect_error(kTask, error));
  listener_->stop();
  faults_.tell();
  const TimePoint begin = clock_.now();
  while (metrics_.connections() > 0) {
    const auto waited = clock_.now() - begin;
    if (waited >= options_.shutdown_timeout) {
      log_.event(LogLevel::warn, "stopped while connections were open",
                 {{"connections", metrics_.connections()}, {"reviews", metrics_.in_flight()}});
      co_return;
    }
    if (waited >= kIdleGrace)
      for (const auto& worker : workers_) worker->close_idle();
    timer.expires_after(kDrainStep);
    co_await timer.async_wait(asio::redirect_error(kTask, error));
  }
  log_.event(LogLevel::info, "stopped");
}

Task<void> Server::end_on_second_signal() {
  ErrorCode error;
  co_await signals_.async_wait(asio::redirect_error(kTask, error));
  if (error) co_return;
  log_.event(LogLevel::warn, "stopped at once by a second signal");
  exit_code_ = 1;
  control_.stop();
}

Task<void> Server::watch_log() {
  Timer timer(control_.get_executor());
  std::uint64_t said = 0;
  for (;;) {
    timer.expires_after(std::chrono::seconds(1));
    ErrorCode error;
    co_await timer.async_wait(asio::redirect_error(kTask, error));
    if (error) co_return;
    faults_.look();
    const std::uint64_t lost = log_.lost();
    if (lost == said) continue;
    log_.event(LogLevel::warn, "log lines were lost: the log is read too slowly",
               {{"lost", static_cast<std::int64_t>(lost - said)}});
    said = lost;
  }
}

}  // namespace

Result<int> serve(const ServeOptions& options) {
  try {
    const auto server = std::make_unique<Server>(options);
    if (Result<void> started = server->start(); !started) return std::unexpected(started.error());
    return server->run();
  } catch (const std::exception& error) {
    return fail(Errc::internal, error.what());
  }
}

}  // namespace rayhook
