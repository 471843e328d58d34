// SPDX-License-Identifier: Apache-2.0
#include "shell_reader.hpp"

#include <algorithm>
#include <numeric>

namespace rayhook::shell {
namespace {

bool is_name_start(int c) { return (class_of(c) & (kName | kDigit)) == kName; }

bool is_name_char(int c) { return (class_of(c) & kName) != 0; }

/// A character that could go on an identifier: in some locales also one past ASCII.
bool could_join(char c) {
  return (class_of(c) & kName) != 0 || static_cast<unsigned char>(c) >= 128;
}

}  // namespace

void SourceCursor::expand() {
  if (next_ >= text_.size()) return;
  if (text_[next_] == '$') {
    ++next_;
    return;
  }
  if (text_[next_] != '(' || no_close_) return;
  const std::size_t close = text_.find(')', next_ + 1);
  // No later `$(` can end either; looking again and again would be quadratic.
  no_close_ = close == std::string_view::npos;
  if (no_close_) return;
  switch (kubelet_.paren(text_.substr(next_ + 1, close - next_ - 1))) {
    case ParenName::not_expanded:
      verbatim_until_ = close + 1;
      return;
    case ParenName::unknown:
      met_unknown_ = true;
      [[fallthrough]];
    case ParenName::harmless:
      current_ = kValue;
      next_ = close + 1;
      return;
  }
}

NameTable::NameTable(std::span<const std::string_view> names) : names_(names) {
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    shortest_ = std::min(shortest_, name.size());
    longest_ = std::max(longest_, name.size());
    filter_ |= std::uint64_t{1} << bit_of(name);
  }
  constexpr std::size_t kFewNames = 16;
  if (names.size() <= kFewNames) return;
  sorted_.resize(names.size());
  std::iota(sorted_.begin(), sorted_.end(), 0U);
  std::ranges::sort(sorted_, {}, [&](std::uint32_t i) { return names_[i]; });
}

std::size_t NameTable::find(std::string_view name) const {
  if (!may_have(name)) return kNone;
  if (sorted_.empty()) {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name) return i;
    return kNone;
  }
  const auto found =
      std::ranges::lower_bound(sorted_, name, {}, [&](std::uint32_t i) { return names_[i]; });
  return found != sorted_.end() && names_[*found] == name ? *found : kNone;
}

void NameTable::mark(std::string_view name) {
  const std::size_t index = find(name);
  if (index == kNone) return;
  if (changed_.empty()) changed_.resize(names_.size());
  changed_[index] = true;
}

bool NameTable::is_changed(std::string_view name) const {
  const std::size_t index = find(name);
  return index != kNone && !changed_.empty() && changed_[index];
}

void NameTable::change_after_option(std::string_view word) {
  if (word.size() <= shortest_) return;
  // More letters than that before a name are no option cluster that takes one.
  constexpr std::size_t kMostLetters = 6;
  for (std::size_t letters = 1; letters <= kMostLetters && letters < word.size(); ++letters)
    change(word.substr(letters));
}

Run ShellReader::take_run() {
  const std::string_view text = cursor.text();
  const std::size_t begin = cursor.at();
  std::size_t end = begin;
  std::uint8_t all = 0xff;
  for (std::uint8_t c; end < text.size() && ((c = class_of(text[end])) & kName) != 0; ++end)
    all &= c;
  cursor.jump(end);
  return {text.substr(begin, end - begin), all};
}

void ShellReader::note_bare(std::string_view run) {
  if (run.size() == 3 && run == "IFS") return fail(ShellDoubt::field_separator);
  names.change(run);
  if (run.data() != cursor.text().data() && run.data()[-1] == '-') names.change_after_option(run);
}

void ShellReader::note_quoted(std::string_view run, bool first) {
  const bool after_dash = run.data() != cursor.text().data() && run.data()[-1] == '-';
  if (run != "IFS" && !names.has(run) && !after_dash) return;
  // Read by a shell (`export "X=1"`, `trap 'X=1' TERM`), it may be an assignment. In Python's
  // `environ["X"]` a quote follows.
  const std::string_view text = cursor.text();
  std::size_t at = cursor.at();
  const bool ends = at < text.size() && (text[at] == '"' || text[at] == '\'');
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  const bool changes = at < text.size() && std::string_view("=+-*/%<>&^|:[").contains(text[at]);
  if (!changes && !((first || after_dash) && ends)) return;
  note_bare(run);
}

void ShellReader::single_quotes(bool backslash_is_doubtful) {
  cursor.advance();
  for (bool first = true;; first = false) {
    const int c = cursor.peek();
    if (c == SourceCursor::kEnd) return fail(ShellDoubt::unterminated);
    if (is_name_char(c)) {
      note_quoted(take_run().text, first);
      continue;
    }
    if (c == '\n') check_newline();
    if (c == '\\' && backslash_is_doubtful) return fail(ShellDoubt::unreadable);
    cursor.advance();
    if (c == '\'') return;
  }
}

