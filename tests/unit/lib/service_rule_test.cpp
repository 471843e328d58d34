// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace rayhook::test {
namespace {

std::string reason_of(const json& service, const Policy& policy = {}, const Facts& facts = {}) {
  const Decided out = decide_object(service, facts, policy);
  EXPECT_EQ(out.patched(), out.reason() == "converted");
  EXPECT_EQ(out.answer["response"]["allowed"], true);
  return out.reason();
}

TEST(ServiceRule, MakesAHeadServiceHeadless) {
  const Decided out = decide_object(head_service(), {});
  EXPECT_EQ(out.reason(), "converted");
  EXPECT_EQ(out.object["spec"]["clusterIP"], "None");
  EXPECT_FALSE(out.object["spec"].contains("clusterIPs"));
  EXPECT_EQ(out.object["spec"]["publishNotReadyAddresses"], true);
  EXPECT_EQ(out.object["metadata"]["annotations"]["rayhook/converted"], "true");
  EXPECT_EQ(out.object["metadata"]["annotations"]["rayhook/decision"], "converted@0.1.0");
}

TEST(ServiceRule, TouchesNothingElse) {
  json service = head_service();
  service["metadata"]["annotations"] = {{"a/b~c", "kept"}};
  service["metadata"]["labels"] = {{"x", "y"}};
  Decided out = decide_object(service, {});
  out.object["metadata"]["annotations"].erase("rayhook/converted");
  out.object["metadata"]["annotations"].erase("rayhook/decision");
  out.object["spec"].erase("clusterIP");
  out.object["spec"].erase("publishNotReadyAddresses");
  EXPECT_EQ(out.object, service);
}

TEST(ServiceRule, KeepsClusterIPsInStep) {
  json service = head_service();
  service["spec"]["clusterIPs"] = json::array();
  EXPECT_EQ(decide_object(service, {}).object["spec"]["clusterIPs"], json::array({"None"}));
}

TEST(ServiceRule, DoesNotRepeatPublishNotReadyAddresses) {
  json service = head_service();
  service["spec"]["publishNotReadyAddresses"] = true;
  for (const PatchOp& op : decide_object(service, {}).decision.patch)
    EXPECT_EQ(op.path.find("publishNotReady"), std::string::npos);
}

TEST(ServiceRule, IsIdempotent) {
  const Decided once = decide_object(head_service(), {});
  const Decided twice = decide_object(once.object, {});
  EXPECT_FALSE(twice.patched());
  EXPECT_EQ(twice.reason(), "already-headless");
}

TEST(ServiceRule, LeavesAChosenIp) {
  json service = head_service();
  service["spec"]["clusterIP"] = "10.0.0.5";
  EXPECT_EQ(reason_of(service), "ip-chosen");
  service["spec"]["clusterIP"] = "";
  EXPECT_EQ(reason_of(service), "converted");
}

TEST(ServiceRule, LeavesOtherTypes) {
  for (const char* type : {"NodePort", "LoadBalancer", "ExternalName"}) {
    json service = head_service();
    service["spec"]["type"] = type;
    EXPECT_EQ(reason_of(service), "service-type") << type;
    EXPECT_EQ(decide_object(service, {}).decision.warnings.size(), 1U);
  }
  json service = head_service();
  service["spec"]["type"] = "ClusterIP";
  EXPECT_EQ(reason_of(service), "converted");
}

TEST(ServiceRule, LeavesExternalIps) {
  json service = head_service();
  service["spec"]["externalIPs"] = json::array({"192.0.2.1"});
  EXPECT_EQ(reason_of(service), "external-ips");
}

TEST(ServiceRule, LeavesWhatHasNoSelector) {
  json service = head_service();
  service["metadata"]["labels"]["ray.io/node-type"] = "head";
  service["spec"].erase("selector");
  EXPECT_EQ(reason_of(service, {.kuberay = KubeRay::convert}), "no-selector");
}

TEST(ServiceRule, LeavesASelectorThatMatchesWorkers) {
  Facts facts;
  facts.matches_workers = true;
  EXPECT_EQ(reason_of(head_service(), {}, facts), "matches-workers");
  json service = head_service();
  service["spec"]["selector"] = {{"app", "ray-cluster"}};  // S4: the selector speaks of no head
  EXPECT_EQ(reason_of(service), "head-unclear");
  EXPECT_EQ(decide_object(service, {}).decision.warnings.size(), 1U);
  EXPECT_EQ(reason_of(service, {}, facts), "matches-workers");
}

TEST(ServiceRule, LeavesPortsThatOnlyAClusterIpMaps) {
  json service = head_service();
  service["spec"]["ports"][0]["targetPort"] = 16379;
  EXPECT_EQ(reason_of(service), "port-differs");
  service["spec"]["ports"][0]["targetPort"] = "gcs";
  EXPECT_EQ(reason_of(service), "named-target-port");
}

TEST(ServiceRule, LeavesServeAndWorkerServices) {
  json service = head_service();
  service["metadata"]["labels"] = {{"ray.io/serve", "x-serve"}, {"ray.io/node-type", "head"}};
  EXPECT_EQ(reason_of(service), "serve-service");
  service = head_service();
  service["spec"]["selector"] = {{"component", "ray-worker"}};
  EXPECT_EQ(reason_of(service), "worker-service");
}

TEST(ServiceRule, LeavesOptedOut) {
  json service = head_service();
  service["metadata"]["annotations"] = {{"rayhook/mode", "ignore"}};
  EXPECT_EQ(reason_of(service), "opted-out");
}

TEST(ServiceRule, FollowsTheKubeRaySwitch) {
  json old_one = head_service();
  old_one["metadata"]["labels"] = {{"ray.io/node-type", "head"}};
  old_one["spec"]["ports"][0]["name"] = "redis";
  json deliberate = old_one;
  deliberate["spec"]["ports"][0]["name"] = "gcs-server";
  EXPECT_EQ(reason_of(old_one), "converted");
  EXPECT_EQ(reason_of(deliberate), "deliberate-kuberay");
  EXPECT_EQ(reason_of(deliberate, {.kuberay = KubeRay::convert}), "converted");
  EXPECT_EQ(reason_of(old_one, {.kuberay = KubeRay::ignore}), "kuberay-ignored");
  // By the selector too.
  deliberate["metadata"].erase("labels");
  deliberate["spec"]["selector"] = {{"ray.io/node-type", "head"}};
  EXPECT_EQ(reason_of(deliberate), "deliberate-kuberay");
  EXPECT_EQ(reason_of(head_service(), {.kuberay = KubeRay::ignore}), "converted");
}

TEST(ServiceRule, LeavesWhatRunningPodsRead) {
  Facts facts;
  facts.running_readers = Known::present;
  facts.running_reader = std::string(200, 'p');
  const Decided out = decide_object(head_service(), facts);
  EXPECT_EQ(out.reason(), "running-readers");
  ASSERT_EQ(out.decision.warnings.size(), 1U);
  EXPECT_LE(out.decision.warnings[0].size(), 120U);
  facts.running_readers = Known::unknown;
  EXPECT_EQ(reason_of(head_service(), {}, facts), "readers-unknown");
}

TEST(ServiceRule, KnowsHeadsByPortAndSelector) {
  json service = head_service();
  service["spec"]["selector"] = {{"component", "ray-header"}};
  service["spec"]["ports"] = json::array({{{"name", "redis"}, {"port", 6379}}});
  EXPECT_EQ(reason_of(service), "not-a-head");  // `header` is not `head`
  service["metadata"]["name"] = "ray-header";
  EXPECT_EQ(reason_of(service), "not-a-head");  // no client port
  service["spec"]["ports"].push_back({{"port", 10001}, {"name", "client"}});
  EXPECT_EQ(reason_of(service), "converted");  // selector value = name, beside a client port
  service["spec"]["selector"] = {{"app", "redis"}};
  EXPECT_EQ(reason_of(service), "not-a-head");
  service["spec"]["selector"] = {{"raycluster.component", "demo-head-0"}};
  EXPECT_EQ(reason_of(service), "converted");
  service["spec"]["ports"] = json::array({{{"port", 22}}});
  EXPECT_EQ(reason_of(service), "not-a-head");  // no GCS port
}

TEST(ServiceRule, AsksForReadersOnlyWhereItWouldConvert) {
  ReviewReader reader;
  const auto ask = [&](const json& service) {
    const Padded text(review_of(service).dump());
    const auto review = reader.parse(text.view());
    EXPECT_TRUE(review);
    return needs(**review, {});
  };
  EXPECT_TRUE(ask(head_service()).running_readers);
  EXPECT_TRUE(ask(head_service()).selected_workers);
  EXPECT_TRUE(ask(converted_service()).none());
  json other = head_service();
  other["spec"]["ports"] = json::array({{{"port", 80}}});
  EXPECT_TRUE(ask(other).none());
}

}  // namespace
}  // namespace rayhook::test
