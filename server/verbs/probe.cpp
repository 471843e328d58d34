// SPDX-License-Identifier: Apache-2.0
#include "probe.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include "kube_calls.hpp"
#include "probe_cause.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kHead = "ray-head";
constexpr std::string_view kAddress = "ray-head:6379";

struct Options {
  std::string kubeconfig;
  std::string name_space = "rayhook-probe", strict_name_space = "rayhook-probe-strict";
  std::string configuration = "rayhook";
  int timeout_seconds = 30;
};

Json head_service() {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", kHead}, {"labels", {{"app.kubernetes.io/name", "rayhook"}}}}},
          {"spec",
           {{"selector", {{"app", kHead}}},
            {"ports", Json::array({{{"name", "gcs-server"}, {"port", 6379}}})}}}};
}

/// Keeps the restricted Pod Security Standard, and names no user id, which OpenShift would refuse.
Json worker_pod() {
  const Json security = {{"allowPrivilegeEscalation", false},
                         {"capabilities", {{"drop", Json::array({"ALL"})}}}};
  const Json container = {
      {"name", "worker"},
      {"image", "never-pulled"},
      {"args", Json::array({"$(RAY_HEAD_SERVICE_HOST):$(RAY_HEAD_SERVICE_PORT_GCS_SERVER)"})},
      {"resources",
       {{"requests", {{"cpu", "10m"}, {"memory", "20Mi"}}},
        {"limits", {{"cpu", "10m"}, {"memory", "20Mi"}}}}},
      {"securityContext", security}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", "ray-worker"}}},
          {"spec",
           {{"restartPolicy", "Never"},
            {"automountServiceAccountToken", false},
            {"securityContext",
             {{"runAsNonRoot", true}, {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
            {"containers", Json::array({container})}}}};
}

/// An object as it came back, with the warnings beside it.
struct Created {
  Json object;
  std::vector<std::string> warnings;

  [[nodiscard]] bool headless() const {
    const Json* spec = member(object, "spec");
    return spec && text_member(*spec, "clusterIP") == "None";
  }
  [[nodiscard]] std::string argument() const {
    const Json at = object.value(Json::json_pointer("/spec/containers/0/args/0"), Json());
    const auto* text = at.get_ptr<const std::string*>();
    return text ? *text : std::string();
  }
};

std::unexpected<Error> wrong(std::string what) { return fail(Errc::unreachable, std::move(what)); }

class Probe {
 public:
  Probe(const Options& options, KubeCalls& api) : options_(options), api_(api) {}

  /// All of it once. Errors: what is wrong, in words.
  [[nodiscard]] Result<void> run();

 private:
  [[nodiscard]] std::string path(std::string_view kind, const std::string& name_space) const {
    return "/api/v1/namespaces/" + name_space + "/" + std::string(kind);
  }
  [[nodiscard]] Result<KubeAnswer> post(const std::string& path, const Json& object) {
    return api_.call({"POST", path, "application/json", dump(object)});
  }
  [[nodiscard]] Result<Created> create(const std::string& what, const std::string& path,
                                       const Json& object);
  [[nodiscard]] Result<Created> dry_run_service();
  [[nodiscard]] Result<void> real_service_and_worker();
  [[nodiscard]] Result<void> worker();
  [[nodiscard]] Result<void> remove();
  [[nodiscard]] Result<void> why_not_headless(const Created& created);
  /// Once, however often it is tried.
  void say(const std::string& line) {
    if (shown_.insert(line).second) (void)write_output("probe", line + "\n");
  }

  const Options& options_;
  KubeCalls& api_;
  std::set<std::string> shown_;
};

std::string explained(const std::string& words) {
  const ProbeCause cause = probe_cause(words);
  if (cause.word.empty()) return words;
  return std::string(cause.word) + ": " + words + ". That is: " + std::string(cause.advice);
}

Result<Created> Probe::create(const std::string& what, const std::string& path,
                              const Json& object) {
  Result<KubeAnswer> answer = post(path, object);
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->status == 404)
    return wrong("namespace: " + words_of(*answer) + "; apply manifests/probe, which makes it");
  if (answer->status != 201) return wrong(what + " is refused. " + explained(words_of(*answer)));
  return Created{Json::parse(answer->body, nullptr, false), std::move(answer->warnings)};
}

/// The first of Rayhook's own words about an object, if it said any.
std::string said(const Created& created) {
  for (const std::string& warning : created.warnings)
    if (warning.find("rayhook") != std::string::npos ||
        warning.find("Rayhook") != std::string::npos)
      return warning;
  return {};
}

/// Whether any webhook of the configuration may change something.
bool may_change(const Json& configuration) {
  for (const Json& webhook : list_member(configuration, "webhooks"))
    if (webhook.value(Json::json_pointer("/clientConfig/service/path"), "/mutate") != "/audit")
      return true;
  return false;
}

/// Where nothing may be created without Rayhook, the API server says why it could not ask.
Result<void> Probe::why_not_headless(const Created& created) {
  const std::string asked =
      "a Ray head Service in " + options_.name_space + " keeps its cluster IP";
  if (const std::string words = said(created); !words.empty())
    return wrong("configuration: " + asked + ", since Rayhook says: " + words);
  const auto configuration = api_.get("MutatingWebhookConfiguration " + options_.configuration,
                                      kWebhooksPath + options_.configuration);
  if (!configuration) return std::unexpected(configuration.error());
  if (!*configuration)
    return wrong("webhook configuration: " + asked + ": there is no MutatingWebhookConfiguration " +
                 options_.configuration + "; apply the manifests");
  if (!may_change(**configuration))
    return wrong("audit: " + asked + ", since this installation only reports: no webhook of " +
                 "MutatingWebhookConfiguration " + options_.configuration + " leads to /mutate");
  const std::string strict = options_.strict_name_space;
  const Result<KubeAnswer> answer = post(path("services", strict) + "?dryRun=All", head_service());
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 404)
    return wrong(asked + ", and without a namespace " + strict +
                 " the API server does not say why; apply manifests/probe, which makes it");
  if (answer->status != 201) return wrong(explained(words_of(*answer)));
  const Created other{Json::parse(answer->body, nullptr, false), answer->warnings};
  if (other.headless())
    return wrong("selector: " + asked + ", while one in " + strict +
                 " is made headless: the webhooks `*.enforce.rayhook` leave " +
                 options_.name_space +
                 " out. See its labels (rayhook/mode), and their namespaceSelector and "
                 "matchConditions in MutatingWebhookConfiguration " +
                 options_.configuration);
  return wrong("selector: " + asked +
               ", and the API server did not ask Rayhook: see the namespaceSelectors and "
               "matchConditions in MutatingWebhookConfiguration " +
               options_.configuration + ", and the namespaces' labels");
}

Result<void> Probe::remove() {
  const Result<KubeAnswer> answer = api_.call(
      {"DELETE", path("services", options_.name_space) + "/" + std::string(kHead), {}, {}});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 200 || answer->status == 202 || answer->status == 404) return {};
  return wrong("Service " + options_.name_space + "/" + std::string(kHead) +
               " cannot be removed. " + explained(words_of(*answer)));
}

