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

/// Builds the value, and notes where its parts came from.
class Decoder {
 public:
  Decoder(std::string_view source, std::vector<Part>* parts) : source_(source), parts_(parts) {}

  std::string value;

  /// Source bytes that stand for themselves.
  void copy(std::size_t begin, std::size_t end) {
    if (begin == end) return;
    note(begin, end, end - begin);
    value.append(source_.substr(begin, end - begin));
  }
  /// Source bytes that stand for `text`, which may be empty.
  void put(std::size_t begin, std::size_t end, std::string_view text) {
    note(begin, end, text.size());
    value.append(text);
  }

 private:
  void note(std::size_t begin, std::size_t end, std::size_t size) {
    if (!parts_ || size == 0) return;
    const auto at = static_cast<std::uint32_t>(value.size());
    parts_->push_back({at, static_cast<std::uint32_t>(at + size), static_cast<std::uint32_t>(begin),
                       static_cast<std::uint32_t>(end)});
  }

  std::string_view source_;
  std::vector<Part>* parts_;
};

bool blank(char c) { return c == ' ' || c == '\t'; }

/// One past a line break at `pos`, or `pos` if there is none.
std::size_t past_break(std::string_view text, std::size_t pos) {
  if (pos < text.size() && text[pos] == '\r' && pos + 1 < text.size() && text[pos + 1] == '\n')
    return pos + 2;
  return pos < text.size() && text[pos] == '\n' ? pos + 1 : pos;
}

/// A fold in a plain or quoted scalar: from the blanks before a line break to the next line's
/// first character. One break is a space, each further one a newline. `pos` is behind it then.
void fold(std::string_view source, std::size_t& pos, Decoder& out, bool escaped_break = false) {
  const std::size_t begin = pos;
  std::size_t breaks = 0;
  for (;;) {
    while (pos < source.size() && blank(source[pos])) ++pos;
    const std::size_t behind = past_break(source, pos);
    if (behind == pos) break;
    pos = behind;
    ++breaks;
  }
  if (breaks > 1)
    out.put(begin, pos, std::string(breaks - 1, '\n'));
  else
    out.put(begin, pos, escaped_break ? "" : " ");
}

/// Blanks and line breaks in a plain or quoted scalar. False: there are none at `pos`.
bool white(std::string_view source, std::size_t& pos, Decoder& out) {
  std::size_t end = pos;
  while (end < source.size() && blank(source[end])) ++end;
  if (past_break(source, end) != end) {
    fold(source, pos, out);
  } else if (end > pos) {
    out.copy(pos, end);
    pos = end;
  } else {
    return false;
  }
  return true;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6)), byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12)), byte(0x80 | ((code >> 6) & 0x3F)), byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18)), byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F)), byte(0x80 | (code & 0x3F));
  }
}

bool hex(std::string_view source, std::size_t pos, std::size_t digits, std::uint32_t& code) {
  if (pos + digits > source.size()) return false;
  const char* end = source.data() + pos + digits;
  return std::from_chars(source.data() + pos, end, code, 16).ptr == end;
}

