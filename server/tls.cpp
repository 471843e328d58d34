// SPDX-License-Identifier: Apache-2.0
#include "tls.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstring>

#include "file_text.hpp"

namespace rayhook {
namespace {

namespace ssl = boost::asio::ssl;

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

/// Never ask a terminal for a passphrase.
int no_passphrase(char*, int, int, void*) { return 0; }

std::unexpected<Error> bad(std::string_view what, const std::string& path, std::string_view why) {
  return fail(Errc::bad_certificate, std::string(what) + " " + path + " " + std::string(why));
}

Bio memory(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// All certificates of a PEM text; empty if there are none or one is broken.
std::vector<Certificate> read_certificates(const std::string& pem) {
  std::vector<Certificate> out;
  const Bio bio = memory(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr))
    out.emplace_back(next);
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
    out.clear();
  ERR_clear_error();
  return out;
}

std::int64_t unix_time(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string date(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts);
  return text.data();
}

bool names_a_host(X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  bool found = false;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const int type = sk_GENERAL_NAME_value(names, i)->type;
    found = found || type == GEN_DNS || type == GEN_IPADD;
  }
  GENERAL_NAMES_free(names);
  return found;
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

Result<void> require_clients(SSL_CTX* context, const std::string& path) {
  const Result<std::string> pem = read_file(path, "--client-ca");
  if (!pem) return std::unexpected(pem.error());
  const std::vector<Certificate> authorities = read_certificates(*pem);
  if (authorities.empty()) return bad("--client-ca", path, "holds no readable PEM certificate");
  for (const Certificate& authority : authorities) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    SSL_CTX_add_client_CA(context, authority.get());
  }
  ERR_clear_error();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

}  // namespace

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason ? reason : "unknown reason";
}

Result<ServerTls> load_server_tls(const TlsFiles& files, std::time_t now) {
  const Result<std::string> pem = read_file(files.certificate, "--tls-cert");
  if (!pem) return std::unexpected(pem.error());
  const Result<std::string> key_pem = read_file(files.key, "--tls-key");
  if (!key_pem) return std::unexpected(key_pem.error());

  const std::vector<Certificate> chain = read_certificates(*pem);
  if (chain.empty())
    return bad("--tls-cert", files.certificate, "holds no readable PEM certificate");
  const Bio key_bio = memory(*key_pem);
  const Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (!key)
    return bad("--tls-key", files.key, "holds no readable PEM private key without a passphrase");

  X509* leaf = chain.front().get();
  if (X509_check_private_key(leaf, key.get()) != 1) {
    ERR_clear_error();
    return bad("--tls-key", files.key, "does not belong to the certificate " + files.certificate);
  }
  ServerTls out;
  out.not_after = unix_time(X509_get0_notAfter(leaf));
  const std::int64_t not_before = unix_time(X509_get0_notBefore(leaf));
  if (out.not_after <= now)
    return bad("--tls-cert", files.certificate,
               "has expired at " + date(out.not_after) + "; renew it");
  if (not_before > now)
    return bad("--tls-cert", files.certificate,
               "is not valid before " + date(not_before) + "; check the clock");
  if (!names_a_host(leaf))
    return bad("--tls-cert", files.certificate,
               "names no host in subjectAltName, so no API server would take it");

  try {
    out.context = std::make_shared<ssl::context>(ssl::context::tls_server);
  } catch (const std::exception& error) {
    return fail(Errc::internal, std::string("TLS cannot be set up: ") + error.what());
  }
  SSL_CTX* context = out.context->native_handle();
  harden(context);
  if (SSL_CTX_use_certificate(context, leaf) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return bad("--tls-cert", files.certificate, "cannot be used: " + openssl_reason());
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1)
      return bad("--tls-cert", files.certificate, "has an unusable chain: " + openssl_reason());
  if (SSL_CTX_check_private_key(context) != 1)
    return bad("--tls-key", files.key, "does not belong to the certificate " + files.certificate);
  if (!files.client_ca.empty())
    if (Result<void> ok = require_clients(context, files.client_ca); !ok)
      return std::unexpected(ok.error());
  return out;
}

}  // namespace rayhook
