// SPDX-License-Identifier: Apache-2.0
// What connections share.
#include "server/http/connection.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rayhook::test {
namespace {

TEST(ShareTest, NeverMoreThanTheMost) {
  std::atomic<std::size_t> used{0};
  Share first, second;
  EXPECT_TRUE(first.take(used, 6, 10));
  EXPECT_FALSE(second.take(used, 5, 10));
  EXPECT_EQ(used, 6U) << "what was refused counts for nothing";
  EXPECT_TRUE(second.take(used, 4, 10));
  first.release();
  EXPECT_EQ(used, 4U);
  EXPECT_TRUE(second.take(used, 6, 10)) << "a share may grow";
  EXPECT_EQ(second.amount(), 10U);
  {
    const Share moved = std::move(second);
    EXPECT_EQ(used, 10U);
  }
  EXPECT_EQ(used, 0U);
}

class ConnectionTokenTest : public testing::Test {
 protected:
  Load load;
  Limits limits;
  Metrics metrics;
  std::vector<std::unique_ptr<ConnectionToken>> tokens;

  bool take() {
    auto token = ConnectionToken::take(load, limits, metrics);
    const bool taken = token != nullptr;
    if (taken) tokens.push_back(std::move(token));
    return taken;
  }
};

TEST_F(ConnectionTokenTest, AsManyAsAllowedAndThoseThatAreBeingCutOff) {
  limits.connections = 1;
  limits.handshakes = 1;
  EXPECT_TRUE(take());
  EXPECT_TRUE(take());
  EXPECT_FALSE(take());
  EXPECT_EQ(load.connections, 2U) << "the one that was refused holds nothing";
  tokens.pop_back();
  EXPECT_TRUE(take());
  tokens.clear();
  EXPECT_EQ(load.connections, 0U);
  EXPECT_EQ(metrics.connections(), 0);
}

}  // namespace
}  // namespace rayhook::test
