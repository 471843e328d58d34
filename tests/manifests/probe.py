# SPDX-License-Identifier: Apache-2.0
"""Steps of cluster_test.py: manifests/probe, with its Job's command and the rights of its service account, where all
is well, and where something is wrong that it must name."""

import contextlib
import json
import os
import subprocess

import render
from processes import wait_until
from wrong import expect

PROBE, STRICT = "rayhook-probe", "rayhook-probe-strict"

_admission = "admissionregistration.k8s.io"
NO_SERVICES = [
    {"apiVersion": f"{_admission}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-services"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}]},
        "validations": [{"expression": "false", "message": "no Services here"}]}},
    {"apiVersion": f"{_admission}/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-services"}, "spec": {
        "policyName": "no-services", "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": PROBE}}}}}]


class Probe:
    def __init__(self, suite):
        self.suite = suite

    @contextlib.contextmanager
    def applied(self):
        """With the objects of manifests/probe, whose pod nobody runs."""
        folder = os.path.join(render.MANIFESTS, "probe")
        self.suite.kubectl("apply", "-k", folder)
        try:
            [job] = self.suite.plane.get("jobs", "-n", PROBE)["items"]
            [container] = job["spec"]["template"]["spec"]["containers"]
            # The namespace enforces the restricted standard: that there is a pod shows that it keeps it.
            wait_until("the pod of the probe", lambda: self.suite.plane.get("pods", "-n", PROBE)["items"], 60)
            kubeconfig, _ = self.suite.account("rayhook-probe", PROBE)
            self.command = [self.suite.arguments.rayhook, *container["args"], "--kubeconfig", kubeconfig]
            yield
        finally:
            self.suite.kubectl("delete", "-k", folder, "--timeout=60s")

    def run(self, *more):
        done = subprocess.run([*self.command, *more], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def services(self):
        return [item["metadata"]["name"] for item in self.suite.plane.get("services", "-n", PROBE)["items"]]

    def succeeds(self):
        with self.applied():
            for _ in range(2):
                code, out, error = self.run()
                expect(code == 0 and not error, f"the probe fails: {error}")
                expect(out.splitlines()[-1] == "Rayhook works in this cluster" and out.count("ok  ") == 3, f"it says: {out}")
                expect(not self.services(), f"it leaves {self.services()}")
            # One that was interrupted left its Service.
            self.suite.kubectl("create", "service", "clusterip", "ray-head", "-n", PROBE, "--tcp=6379")
            code, _, error = self.run()
            expect(code == 0 and not self.services(), f"over what another one left: {error}, {self.services()}")

    def fails(self, cause, *words):
        code, out, error = self.run("--timeout", "0")
        line = error.strip()
        expect(code == 1 and line.startswith("rayhook probe: ") and "\n" not in line and all(word in line for word in (cause, *words)),
               f"{cause} is wrong, and the probe ends with {code} and says: {out}{error}")
        expect(not self.services(), f"it leaves {self.services()}")

    def says_what_is_wrong(self):
        kubectl = self.suite.kubectl
        with self.applied():
            for mode in ("ignore", "audit"):
                kubectl("label", "namespace", PROBE, f"rayhook/mode={mode}", "--overwrite")
                self.until_it_fails("selector: ", "rayhook/mode")
            kubectl("label", "namespace", PROBE, "rayhook/mode-")
            kubectl("label", "namespace", STRICT, "rayhook/mode-")
            self.everyone_ignored()
            kubectl("label", "namespace", STRICT, "rayhook/mode=strict")
            self.wrong_webhooks()
            self.forbidden()
            code, _, error = self.run()
            expect(code == 0, f"all is mended, and the probe says: {error}")
        code, _, error = self.run("--timeout", "0")
        expect(code == 1 and "manifests/probe" in error, f"without its namespaces: {error}")

    def webhooks(self):
        stored = self.suite.plane.get("mutatingwebhookconfiguration", "rayhook")
        stored["metadata"] = {key: stored["metadata"][key] for key in ("name", "labels", "annotations") if key in stored["metadata"]}
        return stored

    @contextlib.contextmanager
    def changed_webhooks(self, change):
        """The API server learns of it by its watch: what follows is waited for."""
        before = self.webhooks()
        changed = json.loads(json.dumps(before))
        for webhook in changed["webhooks"]:
            change(webhook)
        self.suite.kubectl("replace", "-f", "-", stdin=json.dumps(changed))
        try:
            yield
        finally:
            self.suite.kubectl("replace", "-f", "-", stdin=json.dumps(before))
            wait_until("the webhooks are as before", lambda: self.run("--timeout", "0")[0] == 0, 30)

    def until_it_fails(self, *words):
        wait_until(f"the probe fails: {words}", lambda: self.run("--timeout", "0")[0] == 1, 30)
        self.fails(*words)

    def everyone_ignored(self):
        def nobody(webhook):
            webhook["matchConditions"].append({"name": "never", "expression": "false"})
        with self.changed_webhooks(nobody):
            self.until_it_fails("selector: ", "did not ask Rayhook")

    def wrong_webhooks(self):
        def other_ca(webhook):
            webhook["clientConfig"]["caBundle"] = self.suite.plane_ca()

        def no_pods(webhook):
            if webhook["name"].startswith("pods."):
                webhook["matchConditions"].append({"name": "never", "expression": "false"})

        def no_service(webhook):
            webhook["clientConfig"]["service"]["name"] = "nowhere"
        with self.changed_webhooks(other_ca):
            self.until_it_fails("certificate: ", "x509", "rayhook certs check")
        with self.changed_webhooks(no_pods):
            self.until_it_fails("worker: ", "$(RAY_HEAD_SERVICE_HOST)")

        def only_audit(webhook):
            webhook["clientConfig"]["service"]["path"] = "/audit"
        with self.changed_webhooks(only_audit):
            self.until_it_fails("audit: ", "only reports")
        with self.changed_webhooks(no_service):
            self.until_it_fails("service: ", "nowhere")
        before = self.webhooks()
        self.suite.kubectl("delete", "mutatingwebhookconfiguration", "rayhook")
        self.until_it_fails("webhook configuration: ", "apply the manifests")
        self.suite.kubectl("create", "-f", "-", stdin=json.dumps(before))
        wait_until("the webhooks are as before", lambda: self.run("--timeout", "0")[0] == 0, 30)

    def forbidden(self):
        kubectl = self.suite.kubectl
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": NO_SERVICES}))
        self.until_it_fails("policy: ", "denied request")
        for item in NO_SERVICES:
            kubectl("delete", item["kind"], "no-services")
        binding = self.suite.plane.get("rolebinding", "rayhook-probe", "-n", PROBE)
        kubectl("delete", "rolebinding", "rayhook-probe", "-n", PROBE)
        self.until_it_fails("rights: ", "cannot ")
        binding["metadata"] = {"name": "rayhook-probe", "namespace": PROBE}
        kubectl("create", "-f", "-", stdin=json.dumps(binding))
