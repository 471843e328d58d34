// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "decision.hpp"
#include "patch.hpp"

namespace rayhook {
namespace {

void append_base64(std::string& out, std::string_view bytes) {
  const std::size_t begin = out.size();
  const std::size_t length = (bytes.size() + 2) / 3 * 4;
  out.resize(begin + length + 1);  // EVP_EncodeBlock ends with a NUL
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data() + begin),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  out.resize(begin + length);
}

void append_sha256(std::string& out, std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  static constexpr char kHex[] = "0123456789abcdef";
  for (const unsigned char byte : digest) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

}  // namespace

std::string patch_json(const Decision& decision) {
  std::size_t size = 2;
  for (const PatchOp& op : decision.patch) size += op.path.size() + op.value.size() + 48;
  std::string out;
  out.reserve(size);
  out += '[';
  for (const PatchOp& op : decision.patch) {
    if (out.size() > 1) out += ',';
    out += op.kind == PatchOp::Kind::add ? R"({"op":"add","path":)" : R"({"op":"replace","path":)";
    append_json_string(out, op.path);
    out += R"(,"value":)";
    out += op.value;
    out += '}';
  }
  out += ']';
  return out;
}

std::size_t render(const Review& review, const Decision& decision, std::string& out) {
  std::size_t patch_bytes = 0;
  out += R"({"apiVersion":)";
  append_json_string(out, review.api_version);
  out += R"(,"kind":"AdmissionReview","response":{"uid":)";
  append_json_string(out, review.uid);
  out += decision.outcome == Outcome::deny ? R"(,"allowed":false)" : R"(,"allowed":true)";
  if (decision.outcome == Outcome::deny) {
    // 429 tells the controllers to come back by themselves; `retryAfterSeconds` would stall
    // their workers.
    out += R"(,"status":{"status":"Failure","reason":"TooManyRequests","code":429,"message":)";
    append_json_string(out, decision.deny_message);
    out += '}';
  }
  out += R"(,"auditAnnotations":{"reason":)";
  append_json_string(out, word(decision.reason));
  out += R"(,"review-uid":)";
  append_json_string(out, review.uid);
  if (decision.outcome == Outcome::patch && !decision.patch.empty()) {
    const std::string patch = patch_json(decision);
    patch_bytes = patch.size();
    out += R"(,"patch-sha256":")";
    append_sha256(out, patch);
    out += R"("},"patchType":"JSONPatch","patch":")";
    append_base64(out, patch);
    out += '"';
  } else {
    out += '}';
  }
  if (!decision.warnings.empty()) {
    out += R"(,"warnings":[)";
    bool first = true;
    for (const std::string& warning : decision.warnings) {
      if (!first) out += ',';
      first = false;
      append_json_string(out, warning);
    }
    out += ']';
  }
  out += "}}\n";
  return patch_bytes;
}

}  // namespace rayhook
