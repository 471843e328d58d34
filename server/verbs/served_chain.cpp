// SPDX-License-Identifier: Apache-2.0
#include "served_chain.hpp"

#include <openssl/ssl.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <exception>

#include "certs/certificate.hpp"
#include "server/net.hpp"

namespace rayhook {
namespace {

using ErrorCode = boost::system::error_code;
using Tcp = asio::ip::tcp;
using Stream = asio::ssl::stream<boost::beast::basic_stream<Tcp, Executor>>;
constexpr asio::use_awaitable_t<Executor> kTask;
constexpr std::chrono::seconds kPatience{10};

std::unexpected<Error> failed(const std::string& address, const ErrorCode& error) {
  return fail(Errc::unreachable, address + " cannot be asked: " + error.message());
}

std::string chain_pem(SSL* ssl) {
  std::string out;
  const STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; i < sk_X509_num(chain); ++i) out += to_pem(sk_X509_value(chain, i));
  return out;
}

Task<Result<std::string>> ask(asio::io_context& context, std::string host, std::string port,
                              std::string name, asio::ssl::context& tls) {
  const std::string address = host + ":" + port;
  Stream stream(context.get_executor(), tls);
  stream.next_layer().expires_after(kPatience);
  ErrorCode error;
  asio::ip::basic_resolver<Tcp, Executor> resolver(context.get_executor());
  const auto found =
      co_await resolver.async_resolve(host, port, asio::redirect_error(kTask, error));
  if (error) co_return failed(address, error);
  co_await stream.next_layer().async_connect(found, asio::redirect_error(kTask, error));
  if (error) co_return failed(address, error);
  if (!name.empty() && !is_ip_address(name))  // SSL_set_tlsext_host_name, without its cast
    SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             name.data());
  co_await stream.async_handshake(asio::ssl::stream_base::client,
                                  asio::redirect_error(kTask, error));
  if (error) co_return failed(address, error);
  co_return chain_pem(stream.native_handle());
}

}  // namespace

Result<std::string> served_chain(const std::string& address, const std::string& name) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    return fail(Errc::bad_usage, "--connect " + address + ": expected HOST:PORT");
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Result<std::string> out = fail(Errc::internal, "nobody was asked");
  try {
    asio::ssl::context tls(asio::ssl::context::tls_client);
    asio::io_context context{1};
    asio::co_spawn(context, ask(context, std::move(host), address.substr(colon + 1), name, tls),
                   [&out](const std::exception_ptr& fault, Result<std::string> pem) {
                     if (!fault) out = std::move(pem);
                   });
    context.run_for(2 * kPatience);  // resolving has no deadline of its own
  } catch (const std::exception& error) {
    return fail(Errc::internal, std::string("TLS cannot be set up: ") + error.what());
  }
  return out;
}

}  // namespace rayhook
