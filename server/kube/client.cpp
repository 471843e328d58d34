// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <list>

#include "certs/openssl.hpp"
#include "lib/version.hpp"
#include "token.hpp"

namespace rayhook {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using ErrorCode = boost::system::error_code;
using Tcp = asio::ip::tcp;
using Stream = ssl::stream<beast::basic_stream<Tcp, Executor>>;
constexpr asio::use_awaitable_t<Executor> kTask;

/// A connection with what was read ahead on it.
struct Link {
  Link(const Executor& executor, ssl::context& tls) : stream(executor, tls) {}
  Stream stream;
  beast::flat_buffer buffer{64 * 1024};
  TimePoint kept_since;
  bool used_before = false;
};

std::unexpected<Error> unreachable(std::string_view what, const ErrorCode& error) {
  return fail(Errc::unreachable, std::string(what) + ": " + error.message());
}

}  // namespace

struct KubeClient::State {
  State(asio::io_context& context, std::shared_ptr<ssl::context> tls_context, ClusterAccess cluster,
        const Clock& time)
      : executor(context.get_executor()),
        tls(std::move(tls_context)),
        access(std::move(cluster)),
        token(access.token, access.token_file),
        clock(time) {}

  Executor executor;
  std::shared_ptr<ssl::context> tls;
  ClusterAccess access;
  Token token;
  const Clock& clock;
  std::list<std::unique_ptr<Link>> kept;  // the freshest first
  bool closed = false;

  [[nodiscard]] std::unique_ptr<Link> take_kept();
  void keep(std::unique_ptr<Link> link);
  [[nodiscard]] std::string request(const std::string& path);
  [[nodiscard]] bool expect_server(Stream& stream) const;
};

std::unique_ptr<Link> KubeClient::State::take_kept() {
  while (!kept.empty()) {
    std::unique_ptr<Link> link = std::move(kept.front());
    kept.pop_front();
    if (clock.now() - link->kept_since < kKeptFor) return link;
  }
  return nullptr;
}

void KubeClient::State::keep(std::unique_ptr<Link> link) {
  if (closed) return;
  link->stream.next_layer().expires_never();
  link->used_before = true;
  link->kept_since = clock.now();
  kept.push_front(std::move(link));
  if (kept.size() > kKept) kept.pop_back();
}

std::string KubeClient::State::request(const std::string& path) {
  const bool v6 = access.host.find(':') != std::string::npos;
  std::string out = "GET " + access.path + path + " HTTP/1.1\r\nHost: ";
  out += v6 ? "[" + access.host + "]" : access.host;
  out += ":" + std::to_string(access.port);
  out += "\r\nAccept: application/json\r\nUser-Agent: rayhook/";
  out += kVersion;
  if (const std::string& bearer = token.get(clock.now()); !bearer.empty())
    out += "\r\nAuthorization: Bearer " + bearer;
  out += "\r\n\r\n";
  return out;
}

/// Sets whom the server's certificate must name: an address is compared as one.
bool KubeClient::State::expect_server(Stream& stream) const {
  SSL* ssl = stream.native_handle();
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  std::string name = access.server_name;
  ErrorCode error;
  asio::ip::make_address(name, error);
  if (!error) return X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(param, name.c_str(), 0) == 1 &&
         // SSL_set_tlsext_host_name, without its cast.
         SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1;
}

