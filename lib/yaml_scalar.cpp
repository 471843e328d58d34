// SPDX-License-Identifier: Apache-2.0
#include "yaml_scalar.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "patch.hpp"

namespace rayhook::yaml {
namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

template <class T>
bool whole(std::string_view digits, int base, T& out) {
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  return error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
}

/// An integer as Go's ParseInt(text, 0) reads it, and 0b….
std::optional<nlohmann::ordered_json> integer(std::string_view text) {
  bool negative = false;
  if (text.front() == '-' || text.front() == '+') {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'o' || mark == 'b' ? 2 : 1);
  }
  if (text.empty() || text.front() == '-' || text.front() == '+') return std::nullopt;
  std::uint64_t value = 0;
  if (!whole(text, base, value)) return std::nullopt;
  if (!negative) return nlohmann::ordered_json(value);
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  return nlohmann::ordered_json(-static_cast<std::int64_t>(value));
}

/// [-+]? (digits [. digits?] | . digits) ([eE] [-+]? digits)?
bool looks_like_float(std::string_view text) {
  std::size_t pos = 0;
  const auto digits = [&] {
    const std::size_t begin = pos;
    while (pos < text.size() && text[pos] >= '0' && text[pos] <= '9') ++pos;
    return pos > begin;
  };
  if (pos < text.size() && (text[pos] == '-' || text[pos] == '+')) ++pos;
  const bool before = digits();
  if (pos < text.size() && text[pos] == '.') {
    ++pos;
    if (!digits() && !before) return false;
  } else if (!before) {
    return false;
  }
  if (pos < text.size() && (text[pos] | 0x20) == 'e') {
    ++pos;
    if (pos < text.size() && (text[pos] == '-' || text[pos] == '+')) ++pos;
    if (!digits()) return false;
  }
  return pos == text.size();
}

bool safe_plain(std::string_view value) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (value.size() < 3 || value.size() > 200 || !letter(value.front())) return false;
  const bool clean = std::ranges::all_of(value, [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') ||
           std::string_view("-._/@").find(c) != std::string_view::npos;
  });
  return clean && resolve(value).is_string();
}

/// Characters that JSON may hold as they are and YAML may not (libyaml src/reader.c), or at which
/// it breaks a line (U+0085, U+2028, U+2029): their UTF-8, and how many bytes of it; else 0.
std::size_t special_size(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) == 0x7F) return 1;
  if (text.size() >= 2 && byte(0) == 0xC2 && byte(1) < 0xA0) return 2;  // U+0080 to U+009F
  const std::string_view three = text.substr(0, 3);
  return one_of(three,
                {"\xE2\x80\xA8", "\xE2\x80\xA9", "\xEF\xBB\xBF", "\xEF\xBF\xBE", "\xEF\xBF\xBF"})
             ? 3
             : 0;
}

}  // namespace

bool has_special(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (special_size(text.substr(i)) > 0) return true;
  return false;
}

std::string escaped(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const std::size_t size = special_size(json);
    if (size == 0)
      out += json.front();
    else
      out.append(nlohmann::ordered_json(json.substr(0, size)).dump(-1, ' ', true), 1, 6);  // \uXXXX
    json.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

nlohmann::ordered_json resolve(std::string_view plain) {
  if (plain.empty()) return nullptr;
  const char first = plain.front();
  if (std::string_view("yYnNtTfFoO~").find(first) != std::string_view::npos && plain.size() <= 5) {
    if (one_of(plain, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}))
      return true;
    if (one_of(plain, {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}))
      return false;
    if (one_of(plain, {"~", "null", "Null", "NULL"})) return nullptr;
  }
  if (std::string_view("+-.0123456789").find(first) == std::string_view::npos)
    return std::string(plain);
  if (one_of(plain, {".nan", ".NaN", ".NAN"})) return std::nan("");
  if (one_of(plain, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return HUGE_VAL;
  if (one_of(plain, {"-.inf", "-.Inf", "-.INF"})) return -HUGE_VAL;
  if (plain.size() > 400) return std::string(plain);
  std::string digits(plain);
  if (first != '.') std::erase(digits, '_');
  if (first != '.')
    if (auto number = integer(digits)) return *number;
  if (looks_like_float(digits)) return std::strtod(digits.c_str(), nullptr);
  return std::string(plain);
}

void append_scalar(std::string& out, std::string_view value, bool always_quote) {
  if (!always_quote && safe_plain(value)) {
    out += value;
    return;
  }
  std::string json;
  append_json_string(json, value);
  out += escaped(json);
}

}  // namespace rayhook::yaml
