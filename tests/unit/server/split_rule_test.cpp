// SPDX-License-Identifier: Apache-2.0
// Which pods beside converted Services need to be made anew.
#include "lib/split_rule.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace rayhook::test {
namespace {

constexpr const char* kBefore = "2026-05-01T11:59:59Z";
constexpr const char* kMade = "2026-05-01T12:00:00Z";
constexpr const char* kAfter = "2026-05-01T12:00:01Z";

class SplitRuleTest : public testing::Test {
 protected:
  Policy policy;
  ReviewReader reader;
  std::vector<ServiceFact> services;

  SplitRuleTest() { add("ray-head", kMade); }

  void add(const std::string& name, const std::string& created) {
    const auto service = parse_service(R"({"metadata":{"name":")" + name +
                                       R"(","namespace":"a","uid":"1","creationTimestamp":")" +
                                       created + R"(","annotations":{"rayhook/converted":"true"}},
      "spec":{"clusterIP":"None","selector":{"app":"head"},"ports":[{"name":"gcs-server","port":6379}]}})");
    ASSERT_TRUE(service) << service.error().what;
    ServiceFact fact;
    fact.name = name;
    fact.known = Known::present;
    fact.service = std::make_shared<const Service>(*service);
    services.push_back(std::move(fact));
  }
  /// A pod with this script; `more`: members of the container and of the pod.
  Split of(const std::string& created, const std::string& script, const std::string& container = {},
           const std::string& pod = {}) {
    std::string text =
        R"({"metadata":{"name":"p","namespace":"a","creationTimestamp":")" + created +
        R"("},"spec":{"containers":[{"name":"c","image":"i","command":["sh","-c",")" + script +
        "\"]" + container + "}]}" + pod + "}";
    text.reserve(text.size() + kPadding);
    const auto review = reader.parse_pod(text);
    EXPECT_TRUE(review && (*review)->malformed.empty()) << text;
    return split(**review, policy, services);
  }
};

TEST_F(SplitRuleTest, WhoseTextNamesAVariableIsOneAtAnyAge) {
  for (const char* created : {kBefore, kMade, kAfter}) {
    EXPECT_EQ(of(created, "ray start --address=$RAY_HEAD_SERVICE_HOST:6379"), Split::named);
    EXPECT_EQ(of(created, "python -c 'os.environ[RAY_HEAD_SERVICE_PORT_GCS_SERVER]'"),
              Split::named);
    EXPECT_EQ(of(created, "echo $RAY_HEAD_PORT_6379_TCP_ADDR"), Split::named);
    EXPECT_EQ(of(created, "echo ${RAY_HEAD_PORT}"), Split::named);
  }
}

TEST_F(SplitRuleTest, ASilentOneOnlyIfItCameAfterTheService) {
  EXPECT_EQ(of(kBefore, "postgres"), Split::older);
  EXPECT_EQ(of(kMade, "postgres"), Split::older);
  EXPECT_EQ(of(kAfter, "postgres"), Split::suspected);
  EXPECT_EQ(of("", "postgres"), Split::older) << "an unknown age is no reason to make it anew";
}

TEST_F(SplitRuleTest, OtherNamesAreNotThisServices) {
  EXPECT_EQ(of(kBefore, "echo $OTHER_SERVICE_HOST $MY_RAY_HEAD_PORT $RAY_HEAD_PORTS"),
            Split::older);
}

TEST_F(SplitRuleTest, OwnNamesAreNoReference) {
  EXPECT_EQ(
      of(kBefore, "echo $RAY_HEAD_PORT $RAY_HEAD_SERVICE_HOST",
         R"(,"env":[{"name":"RAY_HEAD_PORT","value":"1"},{"name":"RAY_HEAD_SERVICE_HOST","value":"x"}])"),
      Split::older);
}

TEST_F(SplitRuleTest, WhoHasTheVariablesLacksNothing) {
  EXPECT_EQ(of(kAfter, "echo $RAY_HEAD_SERVICE_HOST",
               R"(,"env":[{"name":"RAY_HEAD_SERVICE_HOST","value":"ray-head"},
                  {"name":"RAY_HEAD_SERVICE_PORT","value":"6379"},
                  {"name":"RAY_HEAD_SERVICE_PORT_GCS_SERVER","value":"6379"}])"),
            Split::no);
}

TEST_F(SplitRuleTest, ASecondServiceMadeLaterIsJudgedByItself) {
  const std::string cared = R"(,"env":[{"name":"RAY_HEAD_SERVICE_HOST","value":"ray-head"},
                  {"name":"RAY_HEAD_SERVICE_PORT","value":"6379"},
                  {"name":"RAY_HEAD_SERVICE_PORT_GCS_SERVER","value":"6379"}])";
  add("second", "2026-06-01T00:00:00Z");
  EXPECT_EQ(of(kAfter, "echo $RAY_HEAD_SERVICE_HOST", cared), Split::older);
  EXPECT_EQ(of("2026-06-01T00:00:01Z", "echo $RAY_HEAD_SERVICE_HOST", cared), Split::suspected);
  EXPECT_EQ(of(kAfter, "echo $SECOND_SERVICE_HOST", cared), Split::named);
}

TEST_F(SplitRuleTest, EndedAndEndingPodsAreNoConcern) {
  EXPECT_EQ(of(kAfter, "echo $RAY_HEAD_SERVICE_HOST", {}, R"(,"status":{"phase":"Succeeded"})"),
            Split::no);
}

}  // namespace
}  // namespace rayhook::test
