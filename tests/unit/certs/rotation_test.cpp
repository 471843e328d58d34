// SPDX-License-Identifier: Apache-2.0
// The way of a rotation, step by step, with time that passes as the tests say.
#include "certs/rotation.hpp"

#include <gmock/gmock.h>

#include "support.hpp"

namespace rayhook {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Kind = RotationStep::Kind;

/// What the API server keeps, and replicas that see a Secret later than it was written.
class RotationTest : public ::testing::Test {
 protected:
  RotationTest() {
    rules_.names = {"rayhook.ns.svc"};
    state_.bundles = {{"", ""}};
  }

  RotationStep next(const RotationForce& force = {}) const {
    return next_rotation_step(state_, rules_, force, now_);
  }

  /// Does what a step says, as the verb does.
  void act(const RotationStep& step) {
    if (step.kind == Kind::new_authority) {
      state_.authority = must(new_authority(rules_, now_));
    } else if (step.kind == Kind::write_bundles) {
      state_.bundles = step.bundles;
    } else if (step.kind == Kind::new_leaf) {
      state_.leaf = must(new_leaf(state_.authority, rules_, now_));
      state_.leaf_authority = state_.authority.certificate;
    }
  }

  /// Runs until nothing is to be done; the kinds of steps, in order. After each step the API server
  /// must verify the leaf that the replicas serve.
  std::vector<Kind> run(const RotationForce& force = {}) {
    std::vector<Kind> out;
    for (int i = 0; i < 10; ++i) {
      const RotationStep step = next(force);
      if (step.kind == Kind::nothing) return out;
      EXPECT_FALSE(step.why.empty());
      out.push_back(step.kind);
      act(step);
      if (!served_.certificate.empty()) {
        EXPECT_TRUE(verified(served_));
      }
    }
    ADD_FAILURE() << "it does not come to an end";
    return out;
  }

  bool verified(const IssuedPair& leaf) const {
    const KeyPair pair = pair_of(leaf);
    return std::ranges::all_of(*state_.bundles, [&](const std::string& bundle) {
      return check_chain(pair.chain, "leaf", certificates(bundle), now_).has_value();
    });
  }

  std::size_t bundle_size() const { return certificates(state_.bundles->front()).size(); }

