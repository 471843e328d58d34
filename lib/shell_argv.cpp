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

/// A program that runs another one, in the environment and with the arguments that it was given.
/// Its options are known by their letters: others might take the next word.
struct Wrapper {
  std::string_view name;
  std::string_view flags;       ///< letters that stand alone
  std::string_view with_value;  ///< letters with a value, in the same word or the next one
  std::size_t operands;         ///< words before the program that is run
};
constexpr std::array<Wrapper, 11> kWrappers = {{
    {"tini", "gsvw", "pe", 0},
    {"dumb-init", "cv", "r", 0},
    {"catatonit", "gL", "", 0},
    {"env", "", "", 0},
    {"nohup", "", "", 0},
    {"setsid", "cfw", "", 0},
    {"nice", "", "n", 0},
    {"stdbuf", "", "ioe", 0},
    {"timeout", "v", "ks", 1},  // DURATION
    {"gosu", "", "", 1},        // USER
    {"su-exec", "", "", 1},     // USER
}};
// Of whichever wrapper: one that does not know such a flag runs nothing.
constexpr std::array<std::string_view, 4> kLongFlags = {"--single-child", "--verbose",
                                                        "--foreground", "--preserve-status"};

/// Passes the options and operands of a wrapper; false if they are not certain.
bool pass_arguments(Argv argv, std::size_t& at, const Wrapper& wrapper) {
  for (; at < argv.size() && is_option(argv[at]); ++at) {
    const std::string_view word = argv[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (is_one_of(word, kLongFlags)) continue;
    if (word.size() < 2) return false;
    if (wrapper.with_value.contains(word[1])) {
      if (word.size() == 2) ++at;
    } else if (!all_in(word.substr(1), wrapper.flags)) {
      return false;
    }
  }
  for (std::size_t i = 0; i < wrapper.operands; ++i, ++at)
    // What kubelet puts in place of `$(X)` might be an option.
    if (at >= argv.size() || is_option(argv[at]) || argv[at].contains('$')) return false;
  return true;
}

/// Passes what runs another program without changing what that program is given. False if the
/// words before the shell are not certain.
bool pass_wrappers(Argv argv, std::size_t& at) {
  while (at < argv.size()) {
    const std::string_view program = basename_of(argv[at]);
    if (program == "busybox") {
      ++at;
      return at < argv.size() && (argv[at] == "sh" || argv[at] == "ash");
    }
    const auto* wrapper = std::ranges::find(kWrappers, program, &Wrapper::name);
    if (wrapper == kWrappers.end()) {
      static constexpr std::array<std::string_view, 4> kShells = {"sh", "bash", "dash", "ash"};
      return is_one_of(program, kShells);
    }
    if (!pass_arguments(argv, ++at, *wrapper)) return false;
    // `env X=1 sh` gives the shell another environment.
    if (at < argv.size() && argv[at].contains('=')) return false;
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
