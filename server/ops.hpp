// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "http/listener.hpp"
#include "readiness.hpp"

namespace rayhook {

/// What the plain port answers to a GET: status line and body. Pure, for tests.
struct OpsAnswer {
  std::string_view status;  ///< "200 OK"
  std::string_view type;
  std::string body;
};
[[nodiscard]] OpsAnswer ops_answer(std::string_view path, const Readiness& readiness,
                                   const Metrics& metrics);

/// The plain HTTP port: /livez, /readyz, /metrics. On the control thread, so that probes never wait
/// behind reviews or TLS; it survives whatever is wrong with certificates.
class OpsServer {
 public:
  OpsServer(TcpAcceptor acceptor, const Readiness& readiness, const Metrics& metrics);

  /// Accepts until the io_context ends.
  [[nodiscard]] Task<void> run();

 private:
  [[nodiscard]] Task<void> serve(TcpSocket socket);

  static constexpr std::size_t kConnections = 32;

  TcpAcceptor acceptor_;
  const Readiness& readiness_;
  const Metrics& metrics_;
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
};

}  // namespace rayhook
