// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kubeconfig.hpp"
#include "server/clock.hpp"
#include "server/net.hpp"

namespace rayhook {

/// The TLS side of talking to an API server: its CA, our client certificate. Shared by threads.
/// Errors: Errc::bad_config, with what cannot be used.
[[nodiscard]] Result<std::shared_ptr<boost::asio::ssl::context>> client_tls(
    const ClusterAccess& access);

/// A request to an API server. `path` must need no escaping; the query is part of it.
struct KubeRequest {
  std::string method = "GET";
  std::string path;
  std::string content_type;  ///< of the body, if there is one
  std::string body;
};

/// What an API server answered.
struct KubeAnswer {
  unsigned status = 0;
  std::string body;
  std::chrono::seconds retry_after{0};     ///< as the server wishes; 0: it said nothing
  std::vector<std::string> warnings = {};  ///< what kubectl would print as `Warning: …`
};

/// How long a streamed answer may take.
struct StreamTimes {
  TimePoint head_by;                         ///< connection and header are there by then
  std::chrono::steady_clock::duration idle;  ///< longest silence afterwards
  TimePoint end = TimePoint::max();          ///< of all of it
};

/// Takes a piece of a streamed body, of any size; false: enough. The first is empty: the header of
/// a 200 is there, and the body may be long in coming.
using OnBytes = std::function<bool(std::string_view)>;

/// Speaks HTTP/1.1 over verified TLS with an API server, on kept connections. Lives on one thread
/// and its io_context; not thread-safe. How many requests run at once is the caller's affair: each
/// takes a connection.
class KubeClient {
 public:
  /// Longest body that is read whole: a stored object has at most 1.5 MiB.
  static constexpr std::size_t kMostBody = 2 * 1024 * 1024;
  /// Connections kept between requests, and for how long.
  static constexpr std::size_t kKept = 4;
  static constexpr std::chrono::seconds kKeptFor{60};

  /// `clock` must outlive the client.
  KubeClient(asio::io_context& context, std::shared_ptr<boost::asio::ssl::context> tls,
             ClusterAccess access, const Clock& clock);
  ~KubeClient();
  KubeClient(const KubeClient&) = delete;
  KubeClient& operator=(const KubeClient&) = delete;

  /// Sends a request, done by `deadline`. A GET that meets a kept connection which turns out to be
  /// dead, and any request whose token was just replaced, are tried once more; others are never
  /// sent twice. Errors: Errc::unreachable, with the reason. The client must outlive the
  /// coroutine, unless that is destroyed first or `close` was called.
  [[nodiscard]] Task<Result<KubeAnswer>> send(KubeRequest request, TimePoint deadline);
  [[nodiscard]] Task<Result<KubeAnswer>> get(std::string path, TimePoint deadline);

  /// GETs `path` on a connection of its own and hands the body of a 200 over as it comes; the
  /// answer's `body` is empty then. The body of any other status is kept (up to 64 KiB) as usual.
  /// An answer of 200 means that the body ended in good order, or that `on_bytes` had enough.
  /// Errors: Errc::unreachable.
  [[nodiscard]] Task<Result<KubeAnswer>> stream(std::string path, StreamTimes times,
                                                OnBytes on_bytes);

  /// Lets go of the kept connections.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rayhook
