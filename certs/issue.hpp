// SPDX-License-Identifier: Apache-2.0
// New certificates: ECDSA P-256, SHA-256.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/error.hpp"

namespace rayhook {

/// A certificate and its private key (PKCS #8, not encrypted), both as PEM.
struct IssuedPair {
  std::string certificate;
  std::string key;
};

/// Unix time, seconds; both ends included.
struct Validity {
  std::int64_t from = 0;
  std::int64_t until = 0;
};

/// A new authority that signs itself, and may sign leaves only. Errors: Errc::internal.
[[nodiscard]] Result<IssuedPair> issue_authority(std::string_view common_name, Validity validity);

/// A new server certificate, signed by `authority`, with `names` (DNS names and IP addresses) in
/// its subjectAltName. It ends no later than its authority. Errors: Errc::bad_usage for something
/// that is no name, Errc::bad_certificate if the authority cannot be read, Errc::internal.
[[nodiscard]] Result<IssuedPair> issue_leaf(const IssuedPair& authority,
                                            std::span<const std::string> names, Validity validity);

}  // namespace rayhook
