// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rayhook {

/// Base64 as Kubernetes writes bytes in JSON: the standard alphabet, padded, on one line.
[[nodiscard]] std::string to_base64(std::string_view bytes);

/// The bytes; line breaks and spaces are passed over. Empty if it is not base64.
[[nodiscard]] std::optional<std::string> from_base64(std::string text);

}  // namespace rayhook
