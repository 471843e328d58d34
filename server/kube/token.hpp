// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "watched_file.hpp"

namespace rayhook {

/// A bearer token, fixed or in a file that is replaced now and then (a service account's lives an
/// hour). Not thread-safe.
class Token {
 public:
  /// `file` empty: `fixed` is the token (empty: none).
  Token(std::string fixed, std::string file)
      : value_(std::move(fixed)), file_(std::move(file), "token") {}

  /// The token of now; what was read last if the file cannot be read.
  [[nodiscard]] const std::string& get(TimePoint now);

  /// After the server has refused it: looks at the file at once. True if there is another one.
  [[nodiscard]] bool refused(TimePoint now);

 private:
  void look(TimePoint now, bool at_once);

  std::string value_;
  WatchedFile file_;
};

}  // namespace rayhook
