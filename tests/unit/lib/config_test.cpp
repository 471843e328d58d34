// SPDX-License-Identifier: Apache-2.0
#include "lib/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rayhook {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Policy policy_of(std::string_view yaml) {
  const Result<Policy> policy = read_policy(yaml);
  EXPECT_TRUE(policy.has_value()) << yaml << ": " << (policy ? "" : policy.error().what);
  return policy.value_or(Policy{});
}

std::string complaint_about(std::string_view yaml) {
  const Result<Policy> policy = read_policy(yaml);
  if (policy) return "taken";
  EXPECT_EQ(policy.error().code, Errc::bad_config);
  EXPECT_THAT(policy.error().what, Not(HasSubstr("\n")));
  return policy.error().what;
}

/// All members of a policy: a new one does not compile here, and gets its key and its test.
auto members(const Policy& policy) {
  const auto& [kuberay, dns_name, cluster_domain, docker_links, host_network_dns, unknown_service,
               port_names, port_numbers, head_words, max_restored, max_restored_bytes] = policy;
  const auto& [hold_ms, retry_for_ms] = unknown_service;
  return std::tuple(kuberay, dns_name, cluster_domain, docker_links, host_network_dns, hold_ms,
                    retry_for_ms, port_names, port_numbers, head_words, max_restored,
                    max_restored_bytes);
}

