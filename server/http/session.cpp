// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <charconv>
#include <exception>
#include <utility>

namespace rayhook {
namespace {

/// Enough for most requests in one piece: the API server's header and a pod of 15 KiB.
constexpr std::size_t kInitialBuffer = 16 * 1024;
/// Room in front of an answer's body for its status line and header.
constexpr std::size_t kHeadRoom = 256;
/// The body of a request that will be refused is read up to this size, so that the connection can
/// go on; beyond it is ended instead.
constexpr std::size_t kReadAnyway = 64 * 1024;

constexpr std::string_view kBusy = "busy: too many large reviews at once";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view status_line(HttpFault fault) {
  switch (fault) {
    case HttpFault::not_found:
      return "404 Not Found";
    case HttpFault::bad_method:
      return "405 Method Not Allowed";
    case HttpFault::too_large:
      return "413 Content Too Large";
    case HttpFault::bad_expectation:
      return "417 Expectation Failed";
    case HttpFault::head_too_large:
      return "431 Request Header Fields Too Large";
    case HttpFault::starting:
    case HttpFault::busy:
      return "503 Service Unavailable";
    case HttpFault::internal:
      return "500 Internal Server Error";
    default:
      return "400 Bad Request";
  }
}

/// The part of the API server's patience that is for look-ups: a little is kept for the way back.
std::chrono::milliseconds time_for_facts(std::chrono::milliseconds timeout) {
  using std::chrono::milliseconds;
  return timeout - std::clamp<milliseconds>(timeout / 10, milliseconds(100), milliseconds(500));
}

/// One line of printable ASCII, of sane length: our own words, but better safe than sorry.
void append_plain(std::string& out, std::string_view text) {
  for (const char c : text.substr(0, 300)) out += c >= ' ' && c <= '~' ? c : '?';
}

/// What an audit answers: the same reason and warnings, and nothing done.
Decision report_of(const Decision& decision) {
  Decision out{};
  out.reason = decision.reason;
  out.warnings = decision.warnings;
  return out;
}

}  // namespace

Session::Session(SessionContext& context)
    : context_(context),
      parser_(context.limits),
      input_(kInitialBuffer),
      born_(context.clock.now()),
      deadline_(born_ + context.limits.idle) {}

Session::~Session() {
  if (in_flight_) context_.metrics.review_ended();
}

template <class F>
Session::Step Session::guarded(F&& step) noexcept {
  try {
    return step();
  } catch (const std::exception& error) {
    return internal_error(error.what());
  } catch (...) {
    return internal_error("unknown exception");
  }
}

Session::Step Session::received(std::size_t bytes) noexcept {
  input_.written(bytes);
  return guarded([this] { return advance(); });
}

bool Session::ended() noexcept {
  const bool inside = !idle() && phase_ != Phase::closed;
  if (inside && !refused_) context_.metrics.fault(HttpFault::truncated);
  phase_ = Phase::closed;
  return inside;
}

Session::Step Session::written() noexcept {
  if (continuing_) {
    continuing_ = false;
    phase_ = Phase::body;
    deadline_ = context_.clock.now() + context_.limits.body;
    return guarded([this] { return advance(); });
  }
  if (close_after_) {
    phase_ = Phase::closed;
    return Step::close;
  }
  return guarded([this] {
    phase_ = Phase::idle;
    deadline_ = context_.clock.now() + context_.limits.idle;
    return advance();
  });
}

Session::Step Session::fulfilled(Facts facts) noexcept {
  return guarded([this, &facts] { return decide_and_answer(facts); });
}

void Session::expired() noexcept {
  switch (phase_) {
    case Phase::header:
      context_.metrics.fault(HttpFault::header_timeout);
      break;
    case Phase::body:
      context_.metrics.fault(HttpFault::body_timeout);
      break;
    case Phase::write:
      if (!refused_) context_.metrics.fault(HttpFault::write_timeout);
      break;
    default:
      break;
  }
  phase_ = Phase::closed;
}

std::optional<TimePoint> Session::waits_since() const {
  if (phase_ == Phase::idle) return deadline_ - context_.limits.idle;
  if (phase_ == Phase::header || phase_ == Phase::body) return request_began_;
  return std::nullopt;
}

Session::Step Session::advance() {
  if (phase_ == Phase::idle) {
    if (input_.empty()) return Step::read;
    request_began_ = context_.clock.now();
    deadline_ = request_began_ + context_.limits.header;
    phase_ = Phase::header;
    parser_.reset();
    has_early_fault_ = refused_ = false;
  }
  if (phase_ == Phase::header) {
    std::size_t consumed = 0;
    const RequestParser::Got got = parser_.read_head(input_.data(), consumed);
    input_.consume(consumed);
    if (got == RequestParser::Got::more) return Step::read;
    if (got == RequestParser::Got::refused)
      return answer_fault(parser_.refusal().fault, parser_.refusal().message, false);
    return head_complete();
  }
  return continue_reading();
}

Session::Step Session::head_complete() {
  const RequestHead& head = parser_.head();
  phase_ = Phase::body;
  deadline_ = context_.clock.now() + context_.limits.body;
  const auto early = [this](HttpFault fault, std::string_view message) {
    has_early_fault_ = true;
    early_fault_ = {fault, message};
  };
  if (head.path == RequestHead::Path::other)
    early(HttpFault::not_found, "there is only /mutate and /audit here");
  else if (head.method != RequestHead::Method::post)
    early(HttpFault::bad_method, "an AdmissionReview is sent with POST");
  else if (!head.json)
    early(HttpFault::bad_content_type, "expected one Content-Type, application/json");

  if (head.expect_other)
    return answer_fault(HttpFault::bad_expectation, "the only expectation met is 100-continue",
                        false);
  const bool has_body = head.chunked || head.content_length > 0;
  to_discard_ = 0;
  if (!has_early_fault_ && !room_for(head.content_length)) {
    if (head.expect_continue) return answer_fault(HttpFault::busy, kBusy, false);
    early(HttpFault::busy, kBusy);
    to_discard_ = head.content_length;
    return continue_reading();
  }
  if (has_early_fault_ && has_body &&
      (head.chunked || head.content_length > kReadAnyway || head.expect_continue))
    return answer_fault(early_fault_.fault, early_fault_.message, false);
  chunks_.clear();
  if (!head.chunked) input_.reserve(head.content_length);
  if (head.expect_continue && head.http11 && has_body && input_.empty()) {
    continuing_ = true;
    output_ = kContinue;
    phase_ = Phase::write;
    deadline_ = context_.clock.now() + context_.limits.write;
    return Step::write;
  }
  return continue_reading();
}

/// Of large bodies there may only be so many at once.
bool Session::room_for(std::size_t body) {
  const Limits& limits = context_.limits;
  if (body <= limits.small_body || body <= large_body_.amount()) return true;
  return large_body_.take(context_.load.body_bytes, body - large_body_.amount(), limits.all_bodies);
}

/// Lets a body pass that there is no room for, so that the connection can go on.
Session::Step Session::discard() {
  const std::size_t now = std::min(to_discard_, input_.size());
  input_.consume(now);
  to_discard_ -= now;
  if (to_discard_ > 0) return Step::read;
  body_in_buffer_ = 0;
  return body_complete({});
}

Session::Step Session::continue_reading() {
  const RequestHead& head = parser_.head();
  if (to_discard_ > 0) return discard();
  if (!head.chunked) {
    if (input_.size() < head.content_length) return Step::read;
    body_in_buffer_ = head.content_length;
    return body_complete(input_.data().substr(0, head.content_length));
  }
  std::size_t consumed = 0;
  const RequestParser::Got got = parser_.read_chunks(input_.data(), consumed, chunks_);
  input_.consume(consumed);
  if (got != RequestParser::Got::refused && !room_for(chunks_.size()))
    return answer_fault(HttpFault::busy, kBusy, false);
  if (got == RequestParser::Got::more) return Step::read;
  if (got == RequestParser::Got::refused)
    return answer_fault(parser_.refusal().fault, parser_.refusal().message, false);
  body_in_buffer_ = 0;
  const std::size_t size = chunks_.size();
  chunks_.resize(size + kPadding);
  return body_complete(std::string_view(chunks_).substr(0, size));
}

Session::Step Session::body_complete(std::string_view body) {
  big_ = body.size() > context_.limits.kept_bytes;
  ++requests_;
  if (has_early_fault_) return answer_fault(early_fault_.fault, early_fault_.message, true);
  if (!context_.lookup.ready())
    return answer_fault(HttpFault::starting,
                        "starting: the Services of the cluster are not known yet", true);
  review_began_ = context_.clock.now();
  if (review_began_ - request_began_ >= parser_.head().timeout) {
    // Whoever asked has gone: the answer would only cost.
    context_.metrics.fault(HttpFault::too_late);
    phase_ = Phase::closed;
    return Step::close;
  }
  deadline_ = TimePoint::max();
  in_flight_ = true;
  context_.metrics.review_began();
  reader_ = context_.readers.take();
  Result<const Review*> review = parse(body);
  if (!review) return answer_fault(HttpFault::bad_body, review.error().what, true);
  review_ = *review;
  needs_ = rayhook::needs(*review_, context_.policy);
  Facts facts;
  if (!needs_.none() && !context_.lookup.try_now(lookup_request(), facts)) {
    phase_ = Phase::facts;
    return Step::facts;
  }
  return decide_and_answer(facts);
}

/// simdjson looks at the byte behind a text with too few brackets. It is the next request's, or
/// anything; the answer must not depend on it.
Result<const Review*> Session::parse(std::string_view body) {
  if (body_in_buffer_ == 0) return reader_->parse(body);
  const char next = std::exchange(input_.behind(body_in_buffer_), ' ');
  Result<const Review*> review = reader_->parse(body);
  input_.behind(body_in_buffer_) = next;
  return review;
}

Mode Session::mode() const {
  return parser_.head().path == RequestHead::Path::audit ? Mode::audit : Mode::mutate;
}

LookupRequest Session::lookup_request() const {
  const std::chrono::milliseconds timeout = parser_.head().timeout;
  return {needs_,         *review_, mode() == Mode::mutate && !review_->dry_run,
          request_began_, timeout,  request_began_ + time_for_facts(timeout)};
}

Session::Step Session::decide_and_answer(const Facts& facts) {
  const Decision decision = decide(*review_, context_.policy, facts);
  begin_answer();
  std::size_t patch_bytes = 0;
  if (mode() == Mode::audit)
    render(*review_, report_of(decision), answer_);
  else
    patch_bytes = render(*review_, decision, answer_);
  const auto took = context_.clock.now() - review_began_;
  context_.metrics.reviewed(*review_, decision, mode(), took);
  context_.log.decided(*review_, decision, mode(), patch_bytes, took);
  request_over();
  close_after_ = !may_go_on();
  end_answer("200 OK", "application/json", {});
  return Step::write;
}

/// The request's bytes and what was read from them are done with.
void Session::request_over() {
  review_ = nullptr;
  if (reader_) context_.readers.give_back(std::move(reader_), big_);
  if (in_flight_) context_.metrics.review_ended();
  in_flight_ = false;
  large_body_.release();
  input_.consume(body_in_buffer_);
  if (!big_) return;
  input_.shrink(context_.limits.kept_bytes);
  std::string().swap(chunks_);
}

bool Session::may_go_on() const {
  return parser_.head().keep_alive && requests_ < context_.limits.max_requests &&
         context_.clock.now() - born_ < context_.limits.max_age &&
         !context_.draining.load(std::memory_order_relaxed);
}

void Session::begin_answer() {
  if (answer_.capacity() > context_.limits.kept_bytes) std::string().swap(answer_);
  answer_.resize(kHeadRoom);
}

/// Writes the head into the room before the body, which stands in `answer_` already.
void Session::end_answer(std::string_view status, std::string_view type, std::string_view fields) {
  char head[kHeadRoom];
  char* at = head;
  const auto put = [&at](std::string_view text) { at = std::ranges::copy(text, at).out; };
  put("HTTP/1.1 ");
  put(status);
  put("\r\nContent-Type: ");
  put(type);
  put("\r\nContent-Length: ");
  at = std::to_chars(at, head + kHeadRoom, answer_.size() - kHeadRoom).ptr;
  put(fields);
  if (close_after_)
    put("\r\nConnection: close");
  else if (!parser_.head().http11)
    put("\r\nConnection: keep-alive");
  put("\r\n\r\n");
  const auto size = static_cast<std::size_t>(at - head);
  std::copy(head, at, answer_.begin() + static_cast<std::ptrdiff_t>(kHeadRoom - size));
  output_ = std::string_view(answer_).substr(kHeadRoom - size);
  phase_ = Phase::write;
  deadline_ = context_.clock.now() + context_.limits.write;
}

Session::Step Session::answer_fault(HttpFault fault, std::string_view message, bool go_on) {
  context_.metrics.fault(fault);
  refused_ = true;
  begin_answer();
  append_plain(answer_, message);
  answer_ += '\n';
  const bool head_only = parser_.head().method == RequestHead::Method::head;
  if (go_on) {
    request_over();
    // Another replica may be further: the next request should find it.
    close_after_ = !may_go_on() || fault == HttpFault::starting;
  } else {
    close_after_ = unread_input_ = true;
  }
  std::string fields = "\r\nX-Content-Type-Options: nosniff";
  if (fault == HttpFault::bad_method) fields += "\r\nAllow: POST";
  if (fault == HttpFault::starting || fault == HttpFault::busy) fields += "\r\nRetry-After: 1";
  end_answer(status_line(fault), "text/plain; charset=utf-8", fields);
  if (head_only) output_ = output_.substr(0, output_.find("\r\n\r\n") + 4);
  return Step::write;
}

Session::Step Session::internal_error(std::string_view what) noexcept {
  try {
    context_.log.log().event(LogLevel::error, "internal error; please report it", {{"what", what}});
    review_ = nullptr;
    reader_.reset();  // in what state it is nobody knows
    return answer_fault(HttpFault::internal, "internal error", false);
  } catch (...) {
    phase_ = Phase::closed;
    return Step::close;
  }
}

}  // namespace rayhook
