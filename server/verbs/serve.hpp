// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace rayhook {

/// Adds the verb `serve` to the command line. If it is chosen, `run` is set to what it does: the
/// webhook, until SIGTERM; returns the exit code. Errors at start: one line on stderr, exit code 1.
void add_serve(CLI::App& app, std::function<int()>& run);

}  // namespace rayhook
