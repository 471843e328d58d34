// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_set>

#include "lookup.hpp"
#include "server/cluster/cluster.hpp"

namespace rayhook {

/// `--lookup cluster` on one thread of reviews: asks the Cluster, which lives on a thread of its
/// own, and never waits for it beyond a review's deadline.
class ClusterLookup final : public Lookup {
 public:
  /// `cluster` must outlive it.
  ClusterLookup(asio::io_context& context, Cluster& cluster)
      : executor_(context.get_executor()), cluster_(cluster) {}

  [[nodiscard]] bool ready() const override { return cluster_.ready(); }
  bool try_now(const LookupRequest& request, Facts& facts) override;
  Task<Facts> fulfil(LookupRequest request) override;
  /// Ends the cluster's thread: its answers go to this thread's io_context, which dies next.
  void close() override { cluster_.stop(); }

 private:
  Executor executor_;
  Cluster& cluster_;
};

}  // namespace rayhook
