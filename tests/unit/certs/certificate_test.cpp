// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <openssl/err.h>

#include "support.hpp"

namespace rayhook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Issue, AnAuthority) {
  const CertificateFacts facts = describe(pair_of(authority("Rayhook CA")).leaf());
  EXPECT_EQ(facts.subject, "CN=Rayhook CA");
  EXPECT_EQ(facts.issuer, "CN=Rayhook CA");
  EXPECT_EQ(facts.key, "EC P-256");
  EXPECT_TRUE(facts.authority);
  EXPECT_EQ(facts.not_before, kNow);
  EXPECT_EQ(facts.not_after, kNow + 3650 * kDay);
  EXPECT_LE(facts.serial.size(), 40U);
  EXPECT_EQ(facts.fingerprint.size(), 64U);
}

TEST(Issue, ALeaf) {
  const IssuedPair issued =
      leaf(authority(), {"rayhook.rayhook-system.svc", "*.example", "127.0.0.1", "::1"});
  const CertificateFacts facts = describe(pair_of(issued).leaf());
  EXPECT_THAT(facts.names,
              ElementsAre("rayhook.rayhook-system.svc", "*.example", "127.0.0.1", "::1"));
  EXPECT_EQ(facts.issuer, "CN=test CA");
  EXPECT_EQ(facts.key, "EC P-256");
  EXPECT_FALSE(facts.authority);
  EXPECT_EQ(facts.not_after, kNow + 90 * kDay);
  EXPECT_THAT(issued.key, StartsWith("-----BEGIN PRIVATE KEY-----\n"));
}

TEST(Issue, TwoAreNeverTheSame) {
  const IssuedPair ca = authority();
  EXPECT_NE(describe(pair_of(leaf(ca)).leaf()).serial, describe(pair_of(leaf(ca)).leaf()).serial);
  EXPECT_NE(leaf(ca).key, leaf(ca).key);
}

TEST(Issue, ALeafEndsWithItsAuthority) {
  const IssuedPair ca = authority("old", {kNow - 3650 * kDay, kNow + kDay});
  EXPECT_EQ(describe(pair_of(leaf(ca)).leaf()).not_after, kNow + kDay);
}

TEST(Issue, ALongNameIsOnlyInTheAlternativeNames) {
  const std::string name = std::string(60, 'a') + "." + std::string(60, 'b') + ".svc";
  EXPECT_THAT(describe(pair_of(leaf(authority(), {name})).leaf()).names, ElementsAre(name));
}

TEST(Issue, WhatIsNoName) {
  const IssuedPair ca = authority();
  for (const char* name : {"", "a b", "-a", "a-", "a..b", ".a", "a.", "a,DNS:evil", "a:b", "*",
                           "a.*.b", "a_b", "1.2.3.4,IP:5.6.7.8", "dirName:x", "\xc3\xa9.svc"}) {
    const std::vector<std::string> names{"good.svc", name};
    const auto issued = issue_leaf(ca, names, {kNow, kNow + kDay});
    ASSERT_FALSE(issued) << name;
    EXPECT_EQ(issued.error().code, Errc::bad_usage) << name;
  }
  EXPECT_FALSE(issue_leaf(ca, {}, {kNow, kNow + kDay}));
  const std::vector<std::string> too_long{std::string(64, 'a') + ".svc"};
  EXPECT_FALSE(issue_leaf(ca, too_long, {kNow, kNow + kDay}));
}

TEST(Issue, AnAuthorityThatIsNone) {
  const std::vector<std::string> names{"a.svc"};
  EXPECT_FALSE(issue_leaf({"", ""}, names, {kNow, kNow + kDay}));
  const IssuedPair one = authority();
  const IssuedPair two = authority();
  const auto mixed = issue_leaf({one.certificate, two.key}, names, {kNow, kNow + kDay});
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().what, HasSubstr("does not belong"));
}

TEST(ReadPem, WhatCannotBeRead) {
  const IssuedPair issued = leaf(authority());
  const std::string& good = issued.certificate;
  for (const std::string& text :
       {std::string(), std::string("x"), good.substr(0, 200), good.substr(0, good.size() - 40),
        good + good.substr(0, 100) + "\n", issued.key, std::string(10, '\0')}) {
    const auto read = read_certificates({text, "--tls-cert /x"});
    // A second certificate of which only the beginning is there is passed over by PEM itself.
    if (read) {
      EXPECT_EQ(read->size(), 1U);
      continue;
    }
    EXPECT_EQ(read.error().what, "--tls-cert /x holds no readable PEM certificate");
    EXPECT_EQ(read.error().code, Errc::bad_certificate);
  }
  for (const std::string& text : {std::string(), good, issued.key.substr(0, 100)})
    EXPECT_EQ(read_key({text, "--tls-key /x"}).error().what,
              "--tls-key /x holds no readable PEM private key without a passphrase");
  EXPECT_EQ(ERR_peek_error(), 0UL) << "nothing is left for others to stumble over";
}

