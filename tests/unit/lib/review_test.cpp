// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "support.hpp"

namespace rayhook::test {
namespace {

/// The error's word for a text that is no answerable review.
std::string error_of(const std::string& text) {
  ReviewReader reader;
  const Padded padded(text);
  const auto review = reader.parse(padded.view());
  return review ? "(none)" : std::string(word(review.error().code));
}

TEST(ReviewReader, ReadsWhatTheApiServerSends) {
  ReviewReader reader;
  json review = review_of(shell_pod("a"));
  review["request"]["object"]["metadata"]["generateName"] = "w-";
  const Padded text(review.dump());
  const auto parsed = reader.parse(text.view());
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)->uid, "u-1");
  EXPECT_EQ((*parsed)->ns, "team-a");
  EXPECT_EQ((*parsed)->name, "worker");
  EXPECT_EQ((*parsed)->generate_name, "w-");
  EXPECT_EQ((*parsed)->user, "somebody");
  EXPECT_EQ((*parsed)->kind, ObjectKind::pod);
}

TEST(ReviewReader, DoesNotDependOnTheOrderOfFields) {
  const std::string object = shell_pod("x $RAY_HEAD_SERVICE_HOST").dump();
  const std::string text =
      R"({"request":{"object":)" + object +
      R"(,"operation":"CREATE","kind":{"kind":"Pod","version":"v1","group":""},"uid":"u"},)"
      R"("kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"})";
  ReviewReader reader;
  const Padded padded(text);
  const auto parsed = reader.parse(padded.view());
  ASSERT_TRUE(parsed) << parsed.error().what;
  EXPECT_EQ((*parsed)->pod.containers.size(), 1U);
  const Decision out = decide(**parsed, {}, facts_of({converted_service()}));
  std::string answer;
  render(**parsed, out, answer);
  EXPECT_EQ(json::parse(answer)["apiVersion"], "admission.k8s.io/v1beta1");
  EXPECT_EQ(json::parse(answer)["response"]["patchType"], "JSONPatch");
}

