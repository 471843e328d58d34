// SPDX-License-Identifier: Apache-2.0
// What the words of a command mean for its variables: builtins that set them, reserved words that
// let another command follow.
#pragma once

#include <cstdint>
#include <string_view>

#include "shell.hpp"
#include "shell_reader.hpp"

namespace rayhook::shell {

struct WordFacts {
  std::string_view source;  ///< with its quotes
  bool plain;               ///< no quotes, escapes or expansions
  bool expands;             ///< holds an expansion
  bool assigns;             ///< looks like an assignment
  bool no_builtin;          ///< cannot turn out to be a builtin's name
};

struct WordVerdict {
  ShellDoubt doubt = ShellDoubt::none;
  bool replaceable = true;  ///< plain text may stand in it
};

/// Follows a script word by word. It knows too much rather than too little: where a command might
/// begin, it takes the word for a command.
class CommandReader {
 public:
  /// A word that is no redirection's.
  WordVerdict word(const WordFacts& word, NameTable& names);
  /// After an operator or newline that lets a command follow.
  void end_command() { expects_ = Expects::command; }
  /// Within [[ … ]].
  [[nodiscard]] bool in_brackets() const { return in_brackets_; }

 private:
  enum class Expects : std::uint8_t {
    command,
    argument,
    name_to_set,         ///< of export, read …
    name_to_declare,     ///< of declare, typeset, local: -n makes another name for a variable
    option_or_argument,  ///< of printf and wait: -v and -p set a variable
    trap_argument,
    loop_name,  ///< after for and select
    loop_in,
    case_word,
    case_in,
    function_name,
  };

  WordVerdict command(const WordFacts& word, std::string_view text);

  Expects expects_ = Expects::command;
  bool in_brackets_ = false;
};

}  // namespace rayhook::shell
