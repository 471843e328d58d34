#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster that was there before Rayhook, looked at by an auditing Rayhook first, then migrated as docs/migration.md
says; after that two replicas answer alike, follow what is done to Services within a second, know what other versions
stored, and take no variable away."""

import copy
import json
import os
import sys
import time

import yaml

import pages
from node import Node
from oracle_process import Oracle
from processes import wait_until
from ray import cared_for, ending, finished, head_service, headless, reader, reads, variable, workload
from replicas import Replicas
from scenarios import expect, main, say

HERE = os.path.dirname(os.path.abspath(__file__))
SOON = 1.0  # seconds within which whatever is done to a Service is followed

EVENT_RIGHTS = [
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "rayhook-events"},
     "rules": [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "rayhook-events"},
     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "rayhook-events"},
     "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "rayhook"}]}]


def annotations(document):
    return document["metadata"].get("annotations") or {}


def reason(response):
    return response["auditAnnotations"]["reason"]


class Cluster(Replicas):
    arguments_of_serve = ("--events",)

    def logs(self):
        return [replica.process for replica in self.replicas if replica.process]

    # ---- before Rayhook

    def set_up_before(self):
        """Two clusters as users have them: one namespace to migrate, one that only variables are compared in."""
        self.old = self.api.namespace("old")
        self.api.create(head_service(), self.old)
        self.api.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                         "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}, self.old)
        self.workloads = [workload("Deployment", "shell-workers", reader(spelling="shell")),
                          workload("StatefulSet", "kubelet-workers", reader(spelling="kubelet")),
                          workload("Deployment", "code-reader", reader(spelling="code"), replicas=1),
                          # Its code reads them from a file: no text shows it.
                          workload("Deployment", "hidden-reader", {"containers": [
                              {"name": "main", "image": "example/app:1", "command": ["python", "/app/main.py"]}]}, replicas=1),
                          workload("Pod", "bare-reader", reader(spelling="environment"))]
        for document in self.workloads:
            self.api.create(document, self.old)
        self.count = 2 + 2 + 1 + 1 + 1
        self.node = Node(self.api, self.old)  # or no roll-out would ever end
        self.started.append(self.node)
        wait_until("the pods of the old cluster", lambda: len(self.pods(self.old)) == self.count, 60)

    def pods(self, namespace):
        return [pod for pod in self.api.list("pods", namespace) if not finished(pod)]

    # ---- audit

    def audited(self):
        """The corpus through /audit: as it was, and nothing is held or refused; with the reason that /mutate gives."""
        registered = self.replicas[0].configuration(self.balancer.port, "/audit")
        registered["metadata"]["name"] = "rayhook-audit"
        registered["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"rayhook/mode": "audit"}}
        self.api.call("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", registered)
        space = self.api.namespace("audited", {"rayhook/mode": "audit"})
        probe = self.api.path("services", space) + "?dryRun=All"
        wait_until("the API server asks the auditor", lambda: self.api.call("POST", probe, head_service())["warnings!"] or any(
            line.get("mode") == "audit" for line in self.decisions()), 30)
        began = time.monotonic()
        for number, spelling in enumerate(("shell", "kubelet", "environment", "code")):
            early = self.api.create({**workload("Pod", f"early-{number}", reader(spelling=spelling))}, space)
            expect("rayhook/decision" not in annotations(early) and reads(early, "ray-head"), f"{early}")
        self.api.create(workload("Deployment", "early", reader()), space)
        wait_until("the Deployment's pods", lambda: len(self.pods(space)) == 6, 30)
        waited = time.monotonic() - began
        expect(self.metric("rayhook_holds_total") == 0, "a review was held")
        # With no reader running, the Service would be made headless.
        other = self.api.namespace("audited-2", {"rayhook/mode": "audit"})
        service = self.api.create(head_service(), other)
        expect(not headless(service) and not annotations(service), f"changed: {service}")
        for kind in ("Deployment", "StatefulSet", "Job"):
            self.api.create(workload(kind, kind.lower(), reader()), other)
        wait_until("their pods", lambda: len(self.pods(other)) == 6, 30)
        for pod in self.pods(other):
            expect("rayhook/decision" not in annotations(pod) and not cared_for(pod, "ray-head"), f"changed: {pod}")
        kept = self.api.create(head_service(), space)
        expect(not headless(kept), f"changed: {kept}")
        found = self.reasons()
        say(f"      {dict(found[space])} and {dict(found[other])}, six pods made in {waited:.1f} s")
        expect(found[space]["running-readers"] == 1, f"in {space}: {found[space]}")
        expect(found[other]["converted"] == 1 and found[other]["rewritten"] == 6, f"in {other}: {found[other]}")
        lines = [line for line in self.decisions() if line.get("namespace") in (space, other) and "reason" in line]
        expect(all(line["mode"] == "audit" and line["patchBytes"] == 0 or line["outcome"] != "patch" for line in lines), f"{lines}")

    def same_reasons(self):
        """/audit and /mutate of one replica, for each object of the corpus as the API server would send it."""
        with open(os.path.join(self.arguments.corpus, "EXPECTED.json")) as file:
            names = [entry["file"] for entry in json.load(file)]
        space, compared = self.api.namespace("compared"), 0
        for name in names:
            with open(os.path.join(self.arguments.corpus, name)) as file:
                documents = [document for document in yaml.safe_load_all(file) if document]
            for document in documents:
                template = document.get("spec", {}).get("template")
                if document["kind"] not in ("Service", "Pod") and not template:
                    continue
                one = document if document["kind"] in ("Service", "Pod") else {"kind": "Pod", "apiVersion": "v1", **copy.deepcopy(template)}
                one.setdefault("metadata", {}).setdefault("name", "a-pod")
                # In dry run, so that neither waits.
                mutated, audited = (self.replicas[0].review(one, space, path, dryRun=True) for path in ("/mutate", "/audit"))
                expect(reason(mutated) == reason(audited), f"{name}: {reason(mutated)} and {reason(audited)}")
                expect(mutated.get("warnings") == audited.get("warnings"), f"{name}: {mutated} and {audited}")
                expect("patch" not in audited and audited["allowed"], f"{name}: {audited}")
                compared += 1
        say(f"      {compared} objects, the same reason for each")
        expect(compared > 40, f"only {compared} objects were compared")

    # ---- migration

    def registered(self):
        self.register()
        self.await_calls()

    def shown(self, part, **names):
        """Runs the block of docs/migration.md that has `part` in it, with names filled in; gives its output."""
        return self.typed(pages.block("migration.md", part, **{"NAME": self.old, "SERVICE": "ray-head", **names}))

    def typed(self, command):
        done = self.plane.shell(command)
        expect(done.returncode == 0, f"{command}: {done.stderr}")
        return done.stdout

    def migration(self):
        """The steps of docs/migration.md, by its commands."""
        old = self.old
        expect(not headless(self.api.get("services", old, "ray-head")), "headless by itself")
        readers = set(self.shown("ownerReferences").splitlines())
        owners = {f"ReplicaSet {one['metadata']['name']}" for one in self.api.list("replicasets", old)
                  if one["metadata"]["labels"]["app"] in ("shell-workers", "code-reader")}
        expect(readers == owners | {"StatefulSet kubelet-workers", "Pod bare-reader"}, f"step 1 shows {readers}")

        # Too early: the Service stays as it is, and says why.
        self.api.delete("services", old, "ray-head")
        again = self.api.create(head_service(), old)
        expect(not headless(again), "made headless under its running readers")
        expect(any("running-readers" in warning for warning in again["warnings!"]), f"warnings: {again['warnings!']}")

        for one in ("deployment/shell-workers", "deployment/code-reader", "statefulset/kubelet-workers"):
            self.shown("rollout restart", **{"deployment/WORKLOAD": one})
        self.typed(f"kubectl -n {old} get pod bare-reader -o json | kubectl -n {old} replace --force -f -")
        for pod in self.pods(old):
            expect(not reads(pod, "ray-head") or cared_for(pod, "ray-head"), f"not cared for after its restart: {pod['spec']}")

        self.shown("replace --force")
        service = self.api.get("services", old, "ray-head")
        expect(headless(service), f"not headless: {service}")

        def listed():
            return {line["pod"] for line in self.decisions() if line.get("namespace") == old and line.get("msg", "").startswith("a pod that is older")}
        told = wait_until("older pods are told of", listed, 60)
        say(f"      told of: {told}")
        expect(len(told) == 1 and "hidden-reader" in min(told), f"the one hidden reader was to be told of, not {told}")
        orders = [line["command"] for line in self.decisions() if "command" in line and line.get("namespace") == old]
        expect(not orders, f"nobody was to be made anew without a question: {orders}")
        for pod in told:
            self.typed(f"kubectl -n {old} delete pod {pod}")
        pods = wait_until("all pods are there again", lambda: len(self.pods(old)) == self.count and self.pods(old), 60)
        left = [pod["metadata"]["name"] for pod in pods if variable("ray-head", "HOST") not in
                {entry["name"] for container in pod["spec"]["containers"] for entry in container.get("env", [])}]
        expect(not left, f"without the variables: {left}")
        expect(ending(service, pods, "ray-head") == "converted", "a reader was left behind")
        for replica in self.replicas:  # the next round is up to ten minutes away; a start has one
            replica.stop()
        self.start_replicas()
        wait_until("a round is over", lambda: all(r.metric("rayhook_pod_lists_total") > 0 for r in self.replicas), 60)
        expect(self.metric("rayhook_split_pods") == 0, f"{self.metric('rayhook_split_pods')} split pods are left")

    # ---- what is done to Services

    def asked(self, namespace, pod):
        """What each replica says of that pod, as (reason, patch)."""
        answers = [replica.review(pod, namespace) for replica in self.replicas]
        return [(reason(answer), answer.get("patch")) for answer in answers]

    def follow(self, what, namespace, pod, wanted):
        """Both replicas come to the wanted reason within a second, with the same patch."""
        start = time.monotonic()
        while True:
            answers = self.asked(namespace, pod)
            took = time.monotonic() - start
            if all(one == answers[0] for one in answers) and answers[0][0] == wanted:
                break
            expect(took < 10, f"{what}: {[one for one, _ in answers]} and not {wanted}, for ten seconds")
        say(f"      {what}: {wanted} by both replicas after {took:.2f} s")
        # A machine that is busy with other things may be late; a cache that is not emptied is later than that.
        expect(took < SOON + self.arguments.leeway, f"{what}: only after {took:.1f} s")
        return answers[0][1]

    def one_service(self, namespace, document):
        return self.api.create(document, self.api.namespace(namespace))

    def followed(self):
        pod = workload("Pod", "worker", reader())
        code = workload("Pod", "code", {"containers": [{"name": "main", "image": "example/app:1", "command": ["python", "main.py"]}]})
        space = self.api.namespace("followed")
        absent = self.asked(space, code)
        expect(all(one[0] == "no-reference" for one in absent), f"{absent}")
        self.api.create(head_service(), space)
        self.follow("created through one replica", space, pod, "rewritten")
        self.follow("and a pod that mentions nothing", space, code, "restored")

        # Its annotation is lost by a PUT of the manifest: what is known of it is its shape.
        stored = self.api.get("services", space, "ray-head")
        lost = {**head_service(), "metadata": {"name": "ray-head", "resourceVersion": stored["metadata"]["resourceVersion"]}}
        lost["spec"] = {**stored["spec"]}
        self.api.put("services", space, "ray-head", lost)
        expect("rayhook/converted" not in annotations(self.api.get("services", space, "ray-head")), "the annotation is still there")
        self.follow("annotation lost by a PUT: readers are still rewritten", space, pod, "rewritten")
        self.follow("and a pod that mentions nothing is left", space, code, "no-reference")
        self.api.merge("services", space, "ray-head", {"metadata": {"annotations": {"rayhook/converted": "true"}}})
        self.follow("annotation written again", space, code, "restored")
        # An opt-out that is set afterwards does not end the care for its pods.
        self.api.merge("services", space, "ray-head", {"metadata": {"annotations": {"rayhook/mode": "ignore"}}})
        time.sleep(SOON)
        self.follow("opted out afterwards", space, pod, "rewritten")

        # Made anew with an opt-out: it keeps its IP, and its pods their variables.
        self.api.delete("services", space, "ray-head")
        self.api.create(head_service(annotations={"rayhook/mode": "ignore"}), space)
        self.follow("made anew, opted out", space, pod, "service-left")
        self.follow("and a pod that mentions nothing", space, code, "no-reference")
        self.api.delete("services", space, "ray-head")
        self.api.create(head_service(), space)
        self.follow("made anew without it", space, pod, "rewritten")
        optout = {**pod, "metadata": {**pod["metadata"], "annotations": {"rayhook/mode": "ignore"}}}
        self.follow("a pod that is opted out", space, optout, "opted-out")
        self.api.delete("services", space, "ray-head")
        self.follow("deleted", space, code, "no-reference")

    def stored_with_an_ip(self):
        """Made while Rayhook was away: its readers use its name, and are told to have it made anew."""
        space = self.api.namespace("with-an-ip", {"rayhook/mode": "ignore"})
        service = self.api.create(head_service(), space)
        expect(not headless(service), "the namespace was to be left alone")
        pod, hidden = workload("Pod", "worker", reader()), workload("Pod", "hidden", {"containers": [{"name": "main", "image": "a", "command": ["a"]}]})
        self.follow("stored with an IP", space, pod, "rewritten")
        warnings = self.replicas[0].review(pod, space).get("warnings", [])
        expect(any("ray-head" in warning for warning in warnings), f"no warning: {warnings}")
        self.follow("and a pod that mentions nothing", space, hidden, "no-reference")
        self.api.merge("services", space, "ray-head", {"metadata": {"annotations": {"rayhook/mode": "ignore"}}})
        self.follow("opted out", space, pod, "service-left")
        self.api.merge("services", space, "ray-head", {"metadata": {"annotations": {"rayhook/mode": None}}})
        self.follow("no longer", space, pod, "rewritten")
        self.api.merge("services", space, "ray-head", {"spec": {"type": "NodePort"}})
        self.follow("made a NodePort", space, pod, "service-left")

    # ---- upgrade, and back

    def objects_of_other_versions(self):
        """What each version has stored is this one's own: known, cared for, and left as it is. And what this one stores
        has the same in it, so that the other version finds its own after a roll-back."""
        folder = os.path.join(HERE, "stored")
        for number, name in enumerate(sorted(os.listdir(folder))):
            with open(os.path.join(folder, name)) as file:
                service, *pods = yaml.safe_load_all(file)
            # Rayhook is not asked here: they are stored as they stand.
            theirs, ours = self.api.namespace(f"theirs-{number}", {"rayhook/mode": "ignore"}), self.api.namespace(f"ours-{number}")
            for document in (service, *pods):
                self.api.create(document, theirs)
            plain = [workload("Pod", f"{spelling}-reader", reader(spelling=spelling)) for spelling in ("shell", "kubelet", "environment", "code")]
            plain.append(workload("Pod", "silent", {"containers": [{"name": "main", "image": "example/app:1", "command": ["python", "/app/main.py"]}]}))
            made = self.api.create(head_service(), ours)
            for field in ("clusterIP", "publishNotReadyAddresses"):
                expect(made["spec"].get(field) == service["spec"][field], f"{name}: {field} is {made['spec'].get(field)}")
            expect(annotations(made).get("rayhook/converted") == annotations(service)["rayhook/converted"], f"{name}: {annotations(made)}")
            for document, other in zip(plain, pods, strict=True):
                title = other["metadata"]["name"]
                self.follow(f"{name}, {title}: a new pod beside it", theirs, document, annotations(other)["rayhook/decision"].split("@")[0])
                stored = self.api.get("pods", theirs, title)
                answers = [replica.review({"apiVersion": "v1", "kind": "Pod", **stored}, theirs) for replica in self.replicas]
                expect(not any(answer.get("patch") for answer in answers), f"{name}, {title}: changed again: {answers}")
                pod = self.api.create(document, ours)
                for now, was in zip(pod["spec"]["containers"], other["spec"]["containers"], strict=True):
                    same = all(now.get(field) == was.get(field) for field in ("command", "args", "env"))
                    expect(same, f"{name}, {title}: {was} is now {now}")

    # ---- Events

    def events(self, namespace):
        found = self.api.list("events", namespace)
        return {(e["involvedObject"]["kind"], e["involvedObject"]["name"], e["reason"], e["type"]): e
                for e in found if e.get("source", {}).get("component") == "rayhook"}

    def told_as_events(self):
        space = self.api.namespace("told")
        # Without the right nothing is told, and nothing else is hindered.
        failed = 'rayhook_events_total{result="failed"}'
        before = self.metric(failed)
        self.api.create(head_service("first-head"), space)
        wait_until("an Event that could not be written is counted", lambda: self.metric(failed) > before, 30)
        for document in EVENT_RIGHTS:
            self.api.call("POST", f"/apis/{document['apiVersion']}/{document['kind'].lower()}s", document)
        dry = self.api.path("services", space) + "?dryRun=All"
        self.api.call("POST", dry, head_service("dry-head"))

        def told():
            self.api.call("POST", self.api.path("services", space), head_service(f"head-{time.monotonic_ns()}"))
            return self.events(space)
        wait_until("the right has come to the API server", told, 30)
        self.api.create(head_service(), space)
        self.api.create(workload("Deployment", "workers", reader()), space)
        self.api.create(head_service("opted-head", annotations={"rayhook/mode": "ignore"}), space)
        wanted = {("Service", "ray-head", "Converted", "Normal"), ("Service", "opted-head", "OptedOut", "Normal")}
        wait_until("the Events", lambda: wanted <= set(self.events(space)) and any(key[0] == "ReplicaSet" for key in self.events(space)), 30)
        found = self.events(space)
        expect(not [key for key in found if key[1] == "dry-head"], f"told of a dry run: {sorted(found)}")
        [about] = [event for key, event in found.items() if key[0] == "ReplicaSet"]
        expect(about["reason"] == "Rewritten" and about["involvedObject"]["uid"] and about["message"].startswith("Pod workers-"), f"{about}")
        expect(self.metric('rayhook_events_total{result="repeated"}') >= 1, "two pods of one ReplicaSet were told twice")

    # ---- the oracle

    def nothing_is_taken(self):
        """Kubelet's own code says which variables a pod has in a namespace: as many after conversion as before it."""
        services = [head_service("ray-head"), head_service("second-cluster-head"),
                    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {
                        "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}},
                    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics"}, "spec": {
                        "selector": {"app": "m"}, "type": "NodePort", "ports": [{"name": "a-b", "port": 9100}, {"name": "udp", "port": 53, "protocol": "UDP"}]}}]
        services[1]["spec"]["ports"] = [{"name": "redis-primary", "port": 6379}, {"name": "web-ui", "port": 8265}]
        before, after = self.api.namespace("before", {"rayhook/mode": "ignore"}), self.api.namespace("after")
        for space in (before, after):
            for service in services:
                self.api.create(service, space)
        oracle = Oracle(self.arguments.bin)
        try:
            def provided(services):
                return oracle("envvars", services=[{"apiVersion": "v1", "kind": "Service", **s} for s in services])["env"]
            was, now = provided(self.api.list("services", before)), provided(self.api.list("services", after))
            converted = {s["metadata"]["name"] for s in self.api.list("services", after) if headless(s)}
            by_name = {}  # what kubelet would say of the converted ones if their names were their addresses
            for one in self.api.list("services", before):
                if one["metadata"]["name"] in converted:
                    by_name |= provided([{**one, "spec": {**one["spec"], "clusterIP": one["metadata"]["name"]}}])
            expect(converted == {"ray-head", "second-cluster-head"}, f"headless: {converted}")
            expect(set(was) - set(now), "nothing was taken: the test tests nothing")
            links = {name for name in was if name.startswith(("RAY_HEAD_PORT", "SECOND_CLUSTER_HEAD_PORT"))}
            for number, (what, command, wanted) in enumerate((
                    ("a pod that mentions nothing", ["python", "main.py"], set(was) - links),
                    ("a pod that names a Docker-link variable", ["sh", "-c", "env | grep RAY_HEAD_PORT_6380_TCP_ADDR"],
                     set(was) - {n for n in links if n.startswith("SECOND")}),
                    ("a pod that names one of each", ["sh", "-c", "echo RAY_HEAD_PORT_6380_TCP_ADDR $SECOND_CLUSTER_HEAD_PORT_6379_TCP"], set(was)))):
                for kind in ("Deployment", "Job"):
                    name = f"{kind.lower()}-{number}"
                    self.api.create(workload(kind, name, {"containers": [{"name": "main", "image": "a", "command": command}],
                                                          "initContainers": [{"name": "first", "image": "a", "command": command}]}, replicas=1), after)
                    pod = wait_until(f"the pod of {name}", lambda name=name: [p for p in self.pods(after) if p["metadata"]["labels"]["app"] == name], 30)[0]
                    for container in pod["spec"]["containers"] + pod["spec"]["initContainers"]:
                        has = {**now, **{entry["name"]: entry.get("value", "") for entry in container.get("env", [])}}
                        missing = sorted(wanted - set(has))
                        expect(not missing, f"{what}, {kind}, {container['name']}: {missing}")
                        wrong = {name: has[name] for name in wanted & set(by_name) if has[name] != by_name[name]}
                        expect(not wrong, f"{what}, {kind}, {container['name']}: {wrong}")
                say(f"      {what}: all of {len(wanted)} variables")
        finally:
            oracle.close()

    # ---- the run

    def run(self):
        self.plane.start()
        self.grant()
        self.set_up_before()
        say("a cluster without Rayhook is there")
        self.start_replicas()
        self.scenario("audit: the reasons, and nothing changed, held or refused", self.audited)
        self.scenario("audit: the same reason as /mutate for each object of the corpus", self.same_reasons)
        if not self.scenario("Rayhook is registered", self.registered):
            return
        self.scenario("migration as docs/migration.md says", self.migration)
        self.scenario("what is done to a Service is followed within a second by both replicas", self.followed)
        self.scenario("the same for one that was stored with an IP", self.stored_with_an_ip)
        self.scenario("what other versions have stored is known and left, and stored alike", self.objects_of_other_versions)
        self.scenario("decisions are told as Events, to those who may be told", self.told_as_events)
        self.scenario("no variable that kubelet would have given is missing", self.nothing_is_taken)


def more_arguments(parser):
    parser.add_argument("--corpus", default=os.path.join(HERE, "..", "corpus"))
    parser.add_argument("--leeway", type=float, default=2.0, help="seconds that a busy machine may be late")


if __name__ == "__main__":
    sys.exit(main(Cluster, __doc__, more_arguments))
