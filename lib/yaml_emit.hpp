// SPDX-License-Identifier: Apache-2.0
// Writes JSON values as YAML text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rayhook::yaml {

/// On one line: `{name: A, value: "6379"}`; with `quote_all`, as JSON is written.
void append_flow(std::string& out, const nlohmann::ordered_json& value, bool quote_all);

/// The members of an object, each on lines of its own that begin at column `indent`. Lists stand
/// at the column of their key, strings of several lines as literal blocks.
void append_block_members(std::string& out, const nlohmann::ordered_json& object, int indent);

/// One member, on lines of its own.
void append_block_member(std::string& out, std::string_view name,
                         const nlohmann::ordered_json& value, int indent);

/// One item of a list, its dash at column `indent`.
void append_block_item(std::string& out, const nlohmann::ordered_json& value, int indent);

}  // namespace rayhook::yaml
