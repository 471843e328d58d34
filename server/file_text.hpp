// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "lib/error.hpp"

namespace rayhook {

/// Reads a whole file of at most `limit` bytes. `what` names it in the error ("the certificate").
/// Errors: Errc::io, Errc::too_large.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::string_view what,
                                            std::size_t limit = 1024 * 1024);

}  // namespace rayhook
