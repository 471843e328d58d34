// SPDX-License-Identifier: Apache-2.0
#include "decision.hpp"
#include "patch.hpp"
#include "pod_rule.hpp"
#include "service_rule.hpp"

namespace rayhook {
namespace {

/// A stored object is at most 1.5 MiB; a patch beyond this could only fail later, and would cost
/// memory until then.
constexpr std::size_t kMaxPatchBytes = 4 * 1024 * 1024;

Decision leave(Reason reason) {
  Decision out{};
  out.reason = reason;
  return out;
}

std::size_t patch_bytes(const Decision& decision) {
  std::size_t bytes = 0;
  for (const PatchOp& op : decision.patch) bytes += op.path.size() + op.value.size() + 40;
  return bytes;
}

}  // namespace

Decision decide(const Review& review, const Policy& policy, const Facts& facts) {
  if (review.kind == ObjectKind::other || !review.subresource.empty())
    return leave(Reason::not_our_kind);
  if (review.operation != "CREATE") return leave(Reason::not_create);
  if (!review.malformed.empty()) {
    Decision out = leave(Reason::malformed);
    out.findings.push_back({{}, review.malformed, {}, "cannot be read"});
    return out;
  }
  Decision out = review.kind == ObjectKind::pod ? decide_pod(review, policy, facts)
                                                : decide_service(review, policy, facts);
  if (out.outcome != Outcome::patch) return out;
  if (patch_bytes(out) > kMaxPatchBytes) return leave(Reason::too_large);
  if (!patch_fits(review, out)) return leave(Reason::patch_refused);
  return out;
}

}  // namespace rayhook
