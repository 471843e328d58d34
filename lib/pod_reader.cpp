// SPDX-License-Identifier: Apache-2.0
#include "pod_reader.hpp"

#include <charconv>

#include "service.hpp"

namespace rayhook {
namespace {

bool read_annotations(JsonWalk& walk, ondemand::value value, Pod& out) {
  out.has_annotations = !value.is_null().value_unsafe();
  return walk.object(value, "metadata.annotations",
                     [&](std::string_view key, ondemand::value item) {
                       if (key == kDecisionAnnotation)
                         return walk.string(item, "metadata.annotations", out.decision);
                       if (key == kModeAnnotation) {
                         std::string_view mode;
                         if (!walk.string(item, "metadata.annotations", mode)) return false;
                         out.opted_out = mode == "ignore";
                         return true;
                       }
                       // Only their being there counts: kubernetes pkg/kubelet/types/constants.go,
                       // and kubectl's own annotation on what `kubectl apply` made.
                       if (key == "kubernetes.io/config.mirror") out.mirror = true;
                       if (key == "kubectl.kubernetes.io/last-applied-configuration")
                         out.applied = true;
                       return true;
                     });
}

bool read_owner(JsonWalk& walk, ondemand::value value, Pod& out) {
  std::string_view kind, api, name, uid;
  bool controller = false;
  if (!walk.object(value, "metadata.ownerReferences",
                   [&](std::string_view key, ondemand::value item) {
                     if (key == "kind")
                       return walk.string(item, "metadata.ownerReferences.kind", kind);
                     if (key == "apiVersion")
                       return walk.string(item, "metadata.ownerReferences.apiVersion", api);
                     if (key == "name")
                       return walk.string(item, "metadata.ownerReferences.name", name);
                     if (key == "uid")
                       return walk.string(item, "metadata.ownerReferences.uid", uid);
                     if (key == "controller")
                       return walk.boolean(item, "metadata.ownerReferences.controller", controller);
                     return true;
                   }))
    return false;
  if (controller) {
    out.controller = kind;
    out.controller_api = api;
    out.controller_name = name;
    out.controller_uid = uid;
  }
  return true;
}

bool read_managed_fields(JsonWalk& walk, ondemand::value value, Pod& out) {
  return walk.array(value, "metadata.managedFields", [&](ondemand::value entry) {
    return walk.object(entry, "metadata.managedFields",
                       [&](std::string_view key, ondemand::value item) {
                         if (key != "operation") return true;
                         std::string_view operation;
                         if (!walk.string(item, "metadata.managedFields.operation", operation))
                           return false;
                         out.applied = out.applied || operation == "Apply";
                         return true;
                       });
  });
}

bool read_labels(JsonWalk& walk, ondemand::value value, Pod& out) {
  return walk.object(value, "metadata.labels", [&](std::string_view key, ondemand::value item) {
    std::string_view text;
    if (!walk.string(item, "metadata.labels", text)) return false;
    out.labels.emplace_back(key, text);
    return true;
  });
}

bool read_metadata(JsonWalk& walk, ondemand::value value, Pod& out) {
  std::uint32_t seen = 0;
  out.has_metadata = !value.is_null().value_unsafe();
  return walk.object(value, "metadata", [&](std::string_view key, ondemand::value item) {
    if (key == "name") return walk.string(item, "metadata.name", out.name);
    if (key == "generateName") return walk.string(item, "metadata.generateName", out.generate_name);
    if (key == "creationTimestamp")
      return walk.string(item, "metadata.creationTimestamp", out.created);
    if (key == "labels")
      return walk.once(seen, 0, "metadata.labels") && read_labels(walk, item, out);
    if (key == "annotations")
      return walk.once(seen, 1, "metadata.annotations") && read_annotations(walk, item, out);
    if (key == "ownerReferences")
      return walk.array(item, "metadata.ownerReferences",
                        [&](ondemand::value owner) { return read_owner(walk, owner, out); });
    if (key == "managedFields") return read_managed_fields(walk, item, out);
    if (key == "deletionTimestamp") {
      out.terminating = !item.is_null().value_unsafe();
      return true;
    }
    return true;
  });
}

/// An array of strings into the pod's texts.
bool read_texts(JsonWalk& walk, ondemand::value value, Field field, std::uint8_t exec,
                std::string_view name, Pod& out) {
  std::uint32_t index = 0;
  return walk.array(value, name, [&](ondemand::value item) {
    Text text{field, exec, index++, {}};
    if (!walk.required_string(item, name, text.value)) return false;
    out.texts.push_back(text);
    return true;
  });
}

/// `{"exec": {"command": [...]}}`, the shape of probes and hooks.
bool read_exec(JsonWalk& walk, ondemand::value value, Field field, std::uint8_t exec, Pod& out) {
  const std::string_view path = kExecPaths[exec];
  return walk.object(value, path, [&](std::string_view key, ondemand::value item) {
    if (key != "exec") return true;
    return walk.object(item, path, [&](std::string_view inner, ondemand::value command) {
      return inner != "command" || read_texts(walk, command, field, exec, path, out);
    });
  });
}

/// fieldRefs that hold an address, a name or a number; annotations could hold anything.
bool harmless_field(std::string_view path) {
  return path == "metadata.name" || path == "metadata.namespace" || path == "metadata.uid" ||
         path.starts_with("status.") || path == "spec.nodeName" ||
         path == "spec.serviceAccountName";
}

bool read_value_from(JsonWalk& walk, ondemand::value value, EnvEntry& entry) {
  return walk.object(value, "env.valueFrom", [&](std::string_view key, ondemand::value item) {
    entry.source = EnvSource::unknown;
    if (key == "resourceFieldRef") entry.source = EnvSource::harmless;
    if (key != "fieldRef") return true;
    return walk.object(item, "env.valueFrom.fieldRef",
                       [&](std::string_view inner, ondemand::value path) {
                         std::string_view text;
                         if (inner != "fieldPath") return true;
                         if (!walk.string(path, "env.valueFrom.fieldRef.fieldPath", text))
                           return false;
                         if (harmless_field(text)) entry.source = EnvSource::harmless;
                         return true;
                       });
  });
}

bool read_env(JsonWalk& walk, ondemand::value value, Container& container, Pod& out) {
  std::uint32_t index = 0;
  return walk.array(
      value, "env",
      [&](ondemand::value item) {
        EnvEntry entry;
        if (!walk.object(item, "env", [&](std::string_view key, ondemand::value field) {
              if (key == "name") return walk.string(field, "env.name", entry.name);
              if (key == "value") return walk.string(field, "env.value", entry.value);
              if (key == "valueFrom") return read_value_from(walk, field, entry);
              return true;
            }))
          return false;
        if (!entry.value.empty()) out.texts.push_back({Field::env_value, 0, index, entry.value});
        out.env.push_back(entry);
        ++index;
        return true;
      },
      &container.has_env);
}

bool read_container(JsonWalk& walk, ondemand::value value, Container container, Pod& out) {
  std::uint32_t seen = 0;
  container.texts_begin = static_cast<std::uint32_t>(out.texts.size());
  container.env_begin = static_cast<std::uint32_t>(out.env.size());
  const auto read = [&](std::string_view key, ondemand::value item) {
    if (key == "name") return walk.string(item, "name", container.name);
    if (key == "command")
      return walk.once(seen, 0, key) && read_texts(walk, item, Field::command, 0, "command", out);
    if (key == "args")
      return walk.once(seen, 1, key) && read_texts(walk, item, Field::args, 0, "args", out);
    if (key == "env") return walk.once(seen, 2, key) && read_env(walk, item, container, out);
    if (key == "envFrom")
      return walk.array(item, "envFrom", [&](ondemand::value) {
        container.has_env_from = true;
        return true;
      });
    if (key == "livenessProbe") return read_exec(walk, item, Field::probe, 0, out);
    if (key == "readinessProbe") return read_exec(walk, item, Field::probe, 1, out);
    if (key == "startupProbe") return read_exec(walk, item, Field::probe, 2, out);
    if (key == "lifecycle")
      return walk.once(seen, 3, key) &&
             walk.object(item, "lifecycle", [&](std::string_view hook, ondemand::value handler) {
               if (hook == "postStart") return read_exec(walk, handler, Field::hook, 3, out);
               if (hook == "preStop") return read_exec(walk, handler, Field::hook, 4, out);
               return true;
             });
    return true;
  };
  if (!walk.object(value, "containers", read)) {
    walk.what += " in " + std::string(container.init ? "initContainers[" : "containers[") +
                 std::to_string(container.index) + "]";
    return false;
  }
  container.texts_end = static_cast<std::uint32_t>(out.texts.size());
  container.env_end = static_cast<std::uint32_t>(out.env.size());
  out.containers.push_back(container);
  return true;
}

bool read_containers(JsonWalk& walk, ondemand::value value, bool init, Pod& out) {
  std::uint32_t index = 0;
  return walk.array(value, init ? "spec.initContainers" : "spec.containers",
                    [&](ondemand::value item) {
                      Container container;
                      container.init = init;
                      container.index = index++;
                      return read_container(walk, item, container, out);
                    });
}

bool read_spec(JsonWalk& walk, ondemand::value value, Pod& out) {
  std::uint32_t seen = 0;
  return walk.object(value, "spec", [&](std::string_view key, ondemand::value item) {
    if (key == "containers")
      return walk.once(seen, 0, "spec.containers") && read_containers(walk, item, false, out);
    if (key == "initContainers")
      return walk.once(seen, 1, "spec.initContainers") && read_containers(walk, item, true, out);
    if (key == "hostNetwork") return walk.boolean(item, "spec.hostNetwork", out.host_network);
    if (key == "dnsPolicy") return walk.string(item, "spec.dnsPolicy", out.dns_policy);
    if (key == "enableServiceLinks")
      return walk.boolean(item, "spec.enableServiceLinks", out.service_links);
    return true;
  });
}

}  // namespace

void Pod::clear() {
  // Everything back to its default, but the lists keep their memory.
  auto kept_labels = std::move(labels);
  auto kept_containers = std::move(containers);
  auto kept_texts = std::move(texts);
  auto kept_env = std::move(env);
  *this = Pod{};
  labels = std::move(kept_labels);
  containers = std::move(kept_containers);
  texts = std::move(kept_texts);
  env = std::move(kept_env);
  labels.clear();
  containers.clear();
  texts.clear();
  env.clear();
}

bool read_pod(JsonWalk& walk, ondemand::object& object, Pod& out) {
  std::uint32_t seen = 0;
  return walk.members(object, "object", [&](std::string_view key, ondemand::value value) {
    if (key == "metadata") return walk.once(seen, 0, "metadata") && read_metadata(walk, value, out);
    if (key == "spec") return walk.once(seen, 1, "spec") && read_spec(walk, value, out);
    if (key == "status")
      return walk.object(value, "status", [&](std::string_view field, ondemand::value item) {
        if (field != "phase") return true;
        std::string_view phase;
        if (!walk.string(item, "status.phase", phase)) return false;
        out.finished = phase == "Succeeded" || phase == "Failed";
        return true;
      });
    return true;
  });
}

}  // namespace rayhook