/// The escape at `pos` (its backslash); moves behind it. False: there is no such escape.
bool unescape(std::string_view source, std::size_t& pos, Decoder& out) {
  static constexpr std::string_view kFrom = "0abtnvfre \"/\\N_LP\t";
  static constexpr std::array<std::string_view, 18> kTo = {std::string_view("\0", 1),
                                                           "\a",
                                                           "\b",
                                                           "\t",
                                                           "\n",
                                                           "\v",
                                                           "\f",
                                                           "\r",
                                                           "\x1b",
                                                           " ",
                                                           "\"",
                                                           "/",
                                                           "\\",
                                                           "\u0085",
                                                           "\u00a0",
                                                           "\u2028",
                                                           "\u2029",
                                                           "\t"};
  const std::size_t begin = pos;
  if (pos + 1 >= source.size()) return false;
  const char letter = source[pos + 1];
  if (const std::size_t at = kFrom.find(letter); at != std::string_view::npos) {
    pos += 2;
    out.put(begin, pos, kTo[at]);
    return true;
  }
  const std::size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  std::uint32_t code = 0;
  if (!digits || !hex(source, pos + 2, digits, code)) return false;
  pos += 2 + digits;
  std::uint32_t low = 0;
  if (code >= 0xD800 && code < 0xDC00 && source.substr(pos, 2) == "\\u" &&
      hex(source, pos + 2, 4, low) && low >= 0xDC00 && low < 0xE000) {
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    pos += 6;
  }
  if ((code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return false;
  std::string text;
  append_utf8(text, code);
  out.put(begin, pos, text);
  return true;
}

bool decode_double(std::string_view source, Decoder& out, std::string& what) {
  std::size_t pos = 1;
  const std::size_t end = source.size() - 1;
  const std::string_view inner = source.substr(0, end);
  while (pos < end) {
    std::size_t run = inner.find_first_of("\\\r\n \t", pos);
    if (run == std::string_view::npos) run = end;
    out.copy(pos, run);
    pos = run;
    if (pos == end) break;
    if (white(inner, pos, out)) continue;
    if (inner[pos] == '\\' && past_break(inner, pos + 1) != pos + 1) {
      ++pos;
      fold(inner, pos, out, true);
    } else if (!unescape(inner, pos, out)) {
      what = "unknown escape in a double-quoted text";
      return false;
    }
  }
  return true;
}

void decode_single(std::string_view source, Decoder& out) {
  std::size_t pos = 1;
  const std::size_t end = source.size() - 1;
  const std::string_view inner = source.substr(0, end);
  while (pos < end) {
    std::size_t run = inner.find_first_of("'\r\n \t", pos);
    if (run == std::string_view::npos) run = end;
    out.copy(pos, run);
    pos = run;
    if (pos == end) break;
    if (white(inner, pos, out)) continue;
    if (inner[pos] == '\'') {
      out.put(pos, pos + 2, "'"), pos += 2;
    } else {
      out.copy(pos, pos + 1), ++pos;
    }
  }
}

void decode_plain(std::string_view source, Decoder& out) {
  std::size_t pos = 0;
  while (pos < source.size()) {
    std::size_t run = source.find_first_of("\r\n \t", pos);
    if (run == std::string_view::npos) run = source.size();
    out.copy(pos, run);
    pos = run;
    if (pos == source.size()) break;
    if (!white(source, pos, out)) out.copy(pos, pos + 1), ++pos;
  }
}

/// A block scalar: header line, then lines at `indent`. Its end is that of its last line with
/// text, or where it keeps (`+`) blank ones, of the last of those.
void decode_block(std::string_view source, bool folded, std::size_t indent, Decoder& out) {
  const std::size_t eol = source.find('\n');
  if (eol == std::string_view::npos) return;
  const std::string_view header = source.substr(0, eol);
  const std::string_view marks = header.substr(0, header.find_first_of(" \t#\r"));
  const bool keep = marks.find('+') != std::string_view::npos;
  const bool strip = marks.find('-') != std::string_view::npos;

  std::size_t pos = eol + 1;
  bool first = true, spaced_before = false;
  std::size_t break_begin = 0, break_end = 0;               // the last text line's line break
  std::vector<std::pair<std::size_t, std::size_t>> blanks;  // blank lines since
  while (pos < source.size()) {
    std::size_t begin = pos;
    while (begin < source.size() && begin - pos < indent && source[begin] == ' ') ++begin;
    if (const std::size_t behind = past_break(source, begin); behind != begin) {
      blanks.emplace_back(pos, behind);
      pos = behind;
      continue;
    }
    if (begin == source.size()) break;  // blanks without a line break
    const bool spaced = blank(source[begin]);
    if (!first) {
      const bool folds = folded && !spaced && !spaced_before;
      if (!folds)
        out.put(break_begin, begin, "\n");
      else if (blanks.empty())
        out.put(break_begin, begin, " ");
    }
    for (const auto& [from, to] : blanks) out.put(from, to, "\n");
    blanks.clear();
    std::size_t end = source.find('\n', begin);
    if (end == std::string_view::npos) end = source.size();
    break_end = std::min(end + 1, source.size());
    if (end > begin && end < source.size() && source[end - 1] == '\r') --end;
    break_begin = end;
    out.copy(begin, end);
    spaced_before = spaced;
    first = false;
    pos = break_end;
  }
  if (!strip && !first && break_end > break_begin) out.put(break_begin, break_end, "\n");
  if (keep)
    for (const auto& [from, to] : blanks) out.put(from, to, "\n");
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

template <class T>
bool whole(std::string_view digits, int base, T& out) {
  const char* end = digits.data() + digits.size();
  const auto [ptr, error] = std::from_chars(digits.data(), end, out, base);
  return error == std::errc() && ptr == end && !digits.empty();
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

}  // namespace

std::optional<std::string> decode(Style style, std::string_view source, int indent,
                                  std::string& what, std::vector<Part>* parts) {
  Decoder out(source, parts);
  switch (style) {
    case Style::double_quoted:
      if (!decode_double(source, out, what)) return std::nullopt;
      break;
    case Style::single_quoted:
      decode_single(source, out);
      break;
    case Style::literal:
    case Style::folded:
      decode_block(source, style == Style::folded, static_cast<std::size_t>(std::max(indent, 0)),
                   out);
      break;
    default:
      decode_plain(source, out);
  }
  return std::move(out.value);
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
  if (!always_quote && safe_plain(value))
    out += value;
  else
    append_json_string(out, value);
}

}  // namespace rayhook::yaml
