// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "kubeconfig.hpp"
#include "server/clock.hpp"
#include "server/net.hpp"

namespace rayhook {

/// The TLS side of talking to an API server: its CA, our client certificate. Shared by threads.
/// Errors: Errc::bad_config, with what cannot be used.
[[nodiscard]] Result<std::shared_ptr<boost::asio::ssl::context>> client_tls(
    const ClusterAccess& access);

/// What an API server answered to a GET.
struct KubeAnswer {
  unsigned status = 0;
  std::string body;
};

/// Speaks HTTP/1.1 over verified TLS with an API server, on kept connections. Lives on one thread
/// and its io_context; not thread-safe. How many requests run at once is the caller's affair: each
/// takes a connection.
class KubeClient {
 public:
  /// Longest body that is read: a stored object has at most 1.5 MiB.
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

  /// GETs `path` (which must need no escaping), done by `deadline`. A kept connection that turns
  /// out to be dead, and a token that was just replaced, are tried once more. Errors:
  /// Errc::unreachable, with the reason. The client must outlive the coroutine, unless that is
  /// destroyed first or `close` was called.
  [[nodiscard]] Task<Result<KubeAnswer>> get(std::string path, TimePoint deadline);

  /// Lets go of the kept connections.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rayhook
