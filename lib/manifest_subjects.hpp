// SPDX-License-Identifier: Apache-2.0
// Which parts of an object are pods or Services.
#pragma once

#include <vector>

#include "manifest.hpp"

namespace rayhook {

/// The Service, the Pod, or the pod templates in an object: members called `…template` with a
/// `spec.containers`, wherever they stand below `spec` (so RayClusters, LeaderWorkerSets and
/// kinds that nobody knew of when this was written), and a PodTemplate's own.
[[nodiscard]] std::vector<Subject> subjects_of(const OrderedJson& object,
                                               std::string_view api_version, std::string_view kind);

/// A member that is a string, else "".
[[nodiscard]] std::string string_member(const OrderedJson& object, std::string_view name);

/// A member of an object, or nullptr.
[[nodiscard]] const OrderedJson* member(const OrderedJson& object, std::string_view name);

}  // namespace rayhook
