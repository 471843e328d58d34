// SPDX-License-Identifier: Apache-2.0
#include "watch_event.hpp"

#include "service_reader.hpp"

namespace rayhook {
namespace {

std::unexpected<Error> no_event(std::string_view why) {
  return fail(Errc::bad_json, "watch: " + std::string(why));
}

bool read_status(JsonWalk& walk, ondemand::object& object, WatchEvent& out) {
  return walk.members(object, "object", [&](std::string_view key, ondemand::value value) {
    if (key == "message") return walk.string(value, "message", out.message);
    if (key != "code") return true;
    std::uint64_t code = 0;
    if (value.get_uint64().get(code)) return walk.wrong_type("code", "a number");
    out.code = static_cast<unsigned>(code);
    return true;
  });
}

}  // namespace

Result<WatchEvent> parse_watch_event(std::string_view line) {
  using Kind = WatchEvent::Kind;
  simdjson::padded_string padded(line);
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object root, object;
  std::string_view type;
  if (auto error = parser.iterate(padded).get(document))
    return no_event(simdjson::error_message(error));
  if (auto error = document.get_object().get(root)) return no_event(simdjson::error_message(error));
  if (root.find_field_unordered("type").get_string().get(type))
    return no_event("an event without a type");
  WatchEvent out;
  if (type == "ADDED")
    out.kind = Kind::added;
  else if (type == "MODIFIED")
    out.kind = Kind::modified;
  else if (type == "DELETED")
    out.kind = Kind::deleted;
  else if (type == "BOOKMARK")
    out.kind = Kind::bookmark;
  else if (type != "ERROR")
    return no_event("an event of unknown type");
  if (root.find_field_unordered("object").get_object().get(object))
    return no_event("an event without an object");
  JsonWalk walk;
  if (out.kind == Kind::error) {
    if (!read_status(walk, object, out)) return no_event(walk.what);
    return out;
  }
  if (!read_service(walk, object, out.service)) return no_event(walk.what);
  out.resource_version = std::move(out.service.resource_version);
  if (out.resource_version.empty()) return no_event("an object without resourceVersion");
  if (out.kind == Kind::bookmark) return out;
  if (out.service.name.empty() || out.service.ns.empty())
    return no_event("an object without name or namespace");
  return out;
}

}  // namespace rayhook