namespace {

/// Opens `link` to the server. The deadline is set on the stream already.
Task<Result<void>> dial(Link& link, const ClusterAccess& access) {
  ErrorCode error;
  Tcp::endpoint endpoint;
  const auto address = asio::ip::make_address(access.host, error);
  auto& lowest = beast::get_lowest_layer(link.stream);
  if (!error) {
    endpoint = Tcp::endpoint(address, access.port);
    co_await lowest.async_connect(endpoint, asio::redirect_error(kTask, error));
  } else {
    asio::ip::basic_resolver<Tcp, Executor> resolver(link.stream.get_executor());
    const std::string port = std::to_string(access.port);
    const auto found =
        co_await resolver.async_resolve(access.host, port, asio::redirect_error(kTask, error));
    if (error) co_return unreachable("cannot resolve " + access.host, error);
    co_await lowest.async_connect(found, asio::redirect_error(kTask, error));
  }
  if (error) co_return unreachable("cannot connect to " + access.host, error);
  ErrorCode ignored;
  lowest.socket().set_option(Tcp::no_delay(true), ignored);
  co_await link.stream.async_handshake(ssl::stream_base::client,
                                       asio::redirect_error(kTask, error));
  if (error) {
    const long verified = SSL_get_verify_result(link.stream.native_handle());
    if (verified != X509_V_OK)
      co_return fail(Errc::unreachable, std::string("the API server's certificate: ") +
                                            X509_verify_cert_error_string(verified));
    co_return unreachable("TLS handshake with " + access.host, error);
  }
  co_return Result<void>();
}

/// Sends one request on an open link and reads its answer. `keep_alive`: the link may be used
/// again.
Task<Result<KubeAnswer>> exchange(Link& link, const std::string& request, bool& keep_alive) {
  ErrorCode error;
  const asio::const_buffer bytes(request.data(), request.size());
  co_await asio::async_write(link.stream, bytes, asio::redirect_error(kTask, error));
  if (error) co_return unreachable("cannot send to the API server", error);
  http::response_parser<http::string_body> parser;
  parser.header_limit(16 * 1024);
  parser.body_limit(KubeClient::kMostBody);
  co_await http::async_read(link.stream, link.buffer, parser, asio::redirect_error(kTask, error));
  if (error) co_return unreachable("cannot read the API server's answer", error);
  keep_alive = parser.keep_alive() && parser.is_done();
  KubeAnswer answer;
  answer.status = parser.get().result_int();
  answer.body = std::move(parser.get().body());
  co_return answer;
}

}  // namespace

KubeClient::KubeClient(asio::io_context& context, std::shared_ptr<ssl::context> tls,
                       ClusterAccess access, const Clock& clock)
    : state_(std::make_shared<State>(context, std::move(tls), std::move(access), clock)) {}

KubeClient::~KubeClient() { close(); }

void KubeClient::close() {
  state_->closed = true;
  state_->kept.clear();
}

Task<Result<KubeAnswer>> KubeClient::get(std::string path, TimePoint deadline) {
  const std::shared_ptr<State> state = state_;
  bool token_replaced = false;
  for (;;) {
    std::unique_ptr<Link> link = state->take_kept();
    const bool reused = link != nullptr;
    if (!link) link = std::make_unique<Link>(state->executor, *state->tls);
    // One deadline for all that follows on it; it ends whatever waits with beast::error::timeout.
    link->stream.next_layer().expires_at(deadline);
    if (!reused) {
      if (!state->expect_server(link->stream))
        co_return fail(Errc::unreachable, "the API server's name cannot be verified");
      const Result<void> open = co_await dial(*link, state->access);
      if (!open) co_return std::unexpected(open.error());
    }
    const std::string request = state->request(path);
    bool keep_alive = false;
    Result<KubeAnswer> answer = co_await exchange(*link, request, keep_alive);
    const TimePoint now = state->clock.now();
    // The server may have closed it while it lay idle: nothing was lost, a GET may be repeated.
    if (!answer && reused && now < deadline) continue;
    if (answer && keep_alive) state->keep(std::move(link));
    if (answer && answer->status == 401 && !token_replaced && state->token.refused(now)) {
      token_replaced = true;
      continue;
    }
    co_return answer;
  }
}

Result<std::shared_ptr<ssl::context>> client_tls(const ClusterAccess& access) {
  try {
    auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
    SSL_CTX* native = context->native_handle();
    SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
    SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
    // Never ask a terminal for a passphrase.
    SSL_CTX_set_default_passwd_cb(native, [](char*, int, int, void*) { return 0; });
    ErrorCode error;
    context->add_certificate_authority(asio::buffer(access.ca_pem), error);
    if (error)
      return fail(Errc::bad_config, "the API server's CA cannot be used: " + error.message());
    if (access.client_cert_pem.empty()) return context;
    context->use_certificate_chain(asio::buffer(access.client_cert_pem), error);
    if (error)
      return fail(Errc::bad_config, "the client certificate cannot be used: " + error.message());
    context->use_private_key(asio::buffer(access.client_key_pem), ssl::context::pem, error);
    if (error || SSL_CTX_check_private_key(native) != 1)
      return fail(Errc::bad_config, "the client key cannot be used, or is another's: " +
                                        (error ? error.message() : openssl_reason()));
    return context;
  } catch (const std::exception& error) {
    return fail(Errc::internal, std::string("TLS cannot be set up: ") + error.what());
  }
}

}  // namespace rayhook
