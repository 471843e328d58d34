// SPDX-License-Identifier: Apache-2.0
// Manifests: what is found in them, how values are read, how changes are written.
#include "lib/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rayhook {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Manifest read(std::string_view text) {
  auto manifest = Manifest::parse(text, "m.yaml");
  EXPECT_TRUE(manifest.has_value()) << (manifest ? "" : manifest.error().what);
  return manifest ? std::move(*manifest) : std::move(*Manifest::parse("", ""));
}

std::string refusal(std::string_view text) {
  const auto manifest = Manifest::parse(text, "m.yaml");
  return manifest ? "read" : manifest.error().what;
}

/// The value of `v:` as JSON text.
std::string value(std::string_view written) {
  const auto json = read("v: " + std::string(written) + "\n").json();
  return json.size() == 1 ? json[0]["v"].dump() : "?";
}

std::vector<std::string> pointers(std::string_view text) {
  std::vector<std::string> out;
  const Manifest manifest = read(text);
  for (const ManifestObject& object : manifest.objects())
    for (const Subject& subject : object.subjects)
      out.push_back(subject.pointer + " " + subject.controller_kind);
  return out;
}

/// The text after a patch of the first object's first subject.
std::string patched(std::string_view text, const std::vector<PatchOp>& patch,
                    bool comments_lost = false) {
  Manifest manifest = read(text);
  const auto done = manifest.apply(0, 0, patch);
  EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().what);
  std::vector<std::size_t> lost;
  std::string out = manifest.yaml(lost);
  EXPECT_EQ(!lost.empty(), comments_lost);
  // What is written says what is wanted.
  const auto again = Manifest::parse(out, "again");
  EXPECT_TRUE(again && OrderedJson(again->json()).size() == manifest.json().size()) << out;
  return out;
}

PatchOp add(std::string path, std::string json) {
  return {PatchOp::Kind::add, std::move(path), std::move(json)};
}
PatchOp replace(std::string path, std::string json) {
  return {PatchOp::Kind::replace, std::move(path), std::move(json)};
}