Result<void> Probe::worker() {
  const Result<Created> pod =
      create("a worker", path("pods", options_.name_space) + "?dryRun=All", worker_pod());
  if (!pod) return std::unexpected(pod.error());
  if (pod->argument() == kAddress) return {};
  const std::string words = said(*pod);
  return wrong("worker: beside the headless Service its address comes back as " + pod->argument() +
               " and not as " + std::string(kAddress) +
               (words.empty() ? ": the webhooks for pods leave it out; compare "
                                "MutatingWebhookConfiguration " +
                                    options_.configuration + " with the manifests"
                              : ", since Rayhook says: " + words));
}

Result<void> Probe::real_service_and_worker() {
  const std::string title = "Service " + options_.name_space + "/" + std::string(kHead);
  const Result<Created> real = create(title, path("services", options_.name_space), head_service());
  if (!real) return std::unexpected(real.error());
  if (!real->headless()) return why_not_headless(*real);
  say("ok  " + title + " is stored headless");
  Result<void> rewritten = worker();
  if (rewritten)
    say("ok  a worker's address comes back as " + std::string(kAddress) + " (dry run)");
  return rewritten;
}

Result<void> Probe::run() {
  if (Result<void> left = remove(); !left) return left;  // by a run that was interrupted
  const Result<Created> dry = create(
      "a Ray head Service", path("services", options_.name_space) + "?dryRun=All", head_service());
  if (!dry) return std::unexpected(dry.error());
  if (!dry->headless()) return why_not_headless(*dry);
  say("ok  a Ray head Service comes back headless (dry run)");
  Result<void> done = real_service_and_worker();
  Result<void> removed = remove();
  return done ? removed : done;
}

int run_probe(const Options& options) {
  const auto api = KubeCalls::open(options.kubeconfig);
  if (!api) return complain("probe", api.error());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.timeout_seconds);
  Probe probe(options, **api);
  for (;;) {
    const Result<void> done = probe.run();
    if (done) return write_output("probe", "Rayhook works in this cluster\n");
    if (std::chrono::steady_clock::now() >= end) return complain("probe", done.error());
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

void add_probe(CLI::App& app, std::function<int()>& run) {
  const auto options = std::make_shared<Options>();
  CLI::App& verb =
      *app.add_subcommand("probe", "Try an installation in its cluster, and say what is wrong");
  const CLI::Validator name(check_object_name, "NAME");
  verb.add_option("--kubeconfig", options->kubeconfig,
                  "How to reach the API server; without it, as the pod's service account")
      ->type_name("FILE");
  verb.add_option("--namespace", options->name_space, "Where a head Service is created and removed")
      ->capture_default_str()
      ->check(name);
  verb.add_option("--strict-namespace", options->strict_name_space,
                  "One with the label rayhook/mode: strict, in which the API server says why it "
                  "could not ask Rayhook")
      ->capture_default_str()
      ->check(name);
  verb.add_option("--webhook-configuration", options->configuration,
                  "The MutatingWebhookConfiguration of the installation")
      ->capture_default_str()
      ->check(name);
  verb.add_option("--timeout", options->timeout_seconds,
                  "How long to try again, while it does not work yet")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0, 3600));
  verb.footer(
      "It creates and removes the Service ray-head; all else is a dry run. The namespaces and the\n"
      "rights for it: manifests/probe. Exit code 0: Rayhook works; 1: not, and one line on stderr\n"
      "says why, beginning with the cause: certificate, network, replicas, service, policy,\n"
      "selector, audit, webhook configuration, configuration, worker, rights.");
  verb.callback([options, &run] { run = [options] { return run_probe(*options); }; });
}

}  // namespace rayhook
