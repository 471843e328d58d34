// SPDX-License-Identifier: Apache-2.0
#include "shell_words.hpp"

#include <algorithm>
#include <array>

namespace rayhook::shell {
namespace {

constexpr WordVerdict kFine{};
constexpr WordVerdict kLeave{ShellDoubt::none, false};
constexpr WordVerdict kSets{ShellDoubt::sets_variables, false};

enum class Role : std::uint8_t {
  none,
  runs_text,  // eval and its like: may do anything
  sources,    // `.`, only as a command
  sets,       // its arguments are variables' names
  declares,
  sets_by_option,
  traps,
  prefixes,  // a command follows
  replaces,  // exec: no builtin follows
  unreadable,
  loop,
  case_word,
  in,
  function,
  opens_brackets,
};

struct Known {
  std::string_view word;
  Role role;
};

// By length, so that a word is compared with few.
constexpr std::array kKnown = {
    Known{".", Role::sources},
    Known{"!", Role::prefixes},
    Known{"{", Role::prefixes},
    Known{"}", Role::prefixes},
    Known{"do", Role::prefixes},
    Known{"fi", Role::prefixes},
    Known{"if", Role::prefixes},
    Known{"in", Role::in},
    Known{"[[", Role::opens_brackets},
    Known{"for", Role::loop},
    Known{"let", Role::runs_text},
    Known{"case", Role::case_word},
    Known{"done", Role::prefixes},
    Known{"elif", Role::prefixes},
    Known{"else", Role::prefixes},
    Known{"esac", Role::prefixes},
    Known{"eval", Role::runs_text},
    Known{"exec", Role::replaces},
    Known{"read", Role::sets},
    Known{"then", Role::prefixes},
    Known{"time", Role::prefixes},
    Known{"trap", Role::traps},
    Known{"wait", Role::sets_by_option},
    Known{"alias", Role::runs_text},
    Known{"local", Role::declares},
    Known{"unset", Role::sets},
    Known{"until", Role::prefixes},
    Known{"while", Role::prefixes},
    Known{"coproc", Role::unreadable},
    Known{"export", Role::sets},
    Known{"printf", Role::sets_by_option},
    Known{"select", Role::loop},
    Known{"source", Role::runs_text},
    Known{"builtin", Role::prefixes},
    Known{"command", Role::prefixes},
    Known{"declare", Role::declares},
    Known{"getopts", Role::sets},
    Known{"mapfile", Role::sets},
    Known{"typeset", Role::declares},
    Known{"function", Role::function},
    Known{"readonly", Role::sets},
    Known{"readarray", Role::sets},
};
constexpr std::size_t kLongestKnown = 9;
static_assert(std::ranges::is_sorted(kKnown, {}, [](const Known& k) { return k.word.size(); }));

/// Where the words of each length begin in kKnown.
constexpr std::array<std::uint8_t, kLongestKnown + 2> kByLength = [] {
  std::array<std::uint8_t, kLongestKnown + 2> begins{};
  for (std::size_t length = 0; length < begins.size(); ++length)
    for (const Known& known : kKnown)
      if (known.word.size() < length) ++begins[length];
  return begins;
}();

Role role_of(std::string_view word) {
  if (word.empty() || word.size() > kLongestKnown) return Role::none;
  for (std::size_t i = kByLength[word.size()]; i < kByLength[word.size() + 1]; ++i)
    if (kKnown[i].word.front() == word.front() && kKnown[i].word == word) return kKnown[i].role;
  return Role::none;
}

/// A word without its quotes and backslashes, as far as a known word is long.
class Unquoted {
 public:
  explicit Unquoted(std::string_view source) {
    for (std::size_t i = 0; i < source.size() && size_ < text_.size(); ++i) {
      if (source[i] == '\\' && i + 1 < source.size() && source[i + 1] == '\n')
        ++i;
      else if (!std::string_view("\"'\\").contains(source[i]))
        text_[size_++] = source[i];
    }
  }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, kLongestKnown + 3> text_{};
  std::size_t size_ = 0;
};

/// `export "$name=1"`: which variable is set, only the shell will know.
bool sets_unknown_name(std::string_view source) {
  const std::string_view name = source.substr(0, source.find('='));
  return name.find_first_of("$`") != std::string_view::npos;
}

/// What a trap does happens at any time. Simple commands that set nothing are fine.
bool is_doubtful_action(std::string_view source, NameTable& names) {
  if (source.size() > 1 && source.front() == source.back() &&
      (source.front() == '"' || source.front() == '\''))
    source = source.substr(1, source.size() - 2);
  if (source.find_first_of("$`=({<\"'\\") != std::string_view::npos) return true;
  for (std::size_t at = 0; at < source.size();) {
    const auto is_part = [&](std::size_t i) {
      return (class_of(source[i]) & kName) != 0 || source[i] == '.';
    };
    std::size_t end = at;
    while (end < source.size() && is_part(end)) ++end;
    const std::string_view word = source.substr(at, end - at);
    switch (role_of(word)) {
      case Role::none:
      case Role::prefixes:
      case Role::replaces:
        break;
      default:
        return true;
    }
    names.change(word);
    at = end + 1;
  }
  return false;
}

}  // namespace

WordVerdict CommandReader::word(const WordFacts& word, NameTable& names) {
  // The common case: an argument that cannot be one of the few words that matter anywhere.
  if (expects_ == Expects::argument &&
      (word.expands || (word.plain && word.source.size() > kLongestKnown)))
    return kFine;
  const Unquoted unquoted(word.plain ? std::string_view() : word.source);
  const std::string_view text = word.plain ? word.source : unquoted.view();
  if (text == "eval" || text == "source" || text == "alias") return kSets;
  if (word.plain && text == "]]") in_brackets_ = false;

  switch (expects_) {
    case Expects::command:
      return command(word, text);
    case Expects::argument:
    case Expects::case_word:
      if (expects_ == Expects::case_word) expects_ = Expects::case_in;
      return kFine;
    case Expects::name_to_declare:
      if ((text.starts_with('-') || text.starts_with('+')) && text.contains('n')) return kSets;
      [[fallthrough]];
    case Expects::name_to_set:
      return sets_unknown_name(word.source) ? kSets : kFine;
    case Expects::option_or_argument: {
      // Kubelet or the shell may make an option of an expansion.
      const bool option = text.starts_with('-') || word.source.starts_with('$');
      expects_ = option ? Expects::name_to_set : Expects::argument;
      return text.starts_with('-') && sets_unknown_name(word.source) ? kSets : kFine;
    }
    case Expects::trap_argument:
      return is_doubtful_action(word.source, names) ? kSets : kFine;
    case Expects::loop_name:
      expects_ = Expects::loop_in;
      return word.expands ? kSets : kFine;
    case Expects::loop_in:
      expects_ = text == "in" ? Expects::argument : Expects::command;
      return kLeave;
    case Expects::case_in:
      expects_ = Expects::argument;
      return kLeave;
    case Expects::function_name:
      expects_ = Expects::command;
      return kLeave;
  }
  return kLeave;
}

WordVerdict CommandReader::command(const WordFacts& word, std::string_view text) {
  if (word.assigns) return kFine;
  // `$CMD …`: it may be `export …`. In [[ … ]] what follows && is no command.
  if (word.expands && !word.no_builtin && !in_brackets_) return kSets;
  if (text.starts_with('-')) return kLeave;  // of `time`, `command` …
  expects_ = Expects::argument;
  switch (role_of(text)) {
    case Role::none:
    case Role::replaces:
    case Role::in:
      break;
    case Role::runs_text:
    case Role::sources:
      return kSets;
    case Role::sets:
      expects_ = Expects::name_to_set;
      break;
    case Role::declares:
      expects_ = Expects::name_to_declare;
      break;
    case Role::sets_by_option:
      expects_ = Expects::option_or_argument;
      break;
    case Role::traps:
      expects_ = Expects::trap_argument;
      break;
    case Role::prefixes:
      expects_ = Expects::command;
      break;
    case Role::unreadable:
      return {ShellDoubt::unreadable, false};
    case Role::loop:
      expects_ = Expects::loop_name;
      break;
    case Role::case_word:
      expects_ = Expects::case_word;
      break;
    case Role::function:
      expects_ = Expects::function_name;
      break;
    case Role::opens_brackets:
      in_brackets_ = true;
      break;
  }
  return kFine;
}

}  // namespace rayhook::shell
