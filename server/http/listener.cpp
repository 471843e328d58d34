// SPDX-License-Identifier: Apache-2.0
#include "listener.hpp"
#include "server/timer.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <sstream>

namespace rayhook {
namespace {

using ErrorCode = boost::system::error_code;
constexpr asio::use_awaitable_t<Executor> kTask;

/// The address and port of a flag; an unspecified address for `:PORT`.
Result<Tcp::endpoint> parse_endpoint(std::string_view text, std::string_view flag) {
  const auto bad = [flag, text] {
    return fail(Errc::bad_usage, std::string(flag) + " " + std::string(text) +
                                     ": expected IP:PORT, [IPv6]:PORT or :PORT");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  std::uint16_t port = 0;
  const char* first = port_text.data();
  const char* last = first + port_text.size();
  const auto [end, error] = std::from_chars(first, last, port);
  if (error != std::errc{} || end != last) return bad();
  if (host.empty()) return Tcp::endpoint(asio::ip::address_v6::any(), port);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  ErrorCode ignored;
  const auto address = asio::ip::make_address(std::string(host), ignored);
  if (ignored) return bad();
  return Tcp::endpoint(address, port);
}

ErrorCode open_and_listen(TcpAcceptor& acceptor, const Tcp::endpoint& endpoint) {
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(TcpAcceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6() && endpoint.address().is_unspecified())
    acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(TcpAcceptor::max_listen_connections, error);
  return error;
}

bool out_of_resources(const ErrorCode& error) {
  return error == boost::system::errc::too_many_files_open ||
         error == boost::system::errc::too_many_files_open_in_system ||
         error == boost::system::errc::no_buffer_space ||
         error == boost::system::errc::not_enough_memory;
}

}  // namespace

Result<TcpAcceptor> listen_on(asio::io_context& context, std::string_view address,
                              std::string_view flag) {
  const Result<Tcp::endpoint> endpoint = parse_endpoint(address, flag);
  if (!endpoint) return std::unexpected(endpoint.error());
  TcpAcceptor acceptor(context.get_executor());
  ErrorCode error = open_and_listen(acceptor, *endpoint);
  if (error && address.starts_with(':')) {  // a machine without IPv6
    acceptor = TcpAcceptor(context.get_executor());
    error = open_and_listen(acceptor, Tcp::endpoint(asio::ip::address_v4::any(), endpoint->port()));
  }
  if (error)
    return fail(Errc::io, std::string(flag) + " " + std::string(address) +
                              ": cannot listen there: " + error.message());
  return acceptor;
}

std::string bound_address(const TcpAcceptor& acceptor) {
  ErrorCode error;
  std::ostringstream out;
  out << acceptor.local_endpoint(error);
  return out.str();
}

Listener::Listener(TcpAcceptor acceptor, std::vector<Worker*> workers, const WorkerShared& shared)
    : acceptor_(std::move(acceptor)), workers_(std::move(workers)), shared_(shared) {}

Worker& Listener::least_loaded() const {
  return **std::ranges::min_element(workers_, {},
                                    [](const Worker* worker) { return worker->load(); });
}

Task<void> Listener::run() {
  Timer pause(acceptor_.get_executor());
  while (acceptor_.is_open()) {
    Worker& worker = least_loaded();
    ErrorCode error;
    TcpSocket socket =
        co_await acceptor_.async_accept(worker.executor(), asio::redirect_error(kTask, error));
    if (!error) {
      // Where the workers are behind, the others wait in the kernel: to turn away the newest would
      // be to turn away the API server for those that are long gone.
      while (!take(socket, worker)) {
        if (!acceptor_.is_open()) co_return;
        pause.expires_after(std::chrono::milliseconds(1));
        co_await wait(pause);
      }
      continue;
    }
    if (error == asio::error::operation_aborted) co_return;
    shared_.metrics.accept_failed();
    if (const auto held_back = gate_.pass(shared_.clock.now()))
      shared_.log.event(LogLevel::warn, "a connection could not be accepted",
                        {{"error", error.message()}, {"alsoBefore", *held_back}});
    if (!out_of_resources(error)) continue;
    // Asking again at once would only spin: the connection still waits.
    pause.expires_after(std::chrono::milliseconds(100));
    co_await wait(pause);
  }
}

bool Listener::take(TcpSocket& socket, Worker& worker) {
  if (!tls_) return true;  // and closes it: without a certificate there is nothing to say
  auto token = ConnectionToken::take(shared_.load, shared_.limits, shared_.metrics);
  if (!token) return false;
  ErrorCode ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  socket.set_option(TcpSocket::keep_alive(true), ignored);
  worker.adopt(std::move(socket), tls_, std::move(token));
  return true;
}

void Listener::stop() {
  ErrorCode error;
  acceptor_.non_blocking(true, error);
  for (;;) {
    Worker& worker = least_loaded();
    TcpSocket socket = acceptor_.accept(worker.executor(), error);
    if (error) break;
    if (!take(socket, worker)) shared_.metrics.connection_refused();
  }
  acceptor_.close(error);
}

}  // namespace rayhook