void ShellReader::backquotes() {
  cursor.advance();
  for (;;) {
    const int c = cursor.peek();
    if (c == SourceCursor::kEnd) return fail(ShellDoubt::unterminated);
    if (c == '\n') check_newline();
    if (c == '\\') {
      escape();
      continue;
    }
    cursor.advance();
    if (c == '`') return;
  }
}

void ShellReader::escape() {
  cursor.advance();
  if (cursor.peek() == SourceCursor::kEnd) return fail(ShellDoubt::unterminated);
  // If kubelet puts nothing there, the backslash escapes what comes after.
  if (cursor.peek() == SourceCursor::kValue) return fail(ShellDoubt::unknown_text);
  if (cursor.peek() == '\n') check_newline();
  cursor.advance();
}

void ShellReader::continuation() {
  const std::string_view text = cursor.text();
  const std::size_t begin = cursor.at();
  std::size_t end = begin;
  while (end + 1 < text.size() && text[end] == '\\' && text[end + 1] == '\n') end += 2;
  const char before = begin > 0 ? text[begin - 1] : '\n';
  const char after = end < text.size() ? text[end] : '\n';
  cursor.jump(end);
  // The joined text may be another name or operator than its parts: `X_SERVICE_HOST\⏎NAME`,
  // `<\⏎<`, `$\⏎(`. What kubelet puts in goes on a name as well.
  const bool goes_on = could_join(after) || cursor.peek() == SourceCursor::kValue;
  if (std::string_view("$<>(").contains(before) || (could_join(before) && goes_on))
    fail(ShellDoubt::unreadable);
}

void ShellReader::comment() {
  while (cursor.peek() != '\n' && cursor.peek() != SourceCursor::kEnd) cursor.advance();
}

Dollar ShellReader::dollar(bool quoted) {
  Dollar dollar;
  dollar.begin = cursor.at();
  cursor.advance();
  const int c = cursor.peek();
  if (is_name_start(c)) {
    dollar.kind = Dollar::Kind::variable;
    dollar.name = take_run().text;
  } else if (c == '{') {
    open_braces(dollar);
  } else if (c == '(') {
    cursor.advance();
    dollar.kind = Dollar::Kind::substitution;
    if (cursor.peek() == '(') {
      cursor.advance();
      dollar.kind = Dollar::Kind::arithmetic;
    }
  } else if (c == '[') {
    fail(ShellDoubt::unreadable);  // arithmetic in bash, two characters in dash
  } else if (c == '\'' && !quoted) {
    single_quotes(true);
    dollar.kind = Dollar::Kind::quote;
  } else if (c == '"' && !quoted) {
    cursor.advance();
    dollar.kind = Dollar::Kind::translated;
  } else if (c == SourceCursor::kValue) {
    fail(ShellDoubt::unknown_text);  // nothing or a name: it decides what the dollar means
  } else if (c > 0 && std::string_view("@*#?-$!0123456789").contains(static_cast<char>(c))) {
    cursor.advance();
    dollar.kind = Dollar::Kind::special;
  }
  dollar.end = cursor.at();
  return dollar;
}

void ShellReader::open_braces(Dollar& dollar) {
  cursor.advance();
  dollar.kind = Dollar::Kind::braces;
  int c = cursor.peek();
  if (is_name_start(c)) {
    dollar.name = take_run().text;
    c = cursor.peek();
    if (c == '}') {
      cursor.advance();
      dollar.kind = Dollar::Kind::variable;
      dollar.braced = true;
      return;
    }
    if (c == '@') return fail(ShellDoubt::sets_variables);  // bash's ${X@P} runs what X holds
    if (c == ':') {
      cursor.advance();
      c = cursor.peek();
    }
    if (c == '=' || c == '[') note_bare(dollar.name);
    // Nothing or anything there decides what the operator is.
    if (c == SourceCursor::kValue) fail(ShellDoubt::unknown_text);
  } else if (c == '!' || c == '#') {
    // Only read: ${#X}, ${!X}.
    cursor.advance();
    if (is_name_start(cursor.peek())) take_run();
  } else if (c == SourceCursor::kValue) {
    fail(ShellDoubt::unknown_text);
  } else if (c > 0 && std::string_view(" \t\n|(").contains(static_cast<char>(c))) {
    fail(ShellDoubt::unreadable);  // bash 5.3 runs commands there, in this same shell
  }
}

