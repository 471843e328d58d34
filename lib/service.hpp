// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error.hpp"

namespace rayhook {

/// Annotations that Rayhook writes and reads.
inline constexpr std::string_view kConvertedAnnotation = "rayhook/converted";
inline constexpr std::string_view kDecisionAnnotation = "rayhook/decision";
inline constexpr std::string_view kModeAnnotation = "rayhook/mode";

/// Labels or selectors of Kubernetes objects, in the object's order.
using StringMap = std::vector<std::pair<std::string, std::string>>;

/// The value of `key`, or nullptr.
[[nodiscard]] const std::string* find(const StringMap& map, std::string_view key);

/// One entry of `spec.ports`.
struct ServicePort {
  std::string name;  ///< empty: unnamed
  std::uint16_t port = 0;
  std::string protocol = "TCP";  ///< TCP, UDP or SCTP
  std::uint16_t target = 0;      ///< numeric target port; the port itself where absent
  std::string target_name;       ///< a named target port; `target` means nothing then
  std::uint16_t node_port = 0;
};

/// What Rayhook reads of a Service. Owns its strings; a plain value.
struct Service {
  std::string name;
  std::string generate_name;
  std::string ns;                ///< metadata.namespace, may be empty in a manifest
  std::string uid;               ///< set on stored Services only
  std::string resource_version;  ///< of a stored one; changes with each write
  std::string created;           ///< metadata.creationTimestamp, UTC to the second; of a stored one
  StringMap labels;
  StringMap annotations;
  StringMap selector;
  std::string type;        ///< as written; empty means ClusterIP
  std::string cluster_ip;  ///< empty: not chosen; "None": headless
  std::vector<std::string> cluster_ips;
  bool has_cluster_ips = false;   ///< spec.clusterIPs is there and not null
  bool has_external_ips = false;  ///< spec.externalIPs has an entry
  bool has_load_balancer_ip = false;
  bool publish_not_ready = false;
  bool has_metadata = false;  ///< for patches: which parents exist
  bool has_annotations = false;
  std::vector<ServicePort> ports;

  [[nodiscard]] bool stored() const { return !uid.empty(); }
  [[nodiscard]] bool headless() const { return cluster_ip == "None"; }
  /// Rayhook made it headless (the annotation on a headless Service).
  [[nodiscard]] bool converted() const;
};

/// Reads one Service object (JSON text of `{"apiVersion":"v1","kind":"Service",…}`). Needs no
/// padding, copies. Wrong types are errors that name the field; unknown fields are passed over.
[[nodiscard]] Result<Service> parse_service(std::string_view json);

}  // namespace rayhook
