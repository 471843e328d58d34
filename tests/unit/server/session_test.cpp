// SPDX-License-Identifier: Apache-2.0
// The HTTP session over memory: answers byte by byte, limits, phases, connections that go on or
// end.
#include <gmock/gmock.h>

#include <stdexcept>

#include "support.hpp"

namespace rayhook::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string fault(std::string_view status, std::string_view text, std::string_view fields) {
  return "HTTP/1.1 " + std::string(status) +
         "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
         std::to_string(text.size() + 1) + "\r\nX-Content-Type-Options: nosniff" +
         std::string(fields) + "\r\n\r\n" + std::string(text) + "\n";
}

class SessionTest : public testing::Test {
 protected:
  World world;
  Client client{world.context};
};

TEST_F(SessionTest, AnswersAReview) {
  client.send(post(review_body()));
  EXPECT_EQ(client.out, leave_answer);
  EXPECT_FALSE(client.closed);
  EXPECT_TRUE(client.session.idle());
}

TEST_F(SessionTest, AnswersAPatch) {
  client.send(post(head_service_body()));
  EXPECT_THAT(client.out, HasSubstr(R"("patchType":"JSONPatch","patch":")"));
}

TEST_F(SessionTest, TheSameAnswerWhereverTheBytesAreCut) {
  const std::string request = post(review_body());
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    Client fresh(world.context);
    fresh.send(std::string_view(request).substr(0, cut));
    ASSERT_EQ(fresh.out, "") << cut;
    fresh.send(std::string_view(request).substr(cut));
    ASSERT_EQ(fresh.out, leave_answer) << cut;
  }
  Client drip(world.context);
  drip.send(request, 1);
  EXPECT_EQ(drip.out, leave_answer);
}

TEST_F(SessionTest, TheSameAnswerWhateverTheChunks) {
  for (std::size_t size = 1; size < 40; ++size)
    for (std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{1} << 20}) {
      Client fresh(world.context);
      fresh.send(chunked(review_body(), size), piece);
      ASSERT_EQ(fresh.out, leave_answer) << size << " " << piece;
      ASSERT_TRUE(fresh.session.idle());
    }
}

TEST_F(SessionTest, PipelinedRequestsAreAnsweredInOrder) {
  std::string all, expected;
  for (int i = 0; i < 50; ++i) {
    all += i % 3 == 0 ? chunked(review_body(), 100) : post(review_body());
    expected += leave_answer;
  }
  client.send(all);
  EXPECT_EQ(client.take(), expected);
  client.send(all, 7);
  EXPECT_EQ(client.take(), expected);
}

TEST_F(SessionTest, AuditDecidesAndReportsButNeverPatches) {
  client.send(post(head_service_body(), {}, "/audit"));
  EXPECT_THAT(client.out, HasSubstr(R"("allowed":true)"));
  EXPECT_THAT(client.out, HasSubstr(R"("reason":"converted")"));
  EXPECT_THAT(client.out, Not(HasSubstr("patch")));
  EXPECT_THAT(world.metrics.text(),
              HasSubstr(R"(outcome="patch",reason="converted",dry_run="false",mode="audit"} 1)"));
  EXPECT_THAT(world.log.text(), HasSubstr(R"("mode":"audit")"));
}

TEST_F(SessionTest, WrongPath) {
  client.send(post(review_body(), {}, "/mutate/"));
  EXPECT_EQ(client.take(), fault("404 Not Found", "there is only /mutate and /audit here", ""));
  client.send(post(review_body()));
  EXPECT_EQ(client.out, leave_answer) << "the connection goes on";
  EXPECT_EQ(world.faults(HttpFault::not_found), 1U);
}

