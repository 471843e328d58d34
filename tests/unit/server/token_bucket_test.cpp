// SPDX-License-Identifier: Apache-2.0
// How many requests to the API server reviews may cause.
#include "server/token_bucket.hpp"

#include <gtest/gtest.h>

namespace rayhook::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class TokenBucketTest : public testing::Test {
 protected:
  TokenBucket bucket{10, 5};
  TimePoint now{seconds(1000)};

  int taken(int wanted) {
    int out = 0;
    for (int i = 0; i < wanted; ++i) out += bucket.take(now) ? 1 : 0;
    return out;
  }
};

TEST_F(TokenBucketTest, SoManyAtOnce) {
  EXPECT_EQ(taken(100), 5);
  EXPECT_EQ(taken(100), 0);
}

TEST_F(TokenBucketTest, ThenSoManyASecond) {
  EXPECT_EQ(taken(5), 5);
  now += milliseconds(99);
  EXPECT_EQ(taken(1), 0);
  now += milliseconds(2);
  EXPECT_EQ(taken(2), 1);
  int in_ten_seconds = 0;
  for (int i = 0; i < 1000; ++i) {
    now += milliseconds(10);
    in_ten_seconds += taken(3);
  }
  EXPECT_GE(in_ten_seconds, 99);
  EXPECT_LE(in_ten_seconds, 101);
}

TEST_F(TokenBucketTest, AQuietWhileSavesNoMoreThanThat) {
  EXPECT_EQ(taken(5), 5);
  now += hours(24);
  EXPECT_EQ(taken(100), 5);
}

TEST_F(TokenBucketTest, RefusedOnesCostNothing) {
  EXPECT_EQ(taken(1000), 5);
  now += milliseconds(101);
  EXPECT_EQ(taken(1), 1);
}

}  // namespace
}  // namespace rayhook::test
