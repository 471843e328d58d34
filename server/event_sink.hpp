// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/decision.hpp"
#include "lib/review.hpp"
#include "metrics.hpp"

namespace rayhook {

/// Takes decisions, to tell them where users look: as Kubernetes Events. Thread-safe; never waits.
class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  /// A decision of concern, not of a dry run. The review is valid during the call only.
  virtual void decided(const Review& review, const Decision& decision, Mode mode) = 0;
};

}  // namespace rayhook