TEST(ManifestTypes, PlainScalarsAsKubernetesReadsThem) {
  for (const auto* text : {"true", "True", "yes", "on", "y"})
    EXPECT_EQ(value(text), "true") << text;
  for (const auto* text : {"false", "FALSE", "no", "Off", "n"})
    EXPECT_EQ(value(text), "false") << text;
  for (const auto* text : {"", "~", "null", "NULL"}) EXPECT_EQ(value(text), "null") << text;
  EXPECT_EQ(value("0o644"), "420");
  EXPECT_EQ(value("0644"), "420");
  EXPECT_EQ(value("0x1F"), "31");
  EXPECT_EQ(value("-12"), "-12");
  EXPECT_EQ(value("1_000"), "1000");
  EXPECT_EQ(value("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(value("1.5"), "1.5");
  EXPECT_EQ(value("1e3"), "1000.0");
  for (const auto* text : {"yess", "1.2.3", "0o9", "09x", "2001-01-01", "10Gi", "1e", "."})
    EXPECT_EQ(value(text), OrderedJson(text).dump()) << text;
}

TEST(ManifestTypes, QuotesAndTagsMakeStrings) {
  EXPECT_EQ(value("\"6379\""), "\"6379\"");
  EXPECT_EQ(value("'yes'"), "\"yes\"");
  EXPECT_EQ(value("!!str 123"), "\"123\"");
  EXPECT_EQ(value("!!int '3'"), "3");
  EXPECT_EQ(value("\"a\\tb\\u00e9\\x41\""), "\"a\\tbéA\"");
  EXPECT_EQ(value("'it''s'"), "\"it's\"");
}

TEST(ManifestTypes, TextsOfSeveralLines) {
  EXPECT_EQ(value("|\n  a\n   b\n\n  c\n"), R"("a\n b\n\nc\n")");
  EXPECT_EQ(value("|-\n  a\n  b\n"), R"("a\nb")");
  EXPECT_EQ(value("|+\n  a\n\n"), R"("a\n\n\n")");
  EXPECT_EQ(value(">-\n  a\n  b\n\n  c\n    d\n  e\n"), R"("a b\nc\n  d\ne")");
  EXPECT_EQ(value("|2\n    a\n"), R"("  a\n")");
  EXPECT_EQ(value("\"a\n  b\\\n  c\n\n  d\""), R"("a bc\nd")");
  EXPECT_EQ(value("a\n  b\n\n  c"), R"("a b\nc")");
}

TEST(ManifestTypes, AliasesAndMergeKeys) {
  const auto json =
      read("a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}\nd: {<<: [*x, {r: 4}]}\n").json();
  EXPECT_EQ(json.at(0)["b"].dump(), R"({"p":1,"q":2})");
  EXPECT_EQ(json.at(0)["c"].dump(), R"({"q":3,"p":1})");
  EXPECT_EQ(json.at(0)["d"].dump(), R"({"p":1,"q":2,"r":4})");
}

TEST(ManifestErrors, SayWhereAndWhat) {
  EXPECT_THAT(refusal("kind: A\n---\nkind: B\nkind: C\n"),
              StartsWith("m.yaml: document 2, line 4: "));
  EXPECT_THAT(refusal("kind: A\nkind: B\n"), HasSubstr("kind"));
  EXPECT_THAT(refusal("- a\n"), HasSubstr("apiVersion"));
  EXPECT_THAT(refusal("a: [b\n"), StartsWith("m.yaml: document 1, line "));
  EXPECT_THAT(refusal("a: !!int x\n"), HasSubstr("int"));
  EXPECT_THAT(refusal("a: *b\n"), HasSubstr("b"));
  for (const auto* text : {"a: \"\\q\"\n", "a: b: c\n", "a:\n\tb: c\n", "a: .nan\n", "{a: 1}: b\n"})
    EXPECT_NE(refusal(text), "read") << text;
}

TEST(ManifestErrors, HostileInputIsBounded) {
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("m.yaml"));
  EXPECT_NE(refusal("a: &a [*a]\n"), "read");
  EXPECT_NE(refusal(std::string("a: b\0c\n", 7)), "read");
  EXPECT_NE(refusal("a: \xff\n"), "read");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(refusal(bomb), HasSubstr("alias"));
}

TEST(ManifestObjects, DocumentsAndLists) {
  const Manifest manifest = read(
      "# none\n---\n---\n"
      "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: team}\n...\n---\n"
      "kind: List\nitems:\n"
      "- {apiVersion: v1, kind: Pod, metadata: {generateName: p-}}\n"
      "- {kind: X}\n---\n"
      "apiVersion: v1\nkind: ServiceList\nitems: [{metadata: {name: t}}]\n");
  const auto objects = manifest.objects();
  ASSERT_EQ(objects.size(), 4U);
  EXPECT_EQ(objects[0].document, 1U);
  EXPECT_EQ(objects[0].name + objects[0].ns, "steam");
  EXPECT_EQ(objects[1].name, "p-");
  EXPECT_EQ(objects[2].kind, "X");
  EXPECT_THAT(objects[2].subjects, IsEmpty());
  EXPECT_EQ(objects[3].kind, "Service");
  EXPECT_EQ(objects[3].document, 3U);
  ASSERT_EQ(objects[3].subjects.size(), 1U);
  EXPECT_EQ(objects[3].subjects[0].object["kind"], "Service");
}

TEST(ManifestObjects, JsonObjectsInARow) {
  for (const auto* before : {"", "---\n", "# c\n", "a: 1\n---\n# c\n\n"}) {
    const Manifest manifest = read(
        std::string(before) + "{\"kind\": \"A\"}\n{\n  \"kind\": \"B\"\n}\n\n{\"kind\": \"C\"}\n");
    ASSERT_GE(manifest.objects().size(), 3U) << before;
    EXPECT_EQ(manifest.objects().back().kind, "C");
  }
}

TEST(ManifestObjects, PodTemplatesWhereverTheyAre) {
  const std::string pod = "{spec: {containers: [{name: a}]}}";
  const auto workload = [&](const std::string& kind, const std::string& spec) {
    return pointers("apiVersion: x/v1\nkind: " + kind + "\nspec: " + spec + "\n");
  };
  EXPECT_THAT(workload("Deployment", "{template: " + pod + "}"),
              ElementsAre("/spec/template ReplicaSet"));
  EXPECT_THAT(workload("StatefulSet", "{template: " + pod + "}"),
              ElementsAre("/spec/template StatefulSet"));
  EXPECT_THAT(workload("CronJob", "{jobTemplate: {spec: {template: " + pod + "}}}"),
              ElementsAre("/spec/jobTemplate/spec/template Job"));
  EXPECT_THAT(workload("RayCluster", "{headGroupSpec: {template: " + pod +
                                         "}, workerGroupSpecs: [{template: " + pod + "}]}"),
              ElementsAre("/spec/headGroupSpec/template RayCluster",
                          "/spec/workerGroupSpecs/0/template RayCluster"));
  EXPECT_THAT(workload("RayJob", "{rayClusterSpec: {headGroupSpec: {template: " + pod +
                                     "}}, submitterPodTemplate: " + pod + "}"),
              ElementsAre("/spec/rayClusterSpec/headGroupSpec/template RayCluster",
                          "/spec/submitterPodTemplate Job"));
  EXPECT_THAT(workload("LeaderWorkerSet", "{leaderWorkerTemplate: {leaderTemplate: " + pod +
                                              ", workerTemplate: " + pod + "}}"),
              ElementsAre("/spec/leaderWorkerTemplate/leaderTemplate StatefulSet",
                          "/spec/leaderWorkerTemplate/workerTemplate StatefulSet"));
  EXPECT_THAT(workload("Unheard", "{template: " + pod + "}"),
              ElementsAre("/spec/template Unheard"));
  // Knative has a kind Service too.
  EXPECT_THAT(workload("Service", "{template: " + pod + "}"),
              ElementsAre("/spec/template Service"));
  EXPECT_THAT(workload("Unheard", "{template: {spec: {containers: [1]}}}"), IsEmpty());
  EXPECT_THAT(workload("ConfigMap", "3"), IsEmpty());
}

TEST(ManifestYaml, UnchangedTextComesOutByteForByte) {
  for (const auto* text :
       {"", "# c\n", "---\n", "a: 1", "a: 1\r\nb:  [ 2 ]\r\n",
        "\357\273\277a: 1\n",  // a byte order mark; in octal, which ends before `a`
        "---\na: 1\n...\n# c\n---\n\n---\nb: |+\n  x\n\n...\n"}) {
    std::vector<std::size_t> lost;
    EXPECT_EQ(read(text).yaml(lost), text);
  }
}

constexpr std::string_view kPod =
    "apiVersion: v1\n"
    "kind: Pod\n"
    "metadata:   # meta\n"
    "  name: p\n"
    "spec:\n"
    "  # all of them\n"
    "  containers:\n"
    "  - name: a\n"
    "    args: ['x $A y', \"t\\t$A\"]\n"
    "    env:  # mine\n"
    "    # first\n"
    "    - {name: B, value: $(A)}\n"
    "  - name: b   # second\n"
    "    command:\n"
    "    - |\n"
    "      # $A\n"
    "      run $A \\\n"
    "        --fast\n"
    "# end\n";

TEST(ManifestYaml, ScalarsChangeWithinTheirQuotes) {
  const std::string out = patched(
      kPod, {replace("/spec/containers/0/args/0", R"("x ray-head y")"),
             replace("/spec/containers/0/args/1", R"("t\tray-head")"),
             replace("/spec/containers/0/env/0/value", R"("6379")"),
             replace("/spec/containers/1/command/0", R"("# $A\nrun ray-head \\\n  --fast\n")")});
  std::string wanted(kPod);
  const auto swap = [&](std::string_view from, std::string_view to) {
    wanted.replace(wanted.find(from), from.size(), to);
  };
  swap("'x $A y'", "'x ray-head y'");
  swap("t\\t$A", "t\\tray-head");
  swap("$(A)", "\"6379\"");
  swap("run $A", "run ray-head");
  EXPECT_EQ(out, wanted);
}

TEST(ManifestYaml, MembersAndItemsAreInserted) {
  const std::string out =
      patched(kPod, {add("/metadata/annotations", R"({"rayhook/decision":"rewritten@0.1.0"})"),
                     add("/spec/containers/0/env/0", R"({"name":"ADDR","value":"6379"})"),
                     add("/spec/containers/1/env", R"([{"name":"ADDR","value":"ray-head"}])"),
                     add("/spec/dnsPolicy", R"("ClusterFirstWithHostNet")")});
  EXPECT_EQ(out,
            "apiVersion: v1\n"
            "kind: Pod\n"
            "metadata:   # meta\n"
            "  name: p\n"
            "  annotations:\n"
            "    rayhook/decision: rewritten@0.1.0\n"
            "spec:\n"
            "  # all of them\n"
            "  containers:\n"
            "  - name: a\n"
            "    args: ['x $A y', \"t\\t$A\"]\n"
            "    env:  # mine\n"
            "    - name: ADDR\n"
            "      value: \"6379\"\n"
            "    # first\n"
            "    - {name: B, value: $(A)}\n"
            "  - name: b   # second\n"
            "    command:\n"
            "    - |\n"
            "      # $A\n"
            "      run $A \\\n"
            "        --fast\n"
            "    env:\n"
            "    - name: ADDR\n"
            "      value: ray-head\n"
            "  dnsPolicy: ClusterFirstWithHostNet\n"
            "# end\n");
}

TEST(ManifestYaml, FlowStyleAndJsonStayWhatTheyAre) {
  EXPECT_EQ(patched("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: "
                    "a, env: []}]}}\n",
                    {add("/metadata/annotations", R"({"a":"1"})"),
                     add("/spec/containers/0/env/0", R"({"name":"A","value":"x-y"})")}),
            "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {\"a\": \"1\"}}, "
            "spec: {containers: [{name: a, env: [{name: \"A\", value: x-y}]}]}}\n");
  EXPECT_EQ(patched("{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Pod\",\n  \"metadata\": {\n    "
                    "\"name\": \"p\"\n  }\n}\n",
                    {add("/metadata/annotations", R"({"a":"b"})")}),
            "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Pod\",\n  \"metadata\": {\n    \"name\": "
            "\"p\",\n"
            "    \"annotations\": {\"a\": \"b\"}\n  }\n}\n");
}

TEST(ManifestYaml, MissingMetadataOfATemplateIsMade) {
  const std::string text =
      "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n   "
      "   - name: a\n";
  EXPECT_EQ(patched(text, {add("/metadata/annotations", R"({"rayhook/decision":"x"})")}),
            text + "    metadata:\n      annotations:\n        rayhook/decision: \"x\"\n");
}

TEST(ManifestYaml, WhatAnAliasSharesIsChangedWhereItIsWanted) {
  const std::string text =
      "apiVersion: apps/v1\nkind: Deployment\nspec:\n  other: &c [{name: a, args: [$A]}]  # kept\n"
      "  template: {spec: {containers: *c}}\n";
  const std::string out = patched(text, {replace("/spec/containers/0/args/0", R"("ray-head")")});
  EXPECT_THAT(out, HasSubstr("&c [{name: a, args: [$A]}]  # kept"));
  const auto json = read(out).json().at(0);
  EXPECT_EQ(json["spec"]["template"]["spec"]["containers"][0]["args"][0], "ray-head");
}

TEST(ManifestYaml, LineEndsStay) {
  EXPECT_EQ(patched("apiVersion: v1\r\nkind: Pod\r\nmetadata:\r\n  name: p\r\n",
                    {add("/metadata/annotations", R"({"abc":"def"})")}),
            "apiVersion: v1\r\nkind: Pod\r\nmetadata:\r\n  name: p\r\n  annotations:\r\n    abc: "
            "def\r\n");
  EXPECT_EQ(patched("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  a: b",
                    {add("/spec/dnsPolicy", R"("None")")}),
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  a: b\n  dnsPolicy: None\n");
}

TEST(ManifestYaml, WhatYamlCannotHoldAsItIsIsEscaped) {
  // Line breaks of YAML 1.1 that are none in JSON, and what its reader refuses.
  for (const char* special : {"\u0085", "\u2028", "\u2029", "\x7F", "\u0080", "\uFEFF", "\uFFFE"})
    for (const std::string& text :
         {std::string(special), "a" + std::string(special) + "b",
          "one " + std::string(special) + "\ntwo\n", " \u00e4" + std::string(special)}) {
      const std::string json = nlohmann::json(text).dump();
      const std::string written =
          patched("kind: Pod\napiVersion: v1\nmetadata:\n  name: x\nspec: {containers: []}\n",
                  {{PatchOp::Kind::add, "/metadata/annotations", "{" + json + ":" + json + "}"}});
      EXPECT_EQ(read(written).json()[0]["metadata"]["annotations"].dump(),
                "{" + json + ":" + json + "}")
          << written;
    }
}

TEST(ManifestYaml, APatchThatDoesNotFitChangesNothing) {
  Manifest manifest = read(kPod);
  for (const auto* path :
       {"/spec/none/x", "/spec/containers/7/env", "/spec/containers/0/env/9", "spec", ""}) {
    const std::vector<PatchOp> patch = {replace("/spec/containers/0/args/0", "\"z\""),
                                        add(path, "1")};
    EXPECT_FALSE(manifest.apply(0, 0, patch)) << path;
  }
  EXPECT_FALSE(manifest.apply(0, 0, std::vector{replace("/spec/none", "1")}));
  EXPECT_FALSE(manifest.apply(0, 0, std::vector{add("/spec/x", "not json")}));
  EXPECT_FALSE(manifest.apply(0, 3, std::vector{add("/spec/x", "1")}));
  EXPECT_FALSE(manifest.apply(9, 0, std::vector{add("/spec/x", "1")}));
  std::vector<std::size_t> lost;
  EXPECT_EQ(manifest.yaml(lost), kPod);
}

}  // namespace
}  // namespace rayhook
