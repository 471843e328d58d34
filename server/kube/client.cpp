// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
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
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
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
        ca_file(access.ca_file, "the API server's CA"),
        clock(time) {}

  Executor executor;
  std::shared_ptr<ssl::context> tls;
  ClusterAccess access;
  Token token;
  WatchedFile ca_file;
  const Clock& clock;
  std::list<std::unique_ptr<Link>> kept;  // the freshest first
  bool closed = false;

  [[nodiscard]] std::unique_ptr<Link> take_kept();
  void keep(std::unique_ptr<Link> link);
  [[nodiscard]] std::string text_of(const KubeRequest& request);
  [[nodiscard]] std::unique_ptr<Link> new_link();
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

/// The CA of a cluster is replaced now and then, and so is its file.
std::unique_ptr<Link> KubeClient::State::new_link() {
  if (std::optional<std::string> pem = ca_file.changed(clock.now())) {
    ClusterAccess renewed = access;
    renewed.ca_pem = std::move(*pem);
    if (auto context = client_tls(renewed)) tls = std::move(*context);
  }
  return std::make_unique<Link>(executor, *tls);
}

std::string KubeClient::State::text_of(const KubeRequest& request) {
  std::string out = request.method + " " + access.path + request.path + " HTTP/1.1\r\nHost: ";
  out += url_host(access.host);
  out += ":" + std::to_string(access.port);
  out += "\r\nAccept: application/json\r\nUser-Agent: rayhook/";
  out += kVersion;
  if (const std::string& bearer = token.get(clock.now()); !bearer.empty())
    out += "\r\nAuthorization: Bearer " + bearer;
  if (!request.content_type.empty()) {
    out += "\r\nContent-Type: " + request.content_type;
    out += "\r\nContent-Length: " + std::to_string(request.body.size());
  }
  out += "\r\n\r\n";
  out += request.body;
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

std::chrono::seconds retry_after(const http::fields& fields) {
  const auto text = fields[http::field::retry_after];
  unsigned seconds = 0;
  // A date is no API server's way.
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::chrono::seconds(error == std::errc{} && end == text.data() + text.size() ? seconds
                                                                                       : 0);
}

/// The texts of `Warning: 299 - "text"`, in which `"` and `\\` stand behind a `\\` (RFC
/// 9110 5.6.4).
std::vector<std::string> warnings(const http::fields& fields) {
  std::vector<std::string> out;
  const auto range = fields.equal_range(http::field::warning);
  for (auto field = range.first; field != range.second; ++field) {
    const std::string_view value(field->value().data(), field->value().size());
    const std::size_t open = value.find('"'), close = value.rfind('"');
    if (open == close) continue;
    std::string& text = out.emplace_back();
    for (std::size_t i = open + 1; i < close; ++i) {
      if (value[i] == '\\' && i + 1 < close) ++i;
      text += value[i];
    }
  }
  return out;
}

Task<ErrorCode> write_all(Link& link, const std::string& request) {
  ErrorCode error;
  const asio::const_buffer bytes(request.data(), request.size());
  co_await asio::async_write(link.stream, bytes, asio::redirect_error(kTask, error));
  co_return error;
}

/// Sends one request on an open link and reads its answer. `keep_alive`: the link may be used
/// again.
Task<Result<KubeAnswer>> exchange(Link& link, const std::string& request, bool& keep_alive) {
  ErrorCode error = co_await write_all(link, request);
  if (error) co_return unreachable("cannot send to the API server", error);
  http::response_parser<http::string_body> parser;
  parser.header_limit(16 * 1024);
  parser.body_limit(KubeClient::kMostBody);
  co_await http::async_read(link.stream, link.buffer, parser, asio::redirect_error(kTask, error));
  if (error) co_return unreachable("cannot read the API server's answer", error);
  keep_alive = parser.keep_alive() && parser.is_done();
  KubeAnswer answer;
  answer.status = parser.get().result_int();
  answer.retry_after = retry_after(parser.get().base());
  answer.warnings = warnings(parser.get().base());
  answer.body = std::move(parser.get().body());
  co_return answer;
}

/// Sends one GET on an open link, and hands the body over as it comes.
Task<Result<KubeAnswer>> exchange_streamed(Link& link, const std::string& request,
                                           StreamTimes times, const Clock& clock,
                                           OnBytes& on_bytes) {
  constexpr std::size_t kMostComplaint = 64 * 1024;
  ErrorCode error = co_await write_all(link, request);
  if (error) co_return unreachable("cannot send to the API server", error);
  http::response_parser<http::buffer_body> parser;
  parser.header_limit(16 * 1024);
  parser.body_limit(boost::none);
  co_await http::async_read_header(link.stream, link.buffer, parser,
                                   asio::redirect_error(kTask, error));
  if (error) co_return unreachable("cannot read the API server's answer", error);
  KubeAnswer answer;
  answer.status = parser.get().result_int();
  answer.retry_after = retry_after(parser.get().base());
  if (answer.status == 200 && !on_bytes({})) co_return answer;
  std::array<char, 16 * 1024> piece;
  while (!parser.is_done()) {
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    const TimePoint silence_ends = clock.now() + times.idle;
    link.stream.next_layer().expires_at(std::min(silence_ends, times.end));
    co_await http::async_read_some(link.stream, link.buffer, parser,
                                   asio::redirect_error(kTask, error));
    if (error == http::error::need_buffer) error = {};
    if (error) co_return unreachable("the API server's answer broke off", error);
    const std::string_view bytes(piece.data(), piece.size() - body.size);
    if (answer.status == 200) {
      if (!bytes.empty() && !on_bytes(bytes)) break;
    } else {
      answer.body += bytes;
      if (answer.body.size() > kMostComplaint) break;
    }
  }
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

namespace {

/// A new connection, ready for a request.
Task<Result<void>> open(Link& link, bool expected, const ClusterAccess& access) {
  if (!expected) co_return fail(Errc::unreachable, "the API server's name cannot be verified");
  co_return co_await dial(link, access);
}

}  // namespace

Task<Result<KubeAnswer>> KubeClient::get(std::string path, TimePoint deadline) {
  KubeRequest request;
  request.path = std::move(path);
  return send(std::move(request), deadline);
}

Task<Result<KubeAnswer>> KubeClient::send(KubeRequest request, TimePoint deadline) {
  const std::shared_ptr<State> state = state_;
  const bool repeatable = request.method == "GET";
  bool token_replaced = false;
  for (;;) {
    // A POST on a connection that the server is just closing would leave open whether it was done.
    std::unique_ptr<Link> link = repeatable ? state->take_kept() : nullptr;
    const bool reused = link != nullptr;
    if (!link) link = state->new_link();
    // One deadline for all that follows on it; it ends whatever waits with beast::error::timeout.
    link->stream.next_layer().expires_at(deadline);
    if (!reused) {
      const bool expected = state->expect_server(link->stream);
      const Result<void> opened = co_await open(*link, expected, state->access);
      if (!opened) co_return std::unexpected(opened.error());
    }
    const std::string text = state->text_of(request);
    bool keep_alive = false;
    Result<KubeAnswer> answer = co_await exchange(*link, text, keep_alive);
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

Task<Result<KubeAnswer>> KubeClient::stream(std::string path, StreamTimes times, OnBytes on_bytes) {
  const std::shared_ptr<State> state = state_;
  KubeRequest request;
  request.path = std::move(path);
  for (bool again = true;;) {
    const std::unique_ptr<Link> link = state->new_link();
    link->stream.next_layer().expires_at(times.head_by);
    const bool expected = state->expect_server(link->stream);
    const Result<void> opened = co_await open(*link, expected, state->access);
    if (!opened) co_return std::unexpected(opened.error());
    const std::string text = state->text_of(request);
    Result<KubeAnswer> answer =
        co_await exchange_streamed(*link, text, times, state->clock, on_bytes);
    if (answer && answer->status == 401 && again && state->token.refused(state->clock.now())) {
      again = false;
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
