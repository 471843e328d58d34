// SPDX-License-Identifier: Apache-2.0
#include "yaml_edit.hpp"

namespace rayhook::yaml {

Edited edit(std::string_view text, const Slice& slice, const Tree&, std::span<const Change> changes,
            const Limits&) {
  Edited out;
  out.text = text.substr(slice.begin, slice.end - slice.begin);
  for (const Change& change : changes)
    if (change.changed) {
      out.text = "---\n" + change.wanted->dump(2) + "\n";
      out.lost_comments = true;
    }
  return out;
}

}  // namespace rayhook::yaml
