// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rayhook {

/// How many threads a cgroup's `cpu.max` ("200000 100000", "max 100000") has use for: its quota
/// rounded up, at least 1 and at most `processors`. Text that says nothing means all processors.
[[nodiscard]] unsigned threads_for(std::string_view cpu_max, unsigned processors);

/// The same for this process, by its cgroup (v2, else v1) and the processors it may run on.
[[nodiscard]] unsigned default_threads();

}  // namespace rayhook
