// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <openssl/ssl.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace rayhook {
namespace {

using ErrorCode = boost::system::error_code;
constexpr asio::use_awaitable_t<Executor> kTask;

/// After a refusal at most so much of what the client still sends is read and dropped, so that it
/// sees the answer and not a reset.
constexpr std::size_t kMostDropped = 16 * 1024 * 1024;

/// Whether a TLS error is about the client's certificate.
bool about_client(const ErrorCode& error) {
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  return reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE ||
         reason == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

}  // namespace

std::unique_ptr<ConnectionToken> ConnectionToken::take(Load& load, const Limits& limits,
                                                       Metrics& metrics) {
  Share place;
  if (!place.take(load.connections, 1, limits.connections + limits.handshakes)) return nullptr;
  metrics.connection_opened();
  return std::unique_ptr<ConnectionToken>(new ConnectionToken(std::move(place), metrics));
}

ConnectionToken::~ConnectionToken() { metrics_.connection_closed(); }

Connection::Connection(TcpSocket socket, std::shared_ptr<asio::ssl::context> tls,
                       SessionContext& context, Connections& all,
                       std::unique_ptr<ConnectionToken> token)
    : context_(context),
      all_(all),
      token_(std::move(token)),
      tls_(std::move(tls)),
      stream_(std::move(socket), *tls_),
      session_(context),
      deadline_(context.clock.now() + context.limits.handshake) {
  all_.insert(this);
}

Connection::~Connection() { all_.erase(this); }

Task<void> Connection::run(std::unique_ptr<Connection> self) {
  const bool shaken = co_await self->handshake();
  if (!shaken) co_return;
  self->stage_ = Stage::session;
  co_await self->serve();
  if (!self->cut_off_) co_await self->shut_down();
}

Task<bool> Connection::handshake() {
  ErrorCode error;
  co_await stream_.async_handshake(asio::ssl::stream_base::server,
                                   asio::redirect_error(kTask, error));
  if (!error) co_return true;
  if (cut_off_ && !too_late_) co_return false;  // to make room, and counted as that
  const bool tls_fault = error.category() == asio::error::get_ssl_category();
  context_.metrics.handshake_failed(too_late_ ? HandshakeFault::timeout
                                    : tls_fault && about_client(error)
                                        ? HandshakeFault::client_certificate
                                    : tls_fault ? HandshakeFault::protocol
                                                : HandshakeFault::closed);
  co_return false;
}

Task<void> Connection::serve() {
  ErrorCode error;
  Session::Step step = Session::Step::read;
  while (step != Session::Step::close) {
    if (stopping_ && session_.idle()) co_return;
    if (step == Session::Step::read) {
      const std::span<char> space = session_.space();
      const asio::mutable_buffer buffer(space.data(), space.size());
      const std::size_t bytes =
          co_await stream_.async_read_some(buffer, asio::redirect_error(kTask, error));
      if (error == asio::error::operation_aborted && stopping_ && !cut_off_) continue;
      if (error) {
        if (!cut_off_) session_.ended();
        co_return;
      }
      step = session_.received(bytes);
    } else if (step == Session::Step::write) {
      const std::string_view output = session_.output();
      const asio::const_buffer buffer(output.data(), output.size());
      co_await asio::async_write(stream_, buffer, asio::redirect_error(kTask, error));
      if (error) {
        if (!cut_off_) session_.ended();
        co_return;
      }
      step = session_.written();
    } else {
      Facts facts = co_await context_.lookup.fulfil(session_.lookup_request());
      step = session_.fulfilled(std::move(facts));
    }
  }
}

Task<void> Connection::shut_down() {
  stage_ = Stage::shutdown;
  deadline_ = context_.clock.now() + context_.limits.shutdown;
  ErrorCode error;
  co_await stream_.async_shutdown(asio::redirect_error(kTask, error));
  if (!session_.unread_input() || cut_off_) co_return;
  TcpSocket& socket = stream_.next_layer();
  socket.shutdown(TcpSocket::shutdown_send, error);
  std::array<char, 4096> dropped;
  for (std::size_t total = 0; total < kMostDropped;) {
    const std::size_t bytes =
        co_await socket.async_read_some(asio::buffer(dropped), asio::redirect_error(kTask, error));
    if (error) co_return;
    total += bytes;
  }
}

void Connection::cut_off() {
  cut_off_ = true;
  ErrorCode ignored;
  stream_.next_layer().close(ignored);
}

void Connection::check(TimePoint now) {
  if (cut_off_ || now < (stage_ == Stage::session ? session_.deadline() : deadline_)) return;
  if (stage_ == Stage::session) session_.expired();
  too_late_ = true;
  cut_off();
}

std::optional<TimePoint> Connection::waits_since() const {
  if (stage_ == Stage::session) return session_.waits_since();
  return deadline_ - (in_handshake() ? context_.limits.handshake : context_.limits.shutdown);
}

void Connection::stop_if_idle() {
  if (stage_ != Stage::session || !session_.idle() || stopping_) return;
  stopping_ = true;
  ErrorCode ignored;
  stream_.next_layer().cancel(ignored);
}

}  // namespace rayhook
