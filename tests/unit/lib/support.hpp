// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/decision.hpp"
#include "lib/facts.hpp"
#include "lib/review.hpp"

namespace rayhook::test {

using nlohmann::json;

/// A text with the padding that ReviewReader asks for.
class Padded {
 public:
  explicit Padded(std::string text) : text_(std::move(text)), size_(text_.size()) {
    text_.resize(size_ + kPadding);
  }
  [[nodiscard]] std::string_view view() const { return std::string_view(text_).substr(0, size_); }

 private:
  std::string text_;
  std::size_t size_;
};

/// An AdmissionReview of a CREATE around an object.
inline json review_of(const json& object, const std::string& ns = "team-a") {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "u-1"},
            {"kind", {{"group", ""}, {"version", "v1"}, {"kind", object["kind"]}}},
            {"operation", "CREATE"},
            {"namespace", ns},
            {"userInfo", {{"username", "somebody"}}},
            {"object", object},
            {"dryRun", false}}}};
}

/// A pod with one container that runs `script` in bash, as Ray's static manifests do.
inline json shell_pod(const std::string& script) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", "worker"}}},
          {"spec",
           {{"containers", json::array({{{"name", "ray"},
                                         {"command", json::array({"/bin/bash", "-c", "--"})},
                                         {"args", json::array({script})}}})}}}};
}

/// The head Service of the static cluster, as written by a user.
inline json head_service(const std::string& name = "ray-head") {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"ports", json::array({{{"name", "gcs-server"}, {"port", 6379}, {"targetPort", 6379}},
                                   {{"name", "client"}, {"port", 10001}}})},
            {"selector", {{"app", "ray-head"}}}}}};
}

/// The same as the API server has it after Rayhook.
inline json converted_service(const std::string& name = "ray-head") {
  json out = head_service(name);
  out["metadata"]["uid"] = "s-1";
  out["metadata"]["annotations"]["rayhook/converted"] = "true";
  out["spec"]["clusterIP"] = "None";
  return out;
}

inline ServiceFact fact(const json& service) {
  auto parsed = parse_service(service.dump());
  EXPECT_TRUE(parsed) << parsed.error().what;
  ServiceFact out;
  out.name = parsed->name;
  out.known = Known::present;
  out.service = std::make_shared<const Service>(std::move(*parsed));
  return out;
}

inline Facts facts_of(const std::vector<json>& services) {
  Facts out;
  for (const json& service : services) out.services.push_back(fact(service));
  return out;
}

/// A review that was decided, its answer, and the object with the patch applied.
struct Decided {
  Decision decision;
  json answer, object;

  [[nodiscard]] std::string reason() const { return std::string(word(decision.reason)); }
  [[nodiscard]] bool patched() const { return !decision.patch.empty(); }
  [[nodiscard]] std::string arg(std::size_t i = 0) const {
    return object["spec"]["containers"][0]["args"][i];
  }
  [[nodiscard]] std::string command(std::size_t i) const {
    return object["spec"]["containers"][0]["command"][i];
  }
  /// The value of an env entry of a container, or "(none)".
  [[nodiscard]] std::string env(const std::string& name, std::size_t container = 0) const {
    for (const json& entry : object["spec"]["containers"][container].value("env", json::array()))
      if (entry["name"] == name) return entry.value("value", "(no value)");
    return "(none)";
  }
};

inline Decided decide_review(const json& review, const Facts& facts, const Policy& policy = {}) {
  ReviewReader reader;
  const Padded text(review.dump());
  const auto parsed = reader.parse(text.view());
  EXPECT_TRUE(parsed) << parsed.error().what;
  Decided out{decide(**parsed, policy, facts), {}, review["request"].value("object", json())};
  std::string answer;
  render(**parsed, out.decision, answer);
  out.answer = json::parse(answer);
  if (out.patched()) out.object = out.object.patch(json::parse(patch_json(out.decision)));
  return out;
}

inline Decided decide_object(const json& object, const Facts& facts, const Policy& policy = {}) {
  return decide_review(review_of(object), facts, policy);
}

}  // namespace rayhook::test
