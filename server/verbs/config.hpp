// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace rayhook {

/// Adds the verb `config` to the command line. If it is chosen, `run` is set to what it does:
/// checks a configuration file and writes the configuration in force, with its defaults, to
/// stdout; returns the exit code.
void add_config(CLI::App& app, std::function<int()>& run);

}  // namespace rayhook
