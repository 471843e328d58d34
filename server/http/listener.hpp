// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <memory>
#include <string>
#include <vector>

#include "lib/error.hpp"
#include "worker.hpp"

namespace rayhook {

using TcpAcceptor = asio::basic_socket_acceptor<Tcp, Executor>;

/// Binds and listens at once, so that what is wrong is known at start. `address` is `IP:PORT`,
/// `[IPv6]:PORT` or `:PORT` (all addresses, of both families where there are two); port 0 takes a
/// free one. Errors: Errc::bad_usage for an address that is none, else Errc::io; `flag` names it.
[[nodiscard]] Result<TcpAcceptor> listen_on(asio::io_context& context, std::string_view address,
                                            std::string_view flag);

/// `127.0.0.1:8443`, as bound.
[[nodiscard]] std::string bound_address(const TcpAcceptor& acceptor);

/// Accepts TLS connections and spreads them over the workers. Lives on the control thread.
class Listener {
 public:
  /// The workers outlive the listener, and the io_context of its acceptor.
  Listener(TcpAcceptor acceptor, std::vector<Worker*> workers, const WorkerShared& shared);

  /// Accepts until `stop()`. Runs on the acceptor's io_context.
  [[nodiscard]] Task<void> run();

  /// What new connections get from now on. Before the first call they are closed at once.
  void serve(std::shared_ptr<asio::ssl::context> tls) { tls_ = std::move(tls); }

  /// Takes the connections that wait already, then refuses new ones.
  void stop();

 private:
  /// False, and `socket` stays, while there are too many connections.
  [[nodiscard]] bool take(TcpSocket& socket, Worker& worker);
  [[nodiscard]] Worker& least_loaded() const;

  TcpAcceptor acceptor_;
  std::vector<Worker*> workers_;
  std::shared_ptr<asio::ssl::context> tls_;
  const WorkerShared& shared_;
  LogGate gate_{std::chrono::seconds(10)};
};

}  // namespace rayhook
