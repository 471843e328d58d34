// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facts.hpp"
#include "reason.hpp"

namespace rayhook {

/// One operation of a JSON Patch (RFC 6902); only `add` and `replace` are ever used.
struct PatchOp {
  enum class Kind { add, replace } kind;
  std::string path;   ///< JSON pointer into the object under review
  std::string value;  ///< JSON text
};

/// Something found in an object: a reference, or a variable that was restored. For the log line
/// and `rayhook explain`.
struct Finding {
  std::string where;      ///< e.g. `spec.containers[0].args[0]`
  std::string before;     ///< the token as written; empty for a restored variable
  std::string after;      ///< what it became; empty: it was left
  std::string_view note;  ///< why it was left, or "restored"; static storage
};

/// What is to be done with the object.
enum class Outcome { patch, leave, deny };

struct Decision {
  Reason reason;
  Outcome outcome = Outcome::leave;
  std::vector<PatchOp> patch;         ///< empty unless outcome == patch
  std::vector<std::string> warnings;  ///< for the user, ≤ 120 characters, no control characters
  std::vector<Finding> findings;      ///< at most kMaxFindings
  std::string deny_message;           ///< outcome == deny
};

/// More findings than this are counted but not listed.
inline constexpr std::size_t kMaxFindings = 64;

/// `decide`: what to do with the object under review, given what is known. Pure; never throws for
/// any input; on any doubt the object is left as it is, with a reason.
[[nodiscard]] Decision decide(const Review& review, const Policy& policy, const Facts& facts);

/// `render`: appends the AdmissionReview answer (JSON text and a newline) to `out`: the uid
/// echoed, apiVersion as asked, patch and patchType only when there is something to do, warnings
/// and audit annotations (`reason`, `review-uid`, `patch-sha256`). Returns the size of the patch
/// in bytes before base64 (0: none). Pure.
std::size_t render(const Review& review, const Decision& decision, std::string& out);

/// The JSON Patch of a decision as JSON text (`[]` when there is nothing to do).
[[nodiscard]] std::string patch_json(const Decision& decision);

}  // namespace rayhook