void ShellReader::skip(Frame frame) {
  // No script that anyone wrote nests deeper; a bound keeps this free of memory and recursion.
  constexpr std::size_t kDeepest = 64;
  std::array<Frame, kDeepest> stack;
  std::size_t depth = 0;
  // How many of the frames are commands: those run in a process of their own, where nothing that
  // is set is seen by the script.
  std::size_t commands = 0;
  bool in_word = false;  // of the innermost command

  const auto push = [&](Frame inner) {
    if (depth == kDeepest) return fail(ShellDoubt::unreadable);
    stack[depth++] = inner;
    if (inner == Frame::command) ++commands;
    in_word = false;
  };
  const auto pop = [&] {
    if (stack[--depth] == Frame::command) --commands;
    // After `)` a word may begin and a comment too; seeing one too many is only a doubt.
    in_word = stack[depth] == Frame::quotes || stack[depth] == Frame::braces;
    cursor.advance();
  };
  push(frame);

  while (depth > 0) {
    const Frame top = stack[depth - 1];
    const bool is_command = top == Frame::command;
    const bool is_arithmetic = top == Frame::arithmetic || top == Frame::group;
    const bool is_code = is_command || is_arithmetic;
    const bool quoted = top == Frame::quotes || top == Frame::quoted_braces;
    const int c = cursor.peek();
    if (is_name_char(c)) {
      const bool first = top == Frame::quotes && cursor.text()[cursor.at() - 1] == '"';
      const Run run = take_run();
      // Its patterns end with a `)` that nothing opens.
      if (is_code && !in_word && run.text == "case") fail(ShellDoubt::unreadable);
      in_word = true;
      if (commands != 0) continue;
      if (top == Frame::quotes)
        note_quoted(run.text, first);
      else
        note_bare(run.text);
      continue;
    }
    switch (c) {
      case SourceCursor::kEnd:
        return fail(ShellDoubt::unterminated);
      case SourceCursor::kValue:
        // As a word it could be `case`; as nothing it could make one operator of two.
        if (is_code) return fail(ShellDoubt::unknown_text);
        break;
      case '\\':
        if (at_continuation()) {
          check_newline();
          continuation();
        } else {
          escape();
          in_word = true;
        }
        continue;
      case '\'':
        if (top == Frame::quotes) break;
        if (top != Frame::command && top != Frame::braces) return fail(ShellDoubt::unreadable);
        single_quotes(false);
        in_word = true;
        continue;
      case '"':
        if (top == Frame::quotes) {
          pop();
        } else if (top == Frame::command || top == Frame::braces) {
          cursor.advance();
          push(Frame::quotes);
        } else {
          return fail(ShellDoubt::unreadable);
        }
        continue;
      case '`':
        backquotes();
        in_word = true;
        continue;
      case '$': {
        const bool braces_are_quoted = quoted || is_arithmetic;
        in_word = true;
        switch (dollar(braces_are_quoted).kind) {
          case Dollar::Kind::braces:
            push(braces_are_quoted ? Frame::quoted_braces : Frame::braces);
            break;
          case Dollar::Kind::substitution:
            push(Frame::command);
            break;
          case Dollar::Kind::arithmetic:
            push(Frame::arithmetic);
            break;
          case Dollar::Kind::translated:
            push(Frame::quotes);
            break;
          default:
            break;
        }
        continue;
      }
      case '(':
        if (!is_code) break;
        // Arithmetic, or two subshells.
        if (is_command && cursor.next_is('(')) return fail(ShellDoubt::unreadable);
        cursor.advance();
        push(is_command ? Frame::command : Frame::group);
        continue;
      case ')':
        if (!is_code) break;
        if (top == Frame::arithmetic) {
          // `$((a) | b)`: bash now takes it for a command, dash goes on looking for `))`.
          if (!cursor.next_is(')')) return fail(ShellDoubt::unreadable);
          cursor.advance();
        }
        pop();
        continue;
      case '}':
        if (top != Frame::braces && top != Frame::quoted_braces) break;
        pop();
        continue;
      case '#':
        if (is_code && !in_word) return fail(ShellDoubt::unreadable);  // a comment may hold a `)`
        break;
      case '<':
      case '>':
        // A here-document, or in braces a substitution that only bash might see.
        if (is_code && c == '<' && cursor.next_is('<')) return fail(ShellDoubt::unreadable);
        if (top == Frame::braces && cursor.next_is('(')) return fail(ShellDoubt::unreadable);
        in_word = false;
        cursor.advance();
        continue;
      case '[':
        // Parentheses in [[ … ]] need not be in pairs.
        if (is_command && !in_word && cursor.next_is('[')) return fail(ShellDoubt::unreadable);
        break;
      case '\n':
        check_newline();
        [[fallthrough]];
      case ' ':
      case '\t':
      case ';':
      case '&':
      case '|':
        in_word = false;
        cursor.advance();
        continue;
      default:
        break;
    }
    in_word = true;
    cursor.advance();
  }
}

}  // namespace rayhook::shell
