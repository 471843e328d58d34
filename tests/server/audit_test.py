#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log: every kind of decision of a running `rayhook serve` is logged as docs/audit-log.schema.json says,
holds nothing secret, and answers what the jq commands of docs/audit-log.md ask of it.

  audit_test.py --rayhook PATH [unittest's own arguments]"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness
from harness import GCS_PORT, NOT_FOUND, ClusterTest, plain_pod, reader, review, service, stored_service, worker
from watch_test import READER, converted, owned, pod, pod_list

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SECRET = "hunter2-"  # in every place of every object where something of its owner's may stand
NOT_MADE = {"patch-refused"}  # a fault of Rayhook's: no review brings it about
PAGE = os.path.join(ROOT, "docs", "audit-log.md")


def schema():
    with open(os.path.join(ROOT, "docs", "audit-log.schema.json")) as file:
        return json.load(file)


def with_secrets(made):
    """The same review, with secrets about."""
    request = made["request"]
    request["userInfo"].update(uid=SECRET + "uid", groups=[SECRET + "group"], extra={"token": [SECRET + "extra"]})
    thing = request["object"]
    thing["metadata"].setdefault("annotations", {})["kubectl.kubernetes.io/note"] = SECRET + "annotation"
    thing["metadata"].setdefault("labels", {})["key"] = SECRET + "label"
    containers = thing["spec"].get("containers", [])
    for container in containers if isinstance(containers, list) else []:
        env = container.setdefault("env", [])
        env.append({"name": "PASSWORD", "value": SECRET + "value"})
        env.append({"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": SECRET + "ref", "key": "k"}}})
        container["livenessProbe"] = {"exec": {"command": ["sh", "-c", f"check --token={SECRET}probe"]}}
        if "command" in container:
            container["command"][-1] += f" --redis-password={SECRET}argument ${{RAY_HEAD_SERVICE_HOST:-{SECRET}default}}"
            env.append({"name": "URL", "value": f"redis://:{SECRET}url@$(RAY_HEAD_SERVICE_HOST):6379/{SECRET}path"})
    return made


def head(spec=None, **metadata):
    made = service()
    made["request"]["object"]["metadata"].update(metadata)
    made["request"]["object"]["spec"].update(spec or {})
    return made


def with_spec(made, **spec):
    made["request"]["object"]["spec"].update(spec)
    return made


def annotated(made, key, value):
    made["request"]["object"]["metadata"]["annotations"] = {key: value}
    return made


def own_variables():
    made = reader()
    made["request"]["object"]["spec"]["containers"][0]["env"] = [
        {"name": f"RAY_HEAD_SERVICE_{end}", "value": SECRET + "own"} for end in ("HOST", "PORT_GCS_SERVER")]
    return made


def in_namespace(made, namespace):
    made["request"]["namespace"] = made["request"]["object"]["metadata"]["namespace"] = namespace
    return made


def changed(made, **request):
    made["request"].update(request)
    return made


KUBERAY = {"ray.io/node-type": "head"}
def huge_pod():
    made = reader()
    command = made["request"]["object"]["spec"]["containers"][0]["command"]
    command[-1] = "# " + "x" * (5 * 1024 * 1024) + "\n" + command[-1]
    return made


