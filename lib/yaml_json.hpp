// SPDX-License-Identifier: Apache-2.0
// What a YAML document says, as JSON: types, tags, aliases, merge keys.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "error.hpp"
#include "yaml_tree.hpp"

namespace rayhook::yaml {

/// What the aliases of a file may grow to.
struct Budget {
  std::size_t values = 4'000'000;
  std::size_t bytes = 128 * 1024 * 1024;
};

/// Converts a node as Kubernetes' YAML reader does. Errors (`line N: …`): duplicate keys, keys that
/// are no text, tags that do not fit, values that JSON does not have, and a spent budget.
[[nodiscard]] Result<nlohmann::ordered_json> to_json(const Tree& tree, NodeId root, int max_depth,
                                                     Budget& budget);

/// The name of a mapping's member as JSON has it (`on:` is "true" to Kubernetes). Empty result: no
/// key that can be used.
[[nodiscard]] std::optional<std::string> key_text(const Tree& tree, NodeId key);

/// `<<`, which stands for other mappings' members.
[[nodiscard]] bool is_merge_key(const Node& key);

/// Equal but for the order of members.
[[nodiscard]] bool same(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

}  // namespace rayhook::yaml
