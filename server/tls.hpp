// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>

#include "lib/error.hpp"

namespace rayhook {

/// Where the server's certificate is.
struct TlsFiles {
  std::string certificate;  ///< PEM: the leaf, then its chain
  std::string key;          ///< PEM, not encrypted
  std::string client_ca;    ///< PEM; if not empty, clients must show a certificate of it
};

/// A certificate ready to be served. `context` is shared with the connections that use it.
struct ServerTls {
  std::shared_ptr<boost::asio::ssl::context> context;
  std::int64_t not_after = 0;  ///< Unix time
};

/// Reads the files once and checks them: the key belongs to the certificate, which is valid at
/// `now` and names a host. TLS 1.2 and 1.3 only, AEAD ciphers with forward secrecy, ALPN http/1.1,
/// no resumption (the API server never resumes; it would outlive a change of certificates).
/// Errors: Errc::io, Errc::bad_certificate: one line that says which file and what to do.
[[nodiscard]] Result<ServerTls> load_server_tls(const TlsFiles& files, std::time_t now);

/// What OpenSSL last complained about on this thread, in a few words; clears its queue.
[[nodiscard]] std::string openssl_reason();

}  // namespace rayhook