/// No member has its default.
Policy other_policy() {
  return {KubeRay::ignore,
          DnsName::fqdn,
          "k8s.example.org",
          DockerLinks::always,
          HostNetworkDns::leave,
          {1'500, 120'000},
          {"ray-gcs", "on", "1"},
          {1, 65535},
          {"leader", "no"},
          4096,
          262'144};
}

TEST(Config, NothingIsTheDefault) {
  for (const std::string_view nothing :
       {"", "\n", "# only a comment\n", "---\n", "{}", "head:\nrestored:\nunknownService:\n"})
    EXPECT_EQ(members(policy_of(nothing)), members(Policy{})) << nothing;
}

TEST(Config, EveryKeyIsRead) {
  const Policy read = policy_of(R"(
kuberay: ignore
dnsName: fqdn
clusterDomain: k8s.example.org
dockerLinks: always
hostNetworkDns: leave
unknownService: {hold: 1500ms, retryFor: 2m}
head:
  portNames: [ray-gcs, "on", "1"]
  portNumbers: [1, 65535]
  words: [leader, "no"]
restored: {maxVariables: 4096, maxBytes: 262144}
)");
  EXPECT_EQ(members(read), members(other_policy()));
}

TEST(Config, WhatIsWrittenIsReadAgain) {
  Policy changed = other_policy();
  EXPECT_EQ(members(policy_of(write_policy(changed))), members(changed));
  EXPECT_EQ(members(policy_of(policy_json(changed).dump())), members(changed));
  EXPECT_EQ(members(policy_of(write_policy({}))), members(Policy{}));
  changed.kuberay = KubeRay::convert;
  changed.dns_name = DnsName::with_namespace;
  changed.unknown_service = {0, 0};
  changed.gcs_port_names.clear();
  changed.gcs_port_numbers.clear();
  changed.head_words.clear();
  EXPECT_EQ(members(policy_of(write_policy(changed))), members(changed));
}

TEST(Config, Times) {
  const auto hold = [](std::string_view text) {
    return policy_of("unknownService: {hold: " + std::string(text) + "}").unknown_service.hold_ms;
  };
  EXPECT_EQ(hold("0"), 0U);
  EXPECT_EQ(hold("0s"), 0U);
  EXPECT_EQ(hold("\"0\""), 0U);
  EXPECT_EQ(hold("1ms"), 1U);
  EXPECT_EQ(hold("10s"), 10'000U);
  EXPECT_EQ(policy_of("unknownService: {retryFor: 10m}").unknown_service.retry_for_ms, 600'000U);
  for (const std::string_view bad :
       {"2", "10001ms", "11s", "1h", "-1s", "1.5s", "s", "2 s", "2S", "1e3ms", "99999999999s",
        "4294967297ms", "[2s]", "0.0", "true", "\"\"", ""})
    EXPECT_THAT(complaint_about("unknownService: {hold: " + std::string(bad) + "}"),
                AllOf(HasSubstr("unknownService.hold: "), HasSubstr(" 0 to 10s")))
        << bad;
  EXPECT_THAT(complaint_about("unknownService: {retryFor: 601s}"), HasSubstr(" 0 to 10m"));
}

TEST(Config, ComplaintsNameKeyValueAndWhatIsExpected) {
  EXPECT_EQ(complaint_about("kuberay: convrt"),
            "kuberay: \"convrt\" is given; expected auto, convert or ignore");
  EXPECT_EQ(complaint_about("dockerLinks: yes"),
            "dockerLinks: true is given; expected mentioned or always");
  EXPECT_EQ(complaint_about("hostNetworkDns:"),
            "hostNetworkDns: no value is given; expected patch or leave");
  EXPECT_EQ(complaint_about("head: {portNumbers: [6379, 65536]}"),
            "head.portNumbers[1]: 65536 is given; expected a whole number from 1 to 65535");
  EXPECT_EQ(complaint_about("restored: 7"), "restored: 7 is given; expected keys and values");
  EXPECT_EQ(complaint_about("[a]"), "[\"a\"] is given; expected keys and values");
}

TEST(Config, OutOfRange) {
  for (const std::string_view bad : {"0", "-1", "4097", "1.5", "18446744073709551616", "\"7\""})
    EXPECT_THAT(complaint_about("restored: {maxVariables: " + std::string(bad) + "}"),
                AllOf(HasSubstr("restored.maxVariables: "), HasSubstr("1 to 4096")))
        << bad;
  EXPECT_EQ(policy_of("restored: {maxVariables: 1, maxBytes: 1}").max_restored, 1U);
  EXPECT_THAT(complaint_about("restored: {maxBytes: 262145}"), HasSubstr("1 to 262144"));
  for (const std::string_view bad :
       {"", ".", "a..b", "a.", ".a", "-a", "a-", "A.b", "a_b", "a b", "ü", "cluster.local."})
    EXPECT_THAT(complaint_about("clusterDomain: \"" + std::string(bad) + "\""),
                HasSubstr("DNS name"))
        << bad;
  EXPECT_THAT(complaint_about("clusterDomain: " + std::string(64, 'a')), HasSubstr("DNS name"));
  EXPECT_EQ(policy_of("clusterDomain: a").cluster_domain, "a");
  for (const std::string_view bad : {"[Gcs]", "[-]", "[\"\"]", "[1]", "[[a]]"})
    EXPECT_THAT(complaint_about("head: {portNames: " + std::string(bad) + "}"),
                HasSubstr("head.portNames[0]: "))
        << bad;
  // It is compared with the parts of a value, in lower case.
  for (const std::string_view bad : {"[a-b]", "[Head]", "[a.b]"})
    EXPECT_THAT(complaint_about("head: {words: " + std::string(bad) + "}"),
                HasSubstr("head.words[0]: "))
        << bad;
  EXPECT_THAT(complaint_about("head: {words: head}"), HasSubstr("expected a list"));
  std::string many = "head: {portNumbers: [1";
  for (int i = 0; i < 64; ++i) many += ", 1";
  EXPECT_THAT(complaint_about(many + "]}"), HasSubstr("at most 64"));
}

TEST(Config, ListsTakeThePlaceOfTheDefault) {
  const Policy policy = policy_of("head: {portNames: [x], portNumbers: []}");
  EXPECT_THAT(policy.gcs_port_names, ElementsAre("x"));
  EXPECT_THAT(policy.gcs_port_numbers, IsEmpty());
  EXPECT_THAT(policy.head_words, ElementsAre("head"));
}

TEST(Config, UnknownKeysNameTheNearest) {
  const auto nearest = [](std::string_view yaml) {
    const std::string what = complaint_about(yaml);
    const std::size_t at = what.find("; the nearest one is ");
    return at == std::string::npos ? what : what.substr(at + 21);
  };
  EXPECT_EQ(complaint_about("kubray: auto"),
            "there is no key \"kubray\"; the nearest one is kuberay");
  EXPECT_EQ(complaint_about("head: {word: [x]}"),
            "there is no key \"head.word\"; the nearest one is words, under head");
  EXPECT_EQ(nearest("dns_name: short"), "dnsName");
  EXPECT_EQ(nearest("CLUSTERDOMAIN: a"), "clusterDomain");
  EXPECT_EQ(nearest("hold: 2s"), "hold, under unknownService");
  EXPECT_EQ(nearest("unknownServices: {hold: 2s}"), "unknownService");
  EXPECT_EQ(nearest("head.words: [a]"), "words, under head");
  EXPECT_EQ(nearest("restored: {max: 3}"), "maxBytes, under restored");
  EXPECT_THAT(nearest("apiVersion: v1"), Not(IsEmpty()));
  EXPECT_THAT(complaint_about("\"\": {kuberay: auto}"), HasSubstr("no key \"\";"));
  EXPECT_LT(complaint_about(std::string(10'000, 'x') + ": 1").size(), 200U);
}

TEST(Config, NotEvenYaml) {
  EXPECT_THAT(complaint_about("kuberay: auto\nkuberay: auto\n"),
              AllOf(HasSubstr("line 2: "), HasSubstr("kuberay"), HasSubstr("twice")));
  EXPECT_THAT(complaint_about("head:\n  words: [a]\n  words: [a]\n"), HasSubstr("line 3: "));
  EXPECT_THAT(complaint_about("kuberay: [\n"), HasSubstr("line "));
  EXPECT_THAT(complaint_about("---\n{}\n---\n{}\n"), HasSubstr("second document"));
}

TEST(Config, AnchorsWork) {
  EXPECT_THAT(policy_of("head: {words: &w [a, b], portNames: *w}").gcs_port_names,
              ElementsAre("a", "b"));
}

}  // namespace
}  // namespace rayhook
