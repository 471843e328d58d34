// SPDX-License-Identifier: Apache-2.0
// What an API server, or whoever sits in its place, may send: watch streams and lists, in any
// pieces. The pieces change nothing, and what is kept is bounded.
#include "lib/list_splitter.hpp"
#include "lib/watch_event.hpp"
#include "support.hpp"

namespace {

using namespace rayhook;
using fuzz::must;

/// Gives `text` away in pieces whose sizes the input itself decides.
template <class F>
bool in_pieces(std::string_view text, F&& feed) {
  unsigned size = 1;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, size);
    if (!feed(piece)) return false;
    size = static_cast<unsigned char>(piece.back()) % 23U + 1U;
    text.remove_prefix(piece.size());
  }
  return true;
}

std::vector<std::string> lines_of(std::string_view text, bool whole) {
  std::vector<std::string> out;
  LineSplitter splitter;
  const auto feed = [&](std::string_view piece) {
    return splitter.feed(piece, [&](std::string_view line) {
      out.emplace_back(line);
      return true;
    });
  };
  (void)(whole ? feed(text) : in_pieces(text, feed));
  must(splitter.pending() <= LineSplitter::kMostLine);
  return out;
}

struct ReadList {
  std::vector<std::string> items;
  bool good = false;
  std::string version, next;
  bool operator==(const ReadList&) const = default;
};

ReadList list_of(std::string_view text, bool whole) {
  ReadList out;
  ListSplitter splitter;
  const auto item = [&](std::string_view json) {
    // As the readers of pod lists do: in place, with padding behind it.
    static ReviewReader reader;
    out.items.emplace_back(json);
    (void)reader.parse_pod(json);
    return true;
  };
  const auto feed = [&](std::string_view piece) { return splitter.feed(piece, item).has_value(); };
  if (!(whole ? feed(text) : in_pieces(text, feed))) return out;
  const Result<ListEnd> end = splitter.end();
  out.good = end.has_value();
  if (end) {
    out.version = end->resource_version;
    out.next = end->continue_token;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  const std::vector<std::string> lines = lines_of(text, true);
  must(lines == lines_of(text, false));
  for (const std::string& line : lines) {
    const Result<WatchEvent> event = parse_watch_event(line);
    if (!event || event->kind == WatchEvent::Kind::error) continue;
    must(!event->resource_version.empty());
    if (event->kind != WatchEvent::Kind::bookmark)
      must(!event->service.name.empty() && !event->service.ns.empty());
  }
  const ReadList list = list_of(text, true);
  must(list == list_of(text, false));
  for (const std::string& item : list.items) (void)parse_service(item);
  return 0;
}
