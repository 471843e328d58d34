// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "decision.hpp"

namespace rayhook {

/// Why a pod is left whatever Services there are (mirror pod, opted out, service links off); unset:
/// it is looked at.
[[nodiscard]] std::optional<Reason> pod_gate(const Review& review);

/// Decides a review of kind pod that is a CREATE and can be read: the Pod rule.
[[nodiscard]] Decision decide_pod(const Review& review, const Policy& policy, const Facts& facts);

}  // namespace rayhook
