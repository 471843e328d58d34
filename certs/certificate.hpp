// SPDX-License-Identifier: Apache-2.0
// Certificates and keys: read from PEM, looked at, checked. All functions here are pure: text and
// times come in, and nothing is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/error.hpp"
#include "openssl.hpp"

namespace rayhook {

/// A PEM text, and how errors call the place it came from ("--tls-cert /etc/x/tls.crt").
struct Pem {
  std::string_view text;
  std::string_view source;
};

/// A leaf with what it needs to be served. `chain.front()` is the leaf; never empty.
struct KeyPair {
  std::vector<Certificate> chain;
  Key key;
  [[nodiscard]] X509* leaf() const { return chain.front().get(); }
};

/// What a person wants to know about a certificate.
struct CertificateFacts {
  std::string subject, issuer;                 ///< RFC 2253: "CN=rayhook"
  std::string serial;                          ///< hexadecimal
  std::string fingerprint;                     ///< SHA-256 over all of it, hexadecimal
  std::string key;                             ///< "EC P-256", "RSA 2048"
  std::vector<std::string> names;              ///< of subjectAltName, DNS names and IP addresses
  std::int64_t not_before = 0, not_after = 0;  ///< Unix time
  bool authority = false;                      ///< may sign others
};

/// All certificates of a PEM text, in order. Other PEM blocks are passed over. Errors:
/// Errc::bad_certificate if there is none, or one that cannot be read.
[[nodiscard]] Result<std::vector<Certificate>> read_certificates(Pem pem);

/// The first private key of a PEM text. Nobody is asked for a passphrase: an encrypted key is an
/// error. Errors: Errc::bad_certificate.
[[nodiscard]] Result<Key> read_key(Pem pem);

/// A certificate with its chain, and its key, which must belong to it. Errors:
/// Errc::bad_certificate.
[[nodiscard]] Result<KeyPair> read_key_pair(Pem certificate, Pem key);

/// The certificate as PEM.
[[nodiscard]] std::string to_pem(X509* certificate);

[[nodiscard]] CertificateFacts describe(X509* certificate);

/// Whether `name` is an IP address, and not a DNS name.
[[nodiscard]] bool is_ip_address(const std::string& name);

/// `2025-01-31 08:00 UTC`.
[[nodiscard]] std::string utc(std::int64_t unix_seconds);

/// Valid at `now` (Unix time), both ends included. Errors: Errc::bad_certificate.
[[nodiscard]] Result<void> check_dates(X509* certificate, std::string_view source,
                                       std::int64_t now);

/// For a host at all (`name` empty), or for this one: subjectAltName alone counts, as for the API
/// server, which looks at no common name. Errors: Errc::bad_certificate.
[[nodiscard]] Result<void> check_name(X509* leaf, std::string_view source, std::string_view name);

/// A server's certificate that leads, by what is in its chain, to one of `authorities` at `now`.
/// Those count even if they are no roots, as in Go, where the API server's check comes from.
/// Errors: Errc::bad_certificate.
[[nodiscard]] Result<void> check_chain(std::span<const Certificate> chain, std::string_view source,
                                       std::span<const Certificate> authorities, std::int64_t now);

/// Whether a client's certificate is one of `names`: it has exactly one common name, which is that
/// name, byte for byte, or the name is among its DNS names (without wildcards).
[[nodiscard]] bool is_client_named(X509* certificate, std::span<const std::string> names);

}  // namespace rayhook
