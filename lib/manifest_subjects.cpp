// SPDX-License-Identifier: Apache-2.0
#include "manifest_subjects.hpp"

#include <algorithm>
#include <utility>

#include "patch.hpp"

namespace rayhook {
namespace {

/// Who owns the pods of a workload in the end: that counts when a pod has to be retried.
struct Owner {
  std::string_view kind, pods_owner;
};
constexpr Owner kOwners[] = {
    {"Deployment", "ReplicaSet"},
    {"CronJob", "Job"},
    {"RayJob", "RayCluster"},
    {"RayService", "RayCluster"},
    {"LeaderWorkerSet", "StatefulSet"},
    {"Rollout", "ReplicaSet"},
    {"PodTemplate", ""},
};

std::string_view owner_of(std::string_view kind) {
  const auto* found = std::ranges::find(kOwners, kind, &Owner::kind);
  return found == std::end(kOwners) ? kind : found->pods_owner;
}

bool is_pod_template(const OrderedJson& value) {
  const OrderedJson* spec = member(value, "spec");
  const OrderedJson* containers = spec ? member(*spec, "containers") : nullptr;
  return containers && containers->is_array() &&
         std::ranges::all_of(*containers, [](const OrderedJson& c) { return c.is_object(); });
}

bool ends_in_template(std::string_view name) {
  return name.ends_with("template") || name.ends_with("Template");
}

class TemplateFinder {
 public:
  TemplateFinder(std::string_view kind, std::vector<Subject>& out) : kind_(kind), out_(out) {}

  void search(const OrderedJson& value, const std::string& pointer) {
    if (value.is_object()) {
      for (const auto& [name, inner] : value.get_ref<const OrderedJson::object_t&>()) {
        if (!inner.is_structured()) continue;
        std::string path = pointer + "/";
        append_pointer_token(path, name);
        if (ends_in_template(name) && is_pod_template(inner))
          found(inner, path, name);
        else
          search(inner, path);
      }
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i)
        if (value[i].is_structured()) search(value[i], pointer + "/" + std::to_string(i));
    }
  }

 private:
  void found(const OrderedJson& pod_template, const std::string& pointer, std::string_view name) {
    Subject& subject = out_.emplace_back();
    subject.pointer = pointer;
    subject.controller_kind = name == "submitterPodTemplate" ? "Job" : owner_of(kind_);
    subject.object = {{"apiVersion", "v1"}, {"kind", "Pod"}};
    auto& members = subject.object.get_ref<OrderedJson::object_t&>();
    for (const auto& [key, value] : pod_template.get_ref<const OrderedJson::object_t&>())
      if ((key == "metadata" || key == "spec") && !value.is_null())
        members.emplace_back(key, value);
  }

  std::string_view kind_;
  std::vector<Subject>& out_;
};

}  // namespace

const OrderedJson* member(const OrderedJson& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  for (const auto& [key, value] : object.get_ref<const OrderedJson::object_t&>())
    if (key == name) return &value;
  return nullptr;
}

std::string string_member(const OrderedJson& object, std::string_view name) {
  const OrderedJson* value = member(object, name);
  return value && value->is_string() ? value->get_ref<const std::string&>() : std::string();
}

std::vector<Subject> subjects_of(const OrderedJson& object, std::string_view api_version,
                                 std::string_view kind) {
  std::vector<Subject> out;
  if (api_version == "v1" && (kind == "Service" || kind == "Pod")) {
    Subject& subject = out.emplace_back();
    subject.kind = kind == "Pod" ? ObjectKind::pod : ObjectKind::service;
    subject.object = {{"apiVersion", "v1"}, {"kind", kind}};
    auto& members = subject.object.get_ref<OrderedJson::object_t&>();
    for (const auto& [key, value] : object.get_ref<const OrderedJson::object_t&>())
      if (key != "apiVersion" && key != "kind") members.emplace_back(key, value);
    return out;
  }
  TemplateFinder finder(kind, out);
  if (kind == "PodTemplate") {
    finder.search(object, "");
  } else if (const OrderedJson* spec = member(object, "spec")) {
    finder.search(*spec, "/spec");
  }
  return out;
}

}  // namespace rayhook
