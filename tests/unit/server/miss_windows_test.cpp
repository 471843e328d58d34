// SPDX-License-Identifier: Apache-2.0
// How long a Service that is not there is waited for.
#include "server/cluster/miss_windows.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rayhook::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MissWindowsTest : public testing::Test {
 protected:
  MissWindows windows{UnknownService{}};
  TimePoint now{seconds(1000)};
};

TEST_F(MissWindowsTest, TheFirstMissOpensAWindow) {
  for (const auto age : {milliseconds(0), milliseconds(19'999)}) {
    const MissWindows::Window window = windows.missed("a", "ray-head", now + age);
    EXPECT_TRUE(window.hold);
    EXPECT_TRUE(window.retry);
  }
}

TEST_F(MissWindowsTest, ThenTheNameIsLeftInPeaceForTenMinutes) {
  (void)windows.missed("a", "ray-head", now);
  for (const auto age : {seconds(20), seconds(21), seconds(619)}) {
    const MissWindows::Window window = windows.missed("a", "ray-head", now + age);
    EXPECT_FALSE(window.hold);
    EXPECT_FALSE(window.retry);
  }
  EXPECT_TRUE(windows.missed("a", "ray-head", now + seconds(620)).retry);
}

TEST_F(MissWindowsTest, ANameThatWasSeenBeginsAnew) {
  (void)windows.missed("a", "ray-head", now);
  windows.seen("a", "ray-head");
  EXPECT_EQ(windows.size(), 0U);
  EXPECT_TRUE(windows.missed("a", "ray-head", now + seconds(30)).hold);
}

TEST_F(MissWindowsTest, EachNameOfEachNamespaceHasItsOwn) {
  (void)windows.missed("a", "ray-head", now);
  const TimePoint later = now + seconds(30);
  EXPECT_FALSE(windows.missed("a", "ray-head", later).retry);
  EXPECT_TRUE(windows.missed("a", "other", later).retry);
  EXPECT_TRUE(windows.missed("b", "ray-head", later).retry);
}

TEST_F(MissWindowsTest, EachHalfCanBeTurnedOff) {
  MissWindows no_hold(UnknownService{.hold_ms = 0, .retry_for_ms = 20'000});
  EXPECT_FALSE(no_hold.missed("a", "s", now).hold);
  EXPECT_TRUE(no_hold.missed("a", "s", now).retry);
  MissWindows no_retry(UnknownService{.hold_ms = 2'000, .retry_for_ms = 0});
  EXPECT_TRUE(no_retry.missed("a", "s", now + milliseconds(1'999)).hold);
  EXPECT_FALSE(no_retry.missed("a", "s", now + milliseconds(1'999)).retry);
  MissWindows neither(UnknownService{.hold_ms = 0, .retry_for_ms = 0});
  EXPECT_FALSE(neither.missed("a", "s", now).hold);
  EXPECT_EQ(neither.size(), 0U);
}

TEST_F(MissWindowsTest, AreBounded) {
  for (std::size_t i = 0; i <= MissWindows::kNames; ++i)
    (void)windows.missed("a", "s" + std::to_string(i), now);
  EXPECT_EQ(windows.size(), MissWindows::kNames);
  EXPECT_FALSE(windows.missed("a", "s1", now + seconds(30)).retry) << "still remembered";
  EXPECT_TRUE(windows.missed("a", "s0", now + seconds(30)).retry) << "the oldest went";
}

}  // namespace
}  // namespace rayhook::test
