// SPDX-License-Identifier: Apache-2.0
// What a session waits for: who is given up first when there is no room for another.
#include <gtest/gtest.h>

#include "support.hpp"

namespace rayhook::test {
namespace {

using std::chrono::seconds;

class WaitTest : public testing::Test {
 protected:
  World world;
  Client client{world.context};
  TimePoint start = world.clock.now();
  const std::string request = post(review_body());

  std::optional<TimePoint> since() const { return client.session.waits_since(); }
};

TEST_F(WaitTest, ForTheFirstRequestSinceItIsThere) {
  world.clock.advance(seconds(5));
  EXPECT_EQ(since(), start);
}

TEST_F(WaitTest, ForTheRestOfARequestSinceItsFirstByte) {
  world.clock.advance(seconds(5));
  client.send(std::string_view(request).substr(0, 10));
  EXPECT_EQ(since(), start + seconds(5));
  world.clock.advance(seconds(5));
  client.send(std::string_view(request).substr(10, request.size() - 11));
  EXPECT_EQ(since(), start + seconds(5)) << "a byte now and then wins no time";
}

TEST_F(WaitTest, ForTheNextRequestSinceTheLastAnswer) {
  world.clock.advance(seconds(5));
  client.send(request);
  EXPECT_EQ(since(), start + seconds(5));
}

TEST_F(WaitTest, NotWhileTheClientWaitsForUs) {
  world.lookup.now = false;
  client.send(request);
  ASSERT_TRUE(client.waits_for_facts);
  EXPECT_FALSE(since());
}

TEST_F(WaitTest, NotWhileAnAnswerIsWritten) {
  std::ranges::copy(request, client.session.space().begin());
  ASSERT_EQ(client.session.received(request.size()), Session::Step::write);
  EXPECT_FALSE(since());
}

}  // namespace
}  // namespace rayhook::test
