// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/error.hpp"

namespace rayhook {

/// Where the server's certificate is, and what is asked of it and of clients.
struct TlsFiles {
  std::string certificate;  ///< PEM: the leaf, then its chain
  std::string key;          ///< PEM, not encrypted
  std::string name;         ///< whom the certificate must name; empty: any host will do
  std::string client_ca;    ///< PEM; if not empty, clients must show a certificate of it
  /// With `client_ca`: and that must carry one of these names. Empty: any.
  std::vector<std::string> client_names;
};

/// What stood in the files at one moment.
struct TlsTexts {
  std::string certificate, key, client_ca;
  std::string authority;  ///< of `ca.crt` beside the certificate; empty: not there, or not readable
  bool operator==(const TlsTexts&) const = default;
};

/// A certificate ready to be served. `context` is shared with the connections that use it.
struct ServerTls {
  std::shared_ptr<boost::asio::ssl::context> context;
  std::string names;                     ///< "rayhook.rayhook-system.svc, 10.0.0.1"
  std::string serial;                    ///< hexadecimal
  std::int64_t not_after = 0;            ///< Unix time
  std::int64_t ca_not_after = 0;         ///< of the CA that signed it; 0: `ca.crt` does not hold it
  std::int64_t client_ca_not_after = 0;  ///< of the one that ends first; 0: there is none
};

/// Reads all files once; of a `ca.crt` in the folder of the certificate (cert-manager and `rayhook
/// certs rotate` put one there) only its end is told, so it may be missing. Errors: Errc::io,
/// Errc::too_large: one line that says which file.
[[nodiscard]] Result<TlsTexts> read_tls_files(const TlsFiles& files);

/// Checks the texts: the key belongs to the certificate, which is valid at `now` (Unix time) and
/// names a host, or `files.name`. TLS 1.2 and 1.3 only, AEAD ciphers with forward secrecy, ALPN
/// http/1.1, no resumption (the API server never resumes; it would outlive a change of
/// certificates, and pass by the check of clients). Errors: Errc::bad_certificate: one line that
/// says which file and what to do.
[[nodiscard]] Result<ServerTls> make_server_tls(const TlsTexts& texts, const TlsFiles& files,
                                                std::int64_t now);

}  // namespace rayhook
