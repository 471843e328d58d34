// SPDX-License-Identifier: Apache-2.0
#include "certificate.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace rayhook {
namespace {

using Store = std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, OpensslFree<GENERAL_NAMES_free>>;
using Number = std::unique_ptr<BIGNUM, OpensslFree<BN_free>>;

/// Never ask a terminal for a passphrase.
int no_passphrase(char*, int, int, void*) { return 0; }

std::unexpected<Error> bad(std::string_view source, std::string_view why) {
  ERR_clear_error();
  return fail(Errc::bad_certificate, std::string(source) + " " + std::string(why));
}

Bio memory(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::string hexadecimal(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::string name_text(const X509_NAME* name) {
  const Bio out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253);
  return text_of(out.get());
}

std::int64_t unix_time(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string address_text(const ASN1_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(address) != 16) return "?";
  return inet_ntop(family, ASN1_STRING_get0_data(address), out.data(), out.size()) ? out.data()
                                                                                   : "?";
}

std::vector<std::string> host_names(X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> out;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) out.push_back(bytes_of(name->d.dNSName));
    if (name->type == GEN_IPADD) out.push_back(address_text(name->d.iPAddress));
  }
  return out;
}

std::string key_text(const EVP_PKEY* key) {
  if (!key) return "unknown";
  std::array<char, 64> group{};
  if (EVP_PKEY_get_group_name(key, group.data(), group.size(), nullptr) == 1) {
    ERR_clear_error();
    return std::string("EC ") +
           (std::string_view(group.data()) == "prime256v1" ? "P-256" : group.data());
  }
  ERR_clear_error();
  const char* type = EVP_PKEY_get0_type_name(key);
  return std::string(type ? type : "unknown") + " " + std::to_string(EVP_PKEY_get_bits(key));
}

/// The common name as UTF-8, if there is exactly one: with several, each reader takes another.
std::string only_common_name(const X509_NAME* subject) {
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return {};
  unsigned char* utf8 = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return {};
  std::string out(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  return out;
}

}  // namespace

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason ? reason : "unknown reason";
}

Result<std::vector<Certificate>> read_certificates(Pem pem) {
  std::vector<Certificate> out;
  const Bio bio = memory(pem.text);
  ERR_clear_error();
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr))
    out.emplace_back(next);
  const unsigned long error = ERR_peek_last_error();
  const bool at_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (out.empty() || !at_end) return bad(pem.source, "holds no readable PEM certificate");
  ERR_clear_error();
  return out;
}

Result<Key> read_key(Pem pem) {
  const Bio bio = memory(pem.text);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) return bad(pem.source, "holds no readable PEM private key without a passphrase");
  ERR_clear_error();
  return key;
}

Result<KeyPair> read_key_pair(Pem certificate, Pem key) {
  Result<std::vector<Certificate>> chain = read_certificates(certificate);
  if (!chain) return std::unexpected(std::move(chain.error()));
  Result<Key> private_key = read_key(key);
  if (!private_key) return std::unexpected(std::move(private_key.error()));
  if (X509_check_private_key(chain->front().get(), private_key->get()) != 1)
    return bad(key.source,
               "does not belong to the certificate of " + std::string(certificate.source));
  return KeyPair{std::move(*chain), std::move(*private_key)};
}

std::string to_pem(X509* certificate) {
  const Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return text_of(out.get());
}

CertificateFacts describe(X509* certificate) {
  CertificateFacts out;
  out.subject = name_text(X509_get_subject_name(certificate));
  out.issuer = name_text(X509_get_issuer_name(certificate));
  const Number serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  if (serial) {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(BN_num_bytes(serial.get())));
    BN_bn2bin(serial.get(), bytes.data());
    out.serial = hexadecimal(bytes);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1)
    out.fingerprint = hexadecimal(std::span(digest).first(size));
  out.key = key_text(X509_get0_pubkey(certificate));
  out.names = host_names(certificate);
  out.not_before = unix_time(X509_get0_notBefore(certificate));
  out.not_after = unix_time(X509_get0_notAfter(certificate));
  out.authority = X509_check_ca(certificate) > 0;
  ERR_clear_error();
  return out;
}

bool is_ip_address(const std::string& name) {
  std::array<unsigned char, 16> ignored{};
  return inet_pton(AF_INET, name.c_str(), ignored.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), ignored.data()) == 1;
}

std::string utc(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts);
  return text.data();
}

Result<void> check_dates(X509* certificate, std::string_view source, std::int64_t now) {
  const std::int64_t from = unix_time(X509_get0_notBefore(certificate));
  const std::int64_t until = unix_time(X509_get0_notAfter(certificate));
  if (until < now) return bad(source, "has expired at " + utc(until) + "; renew it");
  if (from > now)
    return bad(source, "is not valid before " + utc(from) + "; check the clock of this machine");
  return {};
}

Result<void> check_name(X509* leaf, std::string_view source, std::string_view name) {
  const std::vector<std::string> names = host_names(leaf);
  if (names.empty())
    return bad(source, "names no host in subjectAltName, so no API server would take it");
  if (name.empty()) return {};
  const std::string wanted(name);
  const int same = is_ip_address(wanted)
                       ? X509_check_ip_asc(leaf, wanted.c_str(), 0)
                       : X509_check_host(leaf, wanted.data(), wanted.size(),
                                         X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr);
  if (same == 1) return {};
  std::string listed;
  for (const std::string& one : names) listed += (listed.empty() ? "" : ", ") + one;
  return bad(source, "is not for " + wanted + " but for " + listed);
}

Result<void> check_chain(std::span<const Certificate> chain, std::string_view source,
                         std::span<const Certificate> authorities, std::int64_t now) {
  const Store store(X509_STORE_new());
  for (const Certificate& authority : authorities)
    X509_STORE_add_cert(store.get(), authority.get());
  std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> between(
      sk_X509_new_null(), [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  for (const Certificate& one : chain.subspan(1)) sk_X509_push(between.get(), one.get());
  const StoreContext context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), between.get()) != 1)
    return fail(Errc::internal, "certificates cannot be checked: " + openssl_reason());
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(param, now);
  X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
  X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_SERVER);
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (good) return {};
  const int why = X509_STORE_CTX_get_error(context.get());
  return bad(source, std::string("does not lead to a CA that is trusted: ") +
                         X509_verify_cert_error_string(why));
}

bool is_client_named(X509* certificate, std::span<const std::string> names) {
  const std::string common = only_common_name(X509_get_subject_name(certificate));
  return std::ranges::any_of(names, [&](const std::string& name) {
    return (!common.empty() && common == name) ||
           X509_check_host(certificate, name.data(), name.size(),
                           X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT,
                           nullptr) == 1;
  });
}

}  // namespace rayhook
