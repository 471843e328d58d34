// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace rayhook {

/// Adds the verb `explain` to the command line. If it is chosen, `run` is set to what it does:
/// says of each object whether it would be changed, and why; returns the exit code.
void add_explain(CLI::App& app, std::function<int()>& run);

}  // namespace rayhook
