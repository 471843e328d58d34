// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/facts.hpp"
#include "server/clock.hpp"
#include "server/net.hpp"

namespace rayhook {

/// Fulfils Needs. One object per thread, used by that thread alone; what replicas of it share (a
/// watch's index) is behind it. Errors are facts: whatever cannot be found out stays *unknown*.
class Lookup {
 public:
  Lookup() = default;
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  virtual ~Lookup() = default;

  /// Answers from memory: true and the facts, or false if the network is needed. Must be quick:
  /// most reviews end here, without a coroutine.
  [[nodiscard]] virtual bool try_now(const Needs& needs, const Review& review, Facts& facts) = 0;

  /// Answers by `deadline`, with what is known by then. `needs` and `review` must live until the
  /// coroutine ends. Never throws.
  [[nodiscard]] virtual Task<Facts> fulfil(const Needs& needs, const Review& review,
                                           TimePoint deadline) = 0;

  /// Lets go of sockets and timers. Called once, when its thread has ended and before its
  /// io_context dies; nothing else is called after it.
  virtual void close() {}
};

/// The facts when nothing can be known: whatever is asked for is *unknown*, and (as with every
/// look-up that sees no pods) no pod is running.
[[nodiscard]] Facts unknown_facts(const Needs& needs);

}  // namespace rayhook
