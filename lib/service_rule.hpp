// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "decision.hpp"
#include "policy.hpp"
#include "reason.hpp"
#include "service.hpp"

namespace rayhook {

/// The Service rule: what becomes of this Service at its creation, as far as the Service itself
/// and its selector tell: Reason::converted, or why it is left. `matches_workers`: whether its
/// selector matches workers, if that is known. A stored Service (one with a uid) is judged as if
/// its clusterIP were not there, since a chosen IP cannot be told from an allocated one.
[[nodiscard]] Reason judge_service(const Service& service, const Policy& policy,
                                   std::optional<bool> matches_workers);

/// True if the Service leads to a Ray head, whatever its type and IP (so: whether a headless one
/// is a head at all).
[[nodiscard]] bool is_head(const Service& service, const Policy& policy);

/// How far the care for pods goes that refer to a Service.
enum class Care {
  none,       ///< its variables exist as always, or it is no head: leave the pod
  text_only,  ///< headless, but not by us: rewrite text, restore variables where they are named
  full,       ///< converted, or will be: rewrite text, restore variables everywhere
};

struct Caring {
  Care care = Care::none;
  bool convertible = false;  ///< stored with a cluster IP: made while Rayhook was away
};

/// What pods beside this Service get.
[[nodiscard]] Caring care_for(const ServiceFact& fact, const Policy& policy);

/// Decides a review of kind service that is a CREATE and can be read.
[[nodiscard]] Decision decide_service(const Review& review, const Policy& policy,
                                      const Facts& facts);

}  // namespace rayhook
