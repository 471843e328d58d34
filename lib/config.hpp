// SPDX-License-Identifier: Apache-2.0
// The configuration file: how a Policy is written down. What each key means: docs/configuration.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "error.hpp"
#include "policy.hpp"

namespace rayhook {

/// Reads a configuration: one YAML document (so JSON too), all of whose keys may be left out; an
/// empty text is the default policy. Strict: an unknown key, a value of the wrong type or out of
/// range, a key that stands there twice are errors (bad_config, one line) that name the key with
/// its path, the value and what may stand there, or the line where it is no YAML. Pure.
[[nodiscard]] Result<Policy> read_policy(std::string_view yaml);

/// The policy as a configuration with every key: read_policy gives the same policy again.
[[nodiscard]] nlohmann::ordered_json policy_json(const Policy& policy);

/// policy_json as YAML text.
[[nodiscard]] std::string write_policy(const Policy& policy);

}  // namespace rayhook
