// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rayhook {

/// Rayhook's version; CMakeLists.txt reads it from this line. Written into `rayhook/decision`.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace rayhook
