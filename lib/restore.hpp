// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pod_text.hpp"

namespace rayhook {

/// What is restored into one container.
struct Restored {
  bool init;
  std::uint32_t index;
  bool has_env;
  std::vector<const VariableTable::Row*> rows;
  bool cut;  ///< some did not fit
};

struct RestoreLimits {
  std::size_t entries, bytes;
};

/// Whether a container is to have a variable.
enum class Wish {
  none,     ///< no: it is defined there, or its Service is not of concern
  unnamed,  ///< yes, but the pod's text does not name the Service
  named,    ///< yes, and the text names the Service
};

/// Chooses the variables of one container within the limits, in the table's order. What does not
/// fit goes in this order: docker-link names of Services that are not named, then such Services
/// whole, then docker-link names of named ones, then named Services from the last on. Returns
/// whether anything was cut.
[[nodiscard]] bool choose_restored(const VariableTable& table, const RestoreLimits& limits,
                                   std::vector<const VariableTable::Row*>& out,
                                   const std::function<Wish(const VariableTable::Row&)>& wish);

}  // namespace rayhook
