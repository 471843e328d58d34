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

/// A connection that counts; no longer when it dies.
class ConnectionToken {
 public:
  /// Empty if there are too many: those that are allowed, and some that are not at their worker yet
  /// or have been cut off to make room but are not gone yet. `load` and `metrics` must outlive the
  /// token.
  [[nodiscard]] static std::unique_ptr<ConnectionToken> take(Load& load, const Limits& limits,
                                                             Metrics& metrics);
  ~ConnectionToken();
  ConnectionToken(const ConnectionToken&) = delete;
  ConnectionToken& operator=(const ConnectionToken&) = delete;

 private:
  ConnectionToken(Share place, Metrics& metrics) : place_(std::move(place)), metrics_(metrics) {}
  Share place_;
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

  /// Ends it at once.
  void cut_off();
  [[nodiscard]] bool is_cut_off() const { return cut_off_; }

  [[nodiscard]] bool in_handshake() const { return stage_ == Stage::handshake; }
  /// Since when its client has been awaited; empty if the client waits for us.
  [[nodiscard]] std::optional<TimePoint> waits_since() const;

 private:
  enum class Stage { handshake, session, shutdown };

  [[nodiscard]] Task<bool> handshake();
  [[nodiscard]] Task<void> serve();
  [[nodiscard]] Task<void> shut_down();

  SessionContext& context_;
  Connections& all_;
  std::unique_ptr<ConnectionToken> token_;
  std::shared_ptr<asio::ssl::context> tls_;
  asio::ssl::stream<TcpSocket> stream_;
  Session session_;
  Stage stage_ = Stage::handshake;
  TimePoint deadline_;  // of handshake and shutdown; a session keeps its own
  bool cut_off_ = false;
  bool too_late_ = false;  // cut off by the clock
  bool stopping_ = false;
};

}  // namespace rayhook
