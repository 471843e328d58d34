// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/error.hpp"

namespace rayhook {

/// The certificates that a TLS server shows, as PEM, the leaf first; `address` is HOST:PORT, and
/// `name` is asked for (SNI). Nothing is verified here. Waits up to ten seconds. Errors:
/// Errc::bad_usage for an address that is none, Errc::unreachable.
[[nodiscard]] Result<std::string> served_chain(const std::string& address, const std::string& name);

}  // namespace rayhook
