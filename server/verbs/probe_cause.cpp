// SPDX-License-Identifier: Apache-2.0
#include "probe_cause.hpp"

#include <array>

namespace rayhook {
namespace {

struct Known {
  std::string_view words;
  ProbeCause cause;
};

constexpr ProbeCause kCertificate{
    "certificate",
    "the API server does not trust what Rayhook serves. `rayhook certs check` says which of the "
    "two is wrong; `kubectl -n rayhook-system create job --from=cronjob/rayhook-certs "
    "mend-$(date +%s)` mends them (rayhook-system: or where else Rayhook is installed)"};
constexpr ProbeCause kReplicas{
    "replicas",
    "no pod of Rayhook is ready: `kubectl -n rayhook-system get pods` (or where else it is "
    "installed) and their logs say why"};
constexpr ProbeCause kNetwork{
    "network",
    "the API server does not reach Rayhook's pods at their port 8443: a firewall, a NetworkPolicy, "
    "or a CNI that the control plane is not part of (then: hostNetwork)"};
constexpr ProbeCause kService{
    "service",
    "the Service that the webhook configuration names is not there; apply the manifests"};
constexpr ProbeCause kRayhook{
    "rayhook", "Rayhook was reached, and answered with an error: its log says which"};
constexpr ProbeCause kPolicy{
    "policy", "something else in this cluster forbids the object: lift it for this namespace"};
constexpr ProbeCause kOther{"policy",
                            "another webhook, which this cluster insists on, does not answer"};
constexpr ProbeCause kRights{
    "rights", "whoever runs the probe may not do that; manifests/probe has the rights it needs"};

// The first that fits: a call that failed has words of its own in front and its cause behind.
constexpr auto kAllKnown = std::to_array<Known>({
    {"denied the request", kPolicy},
    {"x509:", kCertificate},
    {"tls: ", kCertificate},
    {"unable to load root certificates", kCertificate},
    {"no endpoints available for service", kReplicas},
    {"unexpected response code", kRayhook},
    {"the server is currently unable to handle", kRayhook},
    {"the server could not find the requested resource", kRayhook},
    {"an error on the server", kRayhook},
    {"connection refused", kReplicas},  // kube-proxy refuses for a Service that leads nowhere
    {"connection reset", kNetwork},
    {"no route to host", kNetwork},
    {"network is unreachable", kNetwork},
    {"i/o timeout", kNetwork},
    {"context deadline exceeded", kNetwork},
    {"Client.Timeout exceeded", kNetwork},
    {"no such host", kNetwork},
    {"EOF", kNetwork},
    {"failed calling webhook", kService},  // service "rayhook" not found
    {"violates PodSecurity", kPolicy},
    {"exceeded quota", kPolicy},
    {"failed quota", kPolicy},
    {"denied request", kPolicy},  // ValidatingAdmissionPolicy
    {"cannot create resource", kRights},
    {"cannot delete resource", kRights},
    {"Unauthorized", kRights},
});

}  // namespace

ProbeCause probe_cause(std::string_view words) {
  constexpr std::string_view kFailed = "failed calling webhook \"";
  if (const std::size_t found = words.find(kFailed); found != std::string_view::npos) {
    const std::string_view name = words.substr(found + kFailed.size());
    if (!name.substr(0, name.find('"')).ends_with(".rayhook")) return kOther;
  }
  for (const Known& known : kAllKnown)
    if (words.find(known.words) != std::string_view::npos) return known.cause;
  return {};
}

}  // namespace rayhook
