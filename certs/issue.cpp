// SPDX-License-Identifier: Apache-2.0
#include "issue.hpp"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>

#include <algorithm>

#include "certificate.hpp"

namespace rayhook {
namespace {

using Extension = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, OpensslFree<BN_free>>;

std::unexpected<Error> failed(std::string_view did) {
  return fail(Errc::internal, "cannot " + std::string(did) + ": " + openssl_reason());
}

/// A DNS name as subjectAltName has it; also the first label may be `*`.
bool is_dns_name(std::string_view name) {
  if (name.starts_with("*.")) name.remove_prefix(2);
  if (name.empty() || name.size() > 253) return false;
  std::size_t label = 0;
  char before = '.';
  for (const char c : name) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (c == '.' ? before == '.' || before == '-' : !alphanumeric && (c != '-' || before == '.'))
      return false;
    label = c == '.' ? 0 : label + 1;
    if (label > 63) return false;
    before = c;
  }
  return before != '.' && before != '-';
}

/// `DNS:a,IP:1.2.3.4`. Each name is one of the two, so none can bring in more than itself.
Result<std::string> alternative_names(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) {
    const bool address = is_ip_address(name);
    if (!address && !is_dns_name(name))
      return fail(Errc::bad_usage, "\"" + name + "\" is neither a DNS name nor an IP address");
    out += (out.empty() ? "" : ",") + std::string(address ? "IP:" : "DNS:") + name;
  }
  if (out.empty()) return fail(Errc::bad_usage, "a server certificate needs a name");
  return out;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// 159 random bits: positive, and at most 20 octets (RFC 5280, 4.1.2.2).
bool set_serial(X509* certificate) {
  const Number number(BN_new());
  return number && BN_rand(number.get(), 159, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_name(X509_NAME* name, std::string_view common_name) {
  return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(common_name.data()),
                                    static_cast<int>(common_name.size()), -1, 0) == 1;
}

/// A certificate with everything but issuer, extensions and signature.
Certificate begin(EVP_PKEY* key, std::string_view common_name, Validity validity) {
  Certificate out(X509_new());
  const bool good = out && X509_set_version(out.get(), X509_VERSION_3) == 1 &&
                    set_serial(out.get()) &&
                    ASN1_TIME_set(X509_getm_notBefore(out.get()), validity.from) &&
                    ASN1_TIME_set(X509_getm_notAfter(out.get()), validity.until) &&
                    X509_set_pubkey(out.get(), key) == 1 &&
                    set_name(X509_get_subject_name(out.get()), common_name);
  return good ? std::move(out) : Certificate();
}

Result<IssuedPair> as_pem(X509* certificate, const EVP_PKEY* key) {
  const Bio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return failed("write a key");
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return IssuedPair{to_pem(certificate), std::string(data, static_cast<std::size_t>(size))};
}

}  // namespace

Result<IssuedPair> issue_authority(std::string_view common_name, Validity validity) {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return failed("make a key");
  const Certificate made = begin(key.get(), common_name, validity);
  X509* self = made.get();
  if (!self || X509_set_issuer_name(self, X509_get_subject_name(self)) != 1 ||
      !add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(self, self, NID_subject_key_identifier, "hash") ||
      X509_sign(self, key.get(), EVP_sha256()) <= 0)
    return failed("make a CA certificate");
  return as_pem(self, key.get());
}

Result<IssuedPair> issue_leaf(const IssuedPair& authority, std::span<const std::string> names,
                              Validity validity) {
  const Result<std::string> alternatives = alternative_names(names);
  if (!alternatives) return std::unexpected(alternatives.error());
  const Result<KeyPair> signer =
      read_key_pair({authority.certificate, "the CA"}, {authority.key, "the CA's key"});
  if (!signer) return std::unexpected(signer.error());
  X509* issuer = signer->leaf();
  validity.until = std::min(validity.until, describe(issuer).not_after);

  const Key key(EVP_EC_gen("P-256"));
  if (!key) return failed("make a key");
  // A common name has at most 64 characters; nobody reads it any more.
  const Certificate made =
      begin(key.get(), std::string_view(names.front()).substr(0, 64), validity);
  X509* leaf = made.get();
  if (!leaf || X509_set_issuer_name(leaf, X509_get_subject_name(issuer)) != 1 ||
      !add_extension(leaf, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(leaf, issuer, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(leaf, issuer, NID_ext_key_usage, "serverAuth") ||
      !add_extension(leaf, issuer, NID_subject_alt_name, *alternatives) ||
      !add_extension(leaf, issuer, NID_subject_key_identifier, "hash") ||
      !add_extension(leaf, issuer, NID_authority_key_identifier, "keyid") ||
      X509_sign(leaf, signer->key.get(), EVP_sha256()) <= 0)
    return failed("make a certificate");
  return as_pem(leaf, key.get());
}

}  // namespace rayhook
