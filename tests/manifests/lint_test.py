#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manifests without a cluster: every way of installing, as kustomize and as Helm render it, is valid for each
Kubernetes that we support; both render the same; linters find nothing that linters.yaml does not explain."""

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
TOOLS = KUBECTL = ""


def tool(name):
    return os.path.join(TOOLS, "bin", name)


@functools.lru_cache(maxsize=None)
def kustomized(way):
    return render.documents(render.kustomize(KUBECTL, way))


@functools.lru_cache(maxsize=None)
def charted(way):
    return render.documents(render.chart(tool("helm"), way))


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
        with open(os.path.join(render.CHART, "Chart.yaml")) as file:
            chart = yaml.safe_load(file)
        self.assertEqual([chart["version"], chart["appVersion"]], [version, version])
        images = {c["image"] for d in kustomized("default") + render.documents(render.run(KUBECTL, "kustomize", render.PROBE)) for c in containers(d)}
        self.assertEqual(images, {f"rayhook:{version}"})


def containers(document):
    spec = document.get("spec", {})
    for step in ("jobTemplate", "spec") if document["kind"] == "CronJob" else ():
        spec = spec[step]
    return spec["template"]["spec"]["containers"] if "template" in spec else []


class Chart(unittest.TestCase):
    def template(self, values):
        return subprocess.run([tool("helm"), "template", "rayhook", render.CHART, "--kube-version", "1.34.0", "--values", "-"],
                              input=yaml.safe_dump(values), capture_output=True, text=True)

    def test_lint(self):
        done = subprocess.run([tool("helm"), "lint", "--strict", "--quiet", "--kube-version", "1.34.0", render.CHART], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_schema_refuses(self):
        for values in ({"replica": 3}, {"replicas": 0}, {"mode": "off"}, {"webhook": {"failurePolicy": "fail"}},
                       {"webhook": {"timeoutSeconds": 31}}, {"webhook": {"excludedNamespaces": []}}, {"image": {"digest": "latest"}},
                       {"certificate": {"source": "none"}}, {"monitoring": {"interval": "often"}}, {"config": "dnsName: fqdn"}):
            with self.subTest(values=values):
                done = self.template(values)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("values don't meet the specifications of the schema", done.stderr)

    def test_schema_knows_every_value(self):
        def compare(values, schema, path):
            self.assertEqual(sorted(values), sorted(k for k in schema["properties"] if k != "global"), path)
            for name, value in values.items():
                if "properties" in schema["properties"][name]:
                    compare(value, schema["properties"][name], f"{path}.{name}")
        with open(os.path.join(render.CHART, "values.yaml")) as values, open(os.path.join(render.CHART, "values.schema.json")) as schema:
            compare(yaml.safe_load(values), json.load(schema), "")

    def test_own_certificate_needs_its_ca(self):
        done = self.template({"certificate": {"source": "existing"}})
        self.assertIn("certificate.caBundle", done.stderr)
        done = self.template({"certificate": {"source": "existing", "caBundle": "QUJD"}})
        bundles = re.findall(r"caBundle: (\S+)", done.stdout)
        self.assertEqual(bundles, ["QUJD"] * 6)

    def test_values_arrive(self):
        done = self.template({
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
        self.assertEqual(objects["NetworkPolicy", "rayhook"]["spec"]["egress"], [{"ports": [{"port": 16443}]}])
        rules = objects["PrometheusRule", "rayhook"]
        self.assertEqual(rules["metadata"]["labels"]["release"], "prometheus")
        self.assertEqual(rules["spec"]["groups"][0]["rules"][0]["annotations"]["runbook_url"], "https://wiki.example/rayhook#rayhookdown")

    def test_configuration_changes_roll_out(self):
        names = {re.search(r"name: (rayhook-config-\w+)", self.template(values).stdout).group(1) for values in ({}, {"config": {"kuberay": "convert"}})}
        self.assertEqual(len(names), 2)


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
    arguments, rest = parser.parse_known_args()
    TOOLS, KUBECTL = arguments.tools, os.path.join(arguments.bin, "kubectl")
    unittest.main(argv=[sys.argv[0], *rest])
