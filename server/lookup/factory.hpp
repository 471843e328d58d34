// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/error.hpp"
#include "lib/policy.hpp"
#include "server/http/worker.hpp"

namespace rayhook {

/// Where Facts are to come from: the flags of `serve`.
struct LookupOptions {
  std::string source = "cluster";  ///< `cluster`, `file:PATH` or `none`
  std::string kubeconfig;          ///< for `cluster`; empty: the pod's service account
};

/// Reads what `source` needs (manifests, kubeconfig, CA) and says how each thread's look-up is
/// made. `policy`, `clock`, `metrics` and `log` must outlive the look-ups. Errors are for the start
/// of the program: one line, with the file.
[[nodiscard]] Result<LookupFactory> lookup_factory(const LookupOptions& options,
                                                   const Policy& policy, const Clock& clock,
                                                   Metrics& metrics, Log& log);

}  // namespace rayhook
