#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/audit-log.md and docs/operations.md tell people to type, on a real API server with the shipped webhooks:
its audit log and Rayhook's are joined, objects that were admitted without Rayhook are found, cluster IPs come back.

  audit_e2e.py --rayhook PATH --bin DIR [unittest's own arguments]"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import pki
from control_plane import ControlPlane
from processes import wait_until
from webhook import Webhook, rights

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
    {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["services", "pods"]}]}, {"level": "None"}]}
HEAD = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ray-head"}, "spec": {
    "selector": {"component": "ray-head"}, "ports": [{"name": "gcs-server", "port": 6379}]}}
WORKERS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "worker"}, "spec": {
    "replicas": 1, "selector": {"matchLabels": {"app": "worker"}},
    "template": {"metadata": {"labels": {"app": "worker"}}, "spec": {"containers": [{
        "name": "ray", "image": "ray", "command": ["/bin/bash", "-c"],
        "args": ["ray start --address=$RAY_HEAD_SERVICE_HOST:$RAY_HEAD_SERVICE_PORT_GCS_SERVER"]}]}}}}


def shown_command(page, part):
    """The block of shell commands on a page that has `part` in it."""
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as file:
        found = [block for block in re.findall(r"```sh\n(.*?)```", file.read(), re.DOTALL) if part in block]
    assert len(found) == 1, f"{page} has {len(found)} blocks with {part}"
    return found[0]


class Typed(unittest.TestCase):
    program = bin = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="rayhook-audit-e2e-")
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        policy = cls.path("audit-policy.json")
        with open(policy, "w") as out:
            json.dump(POLICY, out)
        cls.plane = ControlPlane(cls.bin, cls.directory, [
            f"--audit-policy-file={policy}", f"--audit-log-path={cls.path('audit.log')}"])
        cls.addClassCleanup(cls.plane.stop)
        cls.plane.start()
        for right in rights():
            cls.plane.kubectl("create", "-f", "-", stdin=json.dumps(right))
        cls.webhook = Webhook(cls.program, cls.plane, cls.directory)
        cls.addClassCleanup(cls.webhook.stop)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.directory, name)

    def setUp(self):
        self.namespace = self.id().rpartition(".")[2].replace("_", "-")
        self.webhook.start()
        with open(os.path.join(ROOT, "manifests", "base", "webhook.yaml")) as file:
            configuration = yaml.safe_load(file)
        for one in configuration["webhooks"]:
            path = one["clientConfig"]["service"]["path"]
            one["clientConfig"] = {"url": f"https://127.0.0.1:{self.webhook.port}{path}", "caBundle": pki.inline(self.webhook.ca.cert)}
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(configuration))
        self.plane.kubectl("create", "namespace", self.namespace)
        # Registration takes a moment to reach all of the API server.
        wait_until("the webhook is asked", lambda: "rayhook/decision" in json.dumps(self.create(HEAD, "--dry-run=server")), 30)

    def tearDown(self):
        self.webhook.stop()

    def create(self, document, *options):
        out, _ = self.plane.kubectl("create", "-n", self.namespace, "-o", "json", "-f", "-", *options, stdin=json.dumps(document))
        return json.loads(out)

    def pods(self):
        return self.plane.get("pods", "-n", self.namespace)["items"]

    def new_pod(self, before=()):
        """The ReplicaSet's pod, once there is one that was not there before."""
        names = {pod["metadata"]["name"] for pod in before}
        return wait_until("a pod", lambda: [pod for pod in self.pods() if pod["metadata"]["name"] not in names
                                            and "deletionTimestamp" not in pod["metadata"]], 30)[0]

    def type(self, commands):
        """Runs it as a user would, with kubectl and jq at hand; gives what it says."""
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "KUBECONFIG": self.plane.admin, "HOME": self.directory}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=self.directory, env=environment,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{commands}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_the_two_logs_are_joined(self):
        self.create(HEAD)
        self.create(WORKERS)
        pod = self.new_pod()
        self.assertIn("ray-head:6379", pod["spec"]["containers"][0]["args"][0])
        self.webhook.stop()  # and so its log is whole; it is the rayhook.log of this folder
        rows = [row.split("\t") for row in self.type(shown_command("audit-log.md", "slurpfile")).splitlines()]
        stored = {row[6]: row for row in rows if row[6].startswith(self.namespace) and row[7] == "201"}
        service, worker = stored[f"{self.namespace}/ray-head"], stored[f"{self.namespace}/worker-"]
        self.assertEqual((service[1], service[3:6], service[8:]), ("admin", ["127.0.0.1", "create", "services"], ["converted", "patch"]))
        self.assertTrue(service[2].startswith("kubectl"))
        self.assertEqual((worker[3:6], worker[8:]), (["127.0.0.1", "create", "pods"], ["rewritten", "patch"]))
        self.assertIn("replicaset-controller", worker[2])

    def test_what_was_admitted_without_rayhook_is_found(self):
        self.create(HEAD)
        self.webhook.stop()
        self.create(WORKERS)
        self.assertNotIn("annotations", self.new_pod()["metadata"])
        rows = [row.split("\t") for row in self.type(shown_command("audit-log.md", "failed-open")).splitlines()]
        self.assertIn((f"{self.namespace}", "pods.enforce.rayhook"), [(row[4].partition("/")[0], row[5]) for row in rows])

    def test_a_cluster_ip_comes_back(self):
        self.assertEqual(self.create(HEAD)["spec"]["clusterIP"], "None")
        self.create(WORKERS)
        rewritten = self.new_pod()
        self.assertIn(f"{self.namespace} ray-head\n", self.type(shown_command("operations.md", "rayhook/converted\"] ==")))
        commands = shown_command("operations.md", "replace --force")
        said = self.type(commands.replace("NAMESPACE", "NAME").replace("SERVICE", "ray-head").replace("NAME", self.namespace))
        self.assertRegex(said, r"ray-head +ClusterIP +10\.")
        service = self.plane.get("service", "ray-head", "-n", self.namespace)
        self.assertNotIn("annotations", service["metadata"])
        self.assertNotIn("publishNotReadyAddresses", service["spec"])
        self.assertEqual([(port["name"], port["port"], port["targetPort"]) for port in service["spec"]["ports"]], [("gcs-server", 6379, 6379)])
        before = self.pods()
        self.assertEqual([pod["metadata"]["uid"] for pod in before], [rewritten["metadata"]["uid"]], "nothing was restarted")
        self.plane.kubectl("delete", "pod", "-n", self.namespace, "--wait=false", "--grace-period=0", "--force", rewritten["metadata"]["name"])
        anew = self.new_pod(before)
        self.assertIn("$RAY_HEAD_SERVICE_HOST", anew["spec"]["containers"][0]["args"][0], "left alone from now on")
        self.assertNotIn("annotations", anew["metadata"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--rayhook", required=True)
    parser.add_argument("--bin", required=True)
    options, rest = parser.parse_known_args()
    Typed.program, Typed.bin = os.path.abspath(options.rayhook), os.path.abspath(options.bin)
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")
