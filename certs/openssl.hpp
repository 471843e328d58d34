// SPDX-License-Identifier: Apache-2.0
// OpenSSL's objects, freed by themselves.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace rayhook {

template <auto Free>
struct OpensslFree {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, OpensslFree<BIO_free>>;
using Certificate = std::unique_ptr<X509, OpensslFree<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;

/// What OpenSSL last complained about on this thread, in a few words; clears its queue.
[[nodiscard]] std::string openssl_reason();

}  // namespace rayhook
