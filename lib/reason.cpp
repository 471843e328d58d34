// SPDX-License-Identifier: Apache-2.0
#include "reason.hpp"

namespace rayhook {
namespace {

// One line per reason: the word, the sentence for its user, whether it is worth a log line.
constexpr std::array<ReasonText, kReasonCount> kReasons = {{
    {Reason::converted, "converted",
     "The Ray head Service was made headless, so that the head never has to reach itself through "
     "its own cluster IP.",
     true},
    {Reason::already_headless, "already-headless",
     "The Service is headless already; there is nothing to do.", false},
    {Reason::ip_chosen, "ip-chosen",
     "The Service asks for a cluster IP of its own choice; remove spec.clusterIP to have it "
     "converted.",
     true},
    {Reason::service_type, "service-type",
     "A NodePort, LoadBalancer or ExternalName Service cannot be headless; put a ClusterIP Service "
     "beside it for the workers.",
     true},
    {Reason::external_ips, "external-ips",
     "The Service has externalIPs or a load balancer IP, which a headless Service ignores; it "
     "stays as it is.",
     true},
    {Reason::no_selector, "no-selector",
     "The Service has no selector, so its endpoints are someone else's; it stays as it is.", true},
    {Reason::matches_workers, "matches-workers",
     "The Service's selector also matches Ray workers: headless, its name would lead to them too; "
     "narrow the selector to the head.",
     true},
    {Reason::port_differs, "port-differs",
     "A port differs from its target port, and only a cluster IP maps one to the other; make them "
     "equal to have the Service converted.",
     true},
    {Reason::named_target_port, "named-target-port",
     "A target port is given by name, so its number is not known here; write the number to have "
     "the Service converted.",
     true},
    {Reason::serve_service, "serve-service",
     "This is a Ray Serve Service, which balances over many pods; it must keep its cluster IP.",
     false},
    {Reason::worker_service, "worker-service",
     "This Service leads to Ray workers, not to a head; it stays as it is.", false},
    {Reason::deliberate_kuberay, "deliberate-kuberay",
     "KubeRay 1.3 and later makes head Services headless by itself, so a cluster IP here is "
     "deliberate; set `kuberay: convert` to convert it all the same.",
     true},
    {Reason::kuberay_ignored, "kuberay-ignored",
     "Rayhook is configured to leave KubeRay's head Services alone (`kuberay: ignore`).", true},
    {Reason::running_readers, "running-readers",
     "A running pod reads this Service's variables; restart that workload, then delete and create "
     "the Service again.",
     true},
    {Reason::readers_unknown, "readers-unknown",
     "Whether running pods read this Service's variables could not be found out in time, so it "
     "stays as it is; create it again to retry.",
     true},
    {Reason::head_unclear, "head-unclear",
     "The Service has a GCS port, but its selector does not say that it leads to a head alone; use "
     "a selector value such as `ray-head`.",
     true},
    {Reason::not_a_head, "not-a-head", "The Service is not a Ray head Service.", false},

    {Reason::rewritten, "rewritten",
     "References to a headless Service's variables were replaced by its DNS name and port; what "
     "is read elsewhere was restored as env.",
     true},
    {Reason::restored, "restored",
     "The variables that a headless Service does not provide were restored as env entries; no "
     "text was changed.",
     true},
    {Reason::no_reference, "no-reference",
     "The pod refers to no variable of a Ray head Service, and none is missing.", false},
    {Reason::already_done, "already-done",
     "Rayhook has been here before; there is nothing left to do.", false},
    {Reason::service_left, "service-left",
     "The Service that the pod refers to keeps its cluster IP or is no Ray head, so its variables "
     "are as they were.",
     false},
    {Reason::service_absent, "service-absent",
     "The pod refers to variables of a Service that does not exist in its namespace (in manifests: "
     "that is not given, or in another namespace).",
     true},
    {Reason::service_awaited, "service-awaited",
     "The Ray head Service that the pod needs does not exist yet; its controller was told to try "
     "again.",
     true},
    {Reason::service_unknown, "service-unknown",
     "Whether the Service that the pod refers to exists, or is headless, could not be found out.",
     true},
    {Reason::own_variables, "own-variables",
     "Every variable that the pod refers to is defined by the pod itself, or cannot be told apart "
     "for certain; nothing was changed.",
     false},
    {Reason::service_links_off, "service-links-off",
     "The pod has enableServiceLinks: false, so Kubernetes gives it no service variables.", false},
    {Reason::mirror_pod, "mirror-pod",
     "A mirror pod only shows a static pod that runs already; changing it changes nothing.", false},
    {Reason::host_network, "host-network",
     "A hostNetwork pod with the default dnsPolicy cannot resolve Service names; set dnsPolicy: "
     "ClusterFirstWithHostNet.",
     true},
    {Reason::dns_policy, "dns-policy",
     "With dnsPolicy None or Default the pod cannot resolve Service names; use ClusterFirst, or "
     "opt the Service out.",
     true},

    {Reason::opted_out, "opted-out",
     "The object is opted out by the annotation rayhook/mode: ignore.", true},
    {Reason::not_create, "not-create", "Only the creation of objects is looked at.", false},
    {Reason::not_our_kind, "not-our-kind", "Only Pods and Services are looked at.", false},
    {Reason::malformed, "malformed",
     "The object cannot be read; it is passed on unchanged for the API server to judge.", true},
    {Reason::too_large, "too-large",
     "The change would be larger than any object that the API server stores; the object was left "
     "unchanged.",
     true},
    {Reason::patch_refused, "patch-refused",
     "The patch did not pass Rayhook's own check, so the object was left unchanged; please report "
     "this.",
     true},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kReasons.size(); ++i)
    if (kReasons[i].reason != static_cast<Reason>(i)) return false;
  return true;
}
static_assert(in_order(), "kReasons must stand in the order of the enum");

}  // namespace

const std::array<ReasonText, kReasonCount>& reasons() { return kReasons; }

const ReasonText& text(Reason reason) { return kReasons[static_cast<std::size_t>(reason)]; }

}  // namespace rayhook
