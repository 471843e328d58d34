// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace rayhook {

/// Adds the verb `review` to the command line. If it is chosen, `run` is set to what it does: one
/// AdmissionReview from stdin through the core, its answer to stdout; returns the exit code.
void add_review(CLI::App& app, std::function<int()>& run);

}  // namespace rayhook
