// SPDX-License-Identifier: Apache-2.0
// One HTTP connection over memory. The first byte says how it goes: whether facts come late,
// whether the server drains, how the connection ends. The rest is what the client sends, once
// whole and once in pieces: the answers are the same, and each is one.
#include <fcntl.h>

#include <nlohmann/json.hpp>

#include "server/http/session.hpp"
#include "support.hpp"

namespace {

using namespace rayhook;
using fuzz::must;

class StandingClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return TimePoint(std::chrono::hours(1)); }
};

/// Knows at once, or later.
class EitherLookup final : public Lookup {
 public:
  bool now = true;
  bool try_now(const LookupRequest& request, Facts& out) override {
    if (now) out = unknown_facts(request.needs);
    return now;
  }
  Task<Facts> fulfil(LookupRequest request) override { co_return unknown_facts(request.needs); }
  [[nodiscard]] bool ready() const override { return true; }
};

/// Limits that small inputs reach.
Limits small_limits() {
  Limits out;
  out.head_bytes = 512;
  out.body_bytes = 2048;
  out.chunk_frame_bytes = 256;
  out.small_body = 64;
  out.all_bodies = 1024;
  out.max_requests = 5;
  out.kept_bytes = 1024;
  return out;
}

struct World {
  Policy policy;
  Limits limits = small_limits();
  StandingClock clock;
  std::atomic<bool> draining{false};
  Load load;
  Metrics metrics;
  EitherLookup lookup;
  ReviewReaders readers;
  Log log{LogLevel::debug, ::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  DecisionLog decisions{log};
  SessionContext context{policy,  limits, clock,   draining, load,
                         metrics, lookup, readers, decisions};
};

/// Follows a session until it wants to read or ends; false: it has ended.
bool follow(Session& session, Session::Step step, std::string& out) {
  for (;;) {
    switch (step) {
      case Session::Step::read:
        return true;
      case Session::Step::close:
        return false;
      case Session::Step::write:
        must(!session.output().empty());
        out += session.output();
        step = session.written();
        break;
      case Session::Step::facts:
        step = session.fulfilled(unknown_facts(session.lookup_request().needs));
        break;
    }
  }
}

std::string talk(World& world, unsigned mood, std::string_view bytes, bool whole) {
  std::string out;
  Session session(world.context);
  unsigned seed = 7;
  bool open = true;
  while (open && !bytes.empty()) {
    const std::span<char> space = session.space();
    must(!space.empty());
    seed = seed * 31 + static_cast<unsigned char>(bytes.front());
    const std::size_t piece = whole ? bytes.size() : seed % 37 + 1;
    const std::size_t size = std::min({piece, bytes.size(), space.size()});
    std::ranges::copy(bytes.substr(0, size), space.begin());
    bytes.remove_prefix(size);
    open = follow(session, session.received(size), out);
  }
  if (open && mood % 3 == 0) session.expired();
  if (open && mood % 3 == 1) (void)session.ended();
  return out;
}

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

/// Without `100 Continue`, which is only said where the body is not there yet.
std::string final_answers(std::string out) {
  for (std::size_t at; (at = out.find(kContinue)) != std::string::npos;)
    out.erase(at, kContinue.size());
  return out;
}

struct Answers {
  std::vector<std::string> all;
  std::string end;  // the refusal that ended the connection
};

/// The answers one by one, each framed as it says: of a review all of it, of a refusal the status
/// line, since its words may depend on how much came at once.
Answers answers_in(std::string_view out) {
  Answers answers;
  while (!out.empty()) {
    must(out.starts_with("HTTP/1.1 ") && !out.starts_with("HTTP/1.1 500 "));
    const std::size_t end = out.find("\r\n\r\n");
    must(end != std::string_view::npos);
    const std::string_view head = out.substr(0, end);
    out.remove_prefix(end + 4);
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t at = head.find(kLength);
    must(at != std::string_view::npos);
    const auto length =
        static_cast<std::size_t>(std::atoi(std::string(head.substr(at + kLength.size())).c_str()));
    const bool has_body = !out.starts_with("HTTP/1.1 ") && !out.empty();  // else to a HEAD
    must(!has_body || length <= out.size());
    const std::string_view body = out.substr(0, has_body ? length : 0);
    out.remove_prefix(body.size());
    const bool good = head.starts_with("HTTP/1.1 200 ");
    must(!good || nlohmann::json::accept(body));
    const bool last = out.empty() && !good && head.ends_with("Connection: close");
    if (last)
      answers.end = head.substr(0, head.find("\r\n"));
    else
      answers.all.emplace_back(good ? body : head.substr(0, head.find("\r\n")));
  }
  return answers;
}

/// Which of its faults a malformed request is refused for may depend on how its bytes were cut, and
/// so may whether it is refused yet: Beast looks into an incomplete header only when it sees it
/// first, and counts a chunk again each time that it meets its malformed extension; and there may
/// be no room for a body whose end is malformed. Nothing else may.
bool same_refusal(std::string_view one, std::string_view other) {
  const auto may_be_another = [](std::string_view refusal) {
    for (const std::string_view status : {"400", "413", "431", "503"})
      if (refusal.substr(0, 12) == "HTTP/1.1 " + std::string(status)) return true;
    return refusal.empty();
  };
  return one == other || (may_be_another(one) && may_be_another(other));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static World& world = *new World;  // its log's thread outlives everything
  const unsigned mood = data[0];
  world.lookup.now = mood % 2 == 0;
  world.draining = mood % 16 == 5;
  const std::string_view bytes = fuzz::text_of(data, size).substr(1);
  const Answers whole = answers_in(final_answers(talk(world, mood, bytes, true)));
  const Answers pieces = answers_in(final_answers(talk(world, mood, bytes, false)));
  must(whole.all == pieces.all);
  must(same_refusal(whole.end, pieces.end));
  must(world.load.body_bytes == 0);
  return 0;
}