TEST_F(SessionTest, WrongMethod) {
  client.send("GET /mutate HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.take(), fault("405 Method Not Allowed", "an AdmissionReview is sent with POST",
                                 "\r\nAllow: POST"));
  client.send("GET /mutate HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(client.take(), StartsWith("HTTP/1.1 405 "));
  client.send("HEAD /mutate HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.out, testing::EndsWith("Allow: POST\r\n\r\n")) << "no body to a HEAD";
  client.take();
  client.send("OPTIONS /mutate HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.take(), StartsWith("HTTP/1.1 405 "));
  client.send(post(review_body()));
  EXPECT_EQ(client.out, leave_answer);
}

TEST_F(SessionTest, ContentType) {
  const auto answer = [this](std::string_view type) {
    Client fresh(world.context);
    fresh.send("POST /mutate HTTP/1.1\r\nHost: h\r\n" + std::string(type) + "Content-Length: " +
               std::to_string(review_body().size()) + "\r\n\r\n" + review_body());
    return fresh.out.substr(0, 12);
  };
  EXPECT_EQ(answer("Content-Type: application/json\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(answer("content-type:Application/JSON ; charset=utf-8\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(answer(""), "HTTP/1.1 400");
  EXPECT_EQ(answer("Content-Type: text/json\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(answer("Content-Type: application/jsonx\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(answer("Content-Type: application/json\r\nContent-Type: application/json\r\n"),
            "HTTP/1.1 400");
}

TEST_F(SessionTest, BadBodiesGetOneLineAndTheConnectionGoesOn) {
  for (const std::string& body :
       {std::string("{"), std::string("[]"), std::string("null"), std::string("\0\xff", 2),
        std::string("{}{}"), std::string(100'000, '['), std::string(""),
        std::string(R"({"apiVersion":"\u000d\u000aX: y"})")}) {
    client.send(post(body));
    const std::string answer = client.take();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n")) << body.substr(0, 20);
    const std::string text = answer.substr(answer.find("\r\n\r\n") + 4);
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    EXPECT_FALSE(client.closed);
  }
  client.send(post(review_body()));
  EXPECT_EQ(client.out, leave_answer);
}

TEST_F(SessionTest, TrailersChangeNothing) {
  std::string request = chunked(review_body(), 50);
  request.insert(request.size() - 2, "Content-Type: text/plain\r\nHost: other\r\nX-Admin: 1\r\n");
  client.send(request);
  EXPECT_EQ(client.out, leave_answer);
}

TEST_F(SessionTest, KeepAliveByVersion) {
  const auto http10 = [](std::string_view fields) {
    return "POST /mutate HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(review_body().size()) + "\r\n" + std::string(fields) + "\r\n" +
           review_body();
  };
  Client plain(world.context);
  plain.send(http10(""));
  EXPECT_THAT(plain.out, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(plain.closed);
  EXPECT_FALSE(plain.session.unread_input());
  Client kept(world.context);
  kept.send(http10("Connection: keep-alive\r\n"));
  EXPECT_THAT(kept.out, HasSubstr("\r\nConnection: keep-alive\r\n"));
  EXPECT_FALSE(kept.closed);
  Client closing(world.context);
  closing.send(post(review_body(), "Connection: close\r\n"));
  EXPECT_THAT(closing.out, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(closing.closed);
}

TEST_F(SessionTest, WhatFollowsAMalformedBodyChangesNothing) {
  // One bracket too few, which simdjson does not notice where it skips a value.
  std::string body = review_body();
  body.insert(body.find("\"namespace\""), R"("resource":"{group":""},)");
  body.pop_back();
  client.send(post(body));
  ASSERT_NE(client.out, "");
  for (const std::string next : {"}", "{", ",", "POST"}) {
    Client pipelined(world.context);
    pipelined.send(post(body) + next);
    EXPECT_EQ(pipelined.out.substr(0, client.out.size()), client.out) << next;
  }
}

TEST_F(SessionTest, ExpectContinue) {
  const std::string request = post(review_body(), "Expect: 100-continue\r\n");
  const std::size_t head = request.find("\r\n\r\n") + 4;
  client.send(std::string_view(request).substr(0, head));
  EXPECT_EQ(client.take(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(std::string_view(request).substr(head));
  EXPECT_EQ(client.take(), leave_answer);
  client.send(request);
  EXPECT_EQ(client.take(), leave_answer) << "who sends the body anyway needs no invitation";
  Client other(world.context);
  other.send(post(review_body(), "Expect: miracles\r\n"));
  EXPECT_THAT(other.out, StartsWith("HTTP/1.1 417 "));
  EXPECT_TRUE(other.closed);
  Client refused(world.context);
  refused.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(refused.out, StartsWith("HTTP/1.1 404 ")) << "at once, not after the body";
  EXPECT_TRUE(refused.closed);
  std::string old = request;
  old.replace(old.find("HTTP/1.1"), 8, "HTTP/1.0");
  Client http10(world.context);
  http10.send(std::string_view(old).substr(0, head));
  EXPECT_EQ(http10.out, "") << "HTTP/1.0 knows no 100";
  http10.send(std::string_view(old).substr(head));
  EXPECT_THAT(http10.out, StartsWith("HTTP/1.1 200 "));
  Client no_body(world.context);
  no_body.send("POST /mutate HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(no_body.out, StartsWith("HTTP/1.1 400 "));
}

TEST_F(SessionTest, AnEndInTheMiddleIsCounted) {
  EXPECT_FALSE(client.session.ended());
  Client half(world.context);
  half.send(post(review_body()).substr(0, 30));
  EXPECT_TRUE(half.session.ended());
  EXPECT_EQ(world.faults(HttpFault::truncated), 1U);
}

TEST_F(SessionTest, ARefusalThatCannotBeSentIsCountedOnce) {
  const auto refuse = [](Session& session) {
    const std::string_view wrong = "GET /mutate HTTP/1.1\r\nHost: h\r\n\r\n";
    std::ranges::copy(wrong, session.space().begin());
    EXPECT_EQ(session.received(wrong.size()), Session::Step::write);
  };
  refuse(client.session);
  EXPECT_TRUE(client.session.ended());
  Client slow(world.context);
  refuse(slow.session);
  slow.session.expired();
  EXPECT_EQ(world.faults(HttpFault::bad_method), 2U);
  EXPECT_EQ(world.faults(HttpFault::truncated), 0U);
  EXPECT_EQ(world.faults(HttpFault::write_timeout), 0U);
}

TEST_F(SessionTest, ARequestAfterARefusedOneIsCountedByItself) {
  client.send(post("{}"));
  client.send(post(review_body()).substr(0, 30));
  EXPECT_TRUE(client.session.ended());
  EXPECT_EQ(world.faults(HttpFault::bad_body), 1U);
  EXPECT_EQ(world.faults(HttpFault::truncated), 1U);
}

TEST_F(SessionTest, DrainingEndsConnectionsWithTheirAnswer) {
  client.send(post(review_body()));
  EXPECT_EQ(client.take(), leave_answer);
  world.draining = true;
  client.send(post(review_body()));
  EXPECT_THAT(client.out, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(client.out, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(client.closed);
}

TEST_F(SessionTest, FactsFromTheNetwork) {
  world.lookup.now = false;
  client.send(post(review_body()));
  ASSERT_TRUE(client.waits_for_facts);
  EXPECT_EQ(client.out, "");
  const LookupRequest request = client.session.lookup_request();
  EXPECT_EQ(request.needs.ns, "team-a");
  EXPECT_EQ(request.review.uid, "u1");
  EXPECT_TRUE(request.may_wait);
  EXPECT_EQ(request.began, world.clock.now());
  EXPECT_EQ(client.session.deadline(), TimePoint::max());
  EXPECT_EQ(request.deadline, world.clock.now() + seconds(10) - std::chrono::milliseconds(500));
  EXPECT_EQ(world.metrics.in_flight(), 1);
  client.follow(client.session.fulfilled(Facts{}));
  EXPECT_EQ(client.out, leave_answer);
  EXPECT_EQ(world.metrics.in_flight(), 0);
}

TEST_F(SessionTest, OnlyWhatChangesSomethingMayWait) {
  world.lookup.now = false;
  const auto may_wait = [this](std::string_view target, std::string body) {
    Client fresh(world.context);
    fresh.send(post(body, {}, target));
    return fresh.session.lookup_request().may_wait;
  };
  std::string dry = review_body();
  dry.replace(dry.find("\"dryRun\":false"), 14, "\"dryRun\":true");
  EXPECT_TRUE(may_wait("/mutate", review_body()));
  EXPECT_FALSE(may_wait("/audit", review_body()));
  EXPECT_FALSE(may_wait("/mutate", dry));
}

TEST_F(SessionTest, SendsReviewsAwayUntilTheServicesAreKnown) {
  world.lookup.is_ready = false;
  client.send(post(review_body()));
  EXPECT_THAT(client.out, testing::StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(client.out, testing::HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(client.out, testing::HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(client.closed);
  EXPECT_FALSE(client.session.unread_input());
  EXPECT_EQ(world.metrics.in_flight(), 0);
}

TEST_F(SessionTest, TheTimeoutOfTheReviewBoundsItsLookups) {
  world.lookup.now = false;
  const auto patience = [this](std::string_view target) {
    Client fresh(world.context);
    fresh.send(post(review_body(), {}, target));
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               fresh.session.lookup_request().deadline - world.clock.now())
        .count();
  };
  EXPECT_EQ(patience("/mutate?timeout=1s"), 900);
  EXPECT_EQ(patience("/mutate?timeout=5s"), 4500);
  EXPECT_EQ(patience("/mutate?timeout=30s"), 29'500);
  EXPECT_EQ(patience("/mutate?timeout=99999s"), 29'500);
  EXPECT_EQ(patience("/mutate?timeout=0s"), 900);
  EXPECT_EQ(patience("/mutate"), 9500);
  EXPECT_EQ(patience("/mutate?timeout="), 9500);
  EXPECT_EQ(patience("/mutate?timeout=-1s"), 9500);
  EXPECT_EQ(patience("/mutate?a=b&&timeout=2s&c"), 1800);
}

TEST_F(SessionTest, AReviewThatWaitsKeepsItsReaderFromOthers) {
  world.lookup.now = false;
  client.send(post(review_body("first")));
  ASSERT_TRUE(client.waits_for_facts);
  Client other(world.context);
  other.send(post(review_body("other")));
  ASSERT_TRUE(other.waits_for_facts);
  EXPECT_EQ(client.session.lookup_request().review.uid, "first");
  client.follow(client.session.fulfilled(Facts{}));
  EXPECT_THAT(client.out, HasSubstr(R"("uid":"first")"));
}

TEST_F(SessionTest, AnUnforeseenExceptionIsA500) {
  world.lookup.on_try = [] { throw std::runtime_error("boom\n\"x"); };
  client.send(post(review_body()));
  EXPECT_EQ(client.out,
            fault("500 Internal Server Error", "internal error", "\r\nConnection: close"));
  EXPECT_TRUE(client.closed);
  EXPECT_EQ(world.faults(HttpFault::internal), 1U);
  EXPECT_THAT(world.log.text(), HasSubstr(R"("what":"boom\n\"x")"));
}

TEST_F(SessionTest, ArbitraryBytesNeverCrash) {
  std::uint64_t state = 42;
  const auto random = [&state] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<unsigned>(state >> 33);
  };
  const std::string request = post(review_body()) + chunked(review_body(), 30);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = request;
    for (unsigned i = random() % 6 + 1; i > 0; --i) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, random() % 9);
          break;
        case 2:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 30));
          break;
        default:
          bytes.insert(at, "\r\n");
      }
    }
    Client fresh(world.context);
    fresh.send(bytes, random() % 200 + 1);
    fresh.session.ended();
    ASSERT_TRUE(fresh.out.empty() || fresh.out.starts_with("HTTP/1.1 ")) << bytes;
  }
  EXPECT_EQ(world.faults(HttpFault::internal), 0U);
}

}  // namespace
}  // namespace rayhook::test
