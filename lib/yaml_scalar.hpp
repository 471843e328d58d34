// SPDX-License-Identifier: Apache-2.0
// Scalars: their text as written, their value, their type.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yaml_tree.hpp"

namespace rayhook::yaml {

/// A part of a decoded scalar and where it stands in the source. Parts of equal length on both
/// sides were copied as they are.
struct Part {
  std::uint32_t value_begin, value_end;
  std::uint32_t source_begin, source_end;
};

/// Decodes the scalar that is written in `source` (quotes, or the block's header, included).
/// `indent`: the column at which a block scalar's lines begin. Empty: something in it is wrong, and
/// `what` says what. `parts`, if given, is filled with the places of the value's parts.
[[nodiscard]] std::optional<std::string> decode(Style style, std::string_view source, int indent,
                                                std::string& what,
                                                std::vector<Part>* parts = nullptr);

/// The value of an unquoted scalar by its look, as Kubernetes' YAML reader sees it: null, true and
/// yes, numbers (decimal, 0x, 0o, leading 0, 0b), everything else is a string.
[[nodiscard]] nlohmann::ordered_json resolve(std::string_view plain);

/// Text that stands for this string, on one line: unquoted where that is safe in every reader
/// (`flow_quotes`: never), else in double quotes.
void append_scalar(std::string& out, std::string_view value, bool always_quote);

}  // namespace rayhook::yaml
