// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace rayhook {

/// Adds the verb `mutate` to the command line. If it is chosen, `run` is set to what it does:
/// manifests in, mutated manifests out on stdout, a summary on stderr; returns the exit code.
void add_mutate(CLI::App& app, std::function<int()>& run);

}  // namespace rayhook
