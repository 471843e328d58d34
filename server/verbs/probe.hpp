// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace rayhook {

/// Adds `rayhook probe`, which tries an installation in its cluster and says what is wrong with it,
/// to the command line. Chosen, it sets `run`, which gives the exit code.
void add_probe(CLI::App& app, std::function<int()>& run);

}  // namespace rayhook