TEST(ReadPem, AChainAndWhatStandsBetween) {
  const IssuedPair ca = authority();
  const IssuedPair issued = leaf(ca);
  const auto read = read_certificates(
      {"a comment\n" + issued.certificate + "\n\n" + issued.key + ca.certificate, "x"});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), 2U);
  EXPECT_EQ(to_pem(read->at(1).get()), ca.certificate);
  EXPECT_TRUE(read_key_pair({issued.certificate + ca.certificate, "c"},
                            {issued.certificate + issued.key, "k"}));
}

TEST(Check, TheKeyFits) {
  const IssuedPair ca = authority();
  const auto mixed =
      read_key_pair({leaf(ca).certificate, "--tls-cert /c"}, {ca.key, "--tls-key /k"});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().what, "--tls-key /k does not belong to the certificate of --tls-cert /c");
}

TEST(Check, Dates) {
  const KeyPair pair = pair_of(leaf(authority()));
  const std::int64_t end = kNow + 90 * kDay;
  EXPECT_EQ(complaint(check_dates(pair.leaf(), "it", kNow)), "");
  EXPECT_EQ(complaint(check_dates(pair.leaf(), "it", end)), "");
  EXPECT_EQ(complaint(check_dates(pair.leaf(), "it", end + 1)),
            "it has expired at 2027-04-15 08:00 UTC; renew it");
  EXPECT_EQ(complaint(check_dates(pair.leaf(), "it", kNow - 1)),
            "it is not valid before 2027-01-15 08:00 UTC; check the clock of this machine");
}

TEST(Check, Names) {
  const KeyPair pair =
      pair_of(leaf(authority(), {"rayhook.ns.svc", "*.wild.svc", "10.0.0.1", "::1"}));
  for (const char* name :
       {"", "rayhook.ns.svc", "RAYHOOK.ns.svc", "x.wild.svc", "10.0.0.1", "::1", "0:0:0:0:0:0:0:1"})
    EXPECT_EQ(complaint(check_name(pair.leaf(), "it", name)), "") << name;
  for (const char* name : {"rayhook.ns", "x.y.wild.svc", "wild.svc", "10.0.0.2", "::2"})
    EXPECT_THAT(complaint(check_name(pair.leaf(), "it", name)), StartsWith("it is not for "))
        << name;
  EXPECT_EQ(complaint(check_name(pair.leaf(), "it", "other.ns.svc")),
            "it is not for other.ns.svc but for rayhook.ns.svc, *.wild.svc, 10.0.0.1, ::1");
  EXPECT_THAT(complaint(check_name(pair_of(authority("a.svc")).leaf(), "it", "a.svc")),
              HasSubstr("names no host in subjectAltName"))
      << "a common name is not looked at";
}

TEST(Check, Chain) {
  const IssuedPair ca = authority();
  const IssuedPair other = authority();  // of the same name
  const KeyPair pair = pair_of(leaf(ca));
  const auto good = certificates(ca.certificate);
  const auto both = certificates(other.certificate + ca.certificate);
  const auto wrong = certificates(other.certificate);
  EXPECT_EQ(complaint(check_chain(pair.chain, "it", good, kNow)), "");
  EXPECT_EQ(complaint(check_chain(pair.chain, "it", both, kNow)), "");
  EXPECT_THAT(complaint(check_chain(pair.chain, "it", wrong, kNow)),
              StartsWith("it does not lead to a CA that is trusted: "));
  EXPECT_THAT(complaint(check_chain(pair.chain, "it", {}, kNow)), HasSubstr("does not lead"));
  EXPECT_THAT(complaint(check_chain(pair.chain, "it", good, kNow + 91 * kDay)),
              HasSubstr("expired"));
  EXPECT_EQ(complaint(check_chain(pair.chain, "it", pair.chain, kNow)), "")
      << "a leaf may be trusted itself, as in Go";
}

TEST(Check, ClientNames) {
  const std::vector<std::string> wanted{"kube-apiserver", "a.svc"};
  EXPECT_TRUE(is_client_named(pair_of(authority("kube-apiserver")).leaf(), wanted));
  EXPECT_TRUE(is_client_named(pair_of(leaf(authority(), {"x.svc", "A.svc"})).leaf(), wanted));
  EXPECT_FALSE(is_client_named(pair_of(leaf(authority(), {"*.svc"})).leaf(), wanted));
  EXPECT_FALSE(is_client_named(pair_of(authority("Kube-apiserver")).leaf(), wanted));
  EXPECT_FALSE(is_client_named(pair_of(authority("kube-apiserver ")).leaf(), wanted));
  const std::string hidden("kube-apiserver\0.evil", 20);
  EXPECT_FALSE(is_client_named(pair_of(authority(hidden)).leaf(), wanted));
  EXPECT_FALSE(is_client_named(pair_of(authority("x")).leaf(), {}));
}

}  // namespace
}  // namespace rayhook
