// SPDX-License-Identifier: Apache-2.0
#include "ops.hpp"
#include "timer.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

namespace rayhook {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;
constexpr asio::use_awaitable_t<Executor> kTask;

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr std::chrono::seconds kPatience{30};
constexpr std::size_t kMostHeader = 4096;

/// Counts itself as long as it lives, even if the server dies before it.
class Counted {
 public:
  explicit Counted(std::shared_ptr<std::size_t> count) : count_(std::move(count)) { ++*count_; }
  ~Counted() { --*count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::shared_ptr<std::size_t> count_;
};

}  // namespace

OpsAnswer ops_answer(std::string_view path, const Readiness& readiness, const Metrics& metrics) {
  path = path.substr(0, path.find('?'));
  if (path == "/livez") return {"200 OK", kPlain, "ok\n"};
  if (path == "/readyz") {
    std::string hindrances = readiness.hindrances();
    if (hindrances.empty()) return {"200 OK", kPlain, "ok\n"};
    return {"503 Service Unavailable", kPlain, std::move(hindrances)};
  }
  if (path == "/metrics")
    return {"200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics.text()};
  return {"404 Not Found", kPlain, "there is /livez, /readyz and /metrics here\n"};
}

OpsServer::OpsServer(TcpAcceptor acceptor, const Readiness& readiness, const Metrics& metrics)
    : acceptor_(std::move(acceptor)), readiness_(readiness), metrics_(metrics) {}

Task<void> OpsServer::run() {
  Timer pause(acceptor_.get_executor());
  for (;;) {
    ErrorCode error;
    TcpSocket socket = co_await acceptor_.async_accept(asio::redirect_error(kTask, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(kTask, error));
    } else if (*open_ < kConnections) {
      asio::co_spawn(acceptor_.get_executor(), serve(std::move(socket)), asio::detached);
    }
  }
}

Task<void> OpsServer::serve(TcpSocket socket) {
  const Counted counted(open_);
  beast::basic_stream<Tcp, Executor> stream(std::move(socket));
  beast::flat_buffer buffer(2 * kMostHeader);
  for (;;) {
    stream.expires_after(kPatience);
    http::request_parser<http::empty_body> parser;
    parser.header_limit(kMostHeader);
    ErrorCode error;
    co_await http::async_read(stream, buffer, parser, asio::redirect_error(kTask, error));
    if (error) co_return;
    const auto& request = parser.get();
    const bool head_only = request.method() == http::verb::head;
    OpsAnswer answer;
    if (head_only || request.method() == http::verb::get)
      answer = ops_answer({request.target().data(), request.target().size()}, readiness_, metrics_);
    else
      answer = OpsAnswer{"405 Method Not Allowed", kPlain, "only GET\n"};
    std::string out = "HTTP/1.1 ";
    out += answer.status;
    out += "\r\nContent-Type: ";
    out += answer.type;
    out += "\r\nContent-Length: " + std::to_string(answer.body.size());
    out += parser.keep_alive() ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
    if (!head_only) out += answer.body;
    co_await asio::async_write(stream, asio::buffer(out), asio::redirect_error(kTask, error));
    if (error || !parser.keep_alive()) break;
  }
  ErrorCode ignored;
  stream.socket().shutdown(TcpSocket::shutdown_both, ignored);
}

}  // namespace rayhook
