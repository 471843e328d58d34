// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rayhook {

/// Where in a container a text stands.
enum class Field : std::uint8_t {
  command,    ///< command[i]: kubelet expands `$(X)`
  args,       ///< args[i]: kubelet expands `$(X)`
  env_value,  ///< env[i].value: kubelet expands `$(X)`, names declared earlier win
  probe,      ///< exec command of a probe: kubelet expands names of the container's own env only
  hook,       ///< exec command of a lifecycle hook: kubelet expands nothing
};

/// One string of a container that could refer to a variable.
struct Text {
  Field field;
  std::uint8_t exec;       ///< probe and hook: index into kExecPaths
  std::uint32_t index;     ///< position in its array (command[i], env[i] …)
  std::string_view value;  ///< decoded
};

/// The places of exec commands inside a container, as JSON pointer tails.
inline constexpr std::string_view kExecPaths[] = {
    "livenessProbe/exec/command", "readinessProbe/exec/command", "startupProbe/exec/command",
    "lifecycle/postStart/exec/command", "lifecycle/preStop/exec/command"};

/// Where the value of an env entry comes from.
enum class EnvSource : std::uint8_t {
  value,     ///< `value`, or nothing (then the empty string)
  harmless,  ///< fieldRef or resourceFieldRef of an address, a name, a number
  unknown,   ///< a ConfigMap, a Secret, an annotation …: could be any text
};

struct EnvEntry {
  std::string_view name;
  std::string_view value;
  EnvSource source = EnvSource::value;
};

/// A container, init container or sidecar. Texts and env are ranges of the pod's flat lists.
struct Container {
  std::string_view name;
  bool init = false;          ///< stands in initContainers
  std::uint32_t index = 0;    ///< position in its list
  bool has_env = false;       ///< `env` is an array (so entries can be inserted)
  bool has_env_from = false;  ///< `envFrom` has entries: names are set that are not seen here
  std::uint32_t texts_begin = 0, texts_end = 0;
  std::uint32_t env_begin = 0, env_end = 0;
};

/// What Rayhook reads of a Pod (or a pod template): all views into the review's own memory.
/// Flat lists, cleared and filled again for each review, so that reading a pod allocates nothing.
struct Pod {
  std::string_view name, generate_name;
  std::string_view created;     ///< metadata.creationTimestamp; empty before it is stored
  std::string_view decision;    ///< annotation rayhook/decision, if any
  std::string_view dns_policy;  ///< empty: the default (ClusterFirst)
  std::string_view controller;  ///< "apps/v1 ReplicaSet" → kind and apiVersion of the controller
  std::string_view controller_api, controller_name, controller_uid;
  std::vector<std::pair<std::string_view, std::string_view>> labels;
  bool has_metadata = false, has_annotations = false;
  bool opted_out = false;  ///< annotation rayhook/mode: ignore
  bool mirror = false;     ///< annotation kubernetes.io/config.mirror
  bool applied = false;    ///< by kubectl apply (last-applied-configuration or managedFields)
  bool host_network = false;
  bool service_links = true;  ///< spec.enableServiceLinks
  bool finished = false;      ///< status.phase Succeeded or Failed
  bool terminating = false;   ///< metadata.deletionTimestamp is set
  std::vector<Container> containers;
  std::vector<Text> texts;
  std::vector<EnvEntry> env;

  void clear();
};

}  // namespace rayhook
