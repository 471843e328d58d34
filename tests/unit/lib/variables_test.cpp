// SPDX-License-Identifier: Apache-2.0
#include "lib/variables.hpp"

#include <map>

#include "support.hpp"

namespace rayhook::test {
namespace {

std::vector<std::string> mentions(std::string_view text) {
  std::vector<std::string> out;
  MentionFinder finder(text);
  for (Mention mention; finder.next(mention);)
    out.push_back(std::string(mention.name) + "=" + service_name(mention.prefix) +
                  (mention.docker_link ? "+link" : ""));
  return out;
}

using List = std::vector<std::string>;

TEST(Mentions, FindsEachSpelling) {
  EXPECT_EQ(mentions("a $RAY_HEAD_SERVICE_HOST:$RAY_HEAD_SERVICE_PORT b"),
            (List{"RAY_HEAD_SERVICE_HOST=ray-head", "RAY_HEAD_SERVICE_PORT=ray-head"}));
  EXPECT_EQ(mentions("$(X_SERVICE_PORT_GCS_SERVER)"), (List{"X_SERVICE_PORT_GCS_SERVER=x"}));
  EXPECT_EQ(mentions("os.environ[\"X_SERVICE_HOST\"]"), (List{"X_SERVICE_HOST=x"}));
  EXPECT_EQ(mentions("$X_PORT_8265_TCP_ADDR"), (List{"X_PORT_8265_TCP_ADDR=x+link"}));
  EXPECT_EQ(mentions("$X_PORT_8265_UDP"), (List{"X_PORT_8265_UDP=x+link"}));
  EXPECT_EQ(mentions("$ROOT__DB0J1_HEAD_SVC_SERVICE_HOST"),
            (List{"ROOT__DB0J1_HEAD_SVC_SERVICE_HOST=root--db0j1-head-svc"}));
}

TEST(Mentions, PassesOverLookAlikes) {
  EXPECT_TRUE(
      mentions("$RAY_HEAD_SERVICE $RAY_HEAD_SERVICE_HOSTNAME $MY_POD_IP _SERVICE_HOST").empty());
  EXPECT_TRUE(mentions("$KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT_HTTPS").empty());
  EXPECT_TRUE(mentions("$X_PORT $X_PORT_GCS $X_PORT_123456_TCP $1A_SERVICE_HOST").empty());
  EXPECT_TRUE(mentions("$X_SERVICE_HOSTname $A__SERVICE_HOST").empty());
  EXPECT_TRUE(mentions(std::string(64, 'A') + "_SERVICE_HOST").empty());
  EXPECT_EQ(mentions(std::string(63, 'A') + "_SERVICE_HOST").size(), 1U);
}

TEST(Mentions, ReadsWhatCanBeReadTwoWaysBothWays) {
  EXPECT_EQ(mentions("A_SERVICE_HOST_SERVICE_HOST"),
            (List{"A_SERVICE_HOST_SERVICE_HOST=a-service-host"}));
  EXPECT_EQ(
      mentions("A_SERVICE_PORT_B_SERVICE_PORT"),
      (List{"A_SERVICE_PORT_B_SERVICE_PORT=a", "A_SERVICE_PORT_B_SERVICE_PORT=a-service-port-b"}));
}

TEST(Mentions, IsLinearInHostileText) {
  std::string text;
  while (text.size() < 4'000'000) text += "A_SERVICE_PORT_";
  EXPECT_LE(mentions(text).size(), 16U);
  EXPECT_TRUE(mentions(std::string(4'000'000, '_')).empty());
  text.clear();
  while (text.size() < 4'000'000) text += "_S_P";
  EXPECT_TRUE(mentions(text).empty());
}

std::map<std::string, std::string> variables(const json& service, bool links) {
  const auto parsed = parse_service(service.dump());
  std::vector<ServiceVariable> list;
  append_variables(*parsed, "name", links, list);
  std::map<std::string, std::string> out;
  for (const ServiceVariable& variable : list) out[variable.name] = variable.value;
  return out;
}

TEST(Variables, AreThoseOfKubelet) {
  EXPECT_EQ(variables(head_service(), false),
            (std::map<std::string, std::string>{{"RAY_HEAD_SERVICE_HOST", "name"},
                                                {"RAY_HEAD_SERVICE_PORT", "6379"},
                                                {"RAY_HEAD_SERVICE_PORT_GCS_SERVER", "6379"},
                                                {"RAY_HEAD_SERVICE_PORT_CLIENT", "10001"}}));
  const auto links = variables(head_service(), true);
  EXPECT_EQ(links.at("RAY_HEAD_PORT"), "tcp://name:6379");
  EXPECT_EQ(links.at("RAY_HEAD_PORT_10001_TCP"), "tcp://name:10001");
  EXPECT_EQ(links.at("RAY_HEAD_PORT_10001_TCP_PROTO"), "tcp");
  EXPECT_EQ(links.at("RAY_HEAD_PORT_10001_TCP_PORT"), "10001");
  EXPECT_EQ(links.at("RAY_HEAD_PORT_10001_TCP_ADDR"), "name");
  EXPECT_EQ(links.size(), 4U + 1 + 8);
}

TEST(Variables, LeadToTheTargetPort) {
  json service = head_service();
  service["spec"]["ports"][0]["targetPort"] = 1234;
  service["spec"]["ports"][1]["targetPort"] = "named";
  const auto all = variables(service, true);
  EXPECT_EQ(all.at("RAY_HEAD_SERVICE_PORT_GCS_SERVER"), "1234");
  EXPECT_EQ(all.at("RAY_HEAD_PORT_6379_TCP_PORT"), "1234");
  EXPECT_FALSE(all.contains("RAY_HEAD_SERVICE_PORT_CLIENT"));
}

TEST(DnsName, FollowsThePolicy) {
  Policy policy;
  EXPECT_EQ(dns_name("a", "n", policy), "a");
  policy.dns_name = DnsName::with_namespace;
  EXPECT_EQ(dns_name("a", "n", policy), "a.n");
  policy.dns_name = DnsName::fqdn;
  policy.cluster_domain = "app.pre";
  EXPECT_EQ(dns_name("a", "n", policy), "a.n.svc.app.pre");
}

}  // namespace
}  // namespace rayhook::test
