// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "server/clock.hpp"

namespace rayhook {

/// A small file that is replaced now and then: a service account's token, a CA. Looked at every
/// ten seconds at most. Not thread-safe.
class WatchedFile {
 public:
  /// `what` names it in errors ("token"). `path` empty: there is none, and nothing ever changes.
  WatchedFile(std::string path, std::string what)
      : path_(std::move(path)), what_(std::move(what)) {}

  [[nodiscard]] bool none() const { return path_.empty(); }

  /// Its content, if it is another file than when last asked. A file that cannot be read is as it
  /// was. `at_once`: look, however short ago the last look was.
  [[nodiscard]] std::optional<std::string> changed(TimePoint now, bool at_once = false);

 private:
  std::string path_, what_;
  std::optional<TimePoint> looked_;
  struct stat seen_{};
};

}  // namespace rayhook
