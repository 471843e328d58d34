// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "facts.hpp"

namespace rayhook {

/// How a stored pod stands to the converted Services beside it (docs/decisions/0008). Ordered: the
/// later, the surer it needs to be made anew.
enum class Split : std::uint8_t {
  no,         ///< it lacks nothing, or has ended
  older,      ///< it lacks variables of Services that are younger than it, and its text names none
  suspected,  ///< … of one that was there before it; its text names none, its code may read them
  named,      ///< its text names what it lacks
};

/// `services` are those of its namespace beside which pods are cared for. Creation times are
/// compared to the second, as Kubernetes keeps them: pod and Service of the same one count as
/// *older*. Pure.
[[nodiscard]] Split split(const Review& pod, const Policy& policy,
                          const std::vector<ServiceFact>& services);

}  // namespace rayhook
