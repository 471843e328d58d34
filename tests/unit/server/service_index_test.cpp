// SPDX-License-Identifier: Apache-2.0
// What is kept of the watched Services.
#include "server/cluster/service_index.hpp"

#include <gtest/gtest.h>

namespace rayhook::test {
namespace {

Service head(std::string ns, std::string name, bool converted = true) {
  Service out;
  out.ns = std::move(ns);
  out.name = std::move(name);
  out.uid = "1";
  out.cluster_ip = "None";
  out.selector = {{"app", "ray-head"}};
  out.labels = {{"app", "x"}, {"ray.io/cluster", "c"}};
  out.annotations = {{"kubectl.kubernetes.io/last-applied-configuration", std::string(4096, 'x')}};
  if (converted) out.annotations.emplace_back("rayhook/converted", "true");
  ServicePort port;
  port.name = "gcs-server";
  port.port = port.target = 6379;
  out.ports = {port};
  return out;
}

class ServiceIndexTest : public testing::Test {
 protected:
  Policy policy;
  ServiceIndex index{policy};
};

TEST_F(ServiceIndexTest, KnowsEachNamespacesOwn) {
  index.put(head("a", "one"));
  index.put(head("a", "two"));
  index.put(head("b", "one"));
  EXPECT_EQ(index.size(), 3U);
  EXPECT_EQ(index.of("a").size(), 2U);
  EXPECT_EQ(index.of("c").size(), 0U);
  EXPECT_TRUE(index.find("b", "one"));
  EXPECT_FALSE(index.find("b", "two"));
  index.remove("a", "one");
  index.remove("a", "one");
  EXPECT_EQ(index.size(), 2U);
  EXPECT_FALSE(index.find("a", "one"));
}

TEST_F(ServiceIndexTest, KeepsOnlyWhatPodsAreCaredForBy) {
  Service other = head("a", "database", false);
  other.selector = {{"app", "db"}};
  other.ports[0].name = "sql";
  other.ports[0].port = 5432;
  index.put(other);
  EXPECT_EQ(index.size(), 0U);
  index.put(head("a", "foreign", false));
  EXPECT_EQ(index.size(), 1U);
  EXPECT_TRUE(index.converted_namespaces().empty()) << "headless, but not by us";
}

TEST_F(ServiceIndexTest, FollowsALostAnnotationAndALostHeadlessness) {
  index.put(head("a", "s"));
  EXPECT_EQ(index.converted_namespaces(), std::vector<std::string>{"a"});
  index.put(head("a", "s", false));
  EXPECT_TRUE(index.converted_namespaces().empty());
  EXPECT_EQ(index.size(), 1U);
  Service with_ip = head("a", "s");
  with_ip.cluster_ip = "10.0.0.1";
  index.put(with_ip);
  EXPECT_EQ(index.size(), 0U);
}

TEST_F(ServiceIndexTest, KeepsNoMoreOfThemThanIsLookedAt) {
  index.put(head("a", "s"));
  const auto fact = index.find("a", "s");
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->service->annotations.size(), 1U);
  EXPECT_EQ(fact->service->labels.size(), 1U);
  EXPECT_TRUE(fact->service->converted());
}

TEST_F(ServiceIndexTest, AListReplacesAll) {
  index.put(head("a", "old"));
  CaredServices fresh(policy);
  fresh.put(head("b", "new"));
  index.replace(std::move(fresh));
  EXPECT_FALSE(index.find("a", "old"));
  EXPECT_TRUE(index.find("b", "new"));
  EXPECT_EQ(index.size(), 1U);
}

}  // namespace
}  // namespace rayhook::test
