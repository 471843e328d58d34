// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json_walk.hpp"
#include "pod.hpp"

namespace rayhook {

/// Reads a Pod object that stands open in `object` into `out`, which was cleared. Views point into
/// the memory of the parser behind `object`. False: see `walk`.
[[nodiscard]] bool read_pod(JsonWalk& walk, ondemand::object& object, Pod& out);

}  // namespace rayhook
