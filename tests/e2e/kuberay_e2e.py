#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Beside the real KubeRay operator, of two versions and in both of its modes: Rayhook and the operator do not fight over
a Service, and each does what it would do alone."""

import os
import sys
import time

import yaml

from dashboard import Dashboard
from node import Node
from processes import Process, free_ports, wait_until
from ray import headless
from scenarios import Scenarios, expect, main, say, table
from webhook import Webhook, rights

# Operator versions, each with and without ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE=true, each in a namespace of its own.
OPERATORS = [(version, mode) for version in ("1.5.0", "1.4.0") for mode in ("headless", "cluster-ip")]


def namespace(version, mode):
    return f"kuberay-{version.replace('.', '-')}-{mode}"


def group(name, command_ports=()):
    return {"template": {"spec": {"containers": [{"name": name, "image": "rayproject/ray:2.46.0", "ports": [
        {"name": port, "containerPort": number} for port, number in command_ports]}]}}}


def cluster(name, ports, **metadata):
    """`ports` of the head's container are those of its Service; without any, KubeRay has its own, with gcs-server."""
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name, **metadata}, "spec": cluster_spec(ports)}


def cluster_spec(ports):
    return {"rayVersion": "2.46.0", "headGroupSpec": {"rayStartParams": {}, **group("ray-head", ports)},
            "workerGroupSpecs": [{"groupName": "small", "replicas": 1, "minReplicas": 1, "maxReplicas": 2, "rayStartParams": {}, **group("ray-worker")}]}


def service(name, ports):
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": name}, "spec": {
        "serveConfigV2": yaml.safe_dump({"applications": [{"name": "app", "import_path": "app:deployment", "route_prefix": "/"}]}),
        "rayClusterConfig": cluster_spec(ports)}}


# A cluster whose Service has a port named gcs-server is of KubeRay 1.3 or later: a ClusterIP there is meant.
SERVE = (("serve", 8000), ("client", 10001), ("dashboard", 8265))
OLD_PORTS, NEW_PORTS = (("redis", 6379), *SERVE), (("gcs-server", 6379), *SERVE)
OBJECTS = [cluster("plain", ()), cluster("old-ports", OLD_PORTS),
           cluster("serving", NEW_PORTS, annotations={"ray.io/enable-serve-service": "true"}),
           service("app", NEW_PORTS), service("old-app", OLD_PORTS)]
HEADS, SERVES = 7, 3  # of the five clusters and, once more, of the two RayServices; of those and `serving`


