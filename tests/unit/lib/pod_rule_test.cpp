// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <gmock/gmock.h>

namespace rayhook::test {
namespace {

const std::string address_text =
    "ray start --num-cpus=$MY_CPU "
    "--address=$RAY_HEAD_SERVICE_HOST:$RAY_HEAD_SERVICE_PORT_GCS_SERVER"
    " --block";

Facts ray_head() { return facts_of({converted_service()}); }

Decided run(const json& pod, const Policy& policy = {}) {
  return decide_object(pod, ray_head(), policy);
}

/// What the arg of a bash script becomes.
std::string script(const std::string& text) {
  const Decided out = run(shell_pod(text));
  return out.arg();
}

json exec_pod(json command) {
  json pod = shell_pod("");
  pod["spec"]["containers"][0].erase("args");
  pod["spec"]["containers"][0]["command"] = std::move(command);
  return pod;
}

TEST(PodRule, RewritesTheClassicAddress) {
  const Decided out = run(shell_pod(address_text));
  EXPECT_EQ(out.reason(), "rewritten");
  EXPECT_EQ(out.arg(), "ray start --num-cpus=$MY_CPU --address=ray-head:6379 --block");
  EXPECT_EQ(out.object["metadata"]["annotations"]["rayhook/decision"], "rewritten@0.1.0");
}

TEST(PodRule, RestoresTheVariables) {
  const Decided out = run(shell_pod(address_text));
  const json expected = json::parse(R"([
    {"name":"RAY_HEAD_SERVICE_HOST","value":"ray-head"},
    {"name":"RAY_HEAD_SERVICE_PORT","value":"6379"},
    {"name":"RAY_HEAD_SERVICE_PORT_GCS_SERVER","value":"6379"},
    {"name":"RAY_HEAD_SERVICE_PORT_CLIENT","value":"10001"}])");
  EXPECT_EQ(out.object["spec"]["containers"][0]["env"], expected);
}

TEST(PodRule, IsIdempotent) {
  const Decided once =
      run(shell_pod(address_text + "; python -c 'os.environ[\"RAY_HEAD_SERVICE_HOST\"]'"));
  const Decided twice = run(once.object);
  EXPECT_FALSE(twice.patched());
  EXPECT_EQ(twice.reason(), "already-done");
}

TEST(PodRule, HandlesAContainerAddedLaterAlone) {
  Decided once = run(shell_pod(address_text));
  json sidecar = shell_pod(address_text)["spec"]["containers"][0];
  sidecar["name"] = "sidecar";
  auto& containers = once.object["spec"]["containers"];
  containers.insert(containers.begin(), sidecar);
  const Decided twice = run(once.object);
  EXPECT_EQ(twice.object["spec"]["containers"][0]["args"][0],
            "ray start --num-cpus=$MY_CPU --address=ray-head:6379 --block");
  for (const PatchOp& op : twice.decision.patch)
    EXPECT_TRUE(op.path.starts_with("/spec/containers/0/")) << op.path;
}

TEST(PodRule, RewritesEachSpellingWhereItsExpanderRuns) {
  EXPECT_EQ(script("a ${RAY_HEAD_SERVICE_HOST}:6379"), "a ray-head:6379");
  EXPECT_EQ(script("a \"$RAY_HEAD_SERVICE_HOST\":$RAY_HEAD_SERVICE_PORT"), "a \"ray-head\":6379");
  EXPECT_EQ(script("a $(RAY_HEAD_SERVICE_HOST):$(RAY_HEAD_SERVICE_PORT_CLIENT)"),
            "a ray-head:10001");
  EXPECT_EQ(script("nc -z $RAY_HEAD_SERVICE_HOST $RAY_HEAD_SERVICE_PORT_GCS_SERVER"),
            "nc -z ray-head 6379");
  EXPECT_EQ(script("curl http://$RAY_HEAD_SERVICE_HOST:8000/hello"),
            "curl http://ray-head:8000/hello");
  EXPECT_EQ(script("x --address=$RAY_HEAD_SERVICE_HOST:$RAY_PORT"),
            "x --address=ray-head:$RAY_PORT");
  EXPECT_EQ(script("a '$(RAY_HEAD_SERVICE_HOST)'"), "a 'ray-head'");
  EXPECT_EQ(script("a $$RAY_HEAD_SERVICE_HOST"), "a ray-head");
}

TEST(PodRule, LeavesWhatNoExpanderReads) {
  for (const char* text :
       {"a '$RAY_HEAD_SERVICE_HOST'", "a \\$RAY_HEAD_SERVICE_HOST", "a $$(RAY_HEAD_SERVICE_HOST)",
        "a $RAY_HEAD_SERVICE_HOSTNAME", "a # $RAY_HEAD_SERVICE_HOST",
        "export RAY_HEAD_SERVICE_HOST=x; a $RAY_HEAD_SERVICE_HOST", "a ${RAY_HEAD_SERVICE_HOST:-b}",
        "cat <<'E'\n$RAY_HEAD_SERVICE_HOST\nE\n",
        "curl $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"}) {
    const Decided out = run(shell_pod(text));
    EXPECT_EQ(out.arg(), text);
    EXPECT_EQ(out.reason(), "restored");  // doubt costs nothing
    EXPECT_EQ(out.env("RAY_HEAD_SERVICE_HOST"), "ray-head");
  }
}

TEST(PodRule, RewritesExecArraysForKubeletOnly) {
  const Decided paren = run(exec_pod({"ray", "start", "--address=$(RAY_HEAD_SERVICE_HOST):6379"}));
  EXPECT_EQ(paren.command(2), "--address=ray-head:6379");
  const Decided plain = run(exec_pod({"ray", "start", "--address=$RAY_HEAD_SERVICE_HOST:6379"}));
  EXPECT_EQ(plain.command(2), "--address=$RAY_HEAD_SERVICE_HOST:6379");
  ASSERT_EQ(plain.decision.warnings.size(), 1U);
  EXPECT_NE(plain.decision.warnings[0].find("no shell found"), std::string::npos);
}

TEST(PodRule, MatchesWholeNamesOnly) {
  json redis = converted_service();
  redis["spec"]["ports"] =
      json::array({{{"name", "redis"}, {"port", 1}}, {{"name", "redis-primary"}, {"port", 2}}});
  const Decided out =
      decide_object(shell_pod("a $RAY_HEAD_SERVICE_PORT_REDIS_PRIMARY $RAY_HEAD_SERVICE_PORT_REDIS"
                              " $MY_RAY_HEAD_SERVICE_HOST"),
                    facts_of({redis}));
  EXPECT_EQ(out.arg(), "a 2 1 $MY_RAY_HEAD_SERVICE_HOST");
}

TEST(PodRule, NeverRewritesHalfAnAddress) {
  const Facts two = facts_of({converted_service("a"), converted_service("b")});
  const auto arg = [&](const std::string& text) {
    return decide_object(shell_pod(text), two).arg();
  };
  EXPECT_EQ(arg("x $A_SERVICE_HOST:$A_SERVICE_PORT"), "x a:6379");
  for (const char* text :
       {"x $A_SERVICE_HOST:$B_SERVICE_PORT", "x $A_SERVICE_HOST:$A_SERVICE_PORT_NOPE",
        "x $(A_SERVICE_HOST):$C_SERVICE_PORT", "x $C_SERVICE_HOST:$A_SERVICE_PORT",
        "x ${C_SERVICE_HOST}:$A_SERVICE_PORT"})
    EXPECT_EQ(arg(text), text);
}

TEST(PodRule, TakesIpv6BracketsAway) {
  EXPECT_EQ(script("a [$RAY_HEAD_SERVICE_HOST]:6379"), "a ray-head:6379");
  EXPECT_EQ(script("a http://[$(RAY_HEAD_SERVICE_HOST)]:$(RAY_HEAD_SERVICE_PORT)/x"),
            "a http://ray-head:6379/x");
  EXPECT_EQ(script("a \"[$RAY_HEAD_SERVICE_HOST]\":6379"), "a \"ray-head\":6379");
  EXPECT_EQ(script("a http://[$RAY_HEAD_SERVICE_HOST]/x"), "a http://ray-head/x");
  EXPECT_EQ(script("a ray://[$RAY_HEAD_SERVICE_HOST]"), "a ray://ray-head");
  // Not those of an address.
  EXPECT_EQ(script("[ $RAY_HEAD_SERVICE_HOST ]"), "[ ray-head ]");
  EXPECT_EQ(script("a --hosts=[$RAY_HEAD_SERVICE_HOST]"), "a --hosts=[ray-head]");
  EXPECT_EQ(script("a x[$(RAY_HEAD_SERVICE_HOST)]:1"), "a x[ray-head]:1");
}

TEST(PodRule, RewritesEnvValues) {
  json pod = exec_pod({"python", "app.py"});
  pod["spec"]["containers"][0]["env"] =
      json::array({{{"name", "RAY_ADDRESS"},
                    {"value", "ray://$(RAY_HEAD_SERVICE_HOST):$(RAY_HEAD_SERVICE_PORT_CLIENT)"}},
                   {{"name", "TEXT"}, {"value", "$RAY_HEAD_SERVICE_HOST"}}});
  const Decided out = run(pod);
  EXPECT_EQ(out.env("RAY_ADDRESS"), "ray://ray-head:10001");
  EXPECT_EQ(out.env("TEXT"), "$RAY_HEAD_SERVICE_HOST");
  EXPECT_EQ(out.object["spec"]["containers"][0]["env"][0]["name"], "RAY_HEAD_SERVICE_HOST");
}

TEST(PodRule, LeavesNamesThatTheContainerDefines) {
  json pod = shell_pod(address_text);
  pod["spec"]["containers"][0]["env"] =
      json::array({{{"name", "RAY_HEAD_SERVICE_HOST"}, {"value", "mine"}}});
  const Decided out = run(pod);
  EXPECT_EQ(out.arg(), address_text);
  EXPECT_EQ(out.env("RAY_HEAD_SERVICE_HOST"), "mine");
  EXPECT_EQ(out.env("RAY_HEAD_SERVICE_PORT_GCS_SERVER"), "6379");
}

TEST(PodRule, KnowsThatEnvValuesSeeEarlierEntriesOnly) {
  json pod = exec_pod({"a"});
  pod["spec"]["containers"][0]["env"] =
      json::array({{{"name", "A"}, {"value", "$(RAY_HEAD_SERVICE_HOST)"}},
                   {{"name", "RAY_HEAD_SERVICE_HOST"}, {"value", "mine"}},
                   {{"name", "B"}, {"value", "$(RAY_HEAD_SERVICE_HOST)"}}});
  const Decided out = run(pod);
  EXPECT_EQ(out.env("A"), "ray-head");
  EXPECT_EQ(out.env("B"), "$(RAY_HEAD_SERVICE_HOST)");
}

TEST(PodRule, ReachesInitContainersProbesAndHooks) {
  json pod = shell_pod(address_text);
  pod["spec"]["initContainers"] = json::array(
      {{{"name", "wait"},
        {"command",
         json::array({"sh", "-c", "until nc -z $RAY_HEAD_SERVICE_HOST 6379; do :; done"})}}});
  auto& container = pod["spec"]["containers"][0];
  container["livenessProbe"]["exec"]["command"] = {"bash", "-c", "nc -z $RAY_HEAD_SERVICE_HOST 1"};
  container["lifecycle"]["preStop"]["exec"]["command"] = {"sh", "-c",
                                                          "nc ${RAY_HEAD_SERVICE_HOST} 1"};
  container["lifecycle"]["postStart"]["exec"]["command"] = {"a", "$(RAY_HEAD_SERVICE_HOST)"};
  const Decided out = run(pod);
  EXPECT_EQ(out.object["spec"]["initContainers"][0]["command"][2],
            "until nc -z ray-head 6379; do :; done");
  const json& after = out.object["spec"]["containers"][0];
  EXPECT_EQ(after["livenessProbe"]["exec"]["command"][2], "nc -z ray-head 1");
  EXPECT_EQ(after["lifecycle"]["preStop"]["exec"]["command"][2], "nc ray-head 1");
  // Kubelet expands nothing in hooks.
  EXPECT_EQ(after["lifecycle"]["postStart"]["exec"]["command"][1], "$(RAY_HEAD_SERVICE_HOST)");
  EXPECT_EQ(out.object["spec"]["initContainers"][0]["env"].size(), 4U);
}

TEST(PodRule, RestoresForPythonReaders) {
  const json pod = exec_pod({"python", "-c", "import os; os.environ[\"RAY_HEAD_SERVICE_HOST\"]"});
  const Decided out = run(pod);
  EXPECT_EQ(out.reason(), "restored");
  EXPECT_EQ(out.command(2), "import os; os.environ[\"RAY_HEAD_SERVICE_HOST\"]");
  EXPECT_EQ(out.env("RAY_HEAD_SERVICE_HOST"), "ray-head");
}

TEST(PodRule, RestoresWhereNothingIsMentioned) {
  const Decided out = run(exec_pod({"/script.sh"}));
  EXPECT_EQ(out.reason(), "restored");
  EXPECT_EQ(out.env("RAY_HEAD_SERVICE_PORT_CLIENT"), "10001");
  EXPECT_EQ(out.env("RAY_HEAD_PORT"), "(none)");
}

TEST(PodRule, RestoresDockerLinksWhereOneIsMentioned) {
  const Decided out =
      run(shell_pod("curl http://$RAY_HEAD_PORT_10001_TCP_ADDR:10001 $RAY_HEAD_PORT"));
  EXPECT_EQ(out.arg(), "curl http://ray-head:10001 $RAY_HEAD_PORT");
  EXPECT_EQ(out.env("RAY_HEAD_PORT"), "tcp://ray-head:6379");
  EXPECT_EQ(run(shell_pod("true"), {.docker_links = DockerLinks::always}).env("RAY_HEAD_PORT"),
            "tcp://ray-head:6379");
}

TEST(PodRule, KnowsABarePortNameBesideItsService) {
  const Decided out = run(exec_pod({"ray", "--url=$(RAY_HEAD_PORT)"}));
  EXPECT_EQ(out.command(1), "--url=tcp://ray-head:6379");
  EXPECT_EQ(out.env("RAY_HEAD_PORT"), "tcp://ray-head:6379");
  EXPECT_EQ(run(exec_pod({"a", "$(RAY_HEAD_PORT_X) $(MY_RAY_HEAD_PORT)"})).env("RAY_HEAD_PORT"),
            "(none)");
}

TEST(PodRule, LeavesNothingUnexpandedThatCannotBeRestored) {
  json pod = exec_pod({"a"});
  pod["spec"]["containers"][0]["env"] =
      json::array({{{"name", "U"}, {"value", "$(A_SERVICE_HOST):$(B_SERVICE_PORT)"}},
                   {{"name", "A_SERVICE_HOST"}, {"value", "mine"}}});
  const Decided out =
      decide_object(pod, facts_of({converted_service("a"), converted_service("b")}));
  EXPECT_TRUE(out.env("U").starts_with("a:")) << out.env("U");
}

TEST(PodRule, LeavesPodsOfServicesThatKeepTheirIp) {
  json stored = head_service();
  stored["metadata"]["uid"] = "s-1";
  stored["spec"]["clusterIP"] = "10.0.0.7";
  stored["spec"]["type"] = "NodePort";
  const Decided out = decide_object(shell_pod(address_text), facts_of({stored}));
  EXPECT_EQ(out.reason(), "service-left");
  EXPECT_FALSE(out.patched());
}

TEST(PodRule, CaresForConvertibleServicesAndSaysSo) {
  json stored = head_service();
  stored["metadata"]["uid"] = "s-1";
  stored["spec"]["clusterIP"] = "10.0.0.7";
  const Decided out = decide_object(shell_pod(address_text), facts_of({stored}));
  EXPECT_EQ(out.reason(), "rewritten");
  EXPECT_EQ(out.env("RAY_HEAD_SERVICE_HOST"), "ray-head");
  ASSERT_EQ(out.decision.warnings.size(), 1U);
  EXPECT_NE(out.decision.warnings[0].find("delete and create it again"), std::string::npos);
}

TEST(PodRule, CaresLessForForeignHeadlessHeads) {
  json foreign = converted_service();
  foreign["metadata"].erase("annotations");
  json pod = shell_pod(address_text);
  pod["spec"]["containers"].push_back({{"name", "other"}, {"command", json::array({"a"})}});
  const Decided out = decide_object(pod, facts_of({foreign}));
  EXPECT_EQ(out.reason(), "rewritten");
  EXPECT_EQ(out.env("RAY_HEAD_SERVICE_HOST", 0), "ray-head");
  EXPECT_EQ(out.env("RAY_HEAD_SERVICE_HOST", 1), "(none)");
  EXPECT_EQ(decide_object(exec_pod({"a"}), facts_of({foreign})).reason(), "no-reference");
}

TEST(PodRule, KeepsItsCareThoughTheServiceIsOptedOutLater) {
  json service = converted_service();
  service["metadata"]["annotations"]["rayhook/mode"] = "ignore";
  EXPECT_EQ(decide_object(shell_pod(address_text), facts_of({service})).reason(), "rewritten");
}

TEST(PodRule, SaysWhyItCannotKnow) {
  Facts facts;
  EXPECT_EQ(decide_object(shell_pod(address_text), facts).reason(), "service-unknown");
  facts.services.push_back({"ray-head", Known::absent, nullptr, {}});
  EXPECT_EQ(decide_object(shell_pod(address_text), facts).reason(), "service-absent");
  EXPECT_EQ(decide_object(shell_pod("true"), {}).reason(), "no-reference");
  json own = shell_pod("a $RAY_HEAD_SERVICE_HOST");
  own["spec"]["containers"][0]["env"] =
      json::array({{{"name", "RAY_HEAD_SERVICE_HOST"}, {"value", "mine"}}});
  EXPECT_EQ(decide_object(own, {}).reason(), "own-variables");
}

TEST(PodRule, SaysWhichNamesItLeftThoughNothingIsChanged) {
  Facts facts;
  facts.services.push_back({"ray-head", Known::absent, nullptr, {}});
  const Decided out = decide_object(shell_pod("a $RAY_HEAD_SERVICE_HOST"), facts);
  EXPECT_EQ(out.reason(), "service-absent");
  ASSERT_EQ(out.decision.findings.size(), 1U);
  const Finding& finding = out.decision.findings.front();
  EXPECT_EQ(finding.before, "RAY_HEAD_SERVICE_HOST");
  EXPECT_EQ(finding.after, "");
  EXPECT_EQ(finding.note, "there is no such Service");
}

/// A pod that looks for a head which is not there yet, made by such a controller.
Decided awaiting(const std::string& api, const std::string& kind, bool retry = true,
                 bool dry_run = false) {
  json pod = shell_pod(address_text);
  if (!kind.empty())
    pod["metadata"]["ownerReferences"] =
        json::array({{{"apiVersion", api}, {"kind", kind}, {"name", "x"}, {"controller", true}}});
  json review = review_of(pod);
  review["request"]["dryRun"] = dry_run;
  Facts facts;
  facts.services.push_back({"ray-head", Known::absent, nullptr, {}, retry});
  return decide_review(review, facts);
}

TEST(PodRule, RefusesOnlyWhatItsControllerMakesAgain) {
  for (const auto& [api, kind] : {std::pair("apps/v1", "ReplicaSet"),
                                  {"apps/v1", "StatefulSet"},
                                  {"apps/v1", "DaemonSet"},
                                  {"batch/v1", "Job"}}) {
    const Decided out = awaiting(api, kind);
    EXPECT_EQ(out.reason(), "service-awaited");
    EXPECT_EQ(out.decision.outcome, Outcome::deny);
    const json& response = out.answer["response"];
    EXPECT_EQ(response["allowed"], false);
    EXPECT_EQ(response["status"]["code"], 429);
    EXPECT_FALSE(response["status"].contains("details"));
    EXPECT_THAT(response["status"]["message"], testing::HasSubstr("Service ray-head"));
    EXPECT_FALSE(response.contains("patch"));
  }
  for (const auto& [api, kind] : {std::pair("", ""),
                                  {"ray.io/v1", "RayCluster"},
                                  {"apps.x.io/v1", "ReplicaSet"},
                                  {"v1", "ReplicationController"},
                                  {"batch/v1", "CronJob"}}) {
    const Decided out = awaiting(api, kind);
    EXPECT_EQ(out.reason(), "service-absent") << kind;
    EXPECT_EQ(out.answer["response"]["allowed"], true);
  }
}

TEST(PodRule, RefusesNothingOnceTheWindowIsOverOrInADryRun) {
  EXPECT_EQ(awaiting("apps/v1", "ReplicaSet", false).reason(), "service-absent");
  EXPECT_EQ(awaiting("apps/v1", "ReplicaSet", true, true).reason(), "service-absent");
}

TEST(PodRule, HasGates) {
  json pod = shell_pod(address_text);
  pod["spec"]["enableServiceLinks"] = false;
  EXPECT_EQ(run(pod).reason(), "service-links-off");
  pod = shell_pod(address_text);
  pod["metadata"]["annotations"] = {{"rayhook/mode", "ignore"}};
  EXPECT_EQ(run(pod).reason(), "opted-out");
  pod["metadata"]["annotations"] = {{"kubernetes.io/config.mirror", "x"}};
  EXPECT_EQ(run(pod).reason(), "mirror-pod");
}

TEST(PodRule, CuresHostNetworkTogetherWithARewrite) {
  json pod = shell_pod(address_text);
  pod["spec"]["hostNetwork"] = true;
  const Decided out = run(pod);
  EXPECT_EQ(out.reason(), "rewritten");
  EXPECT_EQ(out.object["spec"]["dnsPolicy"], "ClusterFirstWithHostNet");
  EXPECT_FALSE(run(out.object).patched());
  EXPECT_EQ(out.decision.findings.back().where, "spec.dnsPolicy");
  const Decided left = run(pod, {.host_network_dns = HostNetworkDns::leave});
  EXPECT_EQ(left.reason(), "host-network");
  EXPECT_EQ(left.decision.warnings.size(), 1U);
  ASSERT_EQ(left.decision.findings.size(), 2U);  // what was found is told all the same
  for (const Finding& finding : left.decision.findings) {
    EXPECT_EQ(finding.after, "");
    EXPECT_EQ(finding.note, "the pod cannot resolve the Service's name");
  }
  json silent = exec_pod({"python", "a.py"});
  silent["spec"]["hostNetwork"] = true;
  EXPECT_EQ(run(silent).reason(), "host-network");
  EXPECT_FALSE(run(silent).patched());
}

TEST(PodRule, LeavesPodsThatCannotResolve) {
  for (const char* policy : {"None", "Default"}) {
    json pod = shell_pod(address_text);
    pod["spec"]["dnsPolicy"] = policy;
    const Decided out = run(pod);
    EXPECT_EQ(out.reason(), "dns-policy");
    EXPECT_FALSE(out.patched());
    EXPECT_EQ(out.decision.warnings.size(), 1U);
    EXPECT_EQ(decide_object(pod, {}).reason(), "service-unknown");
  }
}

TEST(PodRule, GivesAppliedBarePodsVariablesOnly) {
  json pod = shell_pod(address_text);
  pod["metadata"]["annotations"] = {{"kubectl.kubernetes.io/last-applied-configuration", "{}"}};
  const Decided out = run(pod);
  EXPECT_EQ(out.reason(), "restored");
  EXPECT_EQ(out.arg(), address_text);
  pod["metadata"]["ownerReferences"] =
      json::array({{{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"controller", true}}});
  EXPECT_EQ(run(pod).reason(), "rewritten");
  json ssa = shell_pod(address_text);
  ssa["metadata"]["managedFields"] =
      json::array({{{"manager", "kubectl"}, {"operation", "Apply"}}});
  EXPECT_EQ(run(ssa).reason(), "restored");
}

TEST(PodRule, WarnsOfEnvFrom) {
  json pod = shell_pod(address_text);
  pod["spec"]["containers"][0]["envFrom"] = json::array({{{"configMapRef", {{"name", "c"}}}}});
  const Decided out = run(pod);
  EXPECT_EQ(out.reason(), "rewritten");
  EXPECT_EQ(out.decision.warnings.size(), 1U);
}

TEST(PodRule, CutsRestoredVariablesInOrder) {
  Policy policy;
  policy.docker_links = DockerLinks::always;
  policy.max_restored = 8 + 9;  // two Services' own names, one Service's docker links
  const Facts two = facts_of({converted_service("a"), converted_service("b")});
  const Decided out = decide_object(shell_pod("x $A_SERVICE_HOST"), two, policy);
  EXPECT_EQ(out.env("A_PORT"), "tcp://a:6379");
  EXPECT_EQ(out.env("B_PORT"), "(none)");
  EXPECT_EQ(out.env("B_SERVICE_HOST"), "b");
  EXPECT_EQ(out.decision.warnings.size(), 1U);
  policy.max_restored = 4 + 9;
  const Decided less = decide_object(shell_pod("x $A_SERVICE_HOST"), two, policy);
  EXPECT_EQ(less.env("A_PORT"), "tcp://a:6379");
  EXPECT_EQ(less.env("B_SERVICE_HOST"), "(none)");
  policy.max_restored_bytes = 10;
  const Decided nothing = decide_object(shell_pod("x"), two, policy);
  EXPECT_EQ(nothing.reason(), "no-reference");
  EXPECT_EQ(nothing.decision.warnings.size(), 1U);
}

TEST(PodRule, PutsNoReservedWordWhereACommandMayBegin) {
  const Facts facts = facts_of({converted_service("do")});
  EXPECT_EQ(decide_object(shell_pod("for h in $DO_SERVICE_HOST; do echo $h; done"), facts).arg(),
            "for h in $DO_SERVICE_HOST; do echo $h; done");
  EXPECT_EQ(decide_object(shell_pod("echo x:$DO_SERVICE_HOST"), facts).arg(), "echo x:do");
}

TEST(Needs, AsksForMentionedServices) {
  const auto ask = [](const json& pod) {
    ReviewReader reader;
    const Padded text(review_of(pod).dump());
    const auto review = reader.parse(text.view());
    EXPECT_TRUE(review);
    return needs(**review, {});
  };
  Needs out = ask(shell_pod(address_text + " $OTHER_SERVICE_HOST"));
  EXPECT_TRUE(out.converted_services);
  ASSERT_EQ(out.services.size(), 2U);
  EXPECT_EQ(out.services[0].name, "ray-head");
  EXPECT_TRUE(out.services[0].ray_address);
  EXPECT_EQ(out.services[1].name, "other");
  EXPECT_FALSE(out.services[1].ray_address);
  out = ask(exec_pod({"ray", "start", "--address", "$(X_SERVICE_HOST):1"}));
  ASSERT_EQ(out.services.size(), 1U);
  EXPECT_TRUE(out.services[0].ray_address);
  std::string many;
  for (int i = 0; i < 100; ++i) many += " $S" + std::to_string(i) + "_SERVICE_HOST";
  EXPECT_EQ(ask(shell_pod(many)).services.size(), kMaxLookups);
}

TEST(Workers, AreKnownByTextAndLabels) {
  const auto worker = [](const json& pod) {
    ReviewReader reader;
    const Padded text(pod.dump());
    const auto review = reader.parse_pod(text.view());
    EXPECT_TRUE(review);
    return is_worker((*review)->pod);
  };
  EXPECT_TRUE(worker(shell_pod("ulimit -n 1; ray  start --address=x")));
  EXPECT_FALSE(worker(shell_pod("ray start --head --port=1")));
  EXPECT_FALSE(worker(shell_pod("ray start \\\n --head")));
  EXPECT_TRUE(worker(exec_pod({"ray", "start", "--address=x"})));
  EXPECT_FALSE(worker(exec_pod({"ray", "start", "--head"})));
  EXPECT_FALSE(worker(shell_pod("python a.py")));
  json labelled = shell_pod("python a.py");
  labelled["metadata"]["labels"] = {{"component", "ray-worker"}};
  EXPECT_TRUE(worker(labelled));
}

TEST(Readers, AreThoseThatDoNotDefineTheName) {
  const auto reads_it = [](const json& pod) {
    ReviewReader reader;
    const Padded text(pod.dump());
    const auto review = reader.parse_pod(text.view());
    EXPECT_TRUE(review);
    return reads((*review)->pod, "ray-head");
  };
  EXPECT_TRUE(reads_it(shell_pod(address_text)));
  EXPECT_FALSE(reads_it(shell_pod("ray start --address=$OTHER_SERVICE_HOST:1")));
  json own = shell_pod("$RAY_HEAD_SERVICE_HOST");
  own["spec"]["containers"][0]["env"] =
      json::array({{{"name", "RAY_HEAD_SERVICE_HOST"}, {"value", "x"}}});
  EXPECT_FALSE(reads_it(own));
  json off = shell_pod(address_text);
  off["spec"]["enableServiceLinks"] = false;
  EXPECT_FALSE(reads_it(off));
}

}  // namespace
}  // namespace rayhook::test
