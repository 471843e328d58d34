// SPDX-License-Identifier: Apache-2.0
// What the verbs make of manifests; the verbs themselves: tests/cli.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <stdexcept>
#include <string>

#include "lib/reason.hpp"
#include "server/verbs/manifest_judge.hpp"

namespace rayhook {
namespace {

constexpr std::string_view kHead =
    "apiVersion: v1\nkind: Service\nmetadata: {name: ray-head}\n"
    "spec: {ports: [{name: redis, port: 6379}], selector: {component: ray-head}}\n---\n";

/// The decision on the second object's first subject, the head Service being the first.
Decision decision_on(const std::string& object) {
  auto manifest = Manifest::parse(std::string(kHead) + object, "m.yaml");
  if (!manifest) throw std::runtime_error(manifest.error().what);
  auto facts = ManifestFacts::from(std::span(&*manifest, 1));
  if (!facts) throw std::runtime_error(facts.error().what);
  ManifestJudge judge(std::move(*facts), Policy{});
  const ManifestObject& judged = manifest->objects()[1];
  auto decision = judge.judge(judged, judged.subjects.at(0));
  if (!decision) throw std::runtime_error(decision.error().what);
  return std::move(*decision);
}

const std::string spec_text =
    "{containers: [{name: w, command: [sh, -c, 'ray start "
    "--address=$RAY_HEAD_SERVICE_HOST:6379']}]}";

TEST(ManifestJudge, PodsAndTemplatesAlike) {
  EXPECT_EQ(decision_on("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: " + spec_text + "}")
                .reason,
            Reason::rewritten);
  const Decision templated = decision_on(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, "
      "spec: {template: {spec: " +
      spec_text + "}}}");
  EXPECT_EQ(templated.reason, Reason::rewritten);
  EXPECT_FALSE(templated.patch.empty());
}

TEST(ManifestJudge, ATemplateIsJudgedAsAControllersPod) {
  // Made by kubectl apply, a bare pod keeps its text: it could not be applied again.
  const std::string applied =
      "metadata: {name: x, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}}";
  EXPECT_EQ(
      decision_on("{apiVersion: v1, kind: Pod, " + applied + ", spec: " + spec_text + "}").reason,
      Reason::restored);
  EXPECT_EQ(
      decision_on("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {" +
                  applied + ", spec: " + spec_text + "}}}")
          .reason,
      Reason::rewritten);
}

TEST(ManifestJudge, BrokenObjectsAreLeft) {
  for (const auto* object : {"{apiVersion: v1, kind: Pod, metadata: 3, spec: []}",
                             "{apiVersion: v1, kind: Service, spec: {ports: x}}"})
    EXPECT_EQ(decision_on(object).reason, Reason::malformed) << object;
  EXPECT_EQ(decision_on("{apiVersion: v1, kind: Pod}").outcome, Outcome::leave);
}

TEST(ManifestNames, ForPeople) {
  ManifestObject object;
  EXPECT_EQ(object_name(object), "object/(no name)");
  object.kind = "RayCluster";
  object.name = "c";
  object.ns = "team-a";
  EXPECT_EQ(object_name(object), "raycluster/team-a/c");
  Subject subject;
  EXPECT_EQ(full_place(subject, "spec.containers[0].args[0]"), "spec.containers[0].args[0]");
  subject.pointer = "/spec/workerGroupSpecs/1/template";
  EXPECT_EQ(full_place(subject, "spec.containers[0]"),
            "spec.workerGroupSpecs[1].template.spec.containers[0]");
  EXPECT_EQ(full_place(subject, ""), "spec.workerGroupSpecs[1].template");
}

}  // namespace
}  // namespace rayhook