# The reviews that bring a reason about; the namespace says how the API server answers (see Audit.script).
REVIEWS = {
    "converted": lambda: head(),
    "already-headless": lambda: head({"clusterIP": "None"}),
    "ip-chosen": lambda: head({"clusterIP": "10.0.0.7"}),
    "service-type": lambda: head({"type": "NodePort"}),
    "external-ips": lambda: head({"externalIPs": ["192.0.2.1"]}),
    "no-selector": lambda: head({"selector": {}}, labels=dict(KUBERAY)),
    "matches-workers": lambda: in_namespace(head(), "workers"),
    "port-differs": lambda: head({"ports": [{**GCS_PORT, "targetPort": 1}]}),
    "named-target-port": lambda: head({"ports": [{**GCS_PORT, "targetPort": "gcs"}]}),
    "serve-service": lambda: head(labels={"ray.io/serve": "x"}),
    "worker-service": lambda: head({"selector": {"ray.io/node-type": "worker"}}),
    "deliberate-kuberay": lambda: head(labels=dict(KUBERAY)),
    "running-readers": lambda: in_namespace(head(), "readers"),
    "readers-unknown": lambda: in_namespace(head(), "broken"),
    "head-unclear": lambda: head({"selector": {"app": "x"}}),
    "not-a-head": lambda: head({"ports": [{"port": 80, "targetPort": 80}]}),
    "rewritten": lambda: worker(),
    "restored": lambda: plain_pod(),
    "no-reference": lambda: in_namespace(plain_pod(), "empty"),
    "already-done": lambda: in_namespace(annotated(plain_pod(), "rayhook/decision", "rewritten@0.1.0"), "empty"),
    "service-left": lambda: in_namespace(reader(), "left"),
    "service-absent": lambda: in_namespace(reader(), "empty"),
    "service-awaited": lambda: in_namespace(owned(worker()), "empty"),
    "service-unknown": lambda: in_namespace(reader(), "broken"),
    "own-variables": lambda: in_namespace(own_variables(), "empty"),
    "service-links-off": lambda: with_spec(reader(), enableServiceLinks=False),
    "mirror-pod": lambda: annotated(reader(), "kubernetes.io/config.mirror", "x"),
    "host-network": lambda: with_spec(plain_pod(), hostNetwork=True),
    "dns-policy": lambda: with_spec(reader(), dnsPolicy="None"),
    "opted-out": lambda: annotated(reader(), "rayhook/mode", "ignore"),
    "not-create": lambda: changed(reader(), operation="UPDATE"),
    "not-our-kind": lambda: review("ConfigMap", {"name": "x"}, {}),
    "malformed": lambda: with_spec(plain_pod(), containers="none"),
    "too-large": lambda: huge_pod(),
}


class Case(ClusterTest):
    """A server that knows a cluster in which every decision can be had."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            import jsonschema  # Debian's python3-jsonschema, by scripts/install-deps.sh test
        except ImportError:
            print("python3-jsonschema is not installed", file=sys.stderr)
            sys.exit(77)
        cls.schema = schema()
        jsonschema.Draft202012Validator.check_schema(cls.schema)
        cls.validator = jsonschema.Draft202012Validator(cls.schema)

    @staticmethod
    def script(path, headers):
        """Services and pods, by namespace."""
        namespace = path.split("/")[4]
        if "/pods" in path:
            return {"broken": (500, {}), "readers": pod_list(pod("old-worker", READER)),
                    "workers": pod_list(pod("w", "ray start --block", labels={"app": "ray-head"}))}.get(namespace, pod_list())
        if namespace == "left":
            found = stored_service("ray-head", False, "left")
            found[1]["metadata"]["annotations"] = {"rayhook/mode": "ignore"}
            return found
        return {"broken": (500, {})}.get(namespace, NOT_FOUND)

    def start(self, level="debug", kuberay="auto"):
        path = self.pki.path("config.yaml")
        with open(path, "w") as file:
            file.write(f"kuberay: {kuberay}\nunknownService: {{hold: 100ms, retryFor: 20s}}\n")
        self.api.put(converted())
        return self.serve(self.script, "--log-level", level, "--config", path)

    def decide_all(self, path="/mutate?timeout=3s"):
        """Every review, its uid its reason; gives each reason the answer's."""
        answers = {}
        for reason, make in REVIEWS.items():
            answer = self.client.post(changed(with_secrets(make()), uid=reason), path=path)
            self.assertEqual(answer.status, 200)
            answers[reason] = answer.json["response"]
        return answers

    def end(self, rayhook):
        """All log lines are there."""
        self.client.close()  # so that it need not wait for it
        rayhook.stop()

    def check(self, rayhook):
        """Each line of a stopped server against the schema; no member that is not described."""
        described = self.schema["$defs"]
        for line in rayhook.lines[:-1]:
            for error in self.validator.iter_errors(line):
                self.fail(f"{error.message} at {list(error.path)}: {line}")
            if line["msg"] == "decision":
                self.assertLessEqual(set(line), set(described["decision"]["properties"]))
                for change in line["changes"]:
                    self.assertLessEqual(set(change), set(described["change"]["properties"]))


