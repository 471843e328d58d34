// SPDX-License-Identifier: Apache-2.0
#include "server/cluster/kube_events.hpp"

#include <gtest/gtest.h>

namespace rayhook {
namespace {

Decision decision(Reason reason, Outcome outcome) {
  Decision out{};
  out.reason = reason;
  out.outcome = outcome;
  return out;
}

TEST(KubeEvent, OfAServiceIsAboutIt) {
  Review review;
  review.kind = ObjectKind::service;
  review.kind_name = "Service";
  review.ns = "team";
  review.name = "ray-head";
  const KubeEvent event =
      kube_event(review, decision(Reason::converted, Outcome::patch), Mode::mutate);
  EXPECT_EQ(event.ns, "team");
  EXPECT_EQ(event.api_version + " " + event.kind + " " + event.name, "v1 Service ray-head");
  EXPECT_EQ(event.reason, "Converted");
  EXPECT_EQ(event.message, text(Reason::converted).sentence);
  EXPECT_FALSE(event.warning);
}

TEST(KubeEvent, OfAPodIsAboutItsController) {
  Review review;
  review.kind = ObjectKind::pod;
  review.kind_name = "Pod";
  review.ns = "team";
  review.generate_name = "workers-1-";
  review.pod.controller = "ReplicaSet";
  review.pod.controller_api = "apps/v1";
  review.pod.controller_name = "workers-1";
  review.pod.controller_uid = "u";
  Decision denied = decision(Reason::service_awaited, Outcome::deny);
  denied.deny_message = "wait";
  const KubeEvent event = kube_event(review, denied, Mode::mutate);
  EXPECT_EQ(event.api_version + " " + event.kind + " " + event.name + " " + event.uid,
            "apps/v1 ReplicaSet workers-1 u");
  EXPECT_EQ(event.reason, "ServiceAwaited");
  EXPECT_EQ(event.message, "Pod workers-1-: wait");
  EXPECT_TRUE(event.warning);
}

TEST(KubeEvent, OfABarePodIsAboutThePod) {
  Review review;
  review.kind = ObjectKind::pod;
  review.kind_name = "Pod";
  review.generate_name = "worker-";
  Decision left = decision(Reason::service_absent, Outcome::leave);
  left.warnings.emplace_back("something");
  const KubeEvent event = kube_event(review, left, Mode::audit);
  EXPECT_EQ(event.api_version + " " + event.kind + " " + event.name, "v1 Pod worker-");
  EXPECT_TRUE(event.message.starts_with("Only reported (audit): "));
  EXPECT_TRUE(event.warning);
}

TEST(KubeEvent, TheMessageIsNoLongerThanTheApiServerTakes) {
  Review review;
  Decision denied = decision(Reason::service_awaited, Outcome::deny);
  denied.deny_message.assign(5000, 'x');
  EXPECT_EQ(kube_event(review, denied, Mode::mutate).message.size(), 1024U);
}

}  // namespace
}  // namespace rayhook
