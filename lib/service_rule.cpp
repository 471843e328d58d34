// SPDX-License-Identifier: Apache-2.0
#include "service_rule.hpp"

#include <algorithm>

#include "patch.hpp"
#include "words.hpp"

namespace rayhook {
namespace {

constexpr std::string_view kNodeType = "ray.io/node-type";
constexpr std::string_view kServe = "ray.io/serve";
constexpr std::string_view kHeadlessWorker = "ray.io/headless-worker-svc";
constexpr std::uint16_t kClientPort = 10001;

bool has(const StringMap& map, std::string_view key, std::string_view value) {
  const std::string* found = find(map, key);
  return found && *found == value;
}

bool has_port(const Service& service, std::string_view name) {
  return std::ranges::any_of(service.ports,
                             [&](const ServicePort& port) { return port.name == name; });
}

/// facts: ray-services.md section 3, clause P, its first half.
bool has_gcs_port(const Service& service, const Policy& policy) {
  return std::ranges::any_of(service.ports, [&](const ServicePort& port) {
    return std::ranges::find(policy.gcs_port_names, port.name) != policy.gcs_port_names.end() ||
           std::ranges::find(policy.gcs_port_numbers, port.port) != policy.gcs_port_numbers.end();
  });
}

/// Its second half: a selector value that speaks of a head; or one that is the Service's own name
/// beside a client port (cube-studio's `ray-header-…`).
bool selects_head(const Service& service, const Policy& policy) {
  const bool client = std::ranges::any_of(
      service.ports, [](const ServicePort& port) { return port.port == kClientPort; });
  return std::ranges::any_of(service.selector, [&](const auto& pair) {
    if (client && !service.name.empty() && pair.second == service.name) return true;
    return std::ranges::any_of(
        policy.head_words, [&](const std::string& word) { return has_part(pair.second, word); });
  });
}

bool of_kuberay(const Service& service) {
  return has(service.labels, kNodeType, "head") || has(service.selector, kNodeType, "head");
}

bool is_serve(const Service& service) {
  return find(service.labels, kServe) || find(service.selector, kServe);
}

bool is_for_workers(const Service& service) {
  if (find(service.labels, kHeadlessWorker) || has(service.selector, kNodeType, "worker"))
    return true;
  return std::ranges::any_of(service.selector, [](const auto& pair) {
    return pair.first == "component" &&
           (pair.second == "ray-worker" || pair.second == "ray-workers");
  });
}

/// Reason::converted where nothing stands in the way of this head Service.
Reason obstacle(const Service& service, std::optional<bool> matches_workers) {
  if (!service.type.empty() && service.type != "ClusterIP") return Reason::service_type;
  if (service.has_external_ips || service.has_load_balancer_ip) return Reason::external_ips;
  if (std::ranges::any_of(service.ports, [](const ServicePort& p) { return p.node_port != 0; }))
    return Reason::service_type;
  if (!service.stored() && (!service.cluster_ip.empty() || !service.cluster_ips.empty()))
    return Reason::ip_chosen;
  if (service.selector.empty()) return Reason::no_selector;
  if (matches_workers.value_or(false)) return Reason::matches_workers;
  for (const ServicePort& port : service.ports) {
    if (!port.target_name.empty()) return Reason::named_target_port;
    if (port.target != port.port) return Reason::port_differs;
  }
  return Reason::converted;
}

void convert(const Service& service, Decision& decision) {
  const auto add = [&](std::string path, std::string value) {
    decision.patch.push_back({PatchOp::Kind::add, std::move(path), std::move(value)});
  };
  add("/spec/clusterIP", "\"None\"");
  // `clusterIPs` may only be there in step with `clusterIP` (kubernetes
  // pkg/apis/core/validation/validation.go); where absent, the API server fills it.
  if (service.has_cluster_ips) add("/spec/clusterIPs", "[\"None\"]");
  // Without it the name does not resolve until the head is Ready, and negative answers are cached
  // (kuberay ray-operator/controllers/ray/common/service.go does the same).
  if (!service.publish_not_ready) add("/spec/publishNotReadyAddresses", "true");
  annotate(
      decision, service.has_metadata, service.has_annotations,
      {{kConvertedAnnotation, "true"}, {kDecisionAnnotation, decision_mark(Reason::converted)}});
}

void warn_left(const Service& service, Decision& decision, const std::string& reader) {
  const std::string name = shortened(service.name.empty() ? service.generate_name : service.name);
  std::string_view advice;
  switch (decision.reason) {
    case Reason::service_type:
      advice = " cannot be headless (its type); Ray workers keep using its IP";
      break;
    case Reason::external_ips:
      advice = " has external IPs and stays as it is";
      break;
    case Reason::matches_workers:
      advice = " stays: its selector matches workers too; narrow it to the head";
      break;
    case Reason::head_unclear:
      advice = " stays: its selector does not say `head`; use one such as ray-head";
      break;
    case Reason::port_differs:
      advice = " stays: a port differs from its targetPort; make them equal";
      break;
    case Reason::named_target_port:
      advice = " stays: a targetPort is a name; write its number";
      break;
    case Reason::readers_unknown:
      advice = " stays: pods could not be listed in time; create it again";
      break;
    case Reason::running_readers:
      warn(decision, "running-readers: pod " + shortened(reader, 30) + " uses " +
                         shortened(service.name, 30) + "; restart it, then re-create the Service");
      return;
    default:
      return;
  }
  warn(decision, std::string(word(decision.reason)) + ": " + name + std::string(advice));
}

}  // namespace

bool is_head(const Service& service, const Policy& policy) {
  if (is_serve(service) || is_for_workers(service)) return false;
  // KubeRay's own label on the Service is enough, by any name and with any ports.
  return has(service.labels, kNodeType, "head") ||
         (has_gcs_port(service, policy) && selects_head(service, policy));
}

Reason judge_service(const Service& service, const Policy& policy,
                     std::optional<bool> matches_workers) {
  if (const std::string* mode = find(service.annotations, kModeAnnotation);
      mode && *mode == "ignore")
    return Reason::opted_out;
  if (service.headless()) return Reason::already_headless;
  if (is_serve(service)) return Reason::serve_service;
  if (is_for_workers(service)) return Reason::worker_service;
  if (!is_head(service, policy)) {
    // It looks like a head's, but would lead to who knows whom.
    if (!has_port(service, "gcs-server") && !has_port(service, "redis-primary"))
      return Reason::not_a_head;
    const Reason reason = obstacle(service, matches_workers);
    return reason == Reason::converted ? Reason::head_unclear : reason;
  }
  if (of_kuberay(service)) {
    if (policy.kuberay == KubeRay::ignore) return Reason::kuberay_ignored;
    // The name `gcs-server` came with KubeRay 1.3, which makes head Services headless by itself
    // unless told otherwise (facts: ray-services.md section 2).
    if (policy.kuberay == KubeRay::automatic && has_port(service, "gcs-server")) {
      const Reason reason = obstacle(service, matches_workers);
      return reason == Reason::converted ? Reason::deliberate_kuberay : reason;
    }
  }
  return obstacle(service, matches_workers);
}

Caring care_for(const ServiceFact& fact, const Policy& policy) {
  if (fact.known != Known::present || !fact.service) return {};
  const Service& service = *fact.service;
  // An opt-out written on it later does not end the care: its pods still lack their variables.
  if (service.converted()) return {Care::full, false};
  const Reason reason = judge_service(service, policy, fact.matches_workers);
  if (reason == Reason::already_headless) {
    const bool ours =
        is_head(service, policy) && !(of_kuberay(service) && policy.kuberay == KubeRay::ignore);
    return {ours ? Care::text_only : Care::none, false};
  }
  if (reason != Reason::converted) return {};
  return {Care::full, service.stored()};
}

Decision decide_service(const Review& review, const Policy& policy, const Facts& facts) {
  const Service& service = review.service;
  Decision decision{};
  decision.reason = judge_service(service, policy, facts.matches_workers);
  if (decision.reason == Reason::converted && facts.running_readers == Known::present)
    decision.reason = Reason::running_readers;
  if (decision.reason == Reason::converted && facts.running_readers == Known::unknown)
    decision.reason = Reason::readers_unknown;
  if (decision.reason == Reason::converted) {
    decision.outcome = Outcome::patch;
    convert(service, decision);
  } else {
    warn_left(service, decision, facts.running_reader);
  }
  return decision;
}

}  // namespace rayhook
