// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace rayhook {

/// One `$(NAME)` that kubelet's expansion would look up, as a span of the text.
struct KubeletReference {
  std::size_t begin;      ///< index of the `$`
  std::size_t end;        ///< one past the `)`
  std::string_view name;  ///< what stands between the parentheses; a view into the text
};

/// Finds every `$(NAME)` that kubelet would look up in `text`, in order. `$$` is an escape (it
/// becomes one `$` and hides what follows); any text up to the first `)` is the name; `$(` without
/// `)` is no reference. Linear time. Appends to `found`, which is not cleared.
/// Source: kubernetes third_party/forked/golang/expansion/expand.go.
void kubelet_references(std::string_view text, std::vector<KubeletReference>& found);

}  // namespace rayhook
