// SPDX-License-Identifier: Apache-2.0
// Words and commands of a shell script.
//
// Whatever is read wrongly must end as a reference left in the text, never as one replaced that
// should not be. So a command is seen where there might be one, and an assignment likewise.
#include "shell.hpp"

#include <algorithm>
#include <utility>

#include "shell_scanner.hpp"

namespace rayhook {
namespace shell {

ShellScan ShellScanner::scan() {
  if (text_.find('$') == std::string_view::npos) return {};
  // An argument cannot hold it: whoever made this text, no shell will see it so.
  if (text_.find('\0') != std::string_view::npos) return {{}, ShellDoubt::unreadable};
  sure_.reserve(4);
  for (int c; (c = cursor().peek()) != SourceCursor::kEnd;) read_bare(c);
  end_command();
  if (waiting_ != 0) fail(ShellDoubt::unterminated);
  if (cursor().met_unknown()) reader_.doubt = ShellDoubt::unknown_text;
  if (reader_.doubt != ShellDoubt::none) return {{}, reader_.doubt};
  if (reader_.names.any_changed()) {
    std::erase_if(sure_, [&](const ShellReference& reference) {
      return reader_.names.is_changed(reference.name);
    });
  }
  return {std::move(sure_), ShellDoubt::none};
}

void ShellScanner::read_bare(int c) {
  if ((class_of(c) & kName) != 0) return read_run();
  switch (c) {
    case ' ':
    case '\t':
      end_word();
      return cursor().advance();
    case '\n':
      return newline();
    case ';':
    case '&':
    case '|':
    case ')':
      end_command();
      return cursor().advance();
    case '(':
      return open_parenthesis();
    case '<':
    case '>':
      return redirection(c);
    case '\'':
      quoted_word();
      return reader_.single_quotes(false);
    case '"':
      quoted_word();
      return double_quotes();
    case '`':
      quoted_word().expands = true;
      return reader_.backquotes();
    case '$':
      word();
      return expansion(Place::bare);
    case SourceCursor::kValue:
      return value();
    case '\\':
      if (reader_.at_continuation()) return continuation();
      quoted_word();
      return reader_.escape();
    case '#':
      if (!word_.open) return reader_.comment();
      // Were kubelet's text empty, a comment would begin here.
      if (word_.has_value) return fail(ShellDoubt::unknown_text);
      break;
    case '=':
    case '+':
      return equals_or_plus();
    case '[':
      return open_bracket();
    case '{':
    case '~':
      // Braces are expanded before variables (`{1..$X}`, `$X{a,b}`), and a tilde takes in the plain
      // text behind it but no variable.
      word().drop = true;
      break;
    case '/':
      word().no_builtin = true;
      break;
    default:
      break;
  }
  Word& word = this->word();
  word.name_like = word.digits_like = false;
  if (!word.expands && c != '.') word.no_builtin = true;
  cursor().advance();
}

void ShellScanner::read_run() {
  Word& word = this->word();
  const std::size_t begin = cursor().at();
  const Run run = reader_.take_run();
  reader_.note_bare(run.text);
  if ((run.all & kDigit) == 0) word.digits_like = false;
  if ((run.all & kLower) == 0 && !word.expands) word.no_builtin = true;
  extend_dollar(begin);
}

void ShellScanner::equals_or_plus() {
  const bool begins = !word_.open;
  Word& word = this->word();
  if (word.name_like && !begins) {
    // `$X=1` is a command; with plain text for $X it is an assignment.
    if (word.has_value) return fail(ShellDoubt::sets_variables);
    drop_references(word);
    word.assigns = !word.expands;
  }
  if (cursor().peek() == '=') word.name_like = false;
  word.digits_like = false;
  if (!word.expands) word.no_builtin = true;
  cursor().advance();
}

void ShellScanner::open_bracket() {
  const bool begins = !word_.open;
  Word& word = this->word();
  if (word.name_like && !begins) {
    if (word.has_value) return fail(ShellDoubt::sets_variables);
    word.assigns = !word.expands;
    word.drop = true;  // arithmetic, if it is a subscript
  }
  word.name_like = word.digits_like = false;
  if (!word.expands) word.no_builtin = true;
  cursor().advance();
}

void ShellScanner::open_parenthesis() {
  end_word();
  // `$X () …`: plain text would define a function.
  if (after_word_) sure_.resize(last_references_);
  // Arithmetic in bash, subshells in dash.
  if (cursor().next_is('(')) return fail(ShellDoubt::unreadable);
  end_command();
  cursor().advance();
  if (cursor().peek() == SourceCursor::kValue) fail(ShellDoubt::unknown_text);
}

void ShellScanner::redirection(int c) {
  if (word_.open && word_.digits_like) {
    // `echo $X>file`: plain digits would be a file descriptor. A value might be nothing, too.
    if (word_.has_value) return fail(ShellDoubt::unknown_text);
    drop_references(word_);
    if (!word_.expands) word_.open = false;  // the number belongs to the redirection
  } else if (word_.open && text_[word_.begin] == '{') {
    word_.open = false;  // `{fd}>file`; to dash a command, but seeing one too many does no harm
    drop_references(word_);
  }
  end_word();
  after_word_ = false;
  cursor().advance();
  const int next = cursor().peek();
  if (next == '(') {
    if (cursor().next_is('(')) return fail(ShellDoubt::unreadable);
    Word& word = quoted_word();
    word.expands = word.no_builtin = true;
    cursor().advance();
    return reader_.skip(Frame::command);
  }
  redirects_ = true;
  if (c == '<' && next == '<') {
    cursor().advance();
    // bash's here-string is a word like any other.
    if (cursor().peek() == '<') return cursor().advance();
    redirects_ = false;
    return here_document_word();
  }
  if (next == '&') {
    duplicates_ = true;  // the two shells see at different times whether it is a number
    cursor().advance();
  } else if (next == '|') {
    cursor().advance();
  }
}

void ShellScanner::newline() {
  end_command();
  cursor().advance();
  if (waiting_ == 0) return;
  for (std::size_t i = 0; i < waiting_; ++i) here_document_body(here_documents_[i]);
  waiting_ = 0;
  reader_.newline_is_doubtful = false;
}

void ShellScanner::end_word() {
  if (!word_.open) return;
  word_.open = false;
  if (word_.drop || duplicates_) drop_references(word_);
  const std::size_t end = cursor().at();
  const std::size_t references = sure_.size() - word_.first_reference;
  if (references == 1 && sure_.back().begin == word_.begin && sure_.back().end == end)
    sure_.back().whole_word = true;
  last_references_ = word_.first_reference;
  after_word_ = true;
  if (redirects_) {
    redirects_ = duplicates_ = false;
    return;
  }
  const WordFacts facts{.source = text_.substr(word_.begin, end - word_.begin),
                        .plain = word_.plain,
                        .expands = word_.expands,
                        .assigns = word_.assigns,
                        .no_builtin = word_.no_builtin};
  const WordVerdict verdict = commands_.word(facts, reader_.names);
  if (verdict.doubt != ShellDoubt::none) fail(verdict.doubt);
  if (!verdict.replaceable) drop_references(word_);
}

}  // namespace shell

ShellScan scan_shell(std::string_view text, std::span<const std::string_view> names,
                     const KubeletPass& kubelet) {
  return shell::ShellScanner(text, names, kubelet).scan();
}

}  // namespace rayhook
