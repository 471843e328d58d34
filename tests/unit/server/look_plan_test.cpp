// SPDX-License-Identifier: Apache-2.0
// When which namespaces are looked at for split pods.
#include "server/cluster/look_plan.hpp"

#include <gmock/gmock.h>

namespace rayhook::test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Tell = LookPlan::Tell;

class LookPlanTest : public testing::Test {
 protected:
  LookPlan plan{seconds(600)};
  TimePoint now{seconds(1000)};

  std::vector<LookPlan::Look> due() { return plan.take_due({"b", "a"}, now); }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const LookPlan::Look& look : due()) out.push_back(look.ns);
    return out;
  }
  /// The first round, in which `a` has two split pods and `b` none.
  void begin() {
    plan.round_now();
    ASSERT_THAT(names(), ElementsAre("a", "b"));
    plan.counted({"a", Tell::split}, 2, now);
    plan.counted({"b", Tell::split}, 0, now);
    ASSERT_EQ(plan.found(), 2);
  }
};

TEST_F(LookPlanTest, NothingIsDueBeforeTheFirstRoundIsAskedFor) {
  EXPECT_EQ(plan.next(), TimePoint::max());
  EXPECT_THAT(names(), IsEmpty());
  plan.round_now();
  EXPECT_LE(plan.next(), now);
  EXPECT_THAT(names(), ElementsAre("a", "b"));
  EXPECT_EQ(plan.next(), now + seconds(600));
}

TEST_F(LookPlanTest, WhereSplitPodsAreIsCountedAgainEachMinute) {
  begin();
  EXPECT_EQ(plan.next(), now + seconds(60));
  now += seconds(60);
  const auto looks = due();
  ASSERT_EQ(looks.size(), 1U);
  EXPECT_EQ(looks[0].ns, "a");
  EXPECT_EQ(looks[0].tell, Tell::nothing) << "they were told of already";
  plan.counted(looks[0], 0, now);
  EXPECT_EQ(plan.found(), 0);
  EXPECT_EQ(plan.next(), now + seconds(540)) << "the next round";
}

TEST_F(LookPlanTest, AListThatFailsTakesNothingBackAndIsTriedAgainSoon) {
  begin();
  now += seconds(60);
  plan.failed(due().at(0), 0, now);
  EXPECT_EQ(plan.found(), 2);
  EXPECT_EQ(plan.next(), now + seconds(5));
  now += seconds(5);
  plan.failed(due().at(0), 1, now);
  EXPECT_EQ(plan.found(), 2);
  EXPECT_EQ(plan.next(), now + seconds(60)) << "no hammering";
  now += seconds(60);
  plan.counted(due().at(0), 1, now);
  EXPECT_EQ(plan.found(), 1);
}

TEST_F(LookPlanTest, WhatAFailedListShowedCounts) {
  plan.round_now();
  for (const LookPlan::Look& look : due()) plan.failed(look, 3, now);
  EXPECT_EQ(plan.found(), 6);
  now += seconds(5);
  const auto looks = due();
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_EQ(looks[0].tell, Tell::split) << "the rest of them was not told of";
}

TEST_F(LookPlanTest, AConversionIsLookedAtSoonAndOlderPodsAreToldOf) {
  begin();
  plan.converted("a", now);
  now += seconds(1);
  EXPECT_THAT(names(), IsEmpty());
  now += seconds(1);
  const auto looks = due();
  ASSERT_EQ(looks.size(), 1U);
  EXPECT_EQ(looks[0].tell, Tell::older);
}

TEST_F(LookPlanTest, ANamespaceWithoutConvertedServicesIsForgotten) {
  begin();
  now += seconds(60);
  EXPECT_THAT(plan.take_due({"b"}, now), IsEmpty());
  EXPECT_EQ(plan.found(), 0);
}

TEST_F(LookPlanTest, RoundsThatAreShorterHurryTheRest) {
  LookPlan quick(seconds(1));
  quick.counted({"a", Tell::split}, 1, now);
  quick.failed({"b", Tell::split}, 1, now);
  EXPECT_EQ(quick.next(), now + seconds(1));
}

TEST_F(LookPlanTest, IsBounded) {
  for (std::size_t i = 0; i < 2 * LookPlan::kMost; ++i)
    plan.converted("n" + std::to_string(i), now);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < 2 * LookPlan::kMost; ++i) all.push_back("n" + std::to_string(i));
  EXPECT_EQ(plan.take_due(all, now + seconds(2)).size(), LookPlan::kMost);
}

}  // namespace
}  // namespace rayhook::test
