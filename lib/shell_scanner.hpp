// SPDX-License-Identifier: Apache-2.0
// The scan of one script: its words (shell.cpp), what is expanded in them (shell_expansion.cpp) and
// its here-documents (shell_here_document.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "shell.hpp"
#include "shell_reader.hpp"
#include "shell_words.hpp"

namespace rayhook::shell {

/// Reads a script once, from its first character to its last. References are kept in sure_ as they
/// come; those of a word are dropped again if the word turns out to be no place for plain text.
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

  // Each begins at the first character of what it reads and ends behind the last.
  void read_bare(int c);
  void read_run();
  void equals_or_plus();
  void open_bracket();
  void open_parenthesis();
  void redirection(int c);
  void newline();

  void double_quotes();
  void quoted_run(bool first);
  void expansion(Place place);
  void reference(const Dollar& dollar, Place place);
  void value();
  void continuation();

  void here_document_word();
  void here_document_body(const HereDocument& document);
  void here_document_line(const HereDocument& document);

  /// After a step of the cursor from `begin`: what was passed goes on an open-ended name.
  void extend_dollar(std::size_t begin) {
    if (dollar_ends_ == begin) dollar_ends_ = cursor().at();
  }

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
  /// Where an open-ended expansion ($NAME, $1) ended: plain text right there would go on its name,
  /// now or when the caller leaves that one.
  std::size_t dollar_ends_ = static_cast<std::size_t>(-1);
  std::array<HereDocument, 8> here_documents_{};
  std::size_t waiting_ = 0;  ///< here-documents whose bodies begin after this line
  // Of the here-document's line that is being read.
  std::string_view delimiter_;
  std::size_t line_begin_ = 0;
  bool line_is_risky_ = false;  ///< with plain text in it the line may become the delimiter
};

}  // namespace rayhook::shell
