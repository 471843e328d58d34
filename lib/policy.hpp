// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rayhook {

/// What to do with Services that carry `ray.io/node-type: head` (made by the KubeRay operator, or
/// meant to look so).
enum class KubeRay {
  automatic,  ///< convert, except those with a port named gcs-server (KubeRay ≥ 1.3: deliberate)
  convert,    ///< convert all
  ignore,     ///< leave all
};

/// How a Service is named in place of its IP.
enum class DnsName {
  short_name,      ///< `ray-head`
  with_namespace,  ///< `ray-head.team-a`
  fqdn,            ///< `ray-head.team-a.svc.cluster.local`
};

/// When docker-link variables (`X_PORT_6379_TCP_ADDR`) are restored.
enum class DockerLinks {
  mentioned,  ///< where the pod's text names one
  always,
};

/// What to do with a hostNetwork pod of the default dnsPolicy, which cannot resolve Service names.
enum class HostNetworkDns {
  patch,  ///< set dnsPolicy ClusterFirstWithHostNet together with a rewrite of text
  leave,  ///< leave the pod as it is, with a warning
};

/// What becomes of pods that need a Service which is not there yet. Waiting and counting are the
/// server's; 0 turns each off.
struct UnknownService {
  std::uint32_t hold_ms = 2'000;        ///< a review waits so long for it
  std::uint32_t retry_for_ms = 20'000;  ///< from the first miss on: refused, to be retried
};

/// What may be configured about the decisions. A value: copied at start, never changed after.
/// The defaults are the shipped ones.
struct Policy {
  KubeRay kuberay = KubeRay::automatic;
  DnsName dns_name = DnsName::short_name;
  std::string cluster_domain = "cluster.local";  ///< used by DnsName::fqdn only
  DockerLinks docker_links = DockerLinks::mentioned;
  HostNetworkDns host_network_dns = HostNetworkDns::patch;
  UnknownService unknown_service = {};

  /// Which ports make a Service a Ray head's GCS Service: by name, or by number.
  std::vector<std::string> gcs_port_names = {"gcs-server", "gcs", "redis-primary", "redis"};
  std::vector<std::uint16_t> gcs_port_numbers = {6379, 6380};
  /// A selector value with one of these words among its parts (split at `-`, `.`, `_`) selects
  /// heads.
  std::vector<std::string> head_words = {"head"};

  /// Variables restored into one container: at most this many, and at most so many bytes
  /// (names and values).
  std::size_t max_restored = 256;
  std::size_t max_restored_bytes = 16 * 1024;
};

}  // namespace rayhook
