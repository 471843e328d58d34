// SPDX-License-Identifier: Apache-2.0
#include "expansion.hpp"

#include <algorithm>

namespace rayhook {

bool KubeletReferenceFinder::next(KubeletReference& out) {
  while (at_ + 1 < text_.size()) {
    if (text_[at_] != '$') {
      at_ = std::min(text_.find('$', at_), text_.size());
      continue;
    }
    if (text_[at_ + 1] != '(') {
      // `$$` is an escape; any other character that follows is no operator and can be passed too.
      at_ += 2;
      continue;
    }
    const std::size_t close = text_.find(')', at_ + 2);
    if (close == std::string_view::npos) {
      // No later `$(` can end either; looking on would make the time quadratic.
      at_ = text_.size();
      return false;
    }
    out = {at_, close + 1, text_.substr(at_ + 2, close - at_ - 2)};
    at_ = close + 1;
    return true;
  }
  return false;
}

}  // namespace rayhook
