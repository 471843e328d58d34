// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/decision.hpp"
#include "lib/policy.hpp"
#include "load.hpp"
#include "read_buffer.hpp"
#include "request_parser.hpp"
#include "review_readers.hpp"
#include "server/clock.hpp"
#include "server/decision_log.hpp"
#include "server/limits.hpp"
#include "server/lookup/lookup.hpp"
#include "server/metrics.hpp"

namespace rayhook {

/// What sessions work with; all of it outlives them. The look-up, the readers and the decision log
/// belong to the session's thread.
struct SessionContext {
  const Policy& policy;
  const Limits& limits;
  const Clock& clock;
  const std::atomic<bool>& draining;  ///< every answer then ends its connection
  Load& load;
  Metrics& metrics;
  Lookup& lookup;
  ReviewReaders& readers;
  DecisionLog& log;
};

/// One HTTP connection without the network: bytes in, bytes out. Whoever owns it moves the bytes
/// and does as each call's Step says. Requests are answered one at a time, in order; of what the
/// client sends ahead a few KiB are held.
///
/// No exception leaves it: an unforeseen one is counted, logged, answered with 500 and ends the
/// connection. Memory is bounded by the limits. Not thread-safe.
class Session {
 public:
  enum class Step {
    read,   ///< read some bytes into space(), then call received(), or ended()
    write,  ///< write output(), then call written()
    facts,  ///< look up what lookup_request() asks for, then call fulfilled()
    close,  ///< end the connection; if unread_input(), read (and drop) what still comes first
  };

  explicit Session(SessionContext& context);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] std::span<char> space() { return input_.space(); }
  [[nodiscard]] Step received(std::size_t bytes) noexcept;
  /// The peer has ended its side. True if that was in the middle of a request (which is counted,
  /// unless its refusal was).
  bool ended() noexcept;

  [[nodiscard]] std::string_view output() const { return output_; }
  [[nodiscard]] Step written() noexcept;

  [[nodiscard]] LookupRequest lookup_request() const;
  [[nodiscard]] Step fulfilled(Facts facts) noexcept;

  /// When the present phase must be over; the owner calls expired() then, and closes. While facts
  /// are looked up it is TimePoint::max(): the look-up keeps its own deadline.
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  void expired() noexcept;

  /// Nothing of a request is here: the connection may be ended without loss.
  [[nodiscard]] bool idle() const { return phase_ == Phase::idle && input_.empty(); }
  [[nodiscard]] bool unread_input() const { return unread_input_; }
  /// Since when the client has been awaited (its first request, the rest of one, the next); empty
  /// if it waits for us.
  [[nodiscard]] std::optional<TimePoint> waits_since() const;

 private:
  enum class Phase { idle, header, body, facts, write, closed };

  Step advance();
  Step head_complete();
  Step continue_reading();
  Step discard();
  [[nodiscard]] bool room_for(std::size_t body);
  Step body_complete(std::string_view body);
  Result<const Review*> parse(std::string_view body);
  Step decide_and_answer(const Facts& facts);
  void request_over();
  [[nodiscard]] bool may_go_on() const;
  [[nodiscard]] Mode mode() const;

  void begin_answer();
  void end_answer(std::string_view status, std::string_view type, std::string_view fields);
  Step answer_fault(HttpFault fault, std::string_view message, bool go_on);
  Step internal_error(std::string_view what) noexcept;
  template <class F>
  Step guarded(F&& step) noexcept;

  SessionContext& context_;
  RequestParser parser_;
  ReadBuffer input_;
  std::string chunks_;  // a chunked body
  std::string answer_;  // room for the head, then the body
  std::string_view output_;
  Phase phase_ = Phase::idle;
  bool close_after_ = false;
  bool continuing_ = false;  // what is being written is only `100 Continue`
  bool unread_input_ = false;
  Share large_body_;                // of what all large bodies may take together
  std::size_t body_in_buffer_ = 0;  // bytes of the complete body at the buffer's beginning
  std::size_t to_discard_ = 0;      // of a body that will not be looked at
  bool has_early_fault_ = false;    // known from the head; said once the body is through
  Refusal early_fault_{HttpFault::bad_request, {}};
  bool refused_ = false;  // the request, and counted for that: nothing else is counted for it
  bool big_ = false;      // the request was large: give memory back

  TimePoint born_, request_began_, review_began_, deadline_;
  std::uint32_t requests_ = 0;
  bool in_flight_ = false;
  std::unique_ptr<ReviewReader> reader_;
  const Review* review_ = nullptr;
  Needs needs_;
};

}  // namespace rayhook
