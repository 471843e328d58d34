// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace rayhook {

/// Adds the verb `certs` with its own verbs issue, show, check and rotate to the command line. If
/// one is chosen, `run` is set to what it does; returns the exit code.
void add_certs(CLI::App& app, std::function<int()>& run);

/// The parts of it, one file each.
void add_certs_issue(CLI::App& certs, std::function<int()>& run);
void add_certs_show(CLI::App& certs, std::function<int()>& run);
void add_certs_check(CLI::App& certs, std::function<int()>& run);
void add_certs_rotate(CLI::App& certs, std::function<int()>& run);

}  // namespace rayhook