class KubeRay(Scenarios):
    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        self.webhook = Webhook(arguments.rayhook, self.plane, directory)
        self.started.append(self.webhook)
        self.dashboard = Dashboard()
        self.started.append(self.dashboard)
        self.operators = []
        self.rows = []

    def logs(self):
        return [self.webhook.process, *self.operators]

    def start_operators(self):
        # The newer ones, as in an upgrade; kubectl follows no link to a directory.
        crds = os.path.realpath(os.path.join(self.arguments.bin, "kuberay-1.5.0-crds"))
        self.plane.kubectl("create", "-f", crds)
        # Again, because kubectl gives up at once on one that has no conditions yet.
        established = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        wait_until("the CRDs are established", lambda: self.plane.run(*established).returncode == 0, 150)
        for version, mode in OPERATORS:
            space = self.api.namespace(namespace(version, mode))
            metrics, probe = free_ports(2)
            # Only what is asked of Ray itself is plain HTTP, and so goes to the dashboard.
            environment = {**os.environ, "HTTP_PROXY": self.dashboard.url, "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": "true" if mode == "cluster-ip" else "false"}
            operator = Process(f"operator-{space}", [
                os.path.join(self.arguments.bin, f"kuberay-{version}"), "--kubeconfig", self.plane.admin, "--watch-namespace", space,
                "--metrics-addr", f"127.0.0.1:{metrics}", "--health-probe-bind-address", f"127.0.0.1:{probe}",
                "--enable-leader-election=false"], self.directory, environment)
            self.operators.append(operator)
            self.started.append(operator)
        self.started.append(Node(self.api, *(namespace(*one) for one in OPERATORS)))

    def make_objects(self):
        for version, mode in OPERATORS:
            for document in OBJECTS:
                self.api.create(document, namespace(version, mode))

    def services(self, space):
        return {one["metadata"]["name"]: one for one in self.api.list("services", space)}

    def kinds(self, space):
        """Head Services and Serve Services, by name."""
        heads, serves = {}, {}
        for name, one in self.services(space).items():
            (heads if one["metadata"]["labels"].get("ray.io/node-type") == "head" else serves)[name] = one
        return heads, serves

    def reconciled(self):
        for (version, mode), operator in zip(OPERATORS, self.operators, strict=True):
            space = namespace(version, mode)

            def done(space=space):
                heads, serves = self.kinds(space)
                states = [one.get("status", {}).get("state") for one in self.api.list("rayclusters", space)]
                return states == ["ready"] * 5 and len(heads) == HEADS and len(serves) == SERVES
            try:
                operator.wait_until(f"five clusters and two RayServices are ready in {space}", done, 120)
            except TimeoutError:
                say(f"      {space}: {[(o['metadata']['name'], o.get('status', {}).get('state')) for o in self.api.list('rayclusters', space)]}, "
                    f"Services {list(self.services(space))}")
                raise

    def as_designed(self):
        said = {}
        for line in self.webhook.decisions():
            if line.get("kind") == "Service" and "reason" in line:
                said[line["namespace"], line["name"]] = line["reason"]
        for version, mode in OPERATORS:
            space = namespace(version, mode)
            for name, one in sorted(self.services(space).items()):
                labels = one["metadata"].get("labels", {})
                converted = one["metadata"].get("annotations", {}).get("rayhook/converted") == "true"
                if labels.get("ray.io/node-type") == "head":
                    named = any(port["name"] == "gcs-server" for port in one["spec"]["ports"])
                    wanted = mode == "headless" or not named
                    expect(headless(one) == wanted, f"{space}/{name}: clusterIP {one['spec'].get('clusterIP')}")
                    expect(converted == (mode == "cluster-ip" and not named), f"{space}/{name}: annotations {one['metadata'].get('annotations')}")
                    if mode == "cluster-ip" and named:
                        expect(said.get((space, name)) == "deliberate-kuberay", f"{space}/{name}: {said.get((space, name))}")
                    if converted:
                        expect(one["spec"]["publishNotReadyAddresses"] is True, f"{space}/{name}: {one['spec']}")
                else:
                    expect(not converted and not headless(one), f"{space}/{name} is not a head's: {one}")
                self.rows.append([f"v{version}", mode, name, one["spec"].get("clusterIP") == "None" and "headless" or "cluster IP",
                                  "Rayhook" if converted else "KubeRay", said.get((space, name), "")])
        expect(any(row[4] == "Rayhook" for row in self.rows), "nothing was converted: the test tests nothing")

    def versions(self):
        return {(space, name): one["metadata"]["resourceVersion"] for space in (namespace(*o) for o in OPERATORS)
                for name, one in self.services(space).items()}

    def writes(self):
        """How many requests wrote Services, whether they changed anything or not."""
        text = self.plane.kubectl("get", "--raw", "/metrics")[0]
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("apiserver_request_total{")
                   and 'resource="services"' in line and any(f'verb="{verb}"' in line for verb in ("PUT", "PATCH", "POST", "DELETE")))

    def no_fight(self):
        versions, writes = self.versions(), self.writes()
        ready = [(space, o["metadata"]["name"]) for space in (namespace(*o) for o in OPERATORS) for o in self.api.list("rayclusters", space)]
        until = time.monotonic() + self.arguments.seconds
        touched = 0
        while time.monotonic() < until:
            # Something to reconcile, now and then: the operator looks at all that belongs to a cluster.
            touched += 1
            for space, name in ready:
                self.api.merge("rayclusters", space, name, {"metadata": {"annotations": {"e2e/touched": str(touched)}}})
            time.sleep(self.arguments.seconds / 12)
        for operator in self.operators:
            operator.check()
        now = self.versions()
        expect(now == versions, f"changed meanwhile: {set(now.items()) ^ set(versions.items())}")
        more = self.writes() - writes
        expect(more == 0, f"{more:.0f} writes of Services in {self.arguments.seconds} s")
        say(f"      {len(versions)} Services, no write in {self.arguments.seconds} s, with {touched} changes of each of {len(ready)} RayClusters")

    def made_anew(self, name="old-ports-head-svc"):
        """Somebody deletes a head Service: the operator makes it anew. Gives what it is then, by namespace and mode."""
        found = {}
        for version, mode in OPERATORS:
            space = namespace(version, mode)
            old = self.api.get("services", space, name)["metadata"]["uid"]
            self.api.delete("services", space, name)

            def made(space=space, old=old):
                now = self.services(space).get(name)
                return now if now and now["metadata"]["uid"] != old else None
            found[space, mode] = wait_until(f"the operator makes {name} anew in {space}", made, 60)
        return found

    def converted_anew(self):
        for (space, _), now in self.made_anew().items():
            expect(headless(now), f"{space}: {now['spec']}")

    def upgraded(self):
        """A RayService is changed: the operator makes a second cluster and leads the head Service there. That is an
        update, so it stays as headless as it was."""
        was = {}
        for version, mode in OPERATORS:
            space = namespace(version, mode)
            for name in ("app", "old-app"):
                was[space, name] = self.api.get("services", space, f"{name}-head-svc")
                self.api.merge("rayservices", space, name, {"spec": {"rayClusterConfig": {"rayVersion": "2.47.0"}}})
        for (space, name), before in was.items():
            def moved(space=space, name=name, before=before):
                now = self.api.get("services", space, f"{name}-head-svc")
                return now if now["spec"]["selector"] != before["spec"]["selector"] else None
            now = wait_until(f"{name}-head-svc in {space} leads to the second cluster", moved, 120)
            expect(headless(now) == headless(before), f"{space}/{name}: {before['spec']} became {now['spec']}")
            marks = [one["metadata"].get("annotations", {}).get("rayhook/converted") for one in (before, now)]
            expect(marks[0] == marks[1], f"{space}/{name}: rayhook/converted was {marks[0]} and is {marks[1]}")

    def other_settings(self):
        """`kuberay: convert` and `ignore`, for the same Services made anew by the operator."""
        for setting, wanted in (("convert", True), ("ignore", False)):
            self.webhook.stop()
            path = os.path.join(self.directory, f"{setting}.yaml")
            with open(path, "w") as out:
                out.write(f"kuberay: {setting}\n")
            self.webhook.arguments = ("--config", path)
            self.webhook.start()
            for name in ("plain-head-svc", "old-ports-head-svc"):
                for (space, mode), now in self.made_anew(name).items():
                    # In its other mode the operator makes it headless by itself.
                    expect(headless(now) == (wanted or mode == "headless"), f"{setting}, {space}/{name}: {now['spec']}")

    def run(self):
        self.plane.start()
        for document in rights():
            self.api.call("POST", f"/apis/{document['apiVersion']}/{document['kind'].lower()}s", document)
        self.webhook.start()
        self.api.call("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", self.webhook.configuration())
        self.start_operators()
        self.make_objects()
        say(f"{len(OPERATORS)} operators are running")
        if not self.scenario("RayClusters and RayServices are reconciled", self.reconciled):
            return
        self.scenario("head Services as `kuberay: auto` says, all others untouched", self.as_designed)
        self.scenario("no fight over a Service", self.no_fight)
        self.scenario("a head Service made anew by the operator is converted anew", self.converted_anew)
        self.scenario("RayServices are upgraded: their head Services stay as they were", self.upgraded)
        self.scenario("`kuberay: convert` and `ignore`", self.other_settings)
        print("\n" + table(["operator", "mode", "Service", "is", "made so by", "reason"], self.rows) + "\n")


def more_arguments(parser):
    parser.add_argument("--seconds", type=int, default=120, help="how long to watch for a fight")


if __name__ == "__main__":
    sys.exit(main(KubeRay, __doc__, more_arguments))
