#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manifests without a cluster: every way of installing, as kustomize and as Helm render it, is valid for each
Kubernetes that we support; both render the same; the chart takes the configurations that the program takes; linters
find nothing that linters.yaml does not explain."""

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import render
from render import ROOT, WAYS

VERSIONS = [f"1.{minor}" for minor in range(30, 38)]
# Other projects' kinds: nobody ships their schemas for use without a network.
WITHOUT_SCHEMA = ("cert-manager.io/", "monitoring.coreos.com/")
TOOLS = KUBECTL = RAYHOOK = ""


def tool(name):
    return os.path.join(TOOLS, "bin", name)


@functools.lru_cache(maxsize=None)
def kustomized(way):
    return render.documents(render.kustomize(KUBECTL, way))


@functools.lru_cache(maxsize=None)
def charted(way):
    return render.documents(render.chart(tool("helm"), way))


def chart_file(name):
    with open(os.path.join(render.CHART, name)) as file:
        return yaml.safe_load(file)


def exceptions(linter):
    with open(os.path.join(render.HERE, "linters.yaml")) as file:
        return yaml.safe_load(file)[linter]


class Schemas(unittest.TestCase):
    def test_valid_for_every_kubernetes(self):
        sys.path.insert(0, os.path.join(TOOLS, "python"))
        import kubernetes_validate
        kubernetes_validate.utils.schema_contents = functools.lru_cache(maxsize=None)(kubernetes_validate.utils.schema_contents)
        probes = [d for text in render.probes(KUBECTL, tool("helm")) for d in render.documents(text)]
        checked = 0
        for way in WAYS:
            for document in kustomized(way) + charted(way) + (probes if way == "default" else []):
                if document["apiVersion"].startswith(WITHOUT_SCHEMA):
                    continue
                for version in VERSIONS if way in ("default", "ha", "together") else VERSIONS[-1:]:
                    with self.subTest(way=way, version=version, object=document["metadata"]["name"], kind=document["kind"]):
                        kubernetes_validate.validate(document, version, strict=True)
                        checked += 1
        self.assertGreater(checked, 500)
        with self.assertRaises(kubernetes_validate.ValidationError, msg="it must be able to find something"):
            kubernetes_validate.validate({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"ports": 3}}, "1.34", strict=True)


class Same(unittest.TestCase):
    maxDiff = None

    def test_kustomize_and_chart_render_the_same(self):
        for way in WAYS:
            ours, theirs = render.normalised(kustomized(way)), render.normalised(charted(way))
            self.assertEqual(sorted(ours), sorted(theirs), way)
            for key in ours:
                with self.subTest(way=way, object=key):
                    self.assertEqual(ours[key], theirs[key])

    def test_probe(self):
        ours, theirs = (render.normalised(render.documents(text)) for text in render.probes(KUBECTL, tool("helm")))
        self.assertEqual(ours, theirs)

    def test_one_version(self):
        with open(os.path.join(ROOT, "lib", "version.hpp")) as file:
            version = re.search(r'kVersion = "([^"]+)"', file.read()).group(1)
        chart = chart_file("Chart.yaml")
        self.assertEqual([chart["version"], chart["appVersion"]], [version, version])
        images = {c["image"] for d in kustomized("default") + render.documents(render.run(KUBECTL, "kustomize", render.PROBE)) for c in containers(d)}
        self.assertEqual(images, {f"rayhook:{version}"})


def containers(document):
    spec = document.get("spec", {})
    for step in ("jobTemplate", "spec") if document["kind"] == "CronJob" else ():
        spec = spec[step]
    return spec["template"]["spec"]["containers"] if "template" in spec else []


def template(values):
    return subprocess.run([tool("helm"), "template", "rayhook", render.CHART, "--kube-version", "1.34.0", "--values", "-"],
                          input=json.dumps(values), capture_output=True, text=True)


class Chart(unittest.TestCase):
    def test_lint(self):
        done = subprocess.run([tool("helm"), "lint", "--strict", "--quiet", "--kube-version", "1.34.0", render.CHART], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_schema_refuses(self):
        for values in ({"replica": 3}, {"replicas": 0}, {"mode": "off"}, {"webhook": {"failurePolicy": "fail"}},
                       {"webhook": {"timeoutSeconds": 31}}, {"webhook": {"excludedNamespaces": []}}, {"image": {"digest": "latest"}},
                       {"certificate": {"source": "none"}}, {"monitoring": {"interval": "often"}}, {"config": "dnsName: fqdn"}):
            with self.subTest(values=values):
                done = template(values)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("values don't meet the specifications of the schema", done.stderr)

    def test_schema_knows_every_value(self):
        def compare(values, schema, path):
            self.assertEqual(sorted(values), sorted(k for k in schema["properties"] if k != "global"), path)
            self.assertIs(schema["additionalProperties"], False, path)
            for name, value in values.items():
                if "properties" in schema["properties"][name]:
                    compare(value, schema["properties"][name], f"{path}.{name}")
        # values.yaml leaves the configuration's defaults to the program.
        compare({**chart_file("values.yaml"), "config": in_force({})}, chart_file("values.schema.json"), "")

    def test_own_certificate_needs_its_ca(self):
        done = template({"certificate": {"source": "existing"}})
        self.assertIn("certificate.caBundle", done.stderr)
        done = template({"certificate": {"source": "existing", "caBundle": "QUJD"}})
        bundles = re.findall(r"caBundle: (\S+)", done.stdout)
        self.assertEqual(bundles, ["QUJD"] * 6)

    def test_values_arrive(self):
        done = template({
            "image": {"repository": "r.example/rayhook", "digest": "sha256:" + "a" * 64}, "imagePullSecrets": [{"name": "pull"}],
            "hostNetwork": True, "ports": {"https": 10250, "ops": 10251}, "logLevel": "debug", "extraArgs": ["--threads", "2"],
            "config": {"dnsName": "fqdn"}, "labels": {"team": "ray"}, "podLabels": {"a": "b"}, "podAnnotations": {"c": "d"},
            "nodeSelector": {"e": "f"}, "tolerations": [{"key": "g"}], "affinity": {"nodeAffinity": {}},
            "webhook": {"failurePolicy": "Fail", "timeoutSeconds": 9, "excludedNamespaces": ["kube-system", "more"],
                        "namespaceExpressions": [{"key": "h", "operator": "Exists"}], "annotations": {"i": "j"}},
            "networkPolicy": {"enabled": True, "apiServerPorts": [16443]},
            "monitoring": {"enabled": True, "labels": {"release": "prometheus"}, "runbookUrl": "https://wiki.example/rayhook"}})
        self.assertEqual(done.returncode, 0, done.stderr)
        objects = {(d["kind"], d["metadata"]["name"]): d for d in render.documents(done.stdout)}
        pod = objects["Deployment", "rayhook"]["spec"]["template"]
        container = pod["spec"]["containers"][0]
        self.assertEqual(container["image"], "r.example/rayhook@sha256:" + "a" * 64)
        self.assertEqual([p["containerPort"] for p in container["ports"]], [10250, 10251])
        self.assertEqual(container["args"][1:5], ["--listen", ":10250", "--ops-listen", ":10251"])
        self.assertEqual(container["args"][-4:], ["--log-level", "debug", "--threads", "2"])
        self.assertTrue(pod["spec"]["hostNetwork"])
        self.assertEqual(objects["Deployment", "rayhook"]["spec"]["strategy"]["rollingUpdate"], {"maxUnavailable": 1, "maxSurge": 0})
        for field, value in (("nodeSelector", {"e": "f"}), ("tolerations", [{"key": "g"}]), ("affinity", {"nodeAffinity": {}}), ("imagePullSecrets", [{"name": "pull"}])):
            self.assertEqual(pod["spec"][field], value)
        self.assertEqual((pod["metadata"]["labels"]["a"], pod["metadata"]["annotations"]), ("b", {"c": "d"}))
        config = next(d for (kind, name), d in objects.items() if name.startswith("rayhook-config"))
        self.assertEqual(yaml.safe_load(config["data"]["config.yaml"]), {"dnsName": "fqdn"})
        hooks = objects["MutatingWebhookConfiguration", "rayhook"]
        self.assertEqual({h["failurePolicy"] for h in hooks["webhooks"]}, {"Fail", "Ignore"})
        self.assertEqual({h["timeoutSeconds"] for h in hooks["webhooks"]}, {9})
        for hook in hooks["webhooks"]:
            expressions = hook["namespaceSelector"]["matchExpressions"]
            self.assertEqual(expressions[0]["values"], ["kube-system", "more", "default"])
            self.assertEqual(expressions[-1], {"key": "h", "operator": "Exists"})
        self.assertTrue(all(d["metadata"]["labels"].get("team") == "ray" for d in objects.values()))
        self.assertEqual(objects["NetworkPolicy", "rayhook"]["spec"]["egress"], [{"ports": [{"port": 16443}]}, {
            "to": [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "rayhook", "app.kubernetes.io/component": "webhook"}}}],
            "ports": [{"port": "https"}]}])
        rules = objects["PrometheusRule", "rayhook"]
        self.assertEqual(rules["metadata"]["labels"]["release"], "prometheus")
        self.assertEqual(rules["spec"]["groups"][0]["rules"][0]["annotations"]["runbook_url"], "https://wiki.example/rayhook#rayhookdown")

    def test_configuration_changes_roll_out(self):
        names = {re.search(r"name: (rayhook-config-\w+)", template(values).stdout).group(1) for values in ({}, {"config": {"kuberay": "convert"}})}
        self.assertEqual(len(names), 2)


def configured(text):
    """`rayhook config` on a configuration file of this text."""
    return subprocess.run([RAYHOOK, "config", "--config", "/dev/stdin", "-o", "json"], input=text, capture_output=True, text=True)


def in_force(config):
    return json.loads(configured(json.dumps(config)).stdout)


def expected_by(schema):
    """What `rayhook config` says that it expects, if it takes what this schema takes."""
    if "enum" in schema:
        return " or ".join([", ".join(schema["enum"][:-1]), schema["enum"][-1]])
    if schema.get("type") == "integer":
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    if schema.get("type") == "array":
        return f"a list of at most {schema['maxItems']} values: [a, b]"
    return schema["description"]


class Configuration(unittest.TestCase):
    """The chart's schema takes a `config` if and only if the program does."""

    LABEL = "a" * 63
    TAKEN = [
        {}, {"unknownService": None, "head": None, "restored": None},
        *({"unknownService": {"hold": time}} for time in (0, "0", "00", "0s", "0m", "1ms", "1500ms", "10000ms", "007s", "10s")),
        *({"unknownService": {"retryFor": time}} for time in (0, "99999ms", "599999ms", "600000ms", "99s", "599s", "600s", "9m", "10m")),
        *({"clusterDomain": name} for name in ("a", "1.a-b.c", f"{LABEL}.{LABEL[:56]}")),
        {"head": {"portNames": ["1", "on", "a--b", LABEL], "portNumbers": [1, 65535], "words": ["no", "y", "08", "1e3", LABEL]}},
        {"head": {"portNames": ["a"] * 64, "portNumbers": [1] * 64, "words": []}},
        {"restored": {"maxVariables": 1, "maxBytes": 1}}, {"restored": {"maxVariables": 4096, "maxBytes": 262144}},
    ]
    REFUSED = [
        {"kubray": "auto"}, {"dnsname": "short"}, {"hold": "2s"}, {"unknownService": {"hld": "2s"}}, {"head": {"word": []}}, {"restored": {"": 1}},
        {"kuberay": "convrt"}, {"dnsName": "Short"}, {"dockerLinks": True}, {"hostNetworkDns": None}, {"head": ["head"]}, {"restored": 7},
        *({"unknownService": {"hold": time}} for time in (2, "2", "", "s", "10001ms", "11s", "1m", "1h", "-1s", "1.5s", "2 s", "2S", "2s\n", None, ["2s"])),
        *({"unknownService": {"retryFor": time}} for time in ("600001ms", "1000000ms", "601s", "1000s", "11m", True)),
        *({"clusterDomain": name} for name in ("", "a.", ".a", "a..b", "-a", "a-", "A.b", "a_b", LABEL + "a", f"{LABEL}.{LABEL[:57]}", 1)),
        *({"head": {"portNames": names}} for names in (["Gcs"], ["-"], [""], [1], [LABEL + "a"], ["a"] * 65, "gcs")),
        *({"head": {"portNumbers": numbers}} for numbers in ([0], [65536], [1.5], ["6379"], [1] * 65, 6379)),
        *({"head": {"words": words}} for words in (["a-b"], ["Head"], [""], [True], [LABEL + "a"], ["a"] * 65)),
        *({"restored": {"maxVariables": number}} for number in (0, -1, 4097, 1.5, "7", None)), {"restored": {"maxBytes": 262145}},
    ]

    def test_each_key_expects_the_same(self):
        def complaint(config):
            return configured(json.dumps(config)).stderr.strip().partition(" is given; expected ")[2]

        def compare(schema, config):  # config(value): a configuration with this value at the schema's place
            if "properties" in schema:
                for name, below in schema["properties"].items():
                    compare(below, lambda value, name=name: config({name: value}))
                return
            self.assertEqual(complaint(config({})), expected_by(schema), config(...))
            if "items" in schema:
                compare(schema["items"], lambda value: config([value]))
        compare(chart_file("values.schema.json")["properties"]["config"], lambda value: value)

    def test_taken_by_both_and_to_the_same_effect(self):
        for config in [*self.TAKEN, in_force({})]:
            with self.subTest(config=config):
                done = template({"config": config})
                self.assertEqual(done.returncode, 0, done.stderr)
                file = next(d["data"]["config.yaml"] for d in render.documents(done.stdout) if d["metadata"]["name"].startswith("rayhook-config"))
                rendered, given = configured(file), configured(json.dumps(config))
                self.assertEqual((rendered.returncode, given.returncode), (0, 0), rendered.stderr + given.stderr)
                self.assertEqual(rendered.stdout, given.stdout)

    def test_refused_by_both(self):
        for config in self.REFUSED:
            with self.subTest(config=config):
                self.assertEqual(configured(json.dumps(config)).returncode, 1)
                done = template({"config": config})
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("values don't meet the specifications of the schema", done.stderr)
                self.assertIn("/config", done.stderr)


