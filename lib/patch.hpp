// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "decision.hpp"

namespace rayhook {

/// Appends `text` as a JSON string, quotes included. Valid UTF-8 in, valid JSON out.
void append_json_string(std::string& out, std::string_view text);

/// Appends `text` as one token of a JSON pointer (`~` → `~0`, `/` → `~1`).
void append_pointer_token(std::string& out, std::string_view text);

/// Adds the operations that set annotations on an object: into the map that is there, or the map
/// and whatever is missing above it. At most two.
struct AnnotationValue {
  std::string_view key, value;
};
void annotate(Decision& decision, bool has_metadata, bool has_annotations,
              std::initializer_list<AnnotationValue> annotations);

/// `rayhook/decision`'s value: `<reason>@<version>`.
[[nodiscard]] std::string decision_mark(Reason reason);

/// Adds a warning for the user: control characters and non-ASCII out, at most 120 characters; an
/// overlong name inside should be cut by `short_name` first.
void warn(Decision& decision, std::string text);

/// A name cut in the middle to at most `limit` characters (`service-ray…cluster` in ASCII).
[[nodiscard]] std::string shortened(std::string_view name, std::size_t limit = 40);

/// Checks the structure of a decision's patch against the review it is for: each parent exists,
/// each index is in range, each value is of the right type. A patch that does not apply would
/// fail the user's request whatever the failurePolicy (kubernetes issue 129459).
[[nodiscard]] bool patch_fits(const Review& review, const Decision& decision);

}  // namespace rayhook
