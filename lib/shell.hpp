// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace rayhook {

/// What kubelet makes of a `$(NAME)` in a text before a shell sees it.
enum class ParenName {
  /// Expanded to any number of [A-Za-z0-9_./:@%+,-], perhaps none: an address, a number. Not to
  /// `eval`, `source`, `alias` or `.`.
  harmless,
  unknown,       ///< expanded to something that could hold quotes or anything else
  not_expanded,  ///< stays `$(NAME)`: for the shell it is a command substitution
};

/// Whether, and how, kubelet expands a text before the shell reads it.
struct KubeletPass {
  /// Set for command and args; unset for lifecycle hooks, where kubelet expands nothing and `$$`
  /// stays `$$`.
  bool expands;
  /// Asked for each `$(NAME)`; only called while the scan runs.
  std::function<ParenName(std::string_view name)> paren;
};

/// One `$NAME`, `${NAME}` that a POSIX shell is certain to expand where it stands, and that may be
/// replaced by plain text ([a-z0-9.-] or digits, never empty) without changing what the script
/// does; each alone, whichever of the others are replaced. Never a command's name.
struct ShellReference {
  std::size_t begin;      ///< first byte in the source text (of `$$` where kubelet makes `$` of it)
  std::size_t end;        ///< one past the last byte
  std::string_view name;  ///< the variable's name, a view into the text
  bool whole_word;        ///< it is a shell word by itself (a reserved word must not be put there)
};

/// Why nothing in a script is certain; for `rayhook explain`.
enum class ShellDoubt {
  none,
  unterminated,     ///< a quote, here-document, substitution or brace that does not end
  sets_variables,   ///< eval, source, `.`, alias, `export "$x"` …: may set any variable
  field_separator,  ///< IFS is mentioned: an expansion splits where plain text does not
  unreadable,       ///< a construct that this scanner does not read (`((`, case inside `$(…)` …)
  unknown_text,     ///< kubelet puts text in that is not known here
};

struct ShellScan {
  std::vector<ShellReference> sure;     ///< in order of the text
  ShellDoubt doubt = ShellDoubt::none;  ///< if not none, `sure` is empty
};

/// Reads `text`, a script given to `sh -c` or the like, and finds the references among `names`
/// that are certain. Knows quoting, escapes, comments, here-documents, command substitutions
/// (skipped, never rewritten inside); a name that the script may set or unset is not certain.
/// `names`: the variables of interest, whole identifiers. Linear time in the text; bounded memory.
/// Works for what dash and bash have in common: a text that they read differently is a doubt.
[[nodiscard]] ShellScan scan_shell(std::string_view text, std::span<const std::string_view> names,
                                   const KubeletPass& kubelet);

/// Finds which word of an exec array is a script for a shell: `["bash","-c","--","script"]`,
/// `["/bin/sh","-lc","script"]`, `["tini","--","bash","-euo","pipefail","-c","script"]` …
/// Returns the index of the script's word, or `argv.size()` if none is certain.
[[nodiscard]] std::size_t shell_script_index(std::span<const std::string_view> argv);

/// True for the words that a shell takes as syntax where a command may begin (`if`, `do`, `in` …).
[[nodiscard]] bool is_shell_reserved(std::string_view word);

}  // namespace rayhook
