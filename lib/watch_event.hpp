// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "error.hpp"
#include "service.hpp"

namespace rayhook {

/// One line of a watch of Services.
struct WatchEvent {
  enum class Kind { added, modified, deleted, bookmark, error } kind = Kind::error;
  Service service;               ///< added, modified, deleted; of a bookmark nothing
  std::string resource_version;  ///< where the watch stands after it; empty for an error
  unsigned code = 0;             ///< error: the Status' code (410: the version is too old)
  std::string message;           ///< error: what the API server says
};

/// Reads one line of `GET …/services?watch=1` (kubernetes
/// staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/watch.go). Needs no padding, copies. Errors:
/// Errc::bad_json for what is no event of a Service.
[[nodiscard]] Result<WatchEvent> parse_watch_event(std::string_view line);

/// Cuts a stream into lines while its bytes come in. Not thread-safe.
class LineSplitter {
 public:
  static constexpr std::size_t kMostLine = 2 * 1024 * 1024;

  /// Takes the next bytes and calls `on_line(line)` (without its end; empty lines are passed
  /// over), which returns false when it has enough. Returns false then, or if a line is too long.
  template <class F>
  [[nodiscard]] bool feed(std::string_view bytes, F&& on_line) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      line_ += bytes.substr(0, end);
      if (line_.size() > kMostLine) return false;
      if (end == std::string_view::npos) return true;
      bytes.remove_prefix(end + 1);
      const bool go_on = line_.empty() || on_line(std::string_view(line_));
      line_.clear();
      if (!go_on) return false;
    }
    return true;
  }

  /// Bytes of a line that has not ended.
  [[nodiscard]] std::size_t pending() const { return line_.size(); }

 private:
  std::string line_;
};

}  // namespace rayhook
