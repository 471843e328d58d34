// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lib/facts.hpp"
#include "server/clock.hpp"
#include "server/event_sink.hpp"
#include "server/net.hpp"

namespace rayhook {

/// What a look-up is for, and how long it may take. Views: valid while the review is.
struct LookupRequest {
  const Needs& needs;
  const Review& review;
  bool may_wait;                      ///< for a Service that is not there yet; neither in a dry run
                                      ///< nor for an audit
  TimePoint began;                    ///< of the request
  std::chrono::milliseconds timeout;  ///< the API server's patience, from then on
  TimePoint deadline;                 ///< by when the facts must be there
};

/// Fulfils Needs. One object per thread, used by that thread alone; what they share (a watch's
/// index) is behind it. Errors are facts: whatever cannot be found out stays *unknown*.
class Lookup {
 public:
  Lookup() = default;
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  virtual ~Lookup() = default;

  /// False until enough is known to decide anything: reviews are then sent away.
  [[nodiscard]] virtual bool ready() const { return true; }

  /// Answers from memory: true and the facts, or false if the network is needed. Must be quick:
  /// most reviews end here, without a coroutine.
  [[nodiscard]] virtual bool try_now(const LookupRequest& request, Facts& facts) = 0;

  /// Answers by the deadline, with what is known by then. What `request` refers to must live until
  /// the coroutine ends. Never throws.
  [[nodiscard]] virtual Task<Facts> fulfil(LookupRequest request) = 0;

  /// Lets go of what waits. Called once, when its thread has ended and before its io_context dies;
  /// nothing else is called after it.
  virtual void close() {}
};

/// Where a server's look-ups come from. Outlives them.
class LookupSource {
 public:
  LookupSource() = default;
  LookupSource(const LookupSource&) = delete;
  LookupSource& operator=(const LookupSource&) = delete;
  virtual ~LookupSource() = default;

  /// A thread's own look-up, which may use the thread's io_context.
  [[nodiscard]] virtual std::unique_ptr<Lookup> make(asio::io_context& context) = 0;

  /// Begins to gather what is asked for later.
  virtual void start() {}

  /// Where decisions are told as Kubernetes Events; null: nowhere. Lives as long as this.
  [[nodiscard]] virtual EventSink* events() { return nullptr; }

  /// Thread-safe: see Lookup::ready.
  [[nodiscard]] virtual bool ready() const { return true; }
};

/// The facts when nothing can be known: whatever is asked for is *unknown*, and (as with every
/// look-up that sees no pods) no pod is running.
[[nodiscard]] Facts unknown_facts(const Needs& needs);

}  // namespace rayhook
