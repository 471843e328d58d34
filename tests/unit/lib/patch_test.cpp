// SPDX-License-Identifier: Apache-2.0
#include "lib/patch.hpp"

#include "support.hpp"

namespace rayhook::test {
namespace {

TEST(JsonString, EscapesWhatJsonAsksFor) {
  std::string out;
  const std::string text("a\"b\\c\n\t\x01\0z\xc3\xa9", 12);
  append_json_string(out, text);
  EXPECT_EQ(json::parse(out).get<std::string>(), text);
}

TEST(JsonString, EscapesAtEveryPlaceOfLongTexts) {
  for (const char c : {'"', '\\', '\x1f', '\x01', ' ', '\x7f'})
    for (std::size_t size = 1; size < 40; ++size)
      for (std::size_t at = 0; at < size; ++at) {
        std::string text(size, 'a');
        text[at] = c;
        std::string out;
        append_json_string(out, text);
        ASSERT_EQ(json::parse(out).get<std::string>(), text);
      }
}

TEST(JsonPointer, EscapesTildeFirst) {
  std::string out;
  append_pointer_token(out, "a~b/c");
  EXPECT_EQ(out, "a~0b~1c");
}

TEST(Warnings, AreShortAndPlain) {
  Decision decision{};
  warn(decision, std::string(500, 'a'));
  warn(decision, "tab\there\n\x7f\xc3\xa9");
  warn(decision, "tab\there\n\x7f\xc3\xa9");
  ASSERT_EQ(decision.warnings.size(), 2U);
  EXPECT_EQ(decision.warnings[0].size(), 120U);
  EXPECT_EQ(decision.warnings[1], "tab?here????");
  EXPECT_EQ(shortened(std::string(30, 'a') + std::string(30, 'b'), 10), "aaaa..bbbb");
  EXPECT_EQ(shortened("short", 10), "short");
}

/// Whether a patch of one operation is let through for a plain worker pod.
bool fits(PatchOp op, const json& object = shell_pod("a")) {
  ReviewReader reader;
  const Padded text(review_of(object).dump());
  const auto review = reader.parse(text.view());
  EXPECT_TRUE(review);
  Decision decision{};
  decision.patch.push_back(std::move(op));
  return patch_fits(**review, decision);
}

TEST(PatchCheck, LetsThroughWhatApplies) {
  using Kind = PatchOp::Kind;
  EXPECT_TRUE(fits({Kind::replace, "/spec/containers/0/args/0", "\"b\""}));
  EXPECT_TRUE(fits({Kind::add, "/spec/containers/0/env", "[]"}));
  EXPECT_TRUE(fits({Kind::add, "/metadata/annotations", "{}"}));
  EXPECT_TRUE(fits({Kind::add, "/spec/dnsPolicy", "\"x\""}));
  EXPECT_TRUE(fits({Kind::add, "/spec/clusterIP", "\"None\""}, head_service()));
}

TEST(PatchCheck, RefusesWhatDoesNot) {
  using Kind = PatchOp::Kind;
  EXPECT_FALSE(fits({Kind::replace, "/spec/containers/1/args/0", "\"b\""}));
  EXPECT_FALSE(fits({Kind::replace, "/spec/containers/0/args/1", "\"b\""}));
  EXPECT_FALSE(fits({Kind::replace, "/spec/containers/00/args/0", "\"b\""}));
  EXPECT_FALSE(fits({Kind::replace, "/spec/containers/0/args/0", "7"}));
  EXPECT_FALSE(fits({Kind::replace, "/spec/initContainers/0/args/0", "\"b\""}));
  EXPECT_FALSE(fits({Kind::add, "/spec/containers/0/env/0", "{}"}));  // there is no env
  EXPECT_FALSE(fits({Kind::add, "/metadata/annotations/a", "\"b\""}));
  EXPECT_FALSE(fits({Kind::add, "/metadata", R"({"annotations":{}})"}));  // would wipe the name
  EXPECT_FALSE(fits({Kind::add, "/spec/nodeName", "\"x\""}));
  EXPECT_FALSE(fits({Kind::add, "/spec/clusterIp", "\"None\""}, head_service()));
  EXPECT_FALSE(fits({Kind::add, "/spec/clusterIPs", "[\"None\"]"}, head_service()));
}

}  // namespace
}  // namespace rayhook::test
