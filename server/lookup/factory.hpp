// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/error.hpp"
#include "lib/policy.hpp"
#include "lookup.hpp"
#include "server/cluster/cluster.hpp"

namespace rayhook {

/// Where Facts are to come from: the flags of `serve`.
struct LookupOptions {
  std::string source = "cluster";  ///< `cluster`, `file:PATH` or `none`
  std::string kubeconfig;          ///< for `cluster`; empty: the pod's service account
  ClusterOptions cluster;
};

/// Reads what `source` needs (manifests, kubeconfig, CA). `policy`, `clock`, `metrics` and `log`
/// must outlive what is returned. Errors are for the start of the program: one line, with the file.
[[nodiscard]] Result<std::unique_ptr<LookupSource>> lookup_source(const LookupOptions& options,
                                                                  const Policy& policy,
                                                                  const Clock& clock,
                                                                  Metrics& metrics, Log& log);

}  // namespace rayhook
