// SPDX-License-Identifier: Apache-2.0
#include "server/verbs/probe_cause.hpp"

#include <gtest/gtest.h>

namespace rayhook {
namespace {

std::string failed(const std::string& cause,
                   const std::string& webhook = "services.strict.rayhook") {
  return "Internal error occurred: failed calling webhook \"" + webhook +
         "\": failed to call webhook: Post "
         "\"https://rayhook.rayhook-system.svc:443/mutate?timeout=5s\": " +
         cause;
}

TEST(ProbeCause, ACallThatFailed) {
  EXPECT_EQ(
      probe_cause(
          failed(
              "tls: failed to verify certificate: x509: certificate signed by unknown authority"))
          .word,
      "certificate");
  EXPECT_EQ(
      probe_cause(failed("x509: certificate has expired or is not yet valid: current time …")).word,
      "certificate");
  EXPECT_EQ(probe_cause(failed("dial tcp 10.96.0.7:443: connect: connection refused")).word,
            "replicas");
  EXPECT_EQ(probe_cause(failed("no endpoints available for service \"rayhook\"")).word, "replicas");
  EXPECT_EQ(probe_cause(failed("context deadline exceeded")).word, "network");
  EXPECT_EQ(probe_cause(failed("dial tcp 10.96.0.7:443: i/o timeout")).word, "network");
  EXPECT_EQ(probe_cause(failed("dial tcp 10.96.0.7:443: connect: no route to host")).word,
            "network");
  EXPECT_EQ(probe_cause(failed("EOF")).word, "network");
  EXPECT_EQ(probe_cause(failed("service \"rayhook\" not found")).word, "service");
}

TEST(ProbeCause, AnothersWebhookIsNoFaultOfRayhook) {
  EXPECT_EQ(probe_cause(failed("connection refused", "validate.other.example")).word, "policy");
  EXPECT_EQ(
      probe_cause("admission webhook \"validate.other.example\" denied the request: x509: no").word,
      "policy");
}

TEST(ProbeCause, Refusals) {
  EXPECT_EQ(
      probe_cause("services \"ray-head\" is forbidden: exceeded quota: none, requested: services=1")
          .word,
      "policy");
  EXPECT_EQ(
      probe_cause(
          "services is forbidden: User \"x\" cannot create resource \"services\" in API group \"\"")
          .word,
      "rights");
  EXPECT_EQ(
      probe_cause("pods \"ray-worker\" is forbidden: violates PodSecurity \"restricted:latest\"")
          .word,
      "policy");
}

TEST(ProbeCause, UnknownWordsHaveNone) {
  EXPECT_EQ(probe_cause("etcdserver: no space left").word, "");
  EXPECT_EQ(probe_cause("").word, "");
}

}  // namespace
}  // namespace rayhook
