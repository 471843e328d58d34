// SPDX-License-Identifier: Apache-2.0
#include "manifest_judge.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace rayhook {
namespace {

constexpr std::string_view kUid = "00000000-0000-4000-8000-000000000000";

/// The object as the API server would show it to a webhook: without the uid that an exported one
/// has, and a pod from a template as its controller makes it.
OrderedJson as_created(const ManifestObject& object, const Subject& subject) {
  OrderedJson out = subject.object;
  // lint-ok(json-access): subjects_of makes objects only
  auto& members = out.get_ref<OrderedJson::object_t&>();
  if (const auto found = members.find("metadata");
      found != members.end() && found->second.is_object())
    found->second.erase("uid");
  if (subject.controller_kind.empty()) return out;
  OrderedJson& metadata = members.emplace("metadata", OrderedJson::object()).first->second;
  if (!metadata.is_object()) return out;
  const std::string owner = object.name.empty() ? "unnamed" : object.name;
  const bool apps = subject.controller_kind == "ReplicaSet" ||
                    subject.controller_kind == "StatefulSet" ||
                    subject.controller_kind == "DaemonSet";
  metadata["generateName"] = owner + "-";
  metadata["ownerReferences"] =
      OrderedJson::array({{{"apiVersion", apps                               ? "apps/v1"
                                          : subject.controller_kind == "Job" ? "batch/v1"
                                                                             : object.api_version},
                           {"kind", subject.controller_kind},
                           {"name", owner},
                           {"uid", kUid},
                           {"controller", true},
                           {"blockOwnerDeletion", true}}});
  return out;
}

}  // namespace

Result<Decision> ManifestJudge::judge(const ManifestObject& object, const Subject& subject) {
  try {
    const bool pod = subject.kind == ObjectKind::pod;
    const OrderedJson review = {
        {"apiVersion", "admission.k8s.io/v1"},
        {"kind", "AdmissionReview"},
        {"request",
         {{"uid", kUid},
          {"kind", {{"group", ""}, {"version", "v1"}, {"kind", pod ? "Pod" : "Service"}}},
          {"resource", {{"group", ""}, {"version", "v1"}, {"resource", pod ? "pods" : "services"}}},
          {"namespace", object.ns},
          {"operation", "CREATE"},
          {"userInfo", {{"username", "rayhook"}}},
          {"object", as_created(object, subject)},
          {"oldObject", nullptr},
          {"dryRun", true}}}};
    std::string text = review.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    if (text.size() > kMaxReviewBytes) {
      Decision out{Reason::too_large, Outcome::leave, {}, {}, {}, {}};
      return out;
    }
    text.reserve(text.size() + kPadding);
    const auto read = reader_.parse(text);
    if (!read) return std::unexpected(read.error());
    return decide(**read, policy_, facts_.facts(needs(**read, policy_), **read));
  } catch (const std::exception& error) {
    return fail(Errc::internal, object_name(object) + ": " + error.what());
  }
}

std::string object_name(const ManifestObject& object) {
  std::string out = object.kind.empty() ? "object" : object.kind;
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  out += '/';
  if (!object.ns.empty()) out.append(object.ns).push_back('/');
  out += object.name.empty() ? "(no name)" : object.name;
  return out;
}

std::string full_place(const Subject& subject, const std::string& where) {
  std::string out;
  std::string_view rest = subject.pointer;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view token = rest.substr(0, rest.find('/'));
    rest.remove_prefix(token.size());
    const bool index =
        !token.empty() && std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; });
    if (index)
      out.append("[").append(token).append("]");
    else
      out.append(out.empty() ? "" : ".").append(token);
  }
  if (out.empty()) return where;
  return where.empty() ? out : out + "." + where;
}

}  // namespace rayhook
