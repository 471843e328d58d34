// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "server/clock.hpp"

namespace rayhook {

/// A bearer token, fixed or in a file that is replaced now and then (a service account's lives an
/// hour). The file is looked at every ten seconds at most, and read again when it has changed.
/// Not thread-safe.
class Token {
 public:
  /// `file` empty: `fixed` is the token (empty: none).
  Token(std::string fixed, std::string file) : value_(std::move(fixed)), file_(std::move(file)) {}

  /// The token of now; what was read last if the file cannot be read.
  [[nodiscard]] const std::string& get(TimePoint now);

  /// After the server has refused it: looks at the file at once. True if there is another one.
  [[nodiscard]] bool refused(TimePoint now);

 private:
  void look(TimePoint now);

  std::string value_;
  std::string file_;
  std::optional<TimePoint> looked_;
  struct stat seen_{};
};

}  // namespace rayhook
