// SPDX-License-Identifier: Apache-2.0
// Writes changes into YAML text where they belong, and leaves everything else as it stands.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "yaml_tree.hpp"

namespace rayhook::yaml {

/// What a document of a slice is to say.
struct Change {
  NodeId root;
  const nlohmann::ordered_json* wanted;
  bool changed;  ///< else it is as it was written
};

struct Edited {
  std::string text;
  bool lost_comments = false;
};

/// The slice's text so that its documents (all of them, in order) say what is wanted. Scalars are
/// changed within their quotes, members and items are inserted in the style around them, aliases
/// are written out where they must differ. The result is read again and compared; should it not
/// say what is wanted, the changed documents are written anew, without their comments.
[[nodiscard]] Edited edit(std::string_view text, const Slice& slice, const Tree& tree,
                          std::span<const Change> changes, const Limits& limits);

}  // namespace rayhook::yaml
