#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rayhook behind a real API server: what users apply comes out right, and nothing is refused.

The baseline is the same API server before Rayhook is registered: each file of the corpus is stored once without and
once with it, and the two are compared with each other and with EXPECTED.json."""

import copy
import json
import os
import re
import sys

import yaml

from control_plane import KubectlError
from processes import wait_until
from scenarios import Scenarios, expect, main, say
from webhook import Webhook, rights

HERE = os.path.dirname(os.path.abspath(__file__))


# ---- objects ---------------------------------------------------------------------------------------------------------

def load(path):
    with open(path) as file:
        return [document for document in yaml.safe_load_all(file) if document]


def pods_of(document):
    """How many pods the controllers make of it (and one for a bare Pod)."""
    spec = document.get("spec", {})
    return {"Pod": 1, "Deployment": spec.get("replicas", 1), "ReplicaSet": spec.get("replicas", 1),
            "StatefulSet": min(spec.get("replicas", 1), 1), "Job": spec.get("parallelism", 1)}.get(document["kind"], 0)


def containers(pod):
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def texts(pod):
    """What `rewrites` speaks of: command, args and env values."""
    for container in containers(pod):
        yield from container.get("command", [])
        yield from container.get("args", [])
        yield from (entry.get("value", "") for entry in container.get("env", []))


def key(pod):
    """The same for the pods of one template, whatever the namespace (a Job's own name may be generated too)."""
    return re.sub("-[a-z0-9]{5}-$", "-", pod["metadata"].get("generateName") or pod["metadata"]["name"])


def own_text(pod, plain):
    """command, args and env of each container, without the variables that were put before its own."""
    found = []
    for container, before in zip(containers(pod), containers(plain), strict=True):
        env, own = container.get("env", []), before.get("env", [])
        expect(len(env) >= len(own), f"{key(pod)}: env entries are gone")
        found.append({"name": container["name"], "command": container.get("command"), "args": container.get("args"),
                      "env": env[len(env) - len(own):]})
    return found


def headless(service):
    return service["spec"].get("clusterIP") == "None"


# ---- the runs --------------------------------------------------------------------------------------------------------

class Suite(Scenarios):
    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        self.webhook = Webhook(arguments.rayhook, self.plane, directory)
        self.started.append(self.webhook)
        with open(os.path.join(arguments.corpus, "EXPECTED.json")) as file:
            self.expected = json.load(file)
        self.baseline = {}

    def logs(self):
        return [self.webhook.process] if self.webhook.process else []

    def namespace(self, name):
        self.plane.kubectl("create", "namespace", name)
        return name

    def submit(self, document, namespace, *options):
        """As a user would: bare Pods and generated names by create, the rest by apply."""
        document = copy.deepcopy(document)
        document["metadata"]["namespace"] = namespace
        verb = "create" if document["kind"] == "Pod" or "generateName" in document["metadata"] else "apply"
        return self.plane.kubectl(verb, *options, "-f", "-", stdin=json.dumps(document))

    def store(self, documents, namespace):
        """Submits the documents in order; gives the refusals, and what was stored once the controllers are done."""
        self.namespace(namespace)
        refused, pods = {}, 0
        for number, document in enumerate(documents):
            try:
                self.submit(document, namespace)
                pods += pods_of(document)
            except KubectlError as error:
                refused[number] = str(error)

        def stored_pods():
            items = self.plane.get("pods", "-n", namespace)["items"]
            return items if len(items) >= pods else None
        stored = wait_until(f"{pods} pods in {namespace}", stored_pods, 60) if pods else []
        services = {s["metadata"]["name"]: s for s in self.plane.get("services", "-n", namespace)["items"]}
        return refused, services, stored

    def corpus(self):
        for entry in self.expected:
            yield entry, entry["file"].split("-")[0], load(os.path.join(self.arguments.corpus, entry["file"]))

    def take_baseline(self):
        for entry, short, documents in self.corpus():
            self.baseline[short] = self.store(documents, f"plain-{short}")
            # A node port can be had only once in a cluster.
            self.plane.kubectl("delete", "services", "--all", "--wait", "-n", f"plain-{short}")
        refused = {short: list(stored[0].values()) for short, stored in self.baseline.items() if stored[0]}
        expect(not refused, f"the API server itself refuses documents of the corpus: {refused}")

    def register(self):
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": rights()}))
        self.webhook.start()
        self.plane.kubectl("create", "-f", "-", stdin=json.dumps(self.webhook.configuration()))
        namespace = self.namespace("probe")
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ray-head"},
                   "spec": {"selector": {"component": "ray-head"}, "ports": [{"name": "gcs-server", "port": 6379}]}}

        def called():
            out, _ = self.submit(service, namespace, "--dry-run=server", "-o", "json")
            return headless(json.loads(out))
        self.webhook.process.wait_until("the API server calls Rayhook", called, 30)

    # ---- the example

    def apply_example(self):
        namespace, path = self.namespace("example"), self.arguments.example
        documents = load(path)
        out, warnings = self.plane.kubectl("apply", "-n", namespace, "-f", path)
        service = self.plane.get("service", "service-ray-cluster", "-n", namespace)
        expect(headless(service) and service["spec"]["clusterIPs"] == ["None"], f"not headless: {service['spec']}")
        expect(service["spec"].get("publishNotReadyAddresses") is True, "publishNotReadyAddresses is not set")
        annotations = service["metadata"]["annotations"]
        expect(annotations.get("rayhook/converted") == "true", f"annotations: {annotations}")
        expect(annotations.get("rayhook/decision", "").startswith("converted@"), f"annotations: {annotations}")
        self.example_pods = sum(map(pods_of, documents))
        pods = wait_until("the example's pods", self.example_pods_stored, 60)
        workers = [pod for pod in pods if "worker" in key(pod)]
        expect(workers, f"no worker among {[key(pod) for pod in pods]}")
        for pod in workers:
            expect(any("--address=service-ray-cluster:6380" in text for text in texts(pod)),
                   f"{key(pod)} does not say --address=service-ray-cluster:6380: {list(texts(pod))}")
            expect(not any("$SERVICE_RAY_CLUSTER_SERVICE_HOST" in text for text in texts(pod)), f"{key(pod)}: a reference is left")
            first = containers(pod)[0]["env"][0]
            expect(first["name"].startswith("SERVICE_RAY_CLUSTER_"), f"variables are not restored at the front: {first}")
            expect("@" in pod["metadata"]["annotations"].get("rayhook/decision", ""), f"annotations: {pod['metadata']}")

    def example_pods_stored(self):
        items = self.plane.get("pods", "-n", "example")["items"]
        return items if len(items) >= self.example_pods else None

    def dry_run_worker(self):
        template = next(d for d in load(self.arguments.example) if d["kind"] == "Deployment" and "worker" in d["metadata"]["name"])
        pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(template["spec"]["template"])}
        pod["metadata"]["generateName"] = "dry-run-worker-"
        out, _ = self.submit(pod, "example", "--dry-run=server", "-o", "json")
        answer = json.loads(out)
        expect(any("--address=service-ray-cluster:6380" in text for text in texts(answer)), f"not rewritten: {list(texts(answer))}")
        expect(not [p for p in self.plane.get("pods", "-n", "example")["items"] if key(p) == "dry-run-worker-"], "it was stored")

    def apply_again(self):
        def settled():
            found = {}
            for item in self.plane.get("services,deployments", "-n", "example")["items"]:
                status, wanted = item.get("status", {}), item["spec"].get("replicas")
                if item["kind"] == "Deployment" and (
                        status.get("observedGeneration") != item["metadata"]["generation"] or status.get("updatedReplicas") != wanted
                        or status.get("unavailableReplicas") != wanted or len(status.get("conditions", [])) < 2):
                    return None
                found[item["kind"], item["metadata"]["name"]] = (item["metadata"].get("generation"), item["metadata"]["resourceVersion"])
            return found
        before = wait_until("the Deployments settle", settled, 60)
        out, _ = self.plane.kubectl("apply", "-n", "example", "-f", self.arguments.example)
        lines = out.strip().splitlines()
        expect(lines and all(line.endswith(" unchanged") for line in lines), f"kubectl apply says: {lines}")
        after = wait_until("the Deployments settle", settled, 60)
        expect(before == after, f"(generation, resourceVersion) before {before}, after {after}")
        expect(len(self.plane.get("pods", "-n", "example")["items"]) == self.example_pods, "other pods came")

    def python_reader(self):
        """Nobody expands its text: the variables must be in its env."""
        document = next(d for d in load(os.path.join(os.path.dirname(self.arguments.example), "python-driver-job.yaml")) if d["kind"] == "Job")
        self.submit(document, "example")

        def stored():
            return [p for p in self.plane.get("pods", "-n", "example")["items"] if key(p) == document["metadata"]["name"] + "-"]
        pod = wait_until("the Job's pod", stored, 60)[0]
        [container] = containers(pod)
        expect(container["command"] == document["spec"]["template"]["spec"]["containers"][0]["command"], "its text changed")
        env = {entry["name"]: entry.get("value") for entry in container.get("env", [])}
        for name, value in (("HOST", "service-ray-cluster"), ("PORT_CLIENT", "10001"), ("PORT_GCS_SERVER", "6380")):
            expect(env.get(f"SERVICE_RAY_CLUSTER_SERVICE_{name}") == value, f"SERVICE_RAY_CLUSTER_SERVICE_{name} is missing: {env}")

    # ---- the corpus

    def file(self, entry, short, documents):
        refused_before, services_before, pods_before = self.baseline[short]
        refused, services, pods = self.store(documents, f"with-{short}")
        more = {number: message for number, message in refused.items() if number not in refused_before}
        expect(not more, f"refused with Rayhook only: {more}")
        for name, state in entry["services"].items():
            want = True if state == "headless" else headless(services_before[name])
            expect(headless(services[name]) == want, f"Service {name}: clusterIP {services[name]['spec'].get('clusterIP')}, expected {state}")
            if state == "headless":
                expect(services[name]["spec"].get("publishNotReadyAddresses") is True, f"{name}: publishNotReadyAddresses")
        plain = {key(pod): pod for pod in pods_before}
        expect(sorted(map(key, pods)) == sorted(map(key, pods_before)), f"other pods: {sorted(map(key, pods))}")
        everything = [text for pod in pods for text in texts(pod)]
        for rewrite in entry["rewrites"]:
            expect(not any(rewrite["before"] in text for text in everything), f"still there: {rewrite['before']}")
            expect(any(rewrite["after"] in text for text in everything), f"not there: {rewrite['after']}: {everything}")
        for pod in pods:
            was, now = own_text(plain[key(pod)], plain[key(pod)]), own_text(pod, plain[key(pod)])
            if not entry["rewrites"]:
                expect(was == now, f"{key(pod)} was to stay as it is: {was} became {now}")
            else:
                replaced = json.dumps(was)
                for rewrite in entry["rewrites"]:
                    replaced = replaced.replace(json.dumps(rewrite["before"])[1:-1], json.dumps(rewrite["after"])[1:-1])
                expect(json.loads(replaced) == now, f"{key(pod)}: more than the rewrites of EXPECTED.json: {replaced} / {json.dumps(now)}")

    # ---- without Rayhook

    def nothing_failed_open(self):
        """With failurePolicy Ignore a faulty answer goes unseen by users, but not by the API server."""
        out, _ = self.plane.kubectl("get", "--raw", "/metrics")
        for metric in ("apiserver_admission_webhook_fail_open_count", "apiserver_admission_webhook_rejection_count"):
            bad = [line for line in out.splitlines() if line.startswith(metric)]
            expect(not bad, f"the API server counted: {bad}")

    def stopped(self):
        code = self.webhook.stop()
        expect(code == 0, f"rayhook ended with {code} at SIGTERM:\n{self.webhook.process.tail()}")
        documents = load(os.path.join(self.arguments.corpus, "p01-static-gcs-server-both-vars.yaml"))
        refused, services, pods = self.store(documents, "without-rayhook")
        expect(not refused, f"refused: {refused}")
        expect(not headless(services["service-ray-cluster"]), "headless without Rayhook")
        plain = {key(pod): pod for pod in self.baseline["p01"][2]}
        for pod in pods:
            expect([c.get("env") for c in containers(pod)] == [c.get("env") for c in containers(plain[key(pod)])], "env differs")
            expect(own_text(pod, plain[key(pod)]) == own_text(plain[key(pod)], plain[key(pod)]), "text differs")

    def run(self):
        self.plane.start()
        say("etcd, kube-apiserver and kube-controller-manager are up")
        self.scenario("the API server alone takes every document of the corpus", self.take_baseline)
        if self.failed:
            return
        self.scenario("rayhook serve is ready and the API server calls it", self.register)
        if self.failed:
            return
        if os.path.exists(self.arguments.example):
            self.scenario("kubectl apply of the example: Service headless, workers rewritten", self.apply_example)
            self.scenario("server dry run of a worker pod", self.dry_run_worker)
            self.scenario("applying the example again changes nothing", self.apply_again)
            self.scenario("a Job whose Python reads the variables has them in its env", self.python_reader)
        else:
            self.failed.append("example")
            say(f"FAIL  no example at {self.arguments.example}")
        for entry, short, documents in self.corpus():
            self.scenario(f"corpus {entry['file']}", lambda: self.file(entry, short, documents))
        self.scenario("no call of Rayhook failed or was refused", self.nothing_failed_open)
        self.scenario("with Rayhook stopped, objects are admitted as they are", self.stopped)


def more_arguments(parser):
    parser.add_argument("--corpus", default=os.path.join(HERE, "..", "corpus"))
    parser.add_argument("--example", default=os.path.join(HERE, "..", "..", "examples", "static-ray-cluster.yaml"))


if __name__ == "__main__":
    sys.exit(main(Suite, __doc__, more_arguments))
