// SPDX-License-Identifier: Apache-2.0
// The limits of a session, each at it and one past it: sizes, times, numbers, the budget of bodies.
#include <gmock/gmock.h>

#include "support.hpp"

namespace rayhook::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

class SessionLimitsTest : public testing::Test {
 protected:
  World world;
  Client client{world.context};
};

/// A review of about so many bytes.
std::string large_review(std::size_t bytes) {
  std::string body = review_body();
  return body.insert(body.find("\"containers\""), "\"x\":\"" + std::string(bytes, 'x') + "\",");
}

TEST_F(SessionLimitsTest, BodyAtTheLimitAndOnePastIt) {
  world.limits.body_bytes = 2000;
  std::string body = review_body();
  body.resize(2000, ' ');
  client.send(post(body));
  EXPECT_EQ(client.take(), leave_answer);
  client.send(chunked(body, 999));
  EXPECT_EQ(client.take(), leave_answer);
  body += ' ';
  for (const std::string& request : {post(body), chunked(body, 999)}) {
    Client fresh(world.context);
    fresh.send(request);
    EXPECT_THAT(fresh.out, StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
    EXPECT_THAT(fresh.out, HasSubstr("\r\nConnection: close\r\n"));
    EXPECT_TRUE(fresh.closed);
    EXPECT_TRUE(fresh.session.unread_input());
  }
}

TEST_F(SessionLimitsTest, TheBiggestReviewThereIs) {
  std::string body = review_body();
  body.resize(kMaxReviewBytes, ' ');
  client.send(post(body), 16'384);
  EXPECT_EQ(client.take(), leave_answer);
  client.send(chunked(body, 65'536), 16'384);
  EXPECT_EQ(client.take(), leave_answer);
}

TEST_F(SessionLimitsTest, HeaderAtTheLimitAndOnePastIt) {
  const std::string plain = post(review_body());
  const std::size_t head = plain.find("\r\n\r\n") + 4;
  const std::string_view name = "X-Filler: ";
  const auto filled = [&](std::size_t bytes) {
    return post(review_body(),
                std::string(name) + std::string(bytes - head - name.size() - 2, 'x') + "\r\n");
  };
  for (const std::size_t piece : {std::size_t{1} << 20, std::size_t{100}}) {
    Client fits(world.context);
    fits.send(filled(world.limits.head_bytes), piece);
    EXPECT_EQ(fits.out, leave_answer) << piece;
    Client beyond(world.context);
    beyond.send(filled(world.limits.head_bytes + 1), piece);
    EXPECT_THAT(beyond.out, StartsWith("HTTP/1.1 431 ")) << piece;
    EXPECT_TRUE(beyond.closed);
  }
  Client endless(world.context);
  endless.send(std::string(100'000, 'A'), 1000);
  EXPECT_TRUE(endless.closed);
  EXPECT_GT(endless.unsent, 90'000U) << "only the limit was held";
}

TEST_F(SessionLimitsTest, ChunkExtensionsAndTrailersAreBounded) {
  const std::string head =
      "POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  Client extension(world.context);
  extension.send(head + "5;a=" + std::string(1'000'000, 'x'), 4096);
  EXPECT_THAT(extension.out, StartsWith("HTTP/1.1 400 "));
  EXPECT_GT(extension.unsent, 900'000U);
  Client trailer(world.context);
  std::string trailers = head + "0\r\n";
  for (int i = 0; i < 50'000; ++i) trailers += "X-Trailer: some text here\r\n";
  trailer.send(trailers, 4096);
  EXPECT_THAT(trailer.out, StartsWith("HTTP/1.1 400 "));
  EXPECT_GT(trailer.unsent, 900'000U);
}

TEST_F(SessionLimitsTest, ChunkFramingAtTheLimitAndOnePastItHoweverTheBytesAreCut) {
  const std::string small = chunked(review_body(), 100);
  const std::string head = small.substr(0, small.find("\r\n\r\n") + 4);
  const auto filled = [](std::string_view begin, std::size_t bytes, std::string_view end) {
    return std::string(begin) + std::string(bytes - begin.size() - end.size(), 'x') +
           std::string(end);
  };
  const std::size_t most = world.limits.chunk_frame_bytes;
  for (const std::size_t frame : {most, most + 1})
    for (const std::size_t piece : {std::size_t{1} << 20, std::size_t{1000}, std::size_t{7}}) {
      Client extension(world.context), trailers(world.context);
      const std::string rest = small.substr(head.size());
      extension.send(head + filled("64;a=", frame, "\r\n") + rest.substr(rest.find('\n') + 1),
                     piece);
      // The last chunk's frame begins with the end of the chunk before it.
      const std::string trailer = filled("\r\n0\r\nX-Trailer: ", frame, "\r\n\r\n");
      trailers.send(small.substr(0, small.size() - 7) + trailer, piece);
      for (const Client* one : {&extension, &trailers}) {
        EXPECT_EQ(one->out == leave_answer, frame == most) << piece << one->out;
        EXPECT_EQ(one->closed, frame > most) << piece;
      }
    }
}

TEST_F(SessionLimitsTest, PhasesHaveTheirTimes) {
  const TimePoint start = world.clock.now();
  EXPECT_EQ(client.session.deadline(), start + world.limits.idle);
  world.clock.advance(seconds(5));
  const std::string request = post(review_body());
  client.send("POST");
  EXPECT_EQ(client.session.deadline(), start + seconds(5) + world.limits.header);
  world.clock.advance(seconds(3));
  client.send(" /mutate");
  EXPECT_EQ(client.session.deadline(), start + seconds(5) + world.limits.header)
      << "from the first byte, however it drips";
  const std::size_t head = request.find("\r\n\r\n") + 4;
  client.send(std::string_view(request).substr(12, head - 12));
  EXPECT_EQ(client.session.deadline(), start + seconds(8) + world.limits.body);
  world.clock.advance(seconds(1));
  client.send(std::string_view(request).substr(head, 10));
  EXPECT_EQ(client.session.deadline(), start + seconds(8) + world.limits.body);
  client.send(std::string_view(request).substr(head + 10));
  EXPECT_EQ(client.session.deadline(), start + seconds(9) + world.limits.idle);
}

TEST_F(SessionLimitsTest, TimeoutsAreCountedByPhase) {
  client.session.expired();
  EXPECT_EQ(world.faults(HttpFault::header_timeout), 0U) << "an idle connection is no fault";
  Client header(world.context);
  header.send("POST /mu");
  header.session.expired();
  EXPECT_EQ(world.faults(HttpFault::header_timeout), 1U);
  Client body(world.context);
  body.send(post(review_body()).substr(0, 200));
  body.session.expired();
  EXPECT_EQ(world.faults(HttpFault::body_timeout), 1U);
  Client writing(world.context);
  const std::string request = post(review_body());
  std::ranges::copy(request, writing.session.space().begin());
  ASSERT_EQ(writing.session.received(request.size()), Session::Step::write);
  EXPECT_EQ(writing.session.deadline(), world.clock.now() + world.limits.write);
  writing.session.expired();
  EXPECT_EQ(world.faults(HttpFault::write_timeout), 1U);
}

TEST_F(SessionLimitsTest, ConnectionsEndByAgeAndNumberOfRequests) {
  world.limits.max_requests = 3;
  client.send(post(review_body()));
  client.send(post(review_body()));
  EXPECT_EQ(client.take(), leave_answer + leave_answer);
  client.send(post(review_body()));
  EXPECT_THAT(client.out, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(client.closed);
  Client old(world.context);
  world.clock.advance(world.limits.max_age);
  old.send(post(review_body()));
  EXPECT_TRUE(old.closed);
}

TEST_F(SessionLimitsTest, LargeBodiesShareABudget) {
  const std::string body = large_review(100'000);
  world.limits.all_bodies = body.size();
  client.send(post(body).substr(0, 90'000));
  EXPECT_EQ(world.load.body_bytes, body.size());
  Client other(world.context);
  other.send(post(body) + post(review_body()));
  EXPECT_THAT(other.out, testing::StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(other.out, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(other.out, testing::EndsWith(leave_answer)) << "the connection goes on";
  EXPECT_FALSE(other.closed);
  client.send(std::string_view(post(body)).substr(90'000));
  EXPECT_EQ(client.out, leave_answer);
  EXPECT_EQ(world.load.body_bytes, 0U);
  other.take();
  other.send(post(body));
  EXPECT_EQ(other.out, leave_answer) << "there is room again";
}

TEST_F(SessionLimitsTest, OneByteMoreThanTheBudgetIsBusy) {
  const std::string body = large_review(100'000);
  world.limits.all_bodies = body.size() - 1;
  client.send(post(body));
  EXPECT_THAT(client.take(), testing::StartsWith("HTTP/1.1 503 "));
  client.send(post(large_review(1000)));
  EXPECT_EQ(client.out, leave_answer) << "small ones always have room";
  EXPECT_EQ(world.load.body_bytes, 0U);
}

TEST_F(SessionLimitsTest, ChunkedBodiesCountAsTheyGrow) {
  world.limits.all_bodies = 100'000;
  std::string chunk = "8000\r\n" + std::string(0x8000, ' ') + "\r\n";
  client.send(
      "POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n" +
      chunk + chunk + chunk);
  EXPECT_EQ(client.out, "");
  EXPECT_GT(world.load.body_bytes, 90'000U);
  client.send(chunk);
  EXPECT_THAT(client.out, testing::StartsWith("HTTP/1.1 503 "));
  EXPECT_TRUE(client.closed);
}

TEST_F(SessionLimitsTest, AClientThatGoesGivesItsShareBack) {
  const std::string body = large_review(100'000);
  {
    Client gone(world.context);
    gone.send(post(body).substr(0, 70'000));
    EXPECT_GT(world.load.body_bytes, 0U);
  }
  EXPECT_EQ(world.load.body_bytes, 0U);
}

TEST_F(SessionLimitsTest, AnExpectationIsNotMetWithoutRoom) {
  const std::string body = large_review(100'000);
  world.limits.all_bodies = 1;
  client.send(post(body, "Expect: 100-continue\r\n").substr(0, 300));
  EXPECT_THAT(client.out, testing::StartsWith("HTTP/1.1 503 "));
  EXPECT_TRUE(client.closed);
}

TEST_F(SessionLimitsTest, WorkPastItsTimeIsDropped) {
  const std::string request = post(review_body(), {}, "/mutate?timeout=1s");
  client.send(std::string_view(request).substr(0, request.size() - 1));
  world.clock.advance(std::chrono::milliseconds(1000));
  client.send(std::string_view(request).substr(request.size() - 1));
  EXPECT_EQ(client.out, "");
  EXPECT_TRUE(client.closed);
  EXPECT_THAT(world.metrics.text(), HasSubstr("rayhook_http_errors_total{reason=\"too_late\"} 1"));
}

}  // namespace
}  // namespace rayhook::test
