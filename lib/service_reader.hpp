// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json_walk.hpp"
#include "service.hpp"

namespace rayhook {

/// Reads a Service object that stands open in `object` into `out`. False: see `walk`.
[[nodiscard]] bool read_service(JsonWalk& walk, ondemand::object& object, Service& out);

}  // namespace rayhook
