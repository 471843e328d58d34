// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <unordered_set>

#include "load.hpp"
#include "session.hpp"

namespace rayhook {

using Tcp = asio::ip::tcp;
using TcpSocket = asio::basic_stream_socket<Tcp, Executor>;

/// A place among the connections that may be open at once; given back when it dies.
class ConnectionToken {
 public:
  /// Empty if there is no place. `load` and `metrics` must outlive the token.
  [[nodiscard]] static std::unique_ptr<ConnectionToken> take(Load& load, const Limits& limits,
                                                             Metrics& metrics);
  ~ConnectionToken();
  ConnectionToken(const ConnectionToken&) = delete;
  ConnectionToken& operator=(const ConnectionToken&) = delete;

  /// The TLS handshake is over.
  void handshake_over() { handshake_.release(); }

 private:
  ConnectionToken(Share connection, Share handshake, Metrics& metrics)
      : connection_(std::move(connection)), handshake_(std::move(handshake)), metrics_(metrics) {}
  Share connection_, handshake_;
  Metrics& metrics_;
};

class Connection;

/// A thread's open connections; each adds and removes itself.
using Connections = std::unordered_set<Connection*>;

/// A session on a TLS connection: moves the bytes, and looks at the clock when told to. Lives in a
/// coroutine on its thread; not thread-safe.
class Connection {
 public:
  /// `tls` is held as long as the connection lives, whatever is served to later ones. `all` and
  /// what `context` refers to must outlive it.
  Connection(TcpSocket socket, std::shared_ptr<asio::ssl::context> tls, SessionContext& context,
             Connections& all, std::unique_ptr<ConnectionToken> token);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The connection's whole life. Never throws.
  [[nodiscard]] static Task<void> run(std::unique_ptr<Connection> self);

  /// Cuts the connection off if the present phase has lasted too long.
  void check(TimePoint now);

  /// Ends it in good order if no request is under way.
  void stop_if_idle();

 private:
  enum class Stage { handshake, session, shutdown };

  [[nodiscard]] Task<bool> handshake();
  [[nodiscard]] Task<void> serve();
  [[nodiscard]] Task<void> shut_down();
  void cut_off();

  SessionContext& context_;
  Connections& all_;
  std::unique_ptr<ConnectionToken> token_;
  std::shared_ptr<asio::ssl::context> tls_;
  asio::ssl::stream<TcpSocket> stream_;
  Session session_;
  Stage stage_ = Stage::handshake;
  TimePoint deadline_;    // of handshake and shutdown; a session keeps its own
  bool cut_off_ = false;  // by the clock
  bool stopping_ = false;
};

}  // namespace rayhook
