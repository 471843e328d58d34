// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "certs/certificate.hpp"
#include "certs/issue.hpp"

namespace rayhook {

constexpr std::int64_t kNow = 1'800'000'000;  // 2027-01-15 08:00 UTC
constexpr std::int64_t kDay = 86'400;

/// The value, or the error as a test failure.
template <class T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().what;
    return T{};
  }
  return std::move(*result);
}

inline std::string complaint(const Result<void>& result) {
  return result ? "" : result.error().what;
}

inline IssuedPair authority(std::string_view name = "test CA",
                            Validity validity = {kNow, kNow + 3650 * kDay}) {
  return must(issue_authority(name, validity));
}

inline IssuedPair leaf(const IssuedPair& by, std::vector<std::string> names = {"a.b.svc"},
                       Validity validity = {kNow, kNow + 90 * kDay}) {
  return must(issue_leaf(by, names, validity));
}

inline KeyPair pair_of(const IssuedPair& issued) {
  return must(read_key_pair({issued.certificate, "cert"}, {issued.key, "key"}));
}

inline std::vector<Certificate> certificates(const std::string& pem) {
  return must(read_certificates({pem, "pem"}));
}

}  // namespace rayhook