class Audit(Case):
    def test_every_reason_is_logged_as_the_schema_says(self):
        rayhook = self.start()
        answers = self.decide_all()
        self.assertEqual({reason: answer["auditAnnotations"]["reason"] for reason, answer in answers.items()},
                         {reason: reason for reason in REVIEWS})
        self.end(rayhook)
        lines = {line["uid"]: line for line in rayhook.find(msg="decision")}
        self.assertEqual(set(lines), set(REVIEWS))
        for reason, line in lines.items():
            answer = answers[reason]
            self.assertEqual(line["reason"], reason)
            self.assertEqual(line["uid"], answer["auditAnnotations"]["review-uid"])
            self.assertEqual(line["outcome"], "deny" if not answer["allowed"] else "patch" if "patch" in answer else "leave")
            self.assertEqual(line.get("warnings", []), answer.get("warnings", []))
            self.assertEqual(line.get("message"), answer.get("status", {}).get("message"))
        self.check(rayhook)
        known = self.schema["$defs"]["decision"]["properties"]["reason"]["enum"]
        self.assertEqual(set(known) - set(REVIEWS) - NOT_MADE, {"kuberay-ignored"}, "it has a configuration of its own, below")

    def test_kuberay_ignored(self):
        rayhook = self.start(kuberay="ignore")
        self.assertEqual(self.reason(head(labels=dict(KUBERAY))), "kuberay-ignored")
        self.end(rayhook)
        self.check(rayhook)

    def test_an_audit_only_server_says_the_same_and_patches_nothing(self):
        rayhook = self.start()
        self.decide_all("/audit?timeout=3s")
        self.end(rayhook)
        self.check(rayhook)
        for line in rayhook.find(msg="decision"):
            self.assertEqual((line["mode"], line["patchBytes"]), ("audit", 0))
            if line["uid"] != "service-awaited":  # nothing is refused, so there is nobody to come back
                self.assertEqual(line["reason"], line["uid"])

    def test_nothing_secret_is_logged(self):
        rayhook = self.start()
        self.decide_all()
        self.decide_all("/audit?timeout=3s")
        for body in (b"{" + SECRET.encode(), json.dumps({"kind": SECRET}).encode()):
            self.assertEqual(self.client.post(body).status, 400)
        self.end(rayhook)
        text = b"".join(rayhook.raw).decode()
        self.assertIn('"reason":"rewritten"', text)
        for secret in (SECRET, "secret-token", "PRIVATE KEY"):
            self.assertNotIn(secret, text)

    def test_a_line_says_which_names_were_left_and_why(self):
        rayhook = self.start()
        self.decide_all()
        for uid, before, note in (("service-absent", "RAY_HEAD_SERVICE_HOST", "there is no such Service"),
                                  ("service-unknown", "RAY_HEAD_SERVICE_HOST", "its Service could not be looked up"),
                                  ("own-variables", "RAY_HEAD_SERVICE_HOST", "the container defines it itself"),
                                  ("malformed", "field spec.containers: expected an array", "cannot be read")):
            line = rayhook.wait_for(msg="decision", uid=uid)
            self.assertIn((before, note), [(change["before"], change.get("note")) for change in line["changes"]])
        self.assertIn("old-worker", rayhook.wait_for(uid="running-readers")["warnings"][0])

    def test_names_cannot_forge_a_line(self):
        """Whatever a line ends at for anybody, there is one for each decision."""
        rayhook = self.start()
        ends = ["\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x9b31m", "\u202e", "\x00", '"}', "\\"]
        for number, end in enumerate(ends):
            evil = f'x{end}{{"msg":"decision","reason":"forged"}}{end}'
            made = worker(uid=f"evil-{number}", user=evil)
            made["request"]["object"]["metadata"]["generateName"] = evil
            made["request"]["object"]["spec"]["containers"][0]["name"] = evil
            in_namespace(made, evil)
            self.client.post(made)
            line = rayhook.wait_for(msg="decision", uid=f"evil-{number}")
            self.assertEqual((line["user"], line["generateName"], line["namespace"]), (evil, evil, evil))
        self.end(rayhook)
        self.check(rayhook)
        text = b"".join(rayhook.raw).decode()
        for raw in text.splitlines():  # Python's: at every separator that Unicode has
            self.assertNotEqual(json.loads(raw).get("reason"), "forged")
        self.assertEqual(len(text.splitlines()), len(rayhook.raw))
        self.assertTrue(text.replace("\n", "").isprintable())


