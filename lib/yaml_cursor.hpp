// SPDX-License-Identifier: Apache-2.0
// The place in a YAML text that is being read; internal to the YAML reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace rayhook::yaml {

/// Walks over a range of the text, and knows line and column. The first error stays, and moves the
/// cursor to the end, so that every loop ends.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t begin, std::size_t end, std::uint32_t line)
      : text_(text.substr(0, end)), pos_(begin), line_begin_(begin), line_(line) {}

  [[nodiscard]] bool at_end() const { return pos_ >= text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
  }
  [[nodiscard]] std::size_t pos() const { return pos_; }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] int column() const { return static_cast<int>(pos_ - line_begin_); }
  [[nodiscard]] std::uint32_t line() const { return line_; }
  [[nodiscard]] bool failed() const { return !error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }

  void advance(std::size_t count = 1) { pos_ += count; }
  /// To a later place on the same line.
  void jump(std::size_t pos) { pos_ = pos; }
  /// To a later place; lines between are counted.
  void pass(std::size_t pos) {
    const std::string_view passed = text_.substr(0, pos);
    for (std::size_t eol; (eol = passed.find('\n', pos_)) != std::string_view::npos;) {
      pos_ = line_begin_ = eol + 1;
      ++line_;
    }
    pos_ = pos;
  }

  void fail(std::string what) { fail_at(line_, std::move(what)); }
  void fail_at(std::uint32_t line, std::string what) {
    if (error_.empty()) error_ = "line " + std::to_string(line) + ": " + std::move(what);
    pos_ = text_.size();
  }

  /// Blank, line break or the end: what separates tokens.
  [[nodiscard]] bool separator(std::size_t ahead) const {
    if (pos_ + ahead >= text_.size()) return true;
    const char c = text_[pos_ + ahead];
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  }
  /// `-`, `?` or `:` as an indicator.
  [[nodiscard]] bool indicator(char mark) const {
    return peek() == mark && !at_end() && separator(1);
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++pos_;
  }

  /// Over blanks, comments and line breaks to the next token.
  void skip() {
    for (;;) {
      skip_blanks();
      if (peek() == '#' &&
          (pos_ == line_begin_ || text_[pos_ - 1] == ' ' || text_[pos_ - 1] == '\t'))
        pos_ = std::min(text_.find('\n', pos_), text_.size());
      const std::size_t eol = pos_ + (peek() == '\r' && peek(1) == '\n' ? 1 : 0);
      if (eol >= text_.size() || text_[eol] != '\n') return;
      pos_ = line_begin_ = eol + 1;
      ++line_;
    }
  }

  /// Only blanks stand before the cursor on its line.
  [[nodiscard]] bool first_on_line() const {
    return text_.substr(line_begin_, pos_ - line_begin_).find_first_not_of(" \t") ==
           std::string_view::npos;
  }
  [[nodiscard]] bool tab_before() const {
    return text_.substr(line_begin_, pos_ - line_begin_).find('\t') != std::string_view::npos;
  }

 private:
  std::string_view text_;
  std::size_t pos_;
  std::size_t line_begin_;
  std::uint32_t line_;
  std::string error_;
};

}  // namespace rayhook::yaml
