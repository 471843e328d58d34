// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace rayhook {

/// The one vocabulary of errors. Whatever fails in lib/ or server/ fails with one of these words;
/// the detail says where and what to do. A new kind of failure gets a new line here.
enum class Errc {
  bad_json,      ///< the bytes are not one JSON document
  bad_review,    ///< JSON, but not an AdmissionReview that can be answered (no uid, wrong kind …)
  too_large,     ///< over a documented limit (size, depth, number of documents)
  bad_manifest,  ///< a YAML or JSON manifest that cannot be read
  bad_usage,     ///< the command line is wrong
  bad_config,    ///< configuration, kubeconfig or flag value that cannot be used
  bad_certificate,  ///< certificate or key that cannot be used
  io,               ///< a file or socket failed
  unreachable,      ///< the API server did not answer in time, or answered with something unusable
  internal,         ///< a promise inside Rayhook was broken; please report
};

/// The error's word, as used in logs and metrics ("bad_json"). Never fails; static storage.
[[nodiscard]] std::string_view word(Errc code);

/// An error as a value: its kind, and one line for a person (what, where, what to do).
struct Error {
  Errc code;
  std::string what;
};

template <class T>
using Result = std::expected<T, Error>;

/// Shorthand for returning an error: `return fail(Errc::bad_json, "…")`.
[[nodiscard]] inline std::unexpected<Error> fail(Errc code, std::string what) {
  return std::unexpected(Error{code, std::move(what)});
}

}  // namespace rayhook
