// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace rayhook {

/// One `$(NAME)` that kubelet's expansion would look up, as a span of the text.
struct KubeletReference {
  std::size_t begin;      ///< index of the `$`
  std::size_t end;        ///< one past the `)`
  std::string_view name;  ///< what stands between the parentheses; a view into the text
};

/// Finds every `$(NAME)` that kubelet would look up in a text, in order. `$$` is an escape (it
/// becomes one `$` and hides what follows); any text up to the first `)` is the name; `$(` without
/// `)` is no reference. Linear time over all calls, no memory.
/// Source: kubernetes third_party/forked/golang/expansion/expand.go.
class KubeletReferenceFinder {
 public:
  explicit KubeletReferenceFinder(std::string_view text) : text_(text) {}
  /// The next one, a view into the text; false when there are no more.
  [[nodiscard]] bool next(KubeletReference& out);

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace rayhook
