// SPDX-License-Identifier: Apache-2.0
// Which word of an exec array a shell will read as a script.
#include <algorithm>
#include <array>

#include "shell.hpp"

namespace rayhook {
namespace {

using Argv = std::span<const std::string_view>;

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

std::string_view basename_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_option(std::string_view word) { return word.starts_with('-'); }

bool all_in(std::string_view word, std::string_view characters) {
  return word.find_first_not_of(characters) == std::string_view::npos;
}

/// Passes the options of an init program (tini, dumb-init, catatonit); false if one is not known,
/// since it might take the next word.
bool pass_init_options(Argv argv, std::size_t& at, std::string_view init) {
  const bool dumb = init == "dumb-init";
  const std::string_view flags = init == "tini" ? "gsvw" : dumb ? "cv" : "gL";
  const std::string_view with_value = init == "tini" ? "pe" : dumb ? "r" : "";
  for (; at < argv.size() && is_option(argv[at]); ++at) {
    const std::string_view word = argv[at];
    if (word == "--") {
      ++at;
      return true;
    }
    if (dumb && (word == "--single-child" || word == "--verbose")) continue;
    if (word.size() == 2 && with_value.contains(word[1])) {
      ++at;
      continue;
    }
    if (word.size() < 2 || !all_in(word.substr(1), flags)) return false;
  }
  return true;
}

/// Passes what runs another program without changing what that program is given. False if the
/// words before the shell are not certain.
bool pass_wrappers(Argv argv, std::size_t& at) {
  static constexpr std::array<std::string_view, 3> kInits = {"tini", "dumb-init", "catatonit"};
  static constexpr std::array<std::string_view, 4> kPlain = {"env", "nohup", "setsid", "nice"};
  while (at < argv.size()) {
    const std::string_view program = basename_of(argv[at]);
    if (is_one_of(program, kInits)) {
      if (!pass_init_options(argv, ++at, program)) return false;
    } else if (is_one_of(program, kPlain)) {
      ++at;
      // Options are not read, and `env X=1 sh` gives the shell another environment.
      if (at < argv.size() && (is_option(argv[at]) || argv[at].contains('='))) return false;
    } else if (program == "busybox") {
      ++at;
      return at < argv.size() && (argv[at] == "sh" || argv[at] == "ash");
    } else {
      static constexpr std::array<std::string_view, 4> kShells = {"sh", "bash", "dash", "ash"};
      return is_one_of(program, kShells);
    }
  }
  return false;
}

/// What `set -o NAME` may switch in a shell whose script is still read as here. Not: noexec
/// (nothing runs), keyword (every argument is an assignment), and what is not known.
bool is_known_set_option(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kNames = {
      "allexport", "braceexpand", "errexit", "errtrace", "functrace", "hashall", "monitor",
      "noclobber", "noglob",      "nounset", "pipefail", "posix",     "verbose", "xtrace"};
  return is_one_of(name, kNames);
}

}  // namespace

std::size_t shell_script_index(std::span<const std::string_view> argv) {
  const std::size_t none = argv.size();
  std::size_t at = 0;
  if (!pass_wrappers(argv, at)) return none;
  bool has_script = false;
  bool short_seen = false;
  for (++at; at < argv.size(); ++at) {
    const std::string_view word = argv[at];
    if (word == "-" || word == "--") {
      ++at;
      break;
    }
    if (!word.starts_with('-') && !word.starts_with('+')) break;
    if (word.starts_with("--")) {
      static constexpr std::array<std::string_view, 4> kLong = {"--login", "--norc", "--noprofile",
                                                                "--posix"};
      // bash takes long options only before the short ones.
      if (short_seen || !is_one_of(word, kLong)) return none;
      continue;
    }
    short_seen = true;
    if (word.size() < 2) return none;
    const bool on = word.front() == '-';
    for (const char option : word.substr(1)) {
      if (option == 'o' || option == 'O') {
        // Its value is the next word, wherever the letter stands in the cluster. With no value
        // the shell lists its options.
        if (++at >= argv.size()) return none;
        const std::string_view value = argv[at];
        const bool known = option == 'o' ? is_known_set_option(value)
                                         : all_in(value, "abcdefghijklmnopqrstuvwxyz_");
        if (!known || value.empty()) return none;
      } else if (option == 'c' && on) {
        has_script = true;
      } else if (!std::string_view("abefhlmpuvxBCE").contains(option)) {
        // -n runs nothing, -s reads standard input, -i reads start-up files and has aliases, …
        return none;
      }
    }
  }
  return has_script && at < argv.size() ? at : none;
}

bool is_shell_reserved(std::string_view word) {
  // Reserved words of dash and bash, and the builtins whose arguments bash reads as assignments
  // when it sees their names in the text.
  static constexpr std::array<std::string_view, 32> kWords = {
      "!",    "{",      "}",      "[[",   "]]",    "case",     "coproc",   "do",
      "done", "elif",   "else",   "esac", "fi",    "for",      "function", "if",
      "in",   "select", "then",   "time", "until", "while",    "alias",    "declare",
      "eval", "exec",   "export", "let",  "local", "readonly", "typeset",  "source"};
  return is_one_of(word, kWords);
}

}  // namespace rayhook
