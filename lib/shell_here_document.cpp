// SPDX-License-Identifier: Apache-2.0
// Here-documents: literal if the delimiter is quoted, otherwise expanded like double quotes.
#include "shell_scanner.hpp"

namespace rayhook::shell {

void ShellScanner::here_document_word() {
  HereDocument document{};
  if (cursor().peek() == '-') {
    document.strips_tabs = true;
    cursor().advance();
  }
  while (cursor().peek() == ' ' || cursor().peek() == '\t') cursor().advance();
  // One word, quoted whole or not at all, of characters that need no thought.
  const auto is_usual = [](char c) {
    return (class_of(c) & kName) != 0 || std::string_view("-._!:,/\r").contains(c);
  };
  std::size_t begin = cursor().at();
  const char quote = begin < text_.size() ? text_[begin] : '\0';
  document.quoted = quote == '\'' || quote == '"' || quote == '\\';
  if (document.quoted) ++begin;
  std::size_t end = begin;
  while (end < text_.size() && is_usual(text_[end])) ++end;
  document.delimiter = text_.substr(begin, end - begin);
  if (quote == '\'' || quote == '"') {
    if (end >= text_.size() || text_[end] != quote) return fail(ShellDoubt::unreadable);
    ++end;
  }
  const bool word_ends =
      end >= text_.size() || std::string_view(" \t\n;&|)<>").contains(text_[end]);
  if (document.delimiter.empty() || !word_ends || waiting_ == here_documents_.size())
    return fail(ShellDoubt::unreadable);
  here_documents_[waiting_++] = document;
  reader_.newline_is_doubtful = true;
  cursor().jump(end);
}

void ShellScanner::here_document_body(const HereDocument& document) {
  delimiter_ = document.delimiter;
  for (;;) {
    if (document.strips_tabs)
      while (cursor().peek() == '\t') cursor().advance();
    if (cursor().peek() == SourceCursor::kEnd) return fail(ShellDoubt::unterminated);
    const std::size_t line = cursor().at();
    const std::size_t line_end = line + delimiter_.size();
    if (text_.substr(line).starts_with(delimiter_) &&
        (line_end == text_.size() || text_[line_end] == '\n')) {
      cursor().jump(line_end);
      if (cursor().peek() == '\n') cursor().advance();
      return;
    }
    line_begin_ = line;
    line_is_risky_ = false;
    here_document_line(document);
    if (cursor().peek() == SourceCursor::kEnd) return fail(ShellDoubt::unterminated);
    cursor().advance();
  }
}

void ShellScanner::here_document_line(const HereDocument& document) {
  for (int c; (c = cursor().peek()) != '\n' && c != SourceCursor::kEnd;) {
    if ((class_of(c) & kName) != 0) {
      quoted_run(false);
    } else if (c == SourceCursor::kValue) {
      // It may complete the delimiter.
      const std::size_t begin = cursor().at();
      if (delimiter_.starts_with(text_.substr(line_begin_, begin - line_begin_)))
        return fail(ShellDoubt::unknown_text);
      cursor().advance();
      extend_dollar(begin);
    } else if (c == '$' && !document.quoted) {
      expansion(Place::here_document);
    } else if (c == '`' && !document.quoted) {
      reader_.backquotes();
    } else if (c == '\\' && !document.quoted) {
      if (reader_.at_continuation()) return fail(ShellDoubt::unreadable);
      reader_.escape();
    } else {
      cursor().advance();
    }
  }
}

}  // namespace rayhook::shell
