// SPDX-License-Identifier: Apache-2.0
#include "fault_report.hpp"

#include "server/json_line.hpp"

namespace rayhook {
namespace {

/// An object of those that became more, under the words of their enum; nothing if none did.
template <class E, class Counts>
void put_new(JsonLine& line, std::string_view key, const Counts& now, const Counts& told) {
  if (now == told) return;
  std::string text;
  JsonLine object(text);
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != told[i])
      object.number(word(static_cast<E>(i)), static_cast<std::int64_t>(now[i] - told[i]));
  object.end();
  line.raw(key, text);
}

}  // namespace

void FaultReport::look() {
  if (clock_.now() >= next_) tell();
}

void FaultReport::tell() {
  const FaultCounts now = metrics_.faults();
  if (now == told_) return;
  std::string text;
  JsonLine line(text);
  stamp(line, LogLevel::warn, "connections or requests came to nothing");
  put_new<HandshakeFault>(line, "handshakes", now.handshakes, told_.handshakes);
  put_new<HttpFault>(line, "requests", now.requests, told_.requests);
  if (now.refused != told_.refused)
    line.number("connectionsRefused", static_cast<std::int64_t>(now.refused - told_.refused));
  line.end();
  if (log_.enabled(LogLevel::warn)) log_.write(LogLevel::warn, text);
  told_ = now;
  next_ = clock_.now() + kEvery;
}

}  // namespace rayhook
