// SPDX-License-Identifier: Apache-2.0
// What comes from the API server's lists and watches.
#include "lib/watch_event.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/list_splitter.hpp"
#include "support.hpp"

namespace rayhook::test {
namespace {

using Kind = WatchEvent::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

json stored(const std::string& name) {
  json out = converted_service(name);
  out["metadata"]["namespace"] = "team-a";
  out["metadata"]["resourceVersion"] = "77";
  return out;
}

std::string event(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump();
}

TEST(WatchEvent, ReadsServices) {
  for (const auto& [word, kind] : {std::pair("ADDED", Kind::added),
                                   {"MODIFIED", Kind::modified},
                                   {"DELETED", Kind::deleted}}) {
    const auto read = parse_watch_event(event(word, stored("ray-head")));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->kind, kind);
    EXPECT_EQ(read->service.name, "ray-head");
    EXPECT_TRUE(read->service.converted());
    EXPECT_EQ(read->resource_version, "77");
  }
}

TEST(WatchEvent, ReadsBookmarks) {
  const auto read = parse_watch_event(
      R"({"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":"12","creationTimestamp":null},"spec":{},"status":{}}})");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->kind, Kind::bookmark);
  EXPECT_EQ(read->resource_version, "12");
}

TEST(WatchEvent, ReadsErrors) {
  const auto read = parse_watch_event(
      R"({"type":"ERROR","object":{"kind":"Status","message":"too old resource version","reason":"Expired","code":410}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, Kind::error);
  EXPECT_EQ(read->code, 410U);
  EXPECT_EQ(read->message, "too old resource version");
}

TEST(WatchEvent, TakesItsMembersInAnyOrder) {
  const auto read = parse_watch_event(R"({"object":)" + stored("a").dump() + R"(,"type":"ADDED"})");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->service.name, "a");
}

TEST(WatchEvent, RefusesWhatIsNone) {
  json nameless = stored("a"), unversioned = stored("a");
  nameless["metadata"].erase("name");
  unversioned["metadata"].erase("resourceVersion");
  for (const std::string& line :
       {std::string(""), std::string("{"), std::string("null"), std::string("[]"),
        std::string("{}"), std::string(R"({"type":"ADDED"})"),
        std::string(R"({"type":"ADDED","object":null})"), std::string(R"({"type":1,"object":{}})"),
        event("SOMETHING", stored("a")), event("ADDED", nameless), event("ADDED", unversioned),
        event("ADDED", stored("a")).substr(0, 60), event("ADDED", {{"metadata", {{"name", 1}}}})})
    EXPECT_FALSE(parse_watch_event(line)) << line;
}

TEST(LineSplitter, JoinsWhatComesInPieces) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  for (const std::string_view piece : {"a", "b\nc", "", "d\n\n\ne", "f"})
    EXPECT_TRUE(splitter.feed(piece, [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    }));
  EXPECT_THAT(lines, ElementsAre("ab", "cd"));
  EXPECT_EQ(splitter.pending(), 2U);
}

TEST(LineSplitter, StopsAtALineWithoutEnd) {
  LineSplitter splitter;
  const std::string piece(1024 * 1024, 'x');
  const auto never = [](std::string_view) { return true; };
  EXPECT_TRUE(splitter.feed(piece, never));
  EXPECT_TRUE(splitter.feed(piece, never));
  EXPECT_FALSE(splitter.feed(piece, never));
}

/// The items of a list that comes in pieces of `step` bytes.
std::vector<std::string> items_of(const std::string& text, std::size_t step, ListEnd& end) {
  ListSplitter splitter;
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size(); at += step) {
    const auto fed =
        splitter.feed(std::string_view(text).substr(at, step), [&](std::string_view item) {
          out.emplace_back(item);
          return true;
        });
    EXPECT_TRUE(fed) << fed.error().what;
  }
  const auto ended = splitter.end();
  EXPECT_TRUE(ended) << ended.error().what;
  if (ended) end = *ended;
  return out;
}

TEST(ListSplitter, CutsAtAnyPlace) {
  const json items = json::array(
      {{{"a", "}]\\\" {["}}, {{"items", json::array({1, json::object()})}}, json::object()});
  const std::string text = json{
      {"kind", "PodList"},
      {"metadata", {{"resourceVersion", "5"}, {"continue", "abc"}}},
      {"items", items}}.dump(2);
  for (std::size_t step = 1; step < 40; ++step) {
    ListEnd end;
    const auto found = items_of(text, step, end);
    ASSERT_EQ(found.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(json::parse(found[i]), items[i]);
    EXPECT_EQ(end.resource_version, "5");
    EXPECT_EQ(end.continue_token, "abc");
  }
}

TEST(ListSplitter, TakesItemsBeforeMetadata) {
  ListEnd end;
  EXPECT_THAT(items_of(R"({"items":[{"x":1}],"metadata":{"resourceVersion":"9"}})", 7, end),
              ElementsAre(R"({"x":1})"));
  EXPECT_EQ(end.resource_version, "9");
  EXPECT_EQ(end.continue_token, "");
  EXPECT_TRUE(items_of(R"({"metadata":{},"items":[]})", 3, end).empty());
  EXPECT_TRUE(items_of(R"({"metadata":{},"items":null})", 3, end).empty());
}

TEST(ListSplitter, IsNotFooledByAnInnerListOfThatName) {
  ListEnd end;
  EXPECT_THAT(
      items_of(R"({"metadata":{"items":[{"no":1}]},"x":["items",[{"no":2}]],"items":[{"yes":1}]})",
               5, end),
      ElementsAre(R"({"yes":1})"));
}

TEST(ListSplitter, StopsWhenThereWasEnough) {
  ListSplitter splitter;
  int seen = 0;
  const auto fed =
      splitter.feed(R"({"items":[{},{},{}])", [&](std::string_view) { return ++seen < 2; });
  ASSERT_TRUE(fed);
  EXPECT_FALSE(*fed);
  EXPECT_EQ(seen, 2);
}

TEST(ListSplitter, RefusesWhatIsNoList) {
  const auto refused = [](const std::string& text) {
    ListSplitter splitter;
    const auto fed = splitter.feed(text, [](std::string_view) { return true; });
    return !fed || !splitter.end();
  };
  for (const char* text : {"", "{", "[]", "]", "{}", R"({"items":[]})",
                           R"({"items":[{}],"metadata":{})", R"({"items":[],"metadata":{}}{})",
                           R"({"items":[],"metadata":1})", R"({"items":[],"metadata":{)"})
    EXPECT_TRUE(refused(text)) << text;
  EXPECT_TRUE(refused(R"({"items":[{"a":")" + std::string(3 * 1024 * 1024, 'x')));
  EXPECT_TRUE(refused(R"({"a":")" + std::string(3 * 1024 * 1024, 'x')));
  EXPECT_TRUE(refused(std::string(100'000, '[')));
}

}  // namespace
}  // namespace rayhook::test