  RotationRules rules_;
  RotationState state_;
  IssuedPair served_;
  std::int64_t now_ = kNow;
};

TEST_F(RotationTest, Install) {
  EXPECT_EQ(run(), (std::vector{Kind::new_authority, Kind::write_bundles, Kind::new_leaf}));
  EXPECT_TRUE(verified(state_.leaf));
  EXPECT_EQ(bundle_size(), 1U);
  EXPECT_EQ(state_.bundles->at(0), state_.bundles->at(1));
  EXPECT_EQ(run(), std::vector<Kind>{});
  EXPECT_FALSE(overlap_ends(state_, rules_));
}

TEST_F(RotationTest, WithoutAWebhookConfigurationThereIsACertificateAllTheSame) {
  state_.bundles.reset();
  EXPECT_EQ(run(), (std::vector{Kind::new_authority, Kind::new_leaf}));
  state_.bundles = {{"what stood in the manifest"}};
  EXPECT_EQ(run(), std::vector{Kind::write_bundles});
  EXPECT_TRUE(verified(state_.leaf));
}

TEST_F(RotationTest, TheLeafIsRenewedThirtyDaysEarlyAndNothingElse) {
  run();
  const RotationState before = state_;
  now_ += 60 * kDay;
  EXPECT_EQ(run(), std::vector<Kind>{});
  now_ += 1;
  EXPECT_EQ(run(), std::vector{Kind::new_leaf});
  EXPECT_NE(state_.leaf.key, before.leaf.key);
  EXPECT_EQ(state_.authority.certificate, before.authority.certificate);
  EXPECT_EQ(state_.bundles, before.bundles);
}

TEST_F(RotationTest, TenYearsWithARunEachTenDays) {
  run();
  served_ = state_.leaf;
  std::size_t leaves = 0;
  std::size_t authorities = 0;
  for (int day = 0; day < 3650; day += 10) {
    now_ += 10 * kDay;
    for (const Kind kind : run()) {
      leaves += kind == Kind::new_leaf ? 1 : 0;
      authorities += kind == Kind::new_authority ? 1 : 0;
    }
    ASSERT_TRUE(verified(served_)) << "day " << day << ": the leaf from before";
    served_ = state_.leaf;
    ASSERT_TRUE(verified(served_)) << "day " << day;
    ASSERT_LE(bundle_size(), 2U);
  }
  EXPECT_EQ(authorities, 1U);
  EXPECT_NEAR(static_cast<double>(leaves), 3650 / 70.0, 2);
}

TEST_F(RotationTest, ANewAuthorityOverlaps) {
  run();
  served_ = state_.leaf;
  const RotationForce force{state_.authority.certificate, {}};
  EXPECT_EQ(run(force), (std::vector{Kind::new_authority, Kind::write_bundles, Kind::new_leaf}));
  EXPECT_EQ(bundle_size(), 2U);
  EXPECT_EQ(overlap_ends(state_, rules_), now_ + rules_.overlap);
  EXPECT_EQ(run(force), std::vector<Kind>{}) << "what is asked for is done once";
  now_ += rules_.overlap - 1;
  EXPECT_EQ(run(), std::vector<Kind>{});
  served_ = state_.leaf;  // every replica has it by now
  now_ += 1;
  EXPECT_EQ(run(), std::vector{Kind::write_bundles});
  EXPECT_EQ(bundle_size(), 1U);
  EXPECT_FALSE(overlap_ends(state_, rules_));
}

TEST_F(RotationTest, AnAuthorityStaysWhileAReplicaServesALeafOfIt) {
  run();
  const std::string old = state_.leaf.certificate;
  run({state_.authority.certificate, {}});
  now_ += rules_.overlap;
  state_.served = {{"a:1", state_.leaf.certificate}, {"b:1", old}};
  EXPECT_EQ(run(), std::vector<Kind>{});
  EXPECT_EQ(bundle_size(), 2U);
  EXPECT_EQ(replicas_behind(state_, now_), std::vector<std::string>{"b:1"});
  state_.served[1].chain = state_.leaf.certificate;
  EXPECT_EQ(replicas_behind(state_, now_), std::vector<std::string>{});
  EXPECT_EQ(run(), std::vector{Kind::write_bundles});
  EXPECT_EQ(bundle_size(), 1U);
}

TEST_F(RotationTest, OnlyTheAuthorityOfWhatIsServedStays) {
  run();
  run({state_.authority.certificate, {}});
  const std::string between = state_.authority.certificate;
  served_ = state_.leaf;
  run({between, {}});
  now_ += rules_.overlap;
  state_.served = {{"a:1", served_.certificate}};
  EXPECT_EQ(run(), std::vector{Kind::write_bundles});
  EXPECT_EQ(state_.bundles->front(), state_.authority.certificate + between);
}

TEST_F(RotationTest, WhatNoAuthorityOfTheBundleHasSignedKeepsNone) {
  run();
  const IssuedPair old = state_.authority;
  run({old.certificate, {}});
  now_ += rules_.overlap;
  const IssuedPair ended = must(issue_leaf(old, rules_.names, {now_ - 2 * kDay, now_ - kDay}));
  state_.served = {{"a:1", ""},
                   {"b:1", "nonsense"},
                   {"c:1", leaf(authority("foreign"), rules_.names).certificate},
                   {"d:1", ended.certificate}};
  EXPECT_EQ(replicas_behind(state_, now_), std::vector<std::string>{});
  run();
  EXPECT_EQ(bundle_size(), 1U);
}

TEST_F(RotationTest, SeveralNewAuthoritiesInOneOverlap) {
  run();
  served_ = state_.leaf;
  for (int i = 0; i < 3; ++i) {
    now_ += 60;
    run({state_.authority.certificate, {}});
  }
  EXPECT_EQ(bundle_size(), 4U);
  now_ += rules_.overlap;
  served_ = state_.leaf;
  run();
  EXPECT_EQ(bundle_size(), 1U);
}

TEST_F(RotationTest, AnAuthorityIsReplacedBeforeItCutsALeafShort) {
  run();
  now_ += rules_.authority_life - rules_.leaf_life - rules_.renew_before;
  state_.leaf = must(new_leaf(state_.authority, rules_, now_));
  EXPECT_EQ(next().kind, Kind::nothing);
  now_ += 1;
  EXPECT_EQ(next().kind, Kind::new_authority);
  EXPECT_THAT(next().why, StartsWith("the one before ends at 2037-01-1"));
}

TEST_F(RotationTest, AnEndedAuthorityIsNotCarriedOn) {
  state_.bundles = {{authority("old", {kNow - 2 * kDay, kNow - kDay}).certificate}};
  run();
  EXPECT_EQ(bundle_size(), 1U);
}

TEST_F(RotationTest, AForeignAuthorityStaysForTheOverlap) {
  const std::string foreign = authority("of cert-manager").certificate;
  state_.bundles = {{foreign + foreign, foreign}};
  run();
  EXPECT_EQ(bundle_size(), 2U) << "and only once";
  now_ += rules_.overlap;
  run();
  EXPECT_EQ(bundle_size(), 1U);
}

TEST_F(RotationTest, AnAuthorityWrittenInAnotherWay) {
  run();
  state_.authority.certificate = "made by hand\n" + state_.authority.certificate + "\n\n";
  state_.leaf_authority = state_.authority.certificate;
  EXPECT_EQ(run(), std::vector<Kind>{});
}

TEST_F(RotationTest, WhatIsBrokenIsReplaced) {
  run();
  const RotationState good = state_;
  const IssuedPair other = authority();
  const auto leaf_why = [&](const IssuedPair& pair, const std::string& ca) {
    state_ = good;
    state_.leaf = pair;
    state_.leaf_authority = ca;
    EXPECT_EQ(next().kind, Kind::new_leaf);
    return next().why;
  };
  const std::string& ca = good.authority.certificate;
  EXPECT_EQ(leaf_why({"", ""}, ca), "there is none");
  EXPECT_THAT(leaf_why({"x", good.leaf.key}, ca), HasSubstr("no readable PEM certificate"));
  EXPECT_THAT(leaf_why({good.leaf.certificate, ""}, ca), HasSubstr("no readable PEM private key"));
  EXPECT_THAT(leaf_why({good.leaf.certificate, other.key}, ca), HasSubstr("does not belong"));
  EXPECT_THAT(leaf_why(leaf(other, rules_.names), ca), HasSubstr("is not of this CA"));
  EXPECT_THAT(leaf_why(leaf(good.authority, {"other.svc"}), ca),
              HasSubstr("is not for rayhook.ns.svc"));
  EXPECT_THAT(leaf_why(good.leaf, ""), HasSubstr("ca.crt"));

  const auto authority_why = [&](const IssuedPair& pair) {
    state_ = good;
    state_.authority = pair;
    EXPECT_EQ(next().kind, Kind::new_authority);
    return next().why;
  };
  EXPECT_EQ(authority_why({"", ""}), "there is none");
  EXPECT_THAT(authority_why({ca, other.key}), HasSubstr("does not belong"));
  EXPECT_EQ(authority_why(good.leaf), "what is kept may not sign");
}

TEST_F(RotationTest, ARunThatWasCutOffIsTakenUp) {
  for (std::size_t done = 0; done < 3; ++done) {
    state_ = {};
    state_.bundles = {{""}};
    served_ = {};
    run();
    served_ = state_.leaf;
    const RotationForce force{state_.authority.certificate, {}};
    for (std::size_t i = 0; i < done; ++i) act(next(force));
    run(done == 0 ? force : RotationForce{});
    EXPECT_EQ(bundle_size(), 2U) << done;
    EXPECT_TRUE(verified(state_.leaf)) << done;
  }
}

}  // namespace
}  // namespace rayhook
