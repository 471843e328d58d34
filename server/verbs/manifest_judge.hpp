// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "lib/decision.hpp"
#include "lib/manifest.hpp"
#include "lib/policy.hpp"
#include "lib/review.hpp"
#include "server/lookup/manifest_facts.hpp"

namespace rayhook {

/// Decides on the subjects of manifests as the webhook would on their CREATE: a real
/// AdmissionReview goes through parse, needs, facts and decide. Not thread-safe.
class ManifestJudge {
 public:
  ManifestJudge(ManifestFacts facts, Policy policy)
      : facts_(std::move(facts)), policy_(std::move(policy)) {}

  /// A pod template is judged as one of its controller's pods.
  [[nodiscard]] Result<Decision> judge(const ManifestObject& object, const Subject& subject);

 private:
  ManifestFacts facts_;
  Policy policy_;
  ReviewReader reader_;
};

/// `deployment/ray-worker`, with its namespace if it names one; `configmap/(no name)`.
[[nodiscard]] std::string object_name(const ManifestObject& object);

/// Where in the object a finding stands: `spec.template.` + `spec.containers[0].args[0]`.
[[nodiscard]] std::string full_place(const Subject& subject, const std::string& where);

}  // namespace rayhook
