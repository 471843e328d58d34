// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.hpp"

#include <gmock/gmock.h>

#include "server/cpu_quota.hpp"
#include "server/ops.hpp"

namespace rayhook::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

TEST(MetricsTest, ReviewsByAllTheirLabels) {
  Metrics metrics;
  Review review;
  review.kind = ObjectKind::service;
  review.operation = "CREATE";
  Decision decision{};
  decision.reason = Reason::converted;
  decision.outcome = Outcome::patch;
  metrics.reviewed(review, decision, Mode::mutate, microseconds(50));
  metrics.reviewed(review, decision, Mode::mutate, microseconds(51));
  review.dry_run = true;
  metrics.reviewed(review, decision, Mode::audit, milliseconds(3));
  review.operation = "anything\"}";
  review.kind = ObjectKind::other;
  decision.reason = Reason::patch_refused;
  decision.outcome = Outcome::deny;
  metrics.reviewed(review, decision, Mode::audit, std::chrono::minutes(1));
  const std::string text = metrics.text();
  EXPECT_THAT(text,
              HasSubstr(R"(rayhook_reviews_total{kind="Service",operation="CREATE",)"
                        R"(outcome="patch",reason="converted",dry_run="false",mode="mutate"} 2)"));
  EXPECT_THAT(text,
              HasSubstr(R"(outcome="patch",reason="converted",dry_run="true",mode="audit"} 1)"));
  EXPECT_THAT(text,
              HasSubstr(R"(rayhook_reviews_total{kind="other",operation="other",)"
                        R"(outcome="deny",reason="patch-refused",dry_run="true",mode="audit"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(rayhook_review_duration_seconds_bucket{le="5e-05"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(rayhook_review_duration_seconds_bucket{le="0.0001"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(rayhook_review_duration_seconds_bucket{le="0.005"} 3)"));
  EXPECT_THAT(text, HasSubstr(R"(rayhook_review_duration_seconds_bucket{le="10"} 3)"));
  EXPECT_THAT(text, HasSubstr(R"(rayhook_review_duration_seconds_bucket{le="+Inf"} 4)"));
  EXPECT_THAT(text, HasSubstr("rayhook_review_duration_seconds_count 4"));
  EXPECT_THAT(text, HasSubstr("rayhook_review_duration_seconds_sum 60.003"));
}

TEST(MetricsTest, WhatAlertsAskForIsThereBeforeItHappens) {
  const std::string text = Metrics().text();
  for (const std::string_view labels :
       {R"(kind="Service",operation="CREATE",outcome="patch",reason="converted")",
        R"(kind="Pod",operation="CREATE",outcome="patch",reason="rewritten")",
        R"(kind="Pod",operation="CREATE",outcome="patch",reason="restored")",
        R"(kind="Service",operation="CREATE",outcome="leave",reason="patch-refused")",
        R"(kind="Pod",operation="CREATE",outcome="leave",reason="patch-refused")"})
    for (const std::string_view rest :
         {R"(dry_run="false",mode="mutate")", R"(dry_run="true",mode="mutate")",
          R"(dry_run="false",mode="audit")", R"(dry_run="true",mode="audit")"})
      EXPECT_THAT(text, HasSubstr("rayhook_reviews_total{" + std::string(labels) + "," +
                                  std::string(rest) + "} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("reason=\"no-reference\""))) << "not all of them";
}

TEST(MetricsTest, EveryReasonHasItsOwnCounter) {
  Metrics metrics;
  Review review;
  Decision decision{};
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    decision.reason = static_cast<Reason>(i);
    for (std::size_t n = 0; n <= i; ++n)
      metrics.reviewed(review, decision, Mode::mutate, microseconds(1));
  }
  const std::string text = metrics.text();
  for (std::size_t i = 0; i < kReasonCount; ++i)
    EXPECT_THAT(text,
                HasSubstr("reason=\"" + std::string(word(static_cast<Reason>(i))) +
                          "\",dry_run=\"false\",mode=\"mutate\"} " + std::to_string(i + 1) + "\n"));
}

TEST(MetricsTest, FaultsHaveDistinctWords) {
  Metrics metrics;
  for (std::size_t i = 0; i < kHttpFaults; ++i) metrics.fault(static_cast<HttpFault>(i));
  for (std::size_t i = 0; i < kLookupResults; ++i) metrics.lookup(static_cast<LookupResult>(i));
  for (std::size_t i = 0; i < kHandshakeFaults; ++i)
    metrics.handshake_failed(static_cast<HandshakeFault>(i));
  const std::string text = metrics.text();
  for (const std::string_view name :
       {"rayhook_http_errors_total", "rayhook_lookups_total", "rayhook_handshake_failures_total"}) {
    std::size_t count = 0;
    for (std::size_t at = text.find(std::string("\n") + std::string(name) + "{");
         at != std::string::npos;
         at = text.find(std::string("\n") + std::string(name) + "{", at + 1))
      ++count;
    EXPECT_GE(count, 3U) << name;
  }
  EXPECT_THAT(text, Not(HasSubstr("reason=\"\"")));
  EXPECT_THAT(text, Not(HasSubstr("} 2\n")));
}

TEST(Ops, Paths) {
  Readiness readiness;
  Metrics metrics;
  EXPECT_EQ(ops_answer("/livez", readiness, metrics).status, "200 OK");
  EXPECT_EQ(ops_answer("/readyz", readiness, metrics).body,
            "certificate: not loaded yet\nservices: not known yet\n");
  EXPECT_EQ(ops_answer("/readyz", readiness, metrics).status, "503 Service Unavailable");
  readiness.clear(Hindrance::services);
  readiness.hinder(Hindrance::certificate, "has expired");
  EXPECT_EQ(ops_answer("/readyz", readiness, metrics).body, "certificate: has expired\n");
  readiness.clear(Hindrance::certificate);
  EXPECT_EQ(ops_answer("/readyz?verbose", readiness, metrics).status, "200 OK");
  readiness.hinder(Hindrance::draining, "told to end");
  EXPECT_EQ(ops_answer("/readyz", readiness, metrics).status, "503 Service Unavailable");
  EXPECT_EQ(ops_answer("/livez", readiness, metrics).status, "200 OK");
  EXPECT_EQ(ops_answer("/metrics", readiness, metrics).type,
            "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(ops_answer("/", readiness, metrics).status, "404 Not Found");
}

TEST(CpuQuota, ThreadsByTheCgroupsQuota) {
  EXPECT_EQ(threads_for("max 100000\n", 8), 8U);
  EXPECT_EQ(threads_for("200000 100000\n", 8), 2U);
  EXPECT_EQ(threads_for("150000 100000\n", 8), 2U);
  EXPECT_EQ(threads_for("10000 100000\n", 8), 1U);
  EXPECT_EQ(threads_for("1600000 100000\n", 8), 8U);
  EXPECT_EQ(threads_for("-1 100000\n", 4), 4U) << "cgroup v1 without a quota";
  EXPECT_EQ(threads_for("", 4), 4U);
  EXPECT_EQ(threads_for("9223372036854775807 1", 4), 4U);
  EXPECT_EQ(threads_for("1 0", 0), 1U);
  EXPECT_GE(default_threads(), 1U);
}

}  // namespace
}  // namespace rayhook::test
