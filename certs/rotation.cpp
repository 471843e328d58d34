// SPDX-License-Identifier: Apache-2.0
#include "rotation.hpp"

#include <algorithm>

#include "certificate.hpp"

namespace rayhook {
namespace {

constexpr std::int64_t kBackdate = 300;

std::string days(std::int64_t seconds) { return std::to_string(seconds / kSecondsPerDay); }

/// Why the authority cannot go on; empty: it can.
std::string authority_fault(const RotationState& state, const RotationRules& rules,
                            const RotationForce& force, std::int64_t now) {
  if (state.authority.certificate.empty()) return "there is none";
  const Result<KeyPair> pair = read_key_pair({state.authority.certificate, "the certificate"},
                                             {state.authority.key, "the key"});
  if (!pair) return pair.error().what;
  const CertificateFacts facts = describe(pair->leaf());
  if (!facts.authority) return "what is kept may not sign";
  if (facts.not_after - now < rules.renew_before + rules.leaf_life)
    return "the one before ends at " + utc(facts.not_after);
  if (force.authority == state.authority.certificate) return "asked for";
  return {};
}

/// Why the leaf cannot go on; empty: it can. The authority is good.
std::string leaf_fault(const RotationState& state, const RotationRules& rules,
                       const RotationForce& force, std::int64_t now) {
  if (state.leaf.certificate.empty()) return "there is none";
  const Result<KeyPair> pair =
      read_key_pair({state.leaf.certificate, "the certificate"}, {state.leaf.key, "the key"});
  if (!pair) return pair.error().what;
  const auto authority = read_certificates({state.authority.certificate, "the CA"});
  if (!authority) return authority.error().what;
  const std::int64_t ends = describe(pair->leaf()).not_after;
  if (ends - now < rules.renew_before)
    return "the one before ends at " + utc(ends) + ", in less than " + days(rules.renew_before) +
           " days";
  if (const auto good = check_chain(pair->chain, "the one before", *authority, now); !good)
    return "the one before is not of this CA";
  for (const std::string& name : rules.names)
    if (const auto good = check_name(pair->leaf(), "the one before", name); !good)
      return good.error().what;
  if (state.leaf_authority != state.authority.certificate) return "ca.crt beside it is another";
  if (force.leaf == state.leaf.certificate) return "asked for";
  return {};
}

/// When the leaf was made, if it is good and of this authority.
std::optional<std::int64_t> leaf_made(const RotationState& state) {
  const auto leaf = read_certificates({state.leaf.certificate, "leaf"});
  const auto authority = read_certificates({state.authority.certificate, "CA"});
  if (!leaf || !authority) return std::nullopt;
  const std::int64_t made = describe(leaf->front().get()).not_before + kBackdate;
  if (!check_chain(*leaf, "leaf", *authority, made)) return std::nullopt;
  return made;
}

/// The first certificate, as we write it.
std::string first_of(const std::string& pem) {
  const auto read = read_certificates({pem, "CA"});
  return read ? to_pem(read->front().get()) : std::string();
}

/// The authorities of a caBundle beside the one that signs now, without those that have ended.
std::vector<std::string> others(const std::string& bundle, const std::string& authority,
                                std::int64_t now) {
  std::vector<std::string> out;
  const auto present = read_certificates({bundle, "caBundle"});
  if (!present) return out;
  for (const Certificate& one : *present) {
    std::string pem = to_pem(one.get());
    if (pem != authority && describe(one.get()).not_after >= now && !std::ranges::count(out, pem))
      out.push_back(std::move(pem));
  }
  return out;
}

/// Whether a replica serves a leaf of this authority (PEM).
bool serves(const ServedChain& served, const std::string& authority, std::int64_t now) {
  const auto chain = read_certificates({served.chain, served.replica});
  const auto trusted = read_certificates({authority, "CA"});
  return chain && trusted && check_chain(*chain, served.replica, *trusted, now).has_value();
}

bool anyone_serves(const RotationState& state, const std::string& authority, std::int64_t now) {
  return std::ranges::any_of(state.served,
                             [&](const ServedChain& one) { return serves(one, authority, now); });
}

}  // namespace

std::optional<std::int64_t> overlap_ends(const RotationState& state, const RotationRules& rules) {
  const std::optional<std::int64_t> made = leaf_made(state);
  if (!made || !state.bundles) return std::nullopt;
  const std::string authority = first_of(state.authority.certificate);
  for (const std::string& bundle : *state.bundles)
    if (!others(bundle, authority, *made).empty()) return *made + rules.overlap;
  return std::nullopt;
}

std::vector<std::string> replicas_behind(const RotationState& state, std::int64_t now) {
  std::string before;  // every authority of a caBundle but the one that signs now
  const std::string authority = first_of(state.authority.certificate);
  for (const std::string& bundle : state.bundles.value_or(std::vector<std::string>()))
    for (const std::string& other : others(bundle, authority, now)) before += other;
  std::vector<std::string> out;
  for (const ServedChain& one : state.served)
    if (serves(one, before, now)) out.push_back(one.replica);
  return out;
}

RotationStep next_rotation_step(const RotationState& state, const RotationRules& rules,
                                const RotationForce& force, std::int64_t now) {
  using Kind = RotationStep::Kind;
  if (std::string why = authority_fault(state, rules, force, now); !why.empty())
    return {Kind::new_authority, std::move(why), {}};

  const std::optional<std::int64_t> made = leaf_made(state);
  const bool settled = made && *made + rules.overlap <= now;
  if (state.bundles) {
    const std::string authority = first_of(state.authority.certificate);
    std::vector<std::string> wanted;
    for (const std::string& bundle : *state.bundles) {
      std::string text = authority;
      for (const std::string& other : others(bundle, authority, now))
        if (!settled || anyone_serves(state, other, now)) text += other;
      wanted.push_back(std::move(text));
    }
    if (wanted != *state.bundles)
      return {Kind::write_bundles,
              settled ? "only the CA of the certificate is needed"
                      : "the CA must be in it before it signs",
              std::move(wanted)};
  }
  if (std::string why = leaf_fault(state, rules, force, now); !why.empty())
    return {Kind::new_leaf, std::move(why), {}};
  return {};
}

Result<IssuedPair> new_authority(const RotationRules& rules, std::int64_t now) {
  // A name with its date: they are told apart more easily in a caBundle that holds two.
  return issue_authority("Rayhook CA of " + utc(now),
                         {now - kBackdate, now + rules.authority_life});
}

Result<IssuedPair> new_leaf(const IssuedPair& authority, const RotationRules& rules,
                            std::int64_t now) {
  return issue_leaf(authority, rules.names, {now - kBackdate, now + rules.leaf_life});
}

}  // namespace rayhook
