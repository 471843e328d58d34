// SPDX-License-Identifier: Apache-2.0
// Scalars: from their look to their type, and from a value to its text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "yaml_tree.hpp"

namespace rayhook::yaml {

/// The value of an unquoted scalar by its look, as Kubernetes' YAML reader sees it: null, true and
/// yes, numbers (decimal, 0x, 0o, leading 0, 0b), everything else is a string.
[[nodiscard]] nlohmann::ordered_json resolve(std::string_view plain);

/// Text that stands for this string, on one line: unquoted where that is safe in every reader
/// (`flow_quotes`: never), else in double quotes.
void append_scalar(std::string& out, std::string_view value, bool always_quote);

/// JSON text with the same meaning that YAML readers take as well: what breaks a line of YAML and
/// not of JSON, and what YAML forbids, is escaped.
[[nodiscard]] std::string escaped(std::string_view json);

/// It has such a character (control characters below U+0020 are not looked for).
[[nodiscard]] bool has_special(std::string_view text);

}  // namespace rayhook::yaml
