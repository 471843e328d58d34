// SPDX-License-Identifier: Apache-2.0
#include "expansion.hpp"

#include <algorithm>

namespace rayhook {

void kubelet_references(std::string_view text, std::vector<KubeletReference>& found) {
  std::size_t at = 0;
  while (at + 1 < text.size()) {
    if (text[at] != '$') {
      at = std::min(text.find('$', at), text.size());
      continue;
    }
    if (text[at + 1] != '(') {
      // `$$` is an escape; any other character that follows is no operator and can be passed too.
      at += 2;
      continue;
    }
    const std::size_t close = text.find(')', at + 2);
    // No later `$(` can end either; looking on would make the time quadratic.
    if (close == std::string_view::npos) return;
    found.push_back({at, close + 1, text.substr(at + 2, close - at - 2)});
    at = close + 1;
  }
}

}  // namespace rayhook