TEST(ReviewReader, RefusesWhatCannotBeAnswered) {
  EXPECT_EQ(error_of(""), "bad_json");
  EXPECT_EQ(error_of("?"), "bad_review");
  EXPECT_EQ(error_of("{"), "bad_json");
  EXPECT_EQ(error_of("[]"), "bad_review");
  EXPECT_EQ(error_of("{}"), "bad_review");
  EXPECT_EQ(error_of("null"), "bad_review");
  EXPECT_EQ(error_of(R"({"apiVersion":"admission.k8s.io/v1"})"), "bad_review");
  EXPECT_EQ(error_of(R"({"apiVersion":"admission.k8s.io/v2","request":{"uid":"x"}})"),
            "bad_review");
  EXPECT_EQ(error_of(R"({"apiVersion":"admission.k8s.io/v1","request":null})"), "bad_review");
  EXPECT_EQ(error_of(R"({"apiVersion":"admission.k8s.io/v1","request":{"uid":7}})"), "bad_review");
  EXPECT_EQ(error_of(R"({"apiVersion":"admission.k8s.io/v1","request":{"uid":"a","uid":"b"}})"),
            "bad_review");
  EXPECT_EQ(error_of(review_of(shell_pod("a")).dump() + "{}"), "bad_json");
  EXPECT_EQ(
      error_of(review_of(shell_pod("a\xff")).dump(-1, ' ', false, json::error_handler_t::ignore)),
      "(none)");
  EXPECT_EQ(error_of("{\"a\":\"\xff\"}"), "bad_json");
  EXPECT_EQ(error_of(std::string(100'000, '[')), "bad_review");
  EXPECT_EQ(error_of(std::string(kMaxReviewBytes + 1, ' ')), "too_large");
}

TEST(ReviewReader, AdmitsUnchangedWhatMakesNoSense) {
  std::vector<json> bad;
  const auto pod = [&](auto&& change) {
    json object = shell_pod("a $RAY_HEAD_SERVICE_HOST");
    change(object);
    bad.push_back(std::move(object));
  };
  pod([](json& o) { o["spec"] = "x"; });
  pod([](json& o) { o["metadata"] = 7; });
  pod([](json& o) { o["spec"]["containers"] = "x"; });
  pod([](json& o) { o["spec"]["containers"] = json::array({nullptr, 1}); });
  pod([](json& o) { o["spec"]["containers"][0]["args"] = json::array({nullptr}); });
  pod([](json& o) { o["spec"]["containers"][0]["args"] = json::array({1}); });
  pod([](json& o) { o["spec"]["containers"][0]["command"] = "bash -c"; });
  pod([](json& o) { o["spec"]["containers"][0]["env"] = {{"A", "b"}}; });
  pod([](json& o) { o["spec"]["containers"][0]["env"] = json::array({{{"name", 1}}}); });
  pod([](json& o) { o["metadata"]["labels"] = json::array({1}); });
  pod([](json& o) { o["spec"]["hostNetwork"] = "yes"; });
  json service = head_service();
  service["spec"]["ports"][0]["port"] = 70000;
  bad.push_back(service);
  service = head_service();
  service["spec"]["ports"][0]["port"] = "6379";
  bad.push_back(service);
  for (const json& object : bad) {
    const Decided out = decide_object(object, facts_of({converted_service()}));
    EXPECT_EQ(out.reason(), "malformed") << object.dump();
    EXPECT_FALSE(out.patched());
    EXPECT_EQ(out.answer["response"]["allowed"], true);
  }
}

TEST(ReviewReader, TakesNullForAbsent) {
  json pod = shell_pod("a $RAY_HEAD_SERVICE_HOST");
  pod["metadata"]["annotations"] = nullptr;
  pod["metadata"]["labels"] = nullptr;
  pod["spec"]["containers"][0]["env"] = nullptr;
  pod["spec"]["containers"][0]["livenessProbe"] = nullptr;
  pod["spec"]["initContainers"] = nullptr;
  const Decided out = decide_object(pod, facts_of({converted_service()}));
  EXPECT_EQ(out.arg(), "a ray-head");
  pod = shell_pod("a");
  pod["spec"] = json::object();
  EXPECT_EQ(decide_object(pod, facts_of({converted_service()})).reason(), "no-reference");
  pod["spec"] = {{"containers", nullptr}};
  EXPECT_EQ(decide_object(pod, facts_of({converted_service()})).reason(), "no-reference");
  pod.erase("metadata");
  pod["spec"] = shell_pod("a $RAY_HEAD_SERVICE_HOST")["spec"];
  EXPECT_EQ(decide_object(pod, facts_of({converted_service()})).arg(), "a ray-head");
}

TEST(ReviewReader, IsOfNoConcernForOthers) {
  json review = review_of(shell_pod("a"));
  review["request"]["kind"]["kind"] = "Deployment";
  EXPECT_EQ(decide_review(review, {}).reason(), "not-our-kind");
  review = review_of(shell_pod("a"));
  review["request"]["kind"]["group"] = "example.com";
  EXPECT_EQ(decide_review(review, {}).reason(), "not-our-kind");
  for (const char* operation : {"UPDATE", "DELETE", "CONNECT"}) {
    review = review_of(head_service());
    review["request"]["operation"] = operation;
    EXPECT_EQ(decide_review(review, {}).reason(), "not-create");
    review["request"]["object"] = nullptr;
    EXPECT_EQ(decide_review(review, {}).reason(), "not-create");
  }
  review = review_of(shell_pod("a"));
  review["request"]["subResource"] = "ephemeralcontainers";
  EXPECT_EQ(decide_review(review, {}).reason(), "not-our-kind");
  review = review_of(shell_pod("a"));
  review["request"].erase("object");
  EXPECT_EQ(decide_review(review, {}).reason(), "malformed");
}

TEST(ReviewReader, SurvivesDepthInsideTheObject) {
  std::string deep(100'000, '[');
  deep += std::string(100'000, ']');
  std::string text = review_of(shell_pod("a $RAY_HEAD_SERVICE_HOST")).dump();
  text.insert(text.find("\"containers\""), "\"unknown\":" + deep + ",");
  EXPECT_EQ(error_of(text), "(none)");
}

TEST(ReviewReader, StructureAtTheLimitAndOnePastIt) {
  ReviewReader reader;
  const std::string text = review_of(shell_pod("x")).dump();
  std::size_t outside = 0;  // no string of this text holds any of them
  for (const char c : text) outside += std::string_view("{}[]:,").contains(c) ? 1U : 0U;
  const auto with = [&text](std::size_t commas) {
    std::string more = R"(,"more":[0)";
    while (commas-- > 0) more += ",0";
    return text.substr(0, text.size() - 1) + more + "]}";
  };
  const std::size_t room = kMaxReviewStructure - outside - 4;
  EXPECT_TRUE(reader.parse(Padded(with(room)).view()));
  const auto past = reader.parse(Padded(with(room + 1)).view());
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().code, Errc::too_large);
  // In strings there may be as many as there is room for, whatever is escaped before them.
  const std::string quoted = R"(,"more":"\\\"\\)" + std::string(2 * kMaxReviewStructure, ',');
  EXPECT_TRUE(reader.parse(Padded(text.substr(0, text.size() - 1) + quoted + R"("})").view()));
}

TEST(ReviewReader, CanBeUsedAgainAndShrunk) {
  ReviewReader reader;
  for (int i = 0; i < 3; ++i) {
    const Padded text(review_of(shell_pod("a")).dump());
    const auto parsed = reader.parse(text.view());
    ASSERT_TRUE(parsed);
    EXPECT_EQ((*parsed)->pod.containers.size(), 1U);
    EXPECT_EQ((*parsed)->pod.texts.size(), 4U);
    reader.shrink();
  }
}

TEST(Bounds, TenThousandContainersAndHugeArguments) {
  json pod = shell_pod("x");
  json container =
      shell_pod("a $RAY_HEAD_SERVICE_HOST:$RAY_HEAD_SERVICE_PORT")["spec"]["containers"][0];
  pod["spec"]["containers"] = json::array();
  for (int i = 0; i < 10'000; ++i) pod["spec"]["containers"].push_back(container);
  const Decided many = decide_object(pod, facts_of({converted_service()}));
  EXPECT_TRUE(many.reason() == "rewritten" || many.reason() == "too-large");
  for (const char* unit :
       {"$", "$$", "$(", "${", "\"$", "$RAY_HEAD_SERVICE_HOST:", "$(RAY_HEAD_SERVICE_HOST)"}) {
    std::string text;
    while (text.size() < 4'000'000) text += unit;
    const Decided out = decide_object(shell_pod(text), facts_of({converted_service()}));
    EXPECT_LE(out.decision.findings.size(), kMaxFindings);
  }
}

TEST(Answer, HoldsPatchAndPatchTypeTogetherOrNeither) {
  const Decided changed = decide_object(head_service(), {});
  EXPECT_EQ(changed.answer["response"]["patchType"], "JSONPatch");
  EXPECT_TRUE(changed.answer["response"].contains("patch"));
  EXPECT_EQ(changed.answer["response"]["auditAnnotations"]["reason"], "converted");
  EXPECT_EQ(
      changed.answer["response"]["auditAnnotations"]["patch-sha256"].get<std::string>().size(),
      64U);
  const Decided left = decide_object(shell_pod("a"), {});
  EXPECT_FALSE(left.answer["response"].contains("patch"));
  EXPECT_FALSE(left.answer["response"].contains("patchType"));
  EXPECT_EQ(left.answer["response"]["uid"], "u-1");
  EXPECT_EQ(left.answer["kind"], "AdmissionReview");
}

TEST(Answer, DeniesWithAMessage) {
  ReviewReader reader;
  const Padded text(review_of(shell_pod("a")).dump());
  const auto review = reader.parse(text.view());
  Decision deny{};
  deny.reason = Reason::service_absent;
  deny.outcome = Outcome::deny;
  deny.deny_message = "say \"why\"";
  std::string answer;
  render(**review, deny, answer);
  const json parsed = json::parse(answer);
  EXPECT_EQ(parsed["response"]["allowed"], false);
  EXPECT_EQ(parsed["response"]["status"]["code"], 429);
  EXPECT_EQ(parsed["response"]["status"]["message"], "say \"why\"");
  EXPECT_FALSE(parsed["response"]["status"].contains("details"));
}

TEST(Answer, SamePatchForTheSameInput) {
  const json pod = shell_pod("a $RAY_HEAD_SERVICE_HOST");
  const Facts facts = facts_of({converted_service()});
  EXPECT_EQ(patch_json(decide_object(pod, facts).decision),
            patch_json(decide_object(pod, facts).decision));
}

TEST(Answer, SameForADryRun) {
  json review = review_of(head_service());
  review["request"]["dryRun"] = true;
  EXPECT_EQ(patch_json(decide_review(review, {}).decision),
            patch_json(decide_object(head_service(), {}).decision));
}

TEST(Reasons, AreAWellKeptList) {
  std::set<std::string_view> words;
  for (const ReasonText& reason : reasons()) {
    EXPECT_TRUE(words.insert(reason.word).second) << reason.word;
    EXPECT_EQ(reason.word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos);
    EXPECT_TRUE(reason.sentence.ends_with('.')) << reason.word;
  }
}

}  // namespace
}  // namespace rayhook::test
