// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/error.hpp"
#include "lib/policy.hpp"
#include "limits.hpp"
#include "log.hpp"
#include "lookup/factory.hpp"
#include "tls.hpp"

namespace rayhook {

/// Everything that `rayhook serve` can be told.
struct ServeOptions {
  std::string listen = ":8443";
  std::string ops_listen = ":8080";
  TlsFiles tls;
  LookupOptions lookup;
  LogLevel log_level = LogLevel::info;
  unsigned threads = 0;  ///< 0: by the cgroup's CPU quota
  /// After SIGTERM: how long new connections are still taken, while the cluster forgets this
  /// replica.
  std::chrono::seconds shutdown_delay{0};
  /// And how long, after that, requests under way may take.
  std::chrono::seconds shutdown_timeout{10};
  Limits limits;
  std::optional<std::string> config;  ///< the file that `policy` was read from, for the log
  Policy policy;
};

/// Runs the server until SIGTERM or SIGINT. Everything that can be wrong at start (files,
/// addresses, flags) is an error here; what happens later is logged and counted. Returns the exit
/// code: 0 after an orderly end, 1 if a second signal cut it short. To be called once per process:
/// it handles its signals.
[[nodiscard]] Result<int> serve(const ServeOptions& options);

}  // namespace rayhook
