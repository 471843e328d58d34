// SPDX-License-Identifier: Apache-2.0
// Where Facts come from: manifests, the short memory, and what the API server's answers mean.
#include <gmock/gmock.h>

#include "server/cluster/service_gets.hpp"
#include "server/lookup/fact_cache.hpp"
#include "server/lookup/fixed_lookup.hpp"
#include "server/lookup/manifest_facts.hpp"
#include "support.hpp"

namespace rayhook::test {
namespace {

using std::chrono::seconds;

constexpr std::string_view kManifest = R"(
apiVersion: v1
kind: Service
metadata: {name: ray-head, namespace: a}
spec:
  selector: {app: ray-head}
  ports: [{name: gcs-server, port: 6379, targetPort: 6379}]
---
apiVersion: v1
kind: Service
metadata: {name: all-pods, namespace: a}
spec:
  selector: {cluster: one}
  ports: [{name: gcs-server, port: 6379, targetPort: 6379}]
---
apiVersion: v1
kind: Service
metadata: {name: anywhere}
spec: {selector: {app: x}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: broken, namespace: a}
spec: {selector: 7}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: workers, namespace: a}
spec:
  selector: {matchLabels: {app: ray-worker}}
  template:
    metadata: {labels: {app: ray-worker, cluster: one}}
    spec:
      containers:
      - {name: ray, image: ray, command: [sh, -c, "ray start --address=x:6379"]}
)";

ManifestFacts facts_of(std::string_view text, ManifestsOf of) {
  std::vector<Manifest> manifests;
  manifests.push_back(Manifest::parse(text, "test.yaml").value());
  return ManifestFacts::from(manifests, of).value();
}

const ServiceFact* find(const Facts& facts, std::string_view name) {
  const auto found = std::ranges::find(facts.services, name, &ServiceFact::name);
  return found == facts.services.end() ? nullptr : &*found;
}

Needs pod_needs(std::string ns, std::vector<NeededService> services) {
  Needs out;
  out.ns = std::move(ns);
  out.converted_services = true;
  out.services = std::move(services);
  return out;
}

TEST(ManifestFactsTest, KnowsAllServicesOfTheNamespace) {
  const ManifestFacts known = facts_of(kManifest, ManifestsOf::creation);
  EXPECT_EQ(known.service_count(), 3U);
  const Facts facts = known.facts(pod_needs("a", {{"ray-head"}, {"missing"}}), Review{});
  ASSERT_NE(find(facts, "ray-head"), nullptr);
  EXPECT_EQ(find(facts, "ray-head")->known, Known::present);
  EXPECT_EQ(find(facts, "ray-head")->service->ports.at(0).port, 6379);
  EXPECT_EQ(find(facts, "ray-head")->matches_workers, false);
  EXPECT_EQ(find(facts, "all-pods")->matches_workers, true);
  EXPECT_EQ(find(facts, "broken")->known, Known::unknown);
  EXPECT_EQ(find(facts, "missing")->known, Known::absent);
  EXPECT_EQ(find(facts, "anywhere"), nullptr);
  EXPECT_EQ(facts.services.size(), 4U) << "each name once";
  EXPECT_EQ(facts.running_readers, Known::absent);
}

TEST(ManifestFactsTest, ObjectsWithoutANamespace) {
  const ManifestFacts own = facts_of(kManifest, ManifestsOf::creation);
  EXPECT_NE(find(own.facts(pod_needs("", {}), Review{}), "anywhere"), nullptr);
  EXPECT_EQ(own.facts(pod_needs("b", {}), Review{}).services.size(), 0U);
  const ManifestFacts any = facts_of(kManifest, ManifestsOf::cluster);
  EXPECT_NE(find(any.facts(pod_needs("a", {}), Review{}), "anywhere"), nullptr);
  EXPECT_NE(find(any.facts(pod_needs("b", {{"anywhere"}}), Review{}), "anywhere"), nullptr);
  EXPECT_EQ(find(any.facts(pod_needs("b", {}), Review{}), "ray-head"), nullptr);
}

TEST(ManifestFactsTest, AServiceThatNamesItsNamespaceWins) {
  constexpr std::string_view kTwo = R"(
{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 1}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: s, namespace: a}, spec: {ports: [{port: 2}]}}
)";
  const ManifestFacts any = facts_of(kTwo, ManifestsOf::cluster);
  const Facts facts = any.facts(pod_needs("a", {{"s"}}), Review{});
  ASSERT_EQ(facts.services.size(), 1U);
  EXPECT_EQ(facts.services[0].service->ports.at(0).port, 2);
}

TEST(ManifestFactsTest, WhetherAReviewedServiceMatchesWorkers) {
  const ManifestFacts known = facts_of(kManifest, ManifestsOf::creation);
  Needs needs;
  needs.ns = "a";
  needs.selected_workers = true;
  Review review;
  review.kind = ObjectKind::service;
  review.service.selector = {{"cluster", "one"}};
  EXPECT_EQ(known.facts(needs, review).matches_workers, true);
  review.service.selector = {{"cluster", "one"}, {"app", "ray-head"}};
  EXPECT_EQ(known.facts(needs, review).matches_workers, false);
  needs.ns = "b";
  review.service.selector = {{"cluster", "one"}};
  EXPECT_EQ(known.facts(needs, review).matches_workers, false);
}