class Answers(Case):
    """The commands of docs/audit-log.md, on the log of a server and an API server's audit log that belongs to it."""

    def setUp(self):
        super().setUp()
        if not shutil.which("jq"):
            self.fail("jq is not installed: scripts/install-deps.sh test")

    def api_server_event(self, response, verb="create"):
        """What k8s.io/apiserver writes of a creation at level Metadata (a real one: tests/e2e/audit_e2e.py)."""
        return {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "a-" + response["uid"],
                "stage": "ResponseComplete", "verb": verb, "user": {"username": "alice"}, "sourceIPs": ["192.0.2.7"],
                "userAgent": "kubectl/v1.34.4", "objectRef": {"resource": "pods", "namespace": "team-a"},
                "responseStatus": {"code": 201}, "requestReceivedTimestamp": "2026-01-02T03:04:05.678901Z",
                "annotations": {"authorization.k8s.io/decision": "allow",
                                **{f"pods.enforce.rayhook/{key}": value for key, value in response["auditAnnotations"].items()}}}

    def test_commands(self):
        rayhook = self.start()
        answers = self.decide_all()
        self.end(rayhook)
        folder = self.pki.path(f"answers-{self.id()}")
        os.mkdir(folder)
        with open(os.path.join(folder, "rayhook.log"), "wb") as file:
            file.write(b"".join(rayhook.raw))
        with open(os.path.join(folder, "audit.log"), "w") as file:
            for response in answers.values():
                file.write(json.dumps(self.api_server_event(response)) + "\n")
            file.write(json.dumps({"kind": "Event", "stage": "ResponseComplete", "verb": "get", "user": {"username": "bob"}}) + "\n")
            file.write(json.dumps({"kind": "Event", "stage": "ResponseComplete", "verb": "create", "user": {"username": "carol"},
                                   "objectRef": {"resource": "pods", "namespace": "team-b", "name": "p"}, "responseStatus": {"code": 201},
                                   "requestReceivedTimestamp": "2026-01-02T03:04:06.000000Z", "annotations": {
                                       "failed-open.mutation.webhook.admission.k8s.io/round_0_index_1": "pods.enforce.rayhook"}}) + "\n")
        with open(PAGE, encoding="utf-8") as file:
            commands = re.findall(r"```sh\n(jq .*?)```", file.read(), re.DOTALL)
        outputs = []
        for command in commands:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            outputs.append(done.stdout)
        expected = ["spec.containers[0].command[2]", '"name":"worker-","reason":"rewritten"', "make them equal", "1 running-readers", "\tservice-absent", "RAY_HEAD_SERVICE_HOST",
                    "alice\tkubectl/v1.34.4\t192.0.2.7\tcreate\tpods\tteam-a/worker-\t201\trewritten\tpatch", "team-b/p"]
        for text, output in zip(expected, outputs, strict=True):
            self.assertIn(text, output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--rayhook", required=True)
    options, rest = parser.parse_known_args()
    harness.PROGRAM = os.path.abspath(options.rayhook)
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")
