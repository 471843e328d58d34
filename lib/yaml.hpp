// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "error.hpp"

namespace rayhook {

/// Reads a YAML text of one document, as Kubernetes' tools would, into JSON: for configuration and
/// kubeconfigs. An empty text is null. Errors (bad_manifest) say `line N: …`; depth and size are
/// bounded. Pure.
[[nodiscard]] Result<nlohmann::ordered_json> read_yaml(std::string_view text);

}  // namespace rayhook
