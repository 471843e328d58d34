// SPDX-License-Identifier: Apache-2.0
// What stands in a word or here-document besides plain text, and which references may be replaced.
#include "shell_scanner.hpp"

namespace rayhook::shell {

void ShellScanner::double_quotes() {
  cursor().advance();
  for (bool first = true;; first = false) {
    const int c = cursor().peek();
    if ((class_of(c) & kName) != 0) {
      quoted_run(first);
      continue;
    }
    switch (c) {
      case SourceCursor::kEnd:
        return fail(ShellDoubt::unterminated);
      case '"':
        return cursor().advance();
      case '$':
        expansion(Place::quoted);
        continue;
      case '`':
        word_.expands = true;
        reader_.backquotes();
        continue;
      case SourceCursor::kValue:
        value();
        continue;
      case '\\':
        if (!reader_.at_continuation())
          reader_.escape();
        else if (reader_.newline_is_doubtful)
          fail(ShellDoubt::unreadable);
        else
          continuation();
        continue;
      case '\n':
        if (reader_.newline_is_doubtful) return fail(ShellDoubt::unreadable);
        break;
      case '/':
        word_.no_builtin = true;
        break;
      default:
        break;
    }
    cursor().advance();
  }
}

void ShellScanner::quoted_run(bool first) {
  const std::size_t begin = cursor().at();
  reader_.note_quoted(reader_.take_run().text, first);
  extend_dollar(begin);
}

void ShellScanner::expansion(Place place) {
  const Dollar dollar = reader_.dollar(place != Place::bare);
  if (place != Place::here_document) word_.plain = false;
  switch (dollar.kind) {
    case Dollar::Kind::literal:
      word_.name_like = word_.digits_like = false;
      return;
    case Dollar::Kind::variable:
      reference(dollar, place);
      if (!dollar.braced) dollar_ends_ = dollar.end;
      break;
    case Dollar::Kind::special:
      dollar_ends_ = dollar.end;
      break;
    case Dollar::Kind::braces:
      reader_.skip(place == Place::bare ? Frame::braces : Frame::quoted_braces);
      break;
    case Dollar::Kind::substitution:
      reader_.skip(Frame::command);
      break;
    case Dollar::Kind::arithmetic:
      reader_.skip(Frame::arithmetic);
      break;
    case Dollar::Kind::quote:
      word_.name_like = word_.digits_like = false;
      break;
    case Dollar::Kind::translated:
      // Its text is what bash looks up in a catalogue: it stays.
      reader_.skip(Frame::quotes);
      word_.name_like = word_.digits_like = false;
      break;
  }
  if (place != Place::here_document) word_.expands = true;
}

void ShellScanner::reference(const Dollar& dollar, Place place) {
  if (!reader_.names.has(dollar.name)) return;
  if (dollar_ends_ == dollar.begin) {  // `$A$B`: with only B replaced A would have a longer name
    // Neither, then: with only A replaced a second look would find B.
    if (!sure_.empty() && sure_.back().end == dollar.begin) sure_.pop_back();
    return;
  }
  if (place == Place::bare && commands_.in_brackets()) return;
  if (!dollar.braced && dollar.end < text_.size()) {
    // What follows may be part of the name.
    if (cursor().peek() == SourceCursor::kValue) return;
    if (cursor().peek() >= 128) return;
  }
  if (place == Place::here_document) {
    const std::string_view before = text_.substr(line_begin_, dollar.begin - line_begin_);
    if (before.size() < delimiter_.size() && delimiter_.starts_with(before)) {
      const char next = delimiter_[before.size()];
      if ((class_of(next) & (kLower | kDigit)) != 0) line_is_risky_ = true;
    }
    if (line_is_risky_) return;
  }
  sure_.push_back({dollar.begin, dollar.end, dollar.name, false});
}

void ShellScanner::value() {
  Word& word = this->word();
  word.plain = false;
  word.expands = word.has_value = true;
  const std::size_t begin = cursor().at();
  cursor().advance();
  extend_dollar(begin);
}

void ShellScanner::continuation() {
  const std::size_t begin = cursor().at();
  if (word_.open) word_.plain = false;
  reader_.continuation();
  extend_dollar(begin);
}

}  // namespace rayhook::shell
