// SPDX-License-Identifier: Apache-2.0
// Log lines: whatever a review holds, a line is one JSON object and cannot pass for two.
#include "server/log.hpp"

#include <gmock/gmock.h>
#include <poll.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "server/decision_log.hpp"
#include "server/json_line.hpp"
#include "support.hpp"

namespace rayhook::test {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::seconds;

std::string escaped(std::string_view text, std::size_t limit = 1000) {
  std::string out;
  append_log_string(out, text, limit);
  return out;
}

TEST(LogString, EscapesWhatJsonWants) {
  EXPECT_EQ(escaped("plain"), R"("plain")");
  EXPECT_EQ(escaped("a\"b\\c\n\r\t"), R"("a\"b\\c\n\r\t")");
  EXPECT_EQ(escaped(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(escaped("ä€😀"), "\"ä€😀\"");
}

TEST(LogString, WhatMisleadsAViewerIsEscaped) {
  EXPECT_EQ(escaped("\u0085\u009b31m"), R"("\u0085\u009b31m")") << "C1 controls";
  EXPECT_EQ(escaped("a\u2028b\u2029c"), R"("a\u2028b\u2029c")") << "line separators";
  EXPECT_EQ(escaped("\u200e\u202e\u2066\u2069"), R"("\u200e\u202e\u2066\u2069")") << "directions";
  EXPECT_EQ(escaped("\u00a0\u2027\u202f\u2065\u206a"), "\"\u00a0\u2027\u202f\u2065\u206a\"");
}

TEST(LogString, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(escaped("\xff"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(escaped("\xc3("), "\"\xEF\xBF\xBD(\"");
  EXPECT_EQ(escaped("\xc0\x8a"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"") << "no overlong newline";
  EXPECT_EQ(escaped("\xed\xa0\x80").find('\xed'), std::string::npos) << "no surrogates";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80").find('\xf4'), std::string::npos) << "nothing past 10FFFF";
  EXPECT_EQ(escaped("\xe2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"") << "cut short";
}

TEST(LogString, EveryByteAndEveryPairGivesValidJson) {
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const std::string text{static_cast<char>(a), static_cast<char>(b), '"'};
      const std::string line = escaped(text);
      ASSERT_TRUE(json::accept(line)) << a << " " << b;
      ASSERT_EQ(line.find('\n'), std::string::npos);
    }
}

TEST(LogString, IsCutAtTheEndOfACharacter) {
  EXPECT_EQ(escaped("abcdef", 3), R"("abc…")");
  EXPECT_EQ(escaped("abc", 3), R"("abc")");
  EXPECT_EQ(escaped("ab€", 4), R"("ab…")");
  EXPECT_EQ(escaped("ab€", 5), R"("ab€")");
}

class DecisionLine : public testing::Test {
 protected:
  Review review;
  Decision decision{};
  DecisionLine() {
    review.uid = "u1";
    review.ns = "team-a";
    review.generate_name = "worker-";
    review.kind_name = "Pod";
    review.operation = "CREATE";
    review.user = "system:serviceaccount:kube-system:replicaset-controller";
    review.kind = ObjectKind::pod;
    decision.reason = Reason::rewritten;
    decision.outcome = Outcome::patch;
  }
  std::string line() {
    std::string out;
    append_decision_line(out, review, decision, Mode::mutate, 123, microseconds(45),
                         LogLevel::info);
    return out;
  }
};

TEST_F(DecisionLine, SaysWhoWhatAndWhy) {
  decision.findings = {{"spec.containers[0].args[0]", "$X_SERVICE_HOST", "x", ""},
                       {"spec.containers[0].env", "", "", "restored"}};
  const json parsed = json::parse(line());
  json rest = parsed;
  rest.erase("ts");
  EXPECT_EQ(
      rest,
      json::parse(R"({"level":"info","msg":"decision","schema":1,"uid":"u1","namespace":"team-a",
    "generateName":"worker-","kind":"Pod","operation":"CREATE",
    "user":"system:serviceaccount:kube-system:replicaset-controller","dryRun":false,
    "reason":"rewritten","outcome":"patch","mode":"mutate","changes":[
    {"where":"spec.containers[0].args[0]","before":"$X_SERVICE_HOST","after":"x"},
    {"where":"spec.containers[0].env","before":"","after":"","note":"restored"}],
    "patchBytes":123,"durationMicros":45})"));
  EXPECT_THAT(parsed["ts"].get<std::string>(),
              testing::MatchesRegex(R"(....-..-..T..:..:..\....Z)"));
}

TEST_F(DecisionLine, SaysWhatTheUserWasTold) {
  EXPECT_FALSE(json::parse(line()).contains("warnings"));
  EXPECT_FALSE(json::parse(line()).contains("message"));
  decision.warnings.assign(10, "mind the \"gap\"");
  decision.deny_message = "not yet";
  const json parsed = json::parse(line());
  EXPECT_EQ(parsed["warnings"], json(std::vector<std::string>(8, "mind the \"gap\"")));
  EXPECT_EQ(parsed["message"], "not yet");
}

TEST_F(DecisionLine, CannotBeForged) {
  const std::string evil = "x\"}\n{\"level\":\"error\",\"msg\":\"decision\",\"reason\":\"converted";
  review.uid = review.ns = review.generate_name = review.user = review.kind_name = evil;
  review.operation = evil;
  decision.findings = {{evil, evil, evil, ""}};
  const std::string out = line();
  EXPECT_EQ(out.find('\n'), std::string::npos);
  const json parsed = json::parse(out);
  EXPECT_EQ(parsed["reason"], "rewritten");
  EXPECT_EQ(parsed["level"], "info");
  EXPECT_EQ(parsed["generateName"], evil);
}

TEST_F(DecisionLine, IsNeverLong) {
  const std::string big(100'000, '\x01');
  review.uid = review.ns = review.generate_name = review.user = review.kind_name = big;
  review.operation = big;
  decision.findings.assign(kMaxFindings, {big, big, big, ""});
  decision.warnings.assign(kMaxFindings, std::string(120, '"'));
  const std::string out = line();
  EXPECT_LT(out.size(), 2 * Log::kLineBytes);
  const json parsed = json::parse(out);
  EXPECT_EQ(parsed["changes"].size() + parsed["changesOmitted"].get<std::size_t>(), kMaxFindings);
}

TEST_F(DecisionLine, WhatIsOfNoConcernIsOnlyForDebug) {
  FileLog info(LogLevel::info), debug(LogLevel::debug);
  for (FileLog* log : {&info, &debug}) {
    DecisionLog decisions(log->log());
    decision.reason = Reason::no_reference;
    decisions.decided(review, decision, Mode::mutate, 0, microseconds(1));
    decision.reason = Reason::rewritten;
    decisions.decided(review, decision, Mode::mutate, 0, microseconds(1));
  }
  EXPECT_EQ(std::ranges::count(info.text(), '\n'), 1);
  EXPECT_EQ(std::ranges::count(debug.text(), '\n'), 2);
}

TEST(LogTest, WritesEventsOfItsLevel) {
  FileLog file(LogLevel::warn);
  file.log().event(LogLevel::info, "not this");
  file.log().event(LogLevel::warn, "this {} %s", {{"text", "a\nb"}, {"number", std::int64_t{-7}}});
  const std::string text = file.text();
  json parsed = json::parse(text);
  parsed.erase("ts");
  EXPECT_EQ(parsed,
            json::parse(R"({"level":"warn","msg":"this {} %s","text":"a\nb","number":-7})"));
}

TEST(LogTest, AStalledReaderCostsLinesAndNeverTime) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const auto begin = std::chrono::steady_clock::now();
  {
    Log log(LogLevel::info, pipe[1]);
    for (int i = 0; i < 20'000; ++i) log.event(LogLevel::info, "a line that nobody reads");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
    EXPECT_GT(log.lost(), 0U);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10)) << "and the end comes";
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(LogGateTest, LetsOnePassInItsTime) {
  LogGate gate(seconds(10));
  const TimePoint now{seconds(100)};
  EXPECT_EQ(gate.pass(now), 0);
  EXPECT_EQ(gate.pass(now + seconds(1)), std::nullopt);
  EXPECT_EQ(gate.pass(now + seconds(9)), std::nullopt);
  EXPECT_EQ(gate.pass(now + seconds(10)), 2);
  EXPECT_EQ(gate.pass(now + seconds(20)), 0);
}

TEST(LogLevelTest, WordsGoBothWays) {
  for (const auto level : {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error})
    EXPECT_EQ(log_level(word(level)), level);
  EXPECT_EQ(log_level("verbose"), std::nullopt);
}

}  // namespace
}  // namespace rayhook::test