TEST(FixedLookups, AnswerAtOnce) {
  Facts facts;
  NoLookup none;
  const Review review;
  const auto asked = [&review](const Needs& needs) {
    return LookupRequest{needs, review, true, {}, seconds(10), {}};
  };
  const Needs two = pod_needs("a", {{"x"}, {"y"}}), no_names = pod_needs("a", {});
  ASSERT_TRUE(none.try_now(asked(two), facts));
  ASSERT_EQ(facts.services.size(), 2U);
  EXPECT_EQ(facts.services[1].name, "y");
  EXPECT_EQ(facts.services[1].known, Known::unknown);
  FileLookup file(facts_of(kManifest, ManifestsOf::cluster));
  ASSERT_TRUE(file.try_now(asked(no_names), facts));
  EXPECT_EQ(facts.services.size(), 4U);
}

class FactCacheTest : public testing::Test {
 protected:
  FactCache cache;
  TimePoint now{seconds(1000)};

  static ServiceFact absent(std::string name) {
    ServiceFact fact;
    fact.name = std::move(name);
    fact.known = Known::absent;
    return fact;
  }
  static ServiceFact present(std::string name, bool converted) {
    Service service;
    service.name = name;
    service.cluster_ip = converted ? "None" : "10.0.0.1";
    if (converted) service.annotations = {{std::string(kConvertedAnnotation), "true"}};
    ServiceFact fact;
    fact.name = std::move(name);
    fact.known = Known::present;
    fact.service = std::make_shared<const Service>(std::move(service));
    return fact;
  }
};

TEST_F(FactCacheTest, RemembersForAMoment) {
  cache.put("a", absent("gone"), now);
  cache.put("a", present("head", true), now);
  EXPECT_FALSE(cache.find("b", "gone", now)) << "another namespace";
  ASSERT_TRUE(cache.find("a", "gone", now));
  EXPECT_TRUE(cache.find("a", "head", now + FactCache::kLifetime - std::chrono::milliseconds(1)));
  EXPECT_FALSE(cache.find("a", "gone", now + FactCache::kLifetime));
  EXPECT_FALSE(cache.find("a", "head", now + FactCache::kLifetime));
  EXPECT_EQ(cache.size(), 0U) << "what is too old is let go";
}

TEST_F(FactCacheTest, ForgetsWhatIsToldToHaveChanged) {
  cache.put("a", absent("one"), now);
  cache.put("a", absent("two"), now);
  cache.forget("a", "one");
  EXPECT_FALSE(cache.find("a", "one", now));
  EXPECT_TRUE(cache.find("a", "two", now));
  cache.clear();
  EXPECT_EQ(cache.size(), 0U);
}

TEST_F(FactCacheTest, ANewFactReplacesTheOld) {
  cache.put("a", absent("s"), now);
  cache.put("a", present("s", true), now);
  EXPECT_EQ(cache.find("a", "s", now)->known, Known::present);
  EXPECT_EQ(cache.size(), 1U);
}

TEST_F(FactCacheTest, UnknownIsNotRemembered) {
  ServiceFact fact;
  fact.name = "s";
  cache.put("a", fact, now);
  EXPECT_EQ(cache.size(), 0U);
}

TEST_F(FactCacheTest, IsBounded) {
  for (std::size_t i = 0; i < FactCache::kEntries; ++i)
    cache.put("a", absent("s" + std::to_string(i)), now);
  EXPECT_EQ(cache.size(), FactCache::kEntries);
  EXPECT_TRUE(cache.find("a", "s0", now));
  cache.put("a", absent("one-more"), now);
  EXPECT_EQ(cache.size(), FactCache::kEntries);
  EXPECT_FALSE(cache.find("a", "s0", now)) << "the oldest went";
  EXPECT_TRUE(cache.find("a", "s1", now));
  EXPECT_TRUE(cache.find("a", "one-more", now));
}

TEST(ServiceAnswers, OnlyClearOnesCount) {
  const auto known = [](unsigned status, std::string body) {
    return read_service_answer("a", "s", KubeAnswer{status, std::move(body)});
  };
  const std::string good =
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"a","uid":"1"},)"
      R"("spec":{"clusterIP":"None","ports":[{"port":6379,"targetPort":6379}]}})";
  EXPECT_EQ(known(200, good).fact.known, Known::present);
  EXPECT_TRUE(known(200, good).fact.service->headless());
  EXPECT_EQ(known(404, R"({"kind":"Status","reason":"NotFound","code":404})").fact.known,
            Known::absent);
  for (const auto& [status, body] : std::vector<std::pair<unsigned, std::string>>{
           {404, "<html>no such page</html>"},
           {404, R"({"kind":"Status","reason":"Other"})"},
           {404, ""},
           {404, std::string(100'000, '[')},
           {200, ""},
           {200, "{"},
           {200, "null"},
           {200, R"({"kind":"Status","status":"Failure"})"},
           {200, R"({"metadata":{"name":"other","namespace":"a"}})"},
           {200, R"({"metadata":{"name":"s","namespace":"other"}})"},
           {201, good},
           {301, good},
           {401, ""},
           {403, R"({"kind":"Status","reason":"Forbidden"})"},
           {429, ""},
           {500, ""}}) {
    const ServiceAnswer answer = known(status, body);
    EXPECT_EQ(answer.fact.known, Known::unknown) << status << body.substr(0, 40);
    EXPECT_EQ(answer.fact.name, "s");
    EXPECT_NE(answer.trouble, "");
  }
  const ServiceAnswer failed = read_service_answer("a", "s", fail(Errc::unreachable, "why"));
  EXPECT_EQ(failed.fact.known, Known::unknown);
  EXPECT_EQ(failed.trouble, "why");
}

}  // namespace
}  // namespace rayhook::test