class Linters(unittest.TestCase):
    def test_yamllint(self):
        done = subprocess.run(["yamllint", "--strict", "manifests", "examples", "tests/manifests"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_kube_score(self):
        allowed, used = exceptions("kube-score"), set()
        for way in ("default", "together"):
            done = subprocess.run([tool("kube-score"), "score", "--output-format", "json", "--kubernetes-version", "v1.34", "-"],
                                  input=render.kustomize(KUBECTL, way), capture_output=True, text=True)
            for scored in json.loads(done.stdout):
                for check in scored["checks"]:
                    if check["skipped"] or check["grade"] > 5:  # 10 is all right, 7 almost
                        continue
                    used.add(check["check"]["id"])
                    self.assertIn(check["check"]["id"], allowed, f"{way}, {scored['object_name']}: {check['comments']}")
        self.assertEqual(used, set(allowed), "exceptions that nothing needs any more")

    def test_checkov(self):
        allowed, used = exceptions("checkov"), set()
        with tempfile.TemporaryDirectory(prefix="rayhook-checkov-") as folder:
            shutil.copy(os.path.join(ROOT, "Dockerfile"), folder)
            for way in ("default", "together"):
                with open(os.path.join(folder, f"{way}.yaml"), "w") as out:
                    out.write(render.kustomize(KUBECTL, way))
            done = subprocess.run([sys.executable, "-m", "checkov.main", "--directory", folder, "--framework", "kubernetes", "dockerfile",
                                   "--skip-download", "--compact", "--quiet", "--output", "json"], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": os.path.join(TOOLS, "checkov")})
        reports = json.loads(done.stdout)
        self.assertEqual({report["check_type"] for report in reports}, {"kubernetes", "dockerfile"}, done.stderr)
        for report in reports:
            for failed in report["results"]["failed_checks"]:
                used.add(failed["check_id"])
                self.assertIn(failed["check_id"], allowed, f"{failed['resource']}: {failed['check_name']}")
        self.assertEqual(used, set(allowed), "exceptions that nothing needs any more")

    def test_hadolint(self):
        command = [os.path.join(TOOLS, "python", "bin", "hadolint"), "--no-color"]
        for rule in exceptions("hadolint") or {}:
            command += ["--ignore", rule]
        done = subprocess.run([*command, "Dockerfile"], cwd=ROOT, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(TOOLS, "python")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Alerts(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(render.CHART, "monitoring", "prometheus-rule.yaml")) as file:
            self.groups = yaml.safe_load(file)["spec"]
        self.rules = [rule for group in self.groups["groups"] for rule in group["rules"]]

    def test_promtool(self):
        with tempfile.TemporaryDirectory(prefix="rayhook-alerts-") as folder:
            with open(os.path.join(folder, "rules.yaml"), "w") as out:
                yaml.safe_dump(self.groups, out)
            shutil.copy(os.path.join(render.HERE, "alerts.yaml"), folder)
            for command in (["check", "rules", "rules.yaml"], ["test", "rules", "alerts.yaml"]):
                done = subprocess.run([tool("promtool"), *command], cwd=folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_is_tested_and_has_a_page(self):
        with open(os.path.join(render.HERE, "alerts.yaml")) as file:
            tested = {test["name"] for test in yaml.safe_load(file)["tests"]}
        with open(os.path.join(ROOT, "docs", "runbook.md")) as file:
            sections = re.findall(r"^## (Rayhook\w+)$", file.read(), re.MULTILINE)
        names = [rule["alert"] for rule in self.rules]
        self.assertEqual(set(names) - tested, set(), "without a test in alerts.yaml")
        self.assertEqual(names, sections, "alerts, and the sections of docs/runbook.md")
        for rule in self.rules:
            self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))
            self.assertEqual(sorted(rule["annotations"]), ["description", "runbook_url", "summary"])
            self.assertEqual(rule["annotations"]["runbook_url"], f"docs/runbook.md#{rule['alert'].lower()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="directory printed by tests/e2e/binaries.sh")
    parser.add_argument("--tools", required=True, help="directory printed by tools.sh")
    parser.add_argument("--rayhook", required=True, help="the program")
    arguments, rest = parser.parse_known_args()
    TOOLS, KUBECTL, RAYHOOK = arguments.tools, os.path.join(arguments.bin, "kubectl"), arguments.rayhook
    unittest.main(argv=[sys.argv[0], *rest])
