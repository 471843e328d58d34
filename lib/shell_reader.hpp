// SPDX-License-Identifier: Apache-2.0
// What reading shell text is made of: the characters as the shell sees them (SourceCursor), the
// variables of interest (NameTable), and the constructs that are read alike wherever they stand
// (ShellReader). What is a word, a command or a here-document is ShellScanner's, in shell.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shell.hpp"

namespace rayhook::shell {

// Bits of kClasses: what a character may be part of.
inline constexpr std::uint8_t kName = 1;  ///< of a name: [A-Za-z0-9_]
inline constexpr std::uint8_t kDigit = 2;
inline constexpr std::uint8_t kLower = 4;

inline constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t c = '0'; c <= '9'; ++c) classes[c] = kName | kDigit;
  for (std::size_t c = 'A'; c <= 'Z'; ++c) classes[c] = kName;
  for (std::size_t c = 'a'; c <= 'z'; ++c) classes[c] = kName | kLower;
  classes['_'] = kName;
  return classes;
}();

inline std::uint8_t class_of(char c) { return kClasses[static_cast<unsigned char>(c)]; }
/// The same for what SourceCursor::peek gives; what is no character has no class.
inline std::uint8_t class_of(int c) {
  return c >= 0 && c < 256 ? kClasses[static_cast<std::size_t>(c)] : std::uint8_t{0};
}

/// Walks over the text that kubelet hands to the shell, without making that text: each step is one
/// character as the shell sees it, and `at()` is where that character stands in the source.
class SourceCursor {
 public:
  static constexpr int kEnd = -1;
  /// In place of what kubelet expands a harmless `$(NAME)` to: any number of [A-Za-z0-9_./:@%+,-],
  /// so perhaps nothing at all, perhaps part of an identifier.
  static constexpr int kValue = 256;

  SourceCursor(std::string_view text, const KubeletPass& kubelet) : text_(text), kubelet_(kubelet) {
    load();
  }

  [[nodiscard]] int peek() const { return current_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::string_view text() const { return text_; }
  /// The source byte after the current character; kubelet's work only ever begins at a `$`.
  [[nodiscard]] bool next_is(char c) const { return next_ < text_.size() && text_[next_] == c; }
  /// Kubelet puts unknown text somewhere into what was read so far.
  [[nodiscard]] bool met_unknown() const { return met_unknown_; }

  void advance() {
    at_ = next_;
    load();
  }
  /// To a later place of the source; no `$` may lie between.
  void jump(std::size_t at) {
    at_ = at;
    load();
  }
  void stop() { jump(text_.size()); }

 private:
  void load() {
    if (at_ >= text_.size()) {
      next_ = at_;
      current_ = kEnd;
      return;
    }
    next_ = at_ + 1;
    current_ = static_cast<unsigned char>(text_[at_]);
    if (current_ == '$' && kubelet_.expands && at_ >= verbatim_until_) expand();
  }
  void expand();

  std::string_view text_;
  const KubeletPass& kubelet_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
  std::size_t verbatim_until_ = 0;  ///< kubelet copies the text before this place as it is
  bool no_close_ = false;           ///< no `)` follows any more
  int current_ = kEnd;
  bool met_unknown_ = false;
};

/// The variables of interest, and which of them the script may change.
class NameTable {
 public:
  explicit NameTable(std::span<const std::string_view> names);

  /// Cheap, and false for nearly every word of a script.
  [[nodiscard]] bool may_have(std::string_view name) const {
    return name.size() >= shortest_ && name.size() <= longest_ &&
           (filter_ >> bit_of(name) & 1) != 0;
  }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != kNone; }
  [[nodiscard]] bool is_changed(std::string_view name) const;
  [[nodiscard]] bool any_changed() const { return !changed_.empty(); }
  /// `name` stands where the script may set or unset it.
  void change(std::string_view name) {
    if (may_have(name)) mark(name);
  }
  /// `word`, which follows a dash, may be an option's letters and a name: `-vNAME`.
  void change_after_option(std::string_view word);

 private:
  void mark(std::string_view name);
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static std::size_t bit_of(std::string_view name) {
    return (name.size() * 7 + static_cast<unsigned char>(name.back())) % 64;
  }
  [[nodiscard]] std::size_t find(std::string_view name) const;

  std::span<const std::string_view> names_;
  std::size_t shortest_ = kNone;
  std::size_t longest_ = 0;
  std::uint64_t filter_ = 0;           ///< one bit for each bit_of(name)
  std::vector<std::uint32_t> sorted_;  ///< by name; only for many names
  std::vector<bool> changed_;          ///< by index; empty until there is one
};

/// A run of [A-Za-z0-9_].
struct Run {
  std::string_view text;
  std::uint8_t all;  ///< the classes that each of its characters has
};

/// Something that begins with a dollar.
struct Dollar {
  enum class Kind {
    literal,       ///< just a dollar
    variable,      ///< $NAME or ${NAME}
    special,       ///< $1, $?, $$ …
    braces,        ///< any other ${…}; read up to what follows the name
    substitution,  ///< $(
    arithmetic,    ///< $((
    quote,         ///< $'…', whole
    translated,    ///< $", up to the quote
  };
  Kind kind = Kind::literal;
  bool braced = false;  ///< ${NAME}
  std::size_t begin = 0;
  std::size_t end = 0;    ///< one past a variable
  std::string_view name;  ///< a variable's
};

/// What a nested construct ends with, and how it is read till then.
enum class Frame : std::uint8_t {
  command,        ///< $( … ), ( … ) in it, <( … )
  arithmetic,     ///< $(( … ))
  group,          ///< ( … ) in arithmetic
  braces,         ///< ${ … }
  quoted_braces,  ///< ${ … } within double quotes or a here-document, where quotes are disputed
  quotes,         ///< " … "
};

class ShellReader {
 public:
  ShellReader(std::string_view text, std::span<const std::string_view> interesting,
              const KubeletPass& kubelet)
      : cursor(text, kubelet), names(interesting) {}

  SourceCursor cursor;
  NameTable names;
  ShellDoubt doubt = ShellDoubt::none;
  /// A newline inside a quote or substitution is read differently (here-documents are waiting for
  /// their bodies, or this is such a body).
  bool newline_is_doubtful = false;

  /// The first doubt stays. The cursor goes to the end, which ends every loop.
  void fail(ShellDoubt why) {
    if (doubt == ShellDoubt::none) doubt = why;
    cursor.stop();
  }

  Run take_run();
  /// A run outside quotes that is not the name in `$NAME`: it may be set there.
  void note_bare(std::string_view run);
  /// A run inside quotes, `first` if the quoted text begins with it.
  void note_quoted(std::string_view run, bool first);

  /// Each is called at the construct's first character and leaves the cursor behind its last.
  void single_quotes(bool backslash_is_doubtful);
  void backquotes();
  void escape();        ///< a backslash and what it escapes, not a newline
  void continuation();  ///< backslash and newline, several
  void comment();       ///< leaves the cursor at the newline

  [[nodiscard]] bool at_continuation() const {
    return cursor.peek() == '\\' && cursor.next_is('\n');
  }
  /// `quoted`: where quotes after the dollar mean nothing.
  Dollar dollar(bool quoted);
  /// Reads on behind what opened the frame until it is closed; nothing in it is of use.
  void skip(Frame frame);

 private:
  void open_braces(Dollar& dollar);
  void check_newline() {
    if (newline_is_doubtful) fail(ShellDoubt::unreadable);
  }
};

}  // namespace rayhook::shell
