// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "error.hpp"
#include "pod.hpp"
#include "service.hpp"

namespace rayhook {

/// Bytes that must be readable behind a text given to `ReviewReader::parse` (their content does
/// not matter). Equal to simdjson's padding, checked at compile time.
inline constexpr std::size_t kPadding = 64;

/// Bodies over this size are refused before they are read (HTTP 413). The API server takes 3 MiB
/// of client bytes, which may grow as JSON.
inline constexpr std::size_t kMaxReviewBytes = 9 * 1024 * 1024;

/// Brackets, commas and colons of a text outside its strings: reading costs up to eight bytes for
/// each, so a text of nothing else would cost several times its size. What the API server can store
/// has far fewer.
inline constexpr std::size_t kMaxReviewStructure = std::size_t{1024} * 1024;

/// Which kind of object a review is about.
enum class ObjectKind : std::uint8_t { pod, service, other };

/// One AdmissionReview request, read. Views point into the text given to `parse` and into the
/// reader's memory: valid until the reader parses again or dies, or the text changes.
struct Review {
  std::string_view api_version;  ///< "admission.k8s.io/v1" or "admission.k8s.io/v1beta1"
  std::string_view uid;          ///< never empty
  std::string_view ns;           ///< request.namespace; wins over the object's
  std::string_view name;         ///< request.name, else the object's; empty where generated
  std::string_view generate_name;
  std::string_view operation;  ///< CREATE …
  std::string_view user;       ///< userInfo.username
  std::string_view kind_name;  ///< request.kind.kind, for the log
  std::string_view subresource;
  ObjectKind kind = ObjectKind::other;
  bool dry_run = false;
  /// The object cannot be read (wrong type, missing, null …): it is admitted unchanged and this
  /// says what is wrong. Empty: `pod` or `service` holds it.
  std::string malformed;
  Pod pod;          ///< if kind == pod
  Service service;  ///< if kind == service
};

/// `parse`: reads AdmissionReviews. Keeps its memory between calls, so one reader per thread.
/// Distinct objects may be used from several threads; one object may not.
class ReviewReader {
 public:
  ReviewReader();
  ~ReviewReader();
  ReviewReader(ReviewReader&&) noexcept;
  ReviewReader& operator=(ReviewReader&&) noexcept;

  /// Reads `json`, behind which kPadding more bytes must be readable. The returned pointer is the
  /// reader's own and valid until the next call. Errors: bad_json, bad_review, too_large: nothing
  /// that could be answered with an AdmissionReview. An object that makes no sense is no error
  /// (Review::malformed). Time is linear in the text, memory bounded by a small multiple of it.
  [[nodiscard]] Result<const Review*> parse(std::string_view json);

  /// Reads a bare Pod object (JSON text, padded likewise) into a Review of kind pod, for lists of
  /// pods and manifests. `malformed` is set where it makes no sense.
  [[nodiscard]] Result<const Review*> parse_pod(std::string_view json);

  /// Gives memory back after an unusually large text. Invalidates the last Review.
  void shrink();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rayhook
