// SPDX-License-Identifier: Apache-2.0
// What `rayhook certs rotate` does next. All state is in the certificates themselves and in the
// caBundle, so a run that was cut off anywhere, or two at once, are taken up where they stand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "issue.hpp"
#include "lib/error.hpp"

namespace rayhook {

inline constexpr std::int64_t kSecondsPerDay = 86'400;

/// What is asked of the certificates. Times in seconds.
struct RotationRules {
  std::vector<std::string> names;  ///< of the leaf; the first is the one the API server asks for
  std::int64_t leaf_life = 90 * kSecondsPerDay;
  std::int64_t authority_life = 3650 * kSecondsPerDay;
  /// A leaf is renewed when it has less than this left; an authority when it has less than this and
  /// the life of a leaf.
  std::int64_t renew_before = 30 * kSecondsPerDay;
  /// At least so long after the first leaf of a new authority the ones before stay in the caBundle:
  /// longer than kubelet takes to bring a Secret to every replica (two minutes or so) and the
  /// replica to read it (ten seconds).
  std::int64_t overlap = 3600;
};

/// What a replica was seen to serve.
struct ServedChain {
  std::string replica;  ///< HOST:PORT
  std::string chain;    ///< PEM, the leaf first
};

/// Everything as it stands. Empty texts: it is not there.
struct RotationState {
  IssuedPair authority;
  IssuedPair leaf;
  std::string leaf_authority;  ///< the `ca.crt` beside the leaf
  /// The caBundle of each webhook, as PEM; absent: there is no webhook configuration.
  std::optional<std::vector<std::string>> bundles;
  /// By the replicas that could be asked. Of concern once the time of `overlap_ends` has come: an
  /// authority stays as long as one of them serves a leaf of it.
  std::vector<ServedChain> served = {};
};

/// What is to be replaced though it is good: the one of the moment, and only that.
struct RotationForce {
  std::optional<std::string> authority;  ///< the certificate
  std::optional<std::string> leaf;
};

struct RotationStep {
  enum class Kind { nothing, new_authority, write_bundles, new_leaf };
  Kind kind = Kind::nothing;
  std::string why;                   ///< for a person, after a colon
  std::vector<std::string> bundles;  ///< for write_bundles: what each should be
};

/// The one thing to do next, in an order in which the API server can at any moment verify what
/// the replicas serve: first a new authority is kept, then it is in the caBundle, then it signs.
[[nodiscard]] RotationStep next_rotation_step(const RotationState& state,
                                              const RotationRules& rules,
                                              const RotationForce& force, std::int64_t now);

/// A new authority, and a new leaf of it, as of `now`: valid from five minutes before, for clocks
/// that go differently. Errors: those of `issue_authority` and `issue_leaf`.
[[nodiscard]] Result<IssuedPair> new_authority(const RotationRules& rules, std::int64_t now);
[[nodiscard]] Result<IssuedPair> new_leaf(const IssuedPair& authority, const RotationRules& rules,
                                          std::int64_t now);

/// When the authorities before may leave the caBundle at the earliest, if some are still in it.
[[nodiscard]] std::optional<std::int64_t> overlap_ends(const RotationState& state,
                                                       const RotationRules& rules);

/// The replicas that serve a leaf of one of the authorities before that are still in a caBundle.
[[nodiscard]] std::vector<std::string> replicas_behind(const RotationState& state,
                                                       std::int64_t now);

}  // namespace rayhook
