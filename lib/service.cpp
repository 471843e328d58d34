// SPDX-License-Identifier: Apache-2.0
#include "service.hpp"

#include "service_reader.hpp"

namespace rayhook {

const std::string* find(const StringMap& map, std::string_view key) {
  for (const auto& [name, value] : map)
    if (name == key) return &value;
  return nullptr;
}

bool Service::converted() const {
  const std::string* mark = find(annotations, kConvertedAnnotation);
  return headless() && mark && *mark == "true";
}

namespace {

bool read_map(JsonWalk& walk, ondemand::value value, std::string_view field, StringMap& out) {
  return walk.object(value, field, [&](std::string_view key, ondemand::value item) {
    std::string text;
    if (!walk.string(item, field, text)) return false;
    out.emplace_back(std::string(key), std::move(text));
    return true;
  });
}

bool read_metadata(JsonWalk& walk, ondemand::value value, Service& out) {
  std::uint32_t seen = 0;
  return walk.object(value, "metadata", [&](std::string_view key, ondemand::value item) {
    out.has_metadata = true;
    if (key == "name") return walk.string(item, "metadata.name", out.name);
    if (key == "generateName") return walk.string(item, "metadata.generateName", out.generate_name);
    if (key == "namespace") return walk.string(item, "metadata.namespace", out.ns);
    if (key == "uid") return walk.string(item, "metadata.uid", out.uid);
    if (key == "resourceVersion")
      return walk.string(item, "metadata.resourceVersion", out.resource_version);
    if (key == "creationTimestamp")
      return walk.string(item, "metadata.creationTimestamp", out.created);
    if (key == "labels")
      return walk.once(seen, 0, "metadata.labels") &&
             read_map(walk, item, "metadata.labels", out.labels);
    if (key == "annotations") {
      out.has_annotations = !item.is_null().value_unsafe();
      return walk.once(seen, 1, "metadata.annotations") &&
             read_map(walk, item, "metadata.annotations", out.annotations);
    }
    return true;
  });
}

bool read_target_port(JsonWalk& walk, ondemand::value value, ServicePort& out) {
  ondemand::json_type type;
  if (value.type().get(type)) return walk.broken("spec.ports.targetPort");
  if (type == ondemand::json_type::string)
    return walk.string(value, "spec.ports.targetPort", out.target_name);
  return walk.port(value, "spec.ports.targetPort", out.target);
}

bool read_port(JsonWalk& walk, ondemand::value value, ServicePort& out) {
  const bool fine =
      walk.object(value, "spec.ports", [&](std::string_view key, ondemand::value item) {
        if (key == "name") return walk.string(item, "spec.ports.name", out.name);
        if (key == "protocol") return walk.string(item, "spec.ports.protocol", out.protocol);
        if (key == "port") return walk.port(item, "spec.ports.port", out.port);
        if (key == "nodePort") return walk.port(item, "spec.ports.nodePort", out.node_port);
        if (key == "targetPort") return read_target_port(walk, item, out);
        return true;
      });
  if (!fine) return false;
  if (out.port == 0) return walk.wrong_type("spec.ports.port", "a port number");
  if (out.protocol.empty()) out.protocol = "TCP";
  // An absent target port, and 0, mean the port itself (SetDefaults_Service,
  // kubernetes pkg/apis/core/v1/defaults.go).
  if (out.target == 0) out.target = out.port;
  return true;
}

bool read_spec(JsonWalk& walk, ondemand::value value, Service& out) {
  std::uint32_t seen = 0;
  return walk.object(value, "spec", [&](std::string_view key, ondemand::value item) {
    if (key == "type")
      return walk.once(seen, 0, "spec.type") && walk.string(item, "spec.type", out.type);
    if (key == "clusterIP")
      return walk.once(seen, 1, "spec.clusterIP") &&
             walk.string(item, "spec.clusterIP", out.cluster_ip);
    if (key == "clusterIPs")
      return walk.once(seen, 2, "spec.clusterIPs") &&
             walk.array(
                 item, "spec.clusterIPs",
                 [&](ondemand::value ip) {
                   std::string_view text;
                   if (!walk.required_string(ip, "spec.clusterIPs", text)) return false;
                   out.cluster_ips.emplace_back(text);
                   return true;
                 },
                 &out.has_cluster_ips);
    if (key == "externalIPs")
      return walk.array(item, "spec.externalIPs", [&](ondemand::value) {
        out.has_external_ips = true;
        return true;
      });
    if (key == "loadBalancerIP") {
      std::string address;
      if (!walk.string(item, "spec.loadBalancerIP", address)) return false;
      out.has_load_balancer_ip = !address.empty();
      return true;
    }
    if (key == "publishNotReadyAddresses")
      return walk.boolean(item, "spec.publishNotReadyAddresses", out.publish_not_ready);
    if (key == "selector")
      return walk.once(seen, 3, "spec.selector") &&
             read_map(walk, item, "spec.selector", out.selector);
    if (key == "ports")
      return walk.once(seen, 4, "spec.ports") &&
             walk.array(item, "spec.ports", [&](ondemand::value port) {
               out.ports.emplace_back();
               return read_port(walk, port, out.ports.back());
             });
    return true;
  });
}

}  // namespace

bool read_service(JsonWalk& walk, ondemand::object& object, Service& out) {
  std::uint32_t seen = 0;
  return walk.members(object, "object", [&](std::string_view key, ondemand::value value) {
    if (key == "metadata") return walk.once(seen, 0, "metadata") && read_metadata(walk, value, out);
    if (key == "spec") return walk.once(seen, 1, "spec") && read_spec(walk, value, out);
    return true;
  });
}

Result<Service> parse_service(std::string_view json) {
  simdjson::padded_string padded(json);
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object root;
  if (auto error = parser.iterate(padded).get(document))
    return fail(Errc::bad_json, std::string("Service: ") + simdjson::error_message(error));
  if (auto error = document.get_object().get(root))
    return fail(Errc::bad_json, std::string("Service: ") + simdjson::error_message(error));
  JsonWalk walk;
  Service service;
  if (!read_service(walk, root, service)) return fail(Errc::bad_json, "Service: " + walk.what);
  return service;
}

}  // namespace rayhook
