// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "folder_watch.hpp"
#include "log.hpp"
#include "metrics.hpp"
#include "readiness.hpp"
#include "timer.hpp"
#include "tls.hpp"

namespace rayhook {

/// Keeps what is served in step with the certificate's files. What is wrong with them never ends
/// the process: without a good pair it is not ready and says why, and a bad new pair leaves the
/// good one in its place. On the control thread; not thread-safe.
class CertWatcher {
 public:
  /// How often the files are looked at, whatever inotify says.
  static constexpr std::chrono::milliseconds kPoll{10'000};
  /// Files that change are taken once they have stood still for so long: certificate and key are
  /// two files, and may be written one after the other.
  static constexpr std::chrono::milliseconds kSettle{300};

  using Serve = std::function<void(std::shared_ptr<boost::asio::ssl::context>)>;
  using WallClock = std::function<std::int64_t()>;  ///< Unix time

  /// What is referred to outlives the watcher. `serve` is given each good pair.
  CertWatcher(asio::io_context& context, TlsFiles files, Serve serve, WallClock now, Log& log,
              Metrics& metrics, Readiness& readiness);

  /// Reads the files now, for the start.
  void load();

  /// Goes on looking, until the io_context ends.
  [[nodiscard]] Task<void> run();
  /// Lets `run` know at once when a folder changes. To be spawned beside it.
  [[nodiscard]] Task<void> listen();

 private:
  [[nodiscard]] Task<void> wait_for_change();
  [[nodiscard]] Task<void> settle(Result<TlsTexts>& texts);
  void watch_folders();
  void consider(Result<TlsTexts> texts);
  void refuse(const std::string& why);
  void check_end();

  TlsFiles files_;
  Serve serve_;
  WallClock now_;
  Log& log_;
  Metrics& metrics_;
  Readiness& readiness_;
  FolderWatch folders_;
  Timer timer_;
  bool changed_ = false;
  Result<TlsTexts> considered_;
  std::string complaint_;  // about what was considered last; empty: it is served
  std::optional<std::int64_t> served_until_;
};

}  // namespace rayhook
