// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rayhook {

/// Appends `text` as a JSON string, quotes included, cut to at most `limit` bytes of the source (at
/// the end of a character; `…` says so). Whatever the bytes are, the result is valid UTF-8 on one
/// line: whatever a viewer could take for a line's end, a terminal command or a change of direction
/// is escaped, bytes that are no UTF-8 become U+FFFD.
void append_log_string(std::string& out, std::string_view text, std::size_t limit);

/// Writes one JSON object on one line, member by member: what log lines are made with. Keys must
/// be plain ([A-Za-z]+). Not thread-safe.
class JsonLine {
 public:
  /// Longest text of a member, in bytes.
  static constexpr std::size_t kTextLimit = 256;

  explicit JsonLine(std::string& out) : out_(out) { out_ += '{'; }

  JsonLine& text(std::string_view key, std::string_view value, std::size_t limit = kTextLimit);
  JsonLine& number(std::string_view key, std::int64_t value);
  JsonLine& boolean(std::string_view key, bool value);
  /// `value` is JSON already.
  JsonLine& raw(std::string_view key, std::string_view value);

  /// Opens and closes arrays; their texts, and the objects in them.
  JsonLine& begin_array(std::string_view key);
  JsonLine& element(std::string_view value, std::size_t limit = kTextLimit);
  JsonLine& end_array();
  JsonLine& begin_object();
  JsonLine& end_object();

  /// Ends the line's object. Nothing may be written after it.
  void end() { out_ += '}'; }

 private:
  void key(std::string_view key);

  std::string& out_;
};

}  // namespace rayhook
