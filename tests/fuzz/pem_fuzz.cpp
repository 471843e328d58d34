// SPDX-License-Identifier: Apache-2.0
// Certificates and keys as anybody may put them into a file, a Secret or a caBundle: what is read
// can be looked at, checked and written again, and a rotation always knows what to do.
#include <cstdlib>

#include "certs/certificate.hpp"
#include "certs/rotation.hpp"

namespace {

using namespace rayhook;

constexpr std::int64_t kNow = 1'800'000'000;

void must(bool good) {
  if (!good) std::abort();
}

void look(std::string_view text) {
  const auto read = read_certificates({text, "it"});
  if (!read) return;
  must(!read->empty());
  const std::vector<std::string> names{"rayhook.ns.svc", "10.0.0.1"};
  for (const Certificate& one : *read) {
    const std::string pem = to_pem(one.get());
    const auto again = read_certificates({pem, "it"});
    must(again && again->size() == 1 && to_pem(again->front().get()) == pem);
    must(describe(one.get()).fingerprint == describe(again->front().get()).fingerprint);
    (void)check_dates(one.get(), "it", kNow);
    for (const std::string& name : names) (void)check_name(one.get(), "it", name);
    (void)is_client_named(one.get(), names);
  }
  (void)check_chain(*read, "it", *read, kNow);
}

void rotate(const RotationState& state) {
  RotationRules rules;
  rules.names = {"rayhook.ns.svc"};
  const RotationStep step = next_rotation_step(state, rules, {}, kNow);
  if (step.kind != RotationStep::Kind::write_bundles) return;
  // What it writes it is content with.
  RotationState after = state;
  after.bundles = step.bundles;
  must(next_rotation_step(after, rules, {}, kNow).kind != RotationStep::Kind::write_bundles);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t middle = text.find('\0');  // between certificate and key
  const std::string certificate = text.substr(0, middle);
  const std::string key = middle == std::string::npos ? std::string() : text.substr(middle + 1);
  static const IssuedPair authority = *issue_authority("CA", {kNow - 1, kNow + 3000 * 86'400});
  look(certificate);
  (void)read_key_pair({certificate, "cert"}, {key, "key"});
  rotate({authority, {certificate, key}, authority.certificate, {{certificate}}});
  rotate({{certificate, key}, {}, certificate, {{certificate, authority.certificate}}});
  return 0;
}
