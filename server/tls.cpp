// SPDX-License-Identifier: Apache-2.0
#include "tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <openssl/x509v3.h>

#include <algorithm>
#include <filesystem>

#include "certs/certificate.hpp"
#include "file_text.hpp"

namespace rayhook {
namespace {

namespace ssl = boost::asio::ssl;
using ClientNames = std::vector<std::string>;

std::string source(std::string_view flag, const std::string& path) {
  return std::string(flag) + " " + path;
}

/// Takes http/1.1 where the client offers protocols; it is all that the API server offers.
int select_protocol(SSL*, const unsigned char** out, unsigned char* out_length,
                    const unsigned char* offered, unsigned offered_length, void*) {
  static constexpr std::string_view kHttp = "http/1.1";
  for (unsigned i = 0; i < offered_length; i += 1U + offered[i]) {
    const unsigned length = offered[i];
    if (i + 1 + length > offered_length) break;
    const unsigned char* name = offered + i + 1;
    if (std::string_view(reinterpret_cast<const char*>(name), length) != kHttp) continue;
    *out = name;
    *out_length = static_cast<unsigned char>(length);
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

void harden(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384");
  SSL_CTX_set_options(context,
                      SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, select_protocol, nullptr);
}

void free_client_names(void*, void* names, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<ClientNames*>(names);
}

/// Where an SSL_CTX keeps the names of its clients, which it owns.
int client_names_index() {
  static const int index =
      SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_client_names);
  return index;
}

/// Called for each certificate of a client's chain, the client's own last. Refusing it here, the
/// client is told so in the handshake.
int check_client_name(int good, X509_STORE_CTX* store) {
  if (good != 1 || X509_STORE_CTX_get_error_depth(store) > 0) return good;
  const auto* connection = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto* names = static_cast<const ClientNames*>(
      SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), client_names_index()));
  if (names && is_client_named(X509_STORE_CTX_get_current_cert(store), *names)) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

/// From now on only clients with a certificate of `pem`. Returns when the first of these ends.
Result<std::int64_t> require_clients(SSL_CTX* context, Pem pem, const ClientNames& names) {
  const Result<std::vector<Certificate>> authorities = read_certificates(pem);
  if (!authorities) return std::unexpected(authorities.error());
  std::int64_t ends = describe(authorities->front().get()).not_after;
  for (const Certificate& authority : *authorities) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    SSL_CTX_add_client_CA(context, authority.get());
    ends = std::min(ends, describe(authority.get()).not_after);
  }
  ERR_clear_error();
  const int mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  if (names.empty()) {
    SSL_CTX_set_verify(context, mode, nullptr);
    return ends;
  }
  auto owned = std::make_unique<ClientNames>(names);
  if (SSL_CTX_set_ex_data(context, client_names_index(), owned.get()) != 1)
    return fail(Errc::internal, "TLS cannot be set up: " + openssl_reason());
  [[maybe_unused]] const ClientNames* given = owned.release();  // the context's now
  SSL_CTX_set_verify(context, mode, check_client_name);
  return ends;
}

/// When the CA ends that signed `last`, the end of the served chain; 0 if `pem` does not hold it.
std::int64_t authority_end(Pem pem, X509* last) {
  const Result<std::vector<Certificate>> authorities = read_certificates(pem);
  if (!authorities) return 0;
  const auto signer = std::ranges::find_if(*authorities, [last](const Certificate& authority) {
    return X509_check_issued(authority.get(), last) == X509_V_OK;
  });
  return signer == authorities->end() ? 0 : describe(signer->get()).not_after;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

Result<TlsTexts> read_tls_files(const TlsFiles& files) {
  TlsTexts out;
  const auto read = [](std::string& text, const std::string& path,
                       std::string_view flag) -> Result<void> {
    if (path.empty()) return {};
    Result<std::string> content = read_file(path, flag);
    if (!content) return std::unexpected(std::move(content.error()));
    text = std::move(*content);
    return {};
  };
  Result<void> good = read(out.certificate, files.certificate, "--tls-cert");
  if (good) good = read(out.key, files.key, "--tls-key");
  if (good) good = read(out.client_ca, files.client_ca, "--client-ca");
  if (!good) return std::unexpected(std::move(good.error()));
  const auto authority = std::filesystem::path(files.certificate).replace_filename("ca.crt");
  out.authority = read_file(authority.string(), "the CA").value_or("");
  return out;
}

Result<ServerTls> make_server_tls(const TlsTexts& texts, const TlsFiles& files, std::int64_t now) {
  const std::string cert_source = source("--tls-cert", files.certificate);
  const std::string key_source = source("--tls-key", files.key);
  const std::string client_source = source("--client-ca", files.client_ca);
  const Result<KeyPair> pair =
      read_key_pair({texts.certificate, cert_source}, {texts.key, key_source});
  if (!pair) return std::unexpected(pair.error());
  Result<void> good = check_dates(pair->leaf(), cert_source, now);
  if (good) good = check_name(pair->leaf(), cert_source, files.name);
  if (!good) return std::unexpected(std::move(good.error()));

  ServerTls out;
  const CertificateFacts facts = describe(pair->leaf());
  out.names = listed(facts.names);
  out.serial = facts.serial;
  out.not_after = facts.not_after;
  out.ca_not_after = authority_end({texts.authority, "ca.crt"}, pair->chain.back().get());
  try {
    out.context = std::make_shared<ssl::context>(ssl::context::tls_server);
  } catch (const std::exception& error) {
    return fail(Errc::internal, std::string("TLS cannot be set up: ") + error.what());
  }
  SSL_CTX* context = out.context->native_handle();
  harden(context);
  const auto unusable = [&cert_source] {
    return fail(Errc::bad_certificate, cert_source + " cannot be used: " + openssl_reason());
  };
  if (SSL_CTX_use_certificate(context, pair->leaf()) != 1 ||
      SSL_CTX_use_PrivateKey(context, pair->key.get()) != 1)
    return unusable();
  for (std::size_t i = 1; i < pair->chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(context, pair->chain[i].get()) != 1) return unusable();
  if (SSL_CTX_check_private_key(context) != 1) return unusable();
  if (files.client_ca.empty()) return out;
  const Result<std::int64_t> clients =
      require_clients(context, {texts.client_ca, client_source}, files.client_names);
  if (!clients) return std::unexpected(clients.error());
  out.client_ca_not_after = *clients;
  return out;
}

}  // namespace rayhook
