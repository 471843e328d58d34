// SPDX-License-Identifier: Apache-2.0
// What one review costs in lib/: parse, needs, decide and render, as the server calls them.
//
//   rayhook_bench            the figures, and a yardstick to compare machines by
//   rayhook_bench --check    as a test: fails where a case is far over its target
//
// Times on shared cores are noisy, so each case is also given as a multiple of the yardstick:
// simdjson's `minify` over the same bytes, which reads every byte once and writes it out.
#include <benchmark/benchmark.h>
#include <simdjson.h>

#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/decision.hpp"
#include "lib/facts.hpp"
#include "lib/review.hpp"

namespace {

// Its members stay in order: the API server's, which Rayhook reads in one go. Sorted ones would put
// `object` before `operation`, and it would read twice.
using json = nlohmann::ordered_json;
using rayhook::Facts;

/// A text with the padding that ReviewReader asks for.
struct Padded {
  explicit Padded(std::string bytes) : text(std::move(bytes)), size(text.size()) {
    text.resize(size + rayhook::kPadding);
  }
  [[nodiscard]] std::string_view view() const { return std::string_view(text).substr(0, size); }

  std::string text;
  std::size_t size;
};

json head_service() {
  return {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", {{"name", "service-ray-cluster"}, {"labels", {{"app", "ray-cluster-head"}}}}},
      {"spec",
       {{"type", "ClusterIP"},
        {"selector", {{"app", "ray-cluster-head"}}},
        {"ports", json::array({{{"name", "client"}, {"port", 10001}, {"targetPort", 10001}},
                               {{"name", "dashboard"}, {"port", 8265}, {"targetPort", 8265}},
                               {{"name", "gcs-server"}, {"port", 6380}, {"targetPort", 6380}}})}}}};
}

/// A pod as the API server sends one that a ReplicaSet made: owner, managedFields, probes, mounts,
/// tolerations. 5 KB as a review; `env_entries` makes it larger.
json pod(const std::string& script, int env_entries = 28) {
  json env = json::array();
  for (int i = 0; i < env_entries; ++i) {
    const std::string number = std::to_string(i);
    env.push_back({{"name", "APP_SETTING_" + number}, {"value", "value-of-setting-" + number}});
  }
  env.push_back(
      {{"name", "POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});

  json fields = json::object();
  for (const char* name : {"f:affinity", "f:containers", "f:dnsPolicy", "f:enableServiceLinks",
                           "f:restartPolicy", "f:schedulerName", "f:securityContext",
                           "f:terminationGracePeriodSeconds", "f:tolerations", "f:volumes"})
    fields[name] = {{"f:image", json::object()}, {"f:name", json::object()}};

  const json probe = {{"httpGet", {{"path", "/healthz"}, {"port", 8080}, {"scheme", "HTTP"}}},
                      {"initialDelaySeconds", 5},
                      {"periodSeconds", 10},
                      {"timeoutSeconds", 1},
                      {"successThreshold", 1},
                      {"failureThreshold", 3}};
  const json container = {
      {"name", "main"},
      {"image", "example/workload:2.2.0"},
      {"command", json::array({"/bin/bash", "-c", "--"})},
      {"args", json::array({script})},
      {"env", env},
      {"ports", json::array({{{"containerPort", 8080}, {"protocol", "TCP"}}})},
      {"resources", {{"limits", {{"cpu", "2"}, {"memory", "4Gi"}}}, {"requests", {{"cpu", "1"}}}}},
      {"livenessProbe", probe},
      {"readinessProbe", probe},
      {"volumeMounts", json::array({{{"name", "shared-memory"}, {"mountPath", "/dev/shm"}},
                                    {{"name", "token"},
                                     {"mountPath", "/var/run/secrets/kubernetes.io/serviceaccount"},
                                     {"readOnly", true}}})},
      {"terminationMessagePath", "/dev/termination-log"},
      {"terminationMessagePolicy", "File"},
      {"imagePullPolicy", "IfNotPresent"}};
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"generateName", "workload-6d4cf56db6-"},
        {"namespace", "team-a"},
        {"labels", {{"app", "workload"}, {"pod-template-hash", "6d4cf56db6"}}},
        {"annotations", {{"example.org/checksum", std::string(64, 'a')}}},
        {"ownerReferences", json::array({{{"apiVersion", "apps/v1"},
                                          {"kind", "ReplicaSet"},
                                          {"name", "workload-6d4cf56db6"},
                                          {"uid", "0b6b6f0e-7b0c-4b0e-9f43-2f3c56f5b1a1"},
                                          {"controller", true},
                                          {"blockOwnerDeletion", true}}})},
        {"managedFields", json::array({{{"manager", "kube-controller-manager"},
                                        {"operation", "Update"},
                                        {"apiVersion", "v1"},
                                        {"time", "2026-01-01T00:00:00Z"},
                                        {"fieldsType", "FieldsV1"},
                                        {"fieldsV1", {{"f:spec", fields}}}}})}}},
      {"spec",
       {{"containers", json::array({container})},
        {"volumes",
         json::array(
             {{{"name", "shared-memory"}, {"emptyDir", {{"medium", "Memory"}}}},
              {{"name", "token"},
               {"projected",
                {{"sources", json::array({{{"serviceAccountToken",
                                            {{"expirationSeconds", 3607}, {"path", "token"}}}}})},
                 {"defaultMode", 420}}}}})},
        {"tolerations", json::array({{{"key", "node.kubernetes.io/not-ready"},
                                      {"operator", "Exists"},
                                      {"effect", "NoExecute"},
                                      {"tolerationSeconds", 300}},
                                     {{"key", "node.kubernetes.io/unreachable"},
                                      {"operator", "Exists"},
                                      {"effect", "NoExecute"},
                                      {"tolerationSeconds", 300}}})},
        {"restartPolicy", "Always"},
        {"terminationGracePeriodSeconds", 30},
        {"dnsPolicy", "ClusterFirst"},
        {"serviceAccountName", "default"},
        {"securityContext", json::object()},
        {"schedulerName", "default-scheduler"},
        {"enableServiceLinks", true},
        {"priority", 0},
        {"preemptionPolicy", "PreemptLowerPriority"}}}};
}

