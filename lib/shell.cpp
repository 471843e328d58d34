// SPDX-License-Identifier: Apache-2.0
// Words, commands and here-documents of a shell script: which references are certain.
//
// Whatever is read wrongly must end as a reference left in the text, never as one replaced that
// should not be. So a command is seen where there might be one, and an assignment likewise.
#include "shell.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "shell_reader.hpp"
#include "shell_words.hpp"

namespace rayhook {
namespace shell {
namespace {

class ShellScanner {
 public:
  ShellScanner(std::string_view text, std::span<const std::string_view> names,
               const KubeletPass& kubelet)
      : reader_(text, names, kubelet), text_(text) {}

  ShellScan scan();

 private:
  enum class Place { bare, quoted, here_document };

  /// The shell word that is being read.
  struct Word {
    std::size_t begin = 0;
    std::size_t first_reference = 0;  ///< index in sure_ of the word's first
    bool open = false;
    bool plain = true;        ///< no quotes, escapes or expansions
    bool name_like = true;    ///< so far all of it could be a variable's name
    bool digits_like = true;  ///< so far all of it could be a number
    bool assigns = false;     ///< NAME=, NAME+= or NAME[ begins it
    bool expands = false;     ///< holds an expansion, ours or kubelet's too
    bool has_value = false;   ///< holds what kubelet puts in
    bool no_builtin = false;  ///< cannot turn out to be a builtin's name
    bool drop = false;        ///< its references stay as they are
  };

  struct HereDocument {
    std::string_view delimiter;
    bool quoted;
    bool strips_tabs;
  };

  SourceCursor& cursor() { return reader_.cursor; }
  void fail(ShellDoubt why) { reader_.fail(why); }

  void read_bare(int c);
  void read_run();
  void equals_or_plus();
  void open_bracket();
  void open_parenthesis();
  void redirection(int c);
  void here_document_word();
  void here_document_body(const HereDocument& document);
  void here_document_line(const HereDocument& document, std::size_t line);
  void newline();
  void double_quotes();
  void expansion(Place place);
  void reference(const Dollar& dollar, Place place);
  void value();
  void continuation();

  Word& word() {
    if (!word_.open) {
      word_ = Word{.begin = cursor().at(), .first_reference = sure_.size(), .open = true};
    }
    return word_;
  }
  Word& quoted_word() {
    Word& word = this->word();
    word.plain = word.name_like = word.digits_like = false;
    return word;
  }
  void drop_references(const Word& word) { sure_.resize(word.first_reference); }
  void end_word();
  void end_command() {
    end_word();
    commands_.end_command();
    after_word_ = redirects_ = duplicates_ = false;
  }

  ShellReader reader_;
  std::string_view text_;
  std::vector<ShellReference> sure_;
  CommandReader commands_;
  Word word_;
  std::size_t last_references_ = 0;  ///< index in sure_ of the last word's first
  bool after_word_ = false;          ///< only blanks since the last word
  bool redirects_ = false;           ///< the next word is a redirection's
  bool duplicates_ = false;          ///< … of the form >&word
  std::size_t dollar_ends_ = static_cast<std::size_t>(-1);  ///< where an open-ended $NAME ended
  std::array<HereDocument, 8> here_documents_{};
  std::size_t waiting_ = 0;  ///< here-documents whose bodies begin after this line
  // Of the here-document's line that is being read.
  std::string_view delimiter_;
  std::size_t line_begin_ = 0;
  bool line_is_risky_ = false;  ///< with plain text in it the line may become the delimiter
};

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
  if (c < 256 && (kClasses[c] & kName) != 0) return read_run();
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
  if (dollar_ends_ == begin) dollar_ends_ = begin + run.text.size();
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

void ShellScanner::newline() {
  end_command();
  cursor().advance();
  if (waiting_ == 0) return;
  for (std::size_t i = 0; i < waiting_; ++i) here_document_body(here_documents_[i]);
  waiting_ = 0;
  reader_.newline_is_doubtful = false;
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
    here_document_line(document, line);
    if (cursor().peek() == SourceCursor::kEnd) return fail(ShellDoubt::unterminated);
    cursor().advance();
  }
}

void ShellScanner::here_document_line(const HereDocument& document, std::size_t line) {
  for (int c; (c = cursor().peek()) != '\n' && c != SourceCursor::kEnd;) {
    if (c < 256 && (kClasses[c] & kName) != 0) {
      const std::size_t begin = cursor().at();
      const Run run = reader_.take_run();
      reader_.note_quoted(run.text, false);
      if (dollar_ends_ == begin) dollar_ends_ = begin + run.text.size();
    } else if (c == SourceCursor::kValue) {
      if (delimiter_.starts_with(text_.substr(line, cursor().at() - line)))
        return fail(ShellDoubt::unknown_text);
      if (dollar_ends_ == cursor().at()) {
        cursor().advance();
        dollar_ends_ = cursor().at();
      } else {
        cursor().advance();
      }
    } else if (document.quoted) {
      cursor().advance();
    } else if (c == '$') {
      expansion(Place::here_document);
    } else if (c == '`') {
      reader_.backquotes();
    } else if (c == '\\') {
      if (reader_.at_continuation()) return fail(ShellDoubt::unreadable);
      reader_.escape();
    } else {
      cursor().advance();
    }
  }
}

void ShellScanner::double_quotes() {
  cursor().advance();
  for (bool first = true;; first = false) {
    const int c = cursor().peek();
    if (c >= 0 && c < 256 && (kClasses[c] & kName) != 0) {
      const std::size_t begin = cursor().at();
      const Run run = reader_.take_run();
      reader_.note_quoted(run.text, first);
      if (dollar_ends_ == begin) dollar_ends_ = begin + run.text.size();
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

void ShellScanner::expansion(Place place) {
  // Where an open-ended expansion ends, plain text would go on its name.
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
      reader_.skip(Frame::arithmetic, 2);
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
  if (dollar_ends_ == dollar.begin) return;
  if (place == Place::bare && commands_.in_brackets()) return;
  if (!dollar.braced && dollar.end < text_.size()) {
    // What follows may be part of the name.
    if (cursor().peek() == SourceCursor::kValue) return;
    if (cursor().peek() >= 128) return;
  }
  if (place == Place::here_document) {
    const std::string_view before = text_.substr(line_begin_, dollar.begin - line_begin_);
    if (delimiter_.starts_with(before)) {
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
  const bool extends = dollar_ends_ == cursor().at();
  cursor().advance();
  if (extends) dollar_ends_ = cursor().at();
}

void ShellScanner::continuation() {
  const bool extends = dollar_ends_ == cursor().at();
  if (word_.open) word_.plain = false;
  reader_.continuation();
  if (extends) dollar_ends_ = cursor().at();
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

}  // namespace
}  // namespace shell

ShellScan scan_shell(std::string_view text, std::span<const std::string_view> names,
                     const KubeletPass& kubelet) {
  return shell::ShellScanner(text, names, kubelet).scan();
}

}  // namespace rayhook
