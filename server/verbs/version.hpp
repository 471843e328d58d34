// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace rayhook {

/// Adds the verb `version` to the command line. If it is chosen, `run` is set to what it does:
/// writes Rayhook's version, as JSON with those of its libraries; returns the exit code.
void add_version(CLI::App& app, std::function<int()>& run);

}  // namespace rayhook