std::string review_of(const json& object) {
  const std::string kind = object["kind"];
  const std::string resource = kind == "Pod" ? "pods" : "services";
  const json review = {
      {"kind", "AdmissionReview"},
      {"apiVersion", "admission.k8s.io/v1"},
      {"request",
       {{"uid", "705ab4f5-6393-11e8-b7cc-42010a800002"},
        {"kind", {{"group", ""}, {"version", "v1"}, {"kind", kind}}},
        {"resource", {{"group", ""}, {"version", "v1"}, {"resource", resource}}},
        {"requestKind", {{"group", ""}, {"version", "v1"}, {"kind", kind}}},
        {"requestResource", {{"group", ""}, {"version", "v1"}, {"resource", resource}}},
        {"namespace", "team-a"},
        {"operation", "CREATE"},
        {"userInfo",
         {{"username", "system:serviceaccount:kube-system:replicaset-controller"},
          {"uid", "a1b2c3d4-6393-11e8-b7cc-42010a800002"},
          {"groups", json::array({"system:serviceaccounts", "system:authenticated"})}}},
        {"object", object},
        {"oldObject", nullptr},
        {"dryRun", false},
        {"options", {{"kind", "CreateOptions"}, {"apiVersion", "meta.k8s.io/v1"}}}}}};
  return review.dump();
}

constexpr std::string_view kPlainScript =
    "cd /srv && exec python3 -m http.server 8080 --bind $POD_IP --directory /srv/www";
constexpr std::string_view kWorkerScript =
    "ray start --num-cpus=$MY_CPU_REQUEST --address=$SERVICE_RAY_CLUSTER_SERVICE_HOST:"
    "$SERVICE_RAY_CLUSTER_SERVICE_PORT_GCS_SERVER --object-manager-port=8076 --block";

/// The converted head Service, as the index of converted Services has it.
Facts one_converted_service() {
  json stored = head_service();
  stored["metadata"]["uid"] = "5f0b2bd5-6393-11e8-b7cc-42010a800002";
  stored["metadata"]["annotations"] = {{"rayhook/converted", "true"}};
  stored["spec"]["clusterIP"] = "None";
  auto service = rayhook::parse_service(stored.dump());
  if (!service) throw std::runtime_error("the bench's own Service: " + service.error().what);
  Facts facts;
  facts.services.push_back({"service-ray-cluster",
                            rayhook::Known::present,
                            std::make_shared<const rayhook::Service>(std::move(*service)),
                            {}});
  return facts;
}

struct Case {
  const char* name;
  Padded review;
  Facts facts;
  rayhook::Outcome expected;
  double target_us;  ///< 0: no target, only a figure
};

