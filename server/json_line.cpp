// SPDX-License-Identifier: Apache-2.0
#include "json_line.hpp"

#include <charconv>

namespace rayhook {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Length of the well-formed UTF-8 sequence that begins `text`, 0 if there is none (RFC 3629: no
/// overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;
    return tail(1, low, high) && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return tail(1, low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

constexpr char kHex[] = "0123456789abcdef";

/// What is valid in a JSON text, and yet may break or turn a line for those who look at it: control
/// characters past ASCII (U+009B begins terminal commands), line separators, direction marks.
bool misleads(unsigned code) {
  return (code >= 0x80 && code <= 0x9F) || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

/// The code point of a sequence of two or three bytes, 0 for any other.
unsigned code_point(std::string_view sequence) {
  const auto bits = [&](std::size_t i, unsigned mask) {
    return static_cast<unsigned char>(sequence[i]) & mask;
  };
  if (sequence.size() == 2) return bits(0, 0x1F) << 6 | bits(1, 0x3F);
  if (sequence.size() == 3) return bits(0, 0x0F) << 12 | bits(1, 0x3F) << 6 | bits(2, 0x3F);
  return 0;
}

void append_code(std::string& out, unsigned code) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 15];
}

void append_escape(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      append_code(out, c);
  }
}

}  // namespace

void append_log_string(std::string& out, std::string_view text, std::size_t limit) {
  out += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    const auto c = static_cast<unsigned char>(text[at]);
    const std::size_t length = sequence_length(text.substr(at));
    if (at + (length ? length : 1) > limit) {
      out += "…";
      break;
    }
    if (length == 0) {
      out += kReplacement;
      ++at;
    } else if (length == 1 && (c < 0x20 || c == '"' || c == '\\' || c == 0x7F)) {
      append_escape(out, c);
      ++at;
    } else if (const unsigned code = code_point(text.substr(at, length)); misleads(code)) {
      append_code(out, code);
      at += length;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  out += '"';
}

void JsonLine::key(std::string_view key) {
  if (out_.back() != '{' && out_.back() != '[') out_ += ',';
  out_ += '"';
  out_ += key;
  out_ += "\":";
}

JsonLine& JsonLine::text(std::string_view name, std::string_view value, std::size_t limit) {
  key(name);
  append_log_string(out_, value, limit);
  return *this;
}

JsonLine& JsonLine::number(std::string_view name, std::int64_t value) {
  key(name);
  char digits[24];
  out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return *this;
}

JsonLine& JsonLine::boolean(std::string_view name, bool value) {
  key(name);
  out_ += value ? "true" : "false";
  return *this;
}

JsonLine& JsonLine::raw(std::string_view name, std::string_view value) {
  key(name);
  out_ += value;
  return *this;
}

JsonLine& JsonLine::begin_array(std::string_view name) {
  key(name);
  out_ += '[';
  return *this;
}

JsonLine& JsonLine::element(std::string_view value, std::size_t limit) {
  if (out_.back() != '[') out_ += ',';
  append_log_string(out_, value, limit);
  return *this;
}

JsonLine& JsonLine::end_array() {
  out_ += ']';
  return *this;
}

JsonLine& JsonLine::begin_object() {
  if (out_.back() != '[') out_ += ',';
  out_ += '{';
  return *this;
}

JsonLine& JsonLine::end_object() {
  out_ += '}';
  return *this;
}

}  // namespace rayhook