std::vector<Case>& cases() {
  using rayhook::Outcome;
  static std::vector<Case> all = [] {
    std::vector<Case> out;
    const auto add = [&out](const char* name, const json& object, Facts facts, Outcome expected,
                            double target_us) {
      out.push_back({name, Padded(review_of(object)), std::move(facts), expected, target_us});
    };
    add("pod of no concern, 5 KB", pod(std::string(kPlainScript)), {}, Outcome::leave, 5);
    add("pod rewritten, 5 KB", pod(std::string(kWorkerScript)), one_converted_service(),
        Outcome::patch, 12);
    add("Service converted", head_service(), {}, Outcome::patch, 0);
    add("pod of no concern, 1 MiB", pod(std::string(kPlainScript), 16'000), {}, Outcome::leave, 0);
    return out;
  }();
  return all;
}

rayhook::Outcome review(rayhook::ReviewReader& reader, const rayhook::Policy& policy,
                        const Case& one, std::string& answer) {
  const auto parsed = reader.parse(one.review.view());
  if (!parsed) return rayhook::Outcome::deny;
  benchmark::DoNotOptimize(rayhook::needs(**parsed, policy));
  const rayhook::Decision decision = rayhook::decide(**parsed, policy, one.facts);
  answer.clear();
  rayhook::render(**parsed, decision, answer);
  benchmark::DoNotOptimize(answer.data());
  return decision.outcome;
}

void run_case(benchmark::State& state, const Case& one) {
  rayhook::ReviewReader reader;
  const rayhook::Policy policy;
  std::string answer;
  if (review(reader, policy, one, answer) != one.expected) {
    state.SkipWithError("the review was not decided as this case means it");
    return;
  }
  while (state.KeepRunning()) review(reader, policy, one, answer);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(one.review.size));
}

void run_yardstick(benchmark::State& state, const Case& one) {
  std::string out(one.review.text.size(), '\0');
  std::size_t length = 0;
  while (state.KeepRunning()) {
    const auto error =
        simdjson::minify(one.review.text.data(), one.review.size, out.data(), length);
    benchmark::DoNotOptimize(error);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(one.review.size));
}

/// Prints as usual, and keeps the best time of each case for the summary.
class Keeper : public benchmark::ConsoleReporter {
 public:
  Keeper() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      failed = failed || run.error_occurred;
      if (run.run_type != Run::RT_Iteration) continue;
      const double us = run.GetAdjustedCPUTime() / 1000;
      const auto [found, fresh] = best.emplace(run.run_name.function_name, us);
      if (!fresh && us < found->second) found->second = us;
    }
    ConsoleReporter::ReportRuns(runs);
  }

  std::map<std::string, double> best;  ///< microseconds of CPU
  bool failed = false;
};

/// In `--check` a case may take this many times its target: the machine is shared, and a test that
/// cries wolf is worse than none. A fault that matters (quadratic time, a copy of the whole
/// object) is far beyond it.
constexpr double kCheckSlack = 4;

}  // namespace

int main(int argc, char** argv) {
  bool check = false;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--check")
      check = true;
    else
      arguments.push_back(argv[i]);
  }
  std::string min_time = "--benchmark_min_time=0.1", repetitions = "--benchmark_repetitions=3";
  arguments.insert(arguments.begin() + 1, {min_time.data(), repetitions.data()});
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  for (const Case& one : cases()) {
    benchmark::RegisterBenchmark(one.name, run_case, one);
    benchmark::RegisterBenchmark((std::string("yardstick: ") + one.name).c_str(), run_yardstick,
                                 one);
  }
  Keeper keeper;
  benchmark::RunSpecifiedBenchmarks(&keeper);

  bool missed = keeper.failed;
  std::printf("\n%-28s %10s %10s %10s %12s\n", "best of 3", "bytes", "us", "target us",
              "x yardstick");
  for (const Case& one : cases()) {
    const auto found = keeper.best.find(one.name);
    const auto yardstick = keeper.best.find(std::string("yardstick: ") + one.name);
    if (found == keeper.best.end() || yardstick == keeper.best.end()) continue;
    const double us = found->second;
    const bool over = one.target_us > 0 && us > one.target_us;
    std::printf("%-28s %10zu %10.2f ", one.name, one.review.size, us);
    if (one.target_us > 0)
      std::printf("%10.0f", one.target_us);
    else
      std::printf("%10s", "-");
    std::printf(" %12.1f%s\n", us / yardstick->second, over ? "   OVER TARGET" : "");
    if (one.target_us > 0 && us > one.target_us * kCheckSlack) missed = true;
  }
  if (check && missed) {
    std::fprintf(stderr, "rayhook_bench: a case failed or takes over %.0f times its target\n",
                 kCheckSlack);
    return 1;
  }
  return keeper.failed ? 1 : 0;
}
