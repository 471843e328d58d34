#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bad network between a real API server and Rayhook, both ways: what is stored is either as it was sent or rightly
changed, no create fails or hangs, and afterwards Rayhook is as before. Prints the table of docs/reliability.md."""

import collections
import copy
import json
import os
import re
import sys
import time

from chaos_proxy import FAULTS, ChaosProxy
from processes import wait_until
from ray import head_service, headless, reader
from replicas import Replicas
from scenarios import expect, main, say, table
from steady_load import SteadyLoad

TIMEOUT = 2  # of the webhook, in seconds
SLACK = 8  # and what a busy machine may take besides, for a whole create
BUCKET = "2.5"  # seconds; the API server's own histogram of calls has no bound that is nearer to TIMEOUT
ON_TIME = 0.99  # of the calls end within BUCKET; the rest is for a machine that lets the API server wait
MEMORY = 8192  # KiB that it may have grown by: its index and lists grow with the Services that are made
DESCRIPTORS = 10  # and connections that it may have open to the API server: look-ups keep theirs for the next
SPELLINGS = ("shell", "kubelet", "environment", "code")


class Chaos(Replicas):
    # A new connection, which may meet a fault, after every few requests.
    arguments_of_serve = ("--split-pods-interval", "0", "--max-requests", "5")

    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        self.replicas = self.replicas[:1]
        self.balancer.stop()
        self.calls = ChaosProxy([self.replicas[0].port], arguments.seed, 2 * TIMEOUT)
        self.watches = ChaosProxy([self.plane.port], arguments.seed + 1, 2 * TIMEOUT)
        self.balancer = self.calls
        self.started += [self.calls, self.watches]

    def through_the_proxy(self):
        """Its kubeconfig leads to the API server by way of the other bad network."""
        path = self.replicas[0].kubeconfig
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace(self.plane.url, f"https://127.0.0.1:{self.watches.port}"))

    # ---- what may be stored

    @staticmethod
    def essence(stored):
        """Of a stored object what does not differ from create to create."""
        spec = copy.deepcopy(stored["spec"])
        if spec.get("clusterIP", "None") != "None":
            spec["clusterIP"], spec["clusterIPs"] = "an IP", ["an IP"]
        annotations = stored["metadata"].get("annotations", {})
        return json.dumps([spec, annotations], sort_keys=True)

    def documents(self):
        """What is created, by namespace."""
        pods = {f"pods-{spelling}": {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "worker-"}, "spec": reader(spelling=spelling)}
                for spelling in SPELLINGS}
        service = head_service()
        del service["metadata"]["name"]
        service["metadata"]["generateName"] = "other-head-"
        return {**pods, "services": service}

    def learn(self):
        """As it is stored without Rayhook, and as with it where the network is good."""
        self.api.namespace("without", {"rayhook/mode": "ignore"})
        self.right, self.counts = {}, {}
        for namespace, document in self.documents().items():
            self.api.namespace(namespace)
            if document["kind"] == "Pod":
                expect(headless(self.api.create(head_service(), namespace)), "the head Service is not converted")
            unchanged, changed = (self.essence(self.api.create(document, where)) for where in ("without", namespace))
            expect(unchanged != changed, f"{namespace}: Rayhook changes nothing")
            self.right[namespace] = {unchanged: "unchanged", changed: "changed"}

    def judge(self, namespace, document):
        """Counts the endings of all that is stored there."""
        resource = document["kind"].lower() + "s"
        found = collections.Counter()
        for stored in self.api.list(resource, namespace):
            if stored["metadata"]["name"] == "ray-head":
                continue
            how = self.right[namespace].get(self.essence(stored))
            expect(how, f"{namespace}: stored, but neither as sent nor as it should be: {json.dumps(stored)}")
            found[how] += 1
        return found

    # ---- the server's own state

    def gauge(self, name):
        lines = (self.replicas[0].ops("/metrics") or "").splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(name + " ")), None)

    def state(self):
        """Descriptors and resident KiB once no connection of the API server's is left."""
        self.calls.drop_all()
        wait_until("the end of all connections", lambda: self.gauge("rayhook_connections") == 0, 60)
        time.sleep(1.5)  # the tick that gives memory back
        process = f"/proc/{self.replicas[0].process.child.pid}"
        with open(f"{process}/status") as file:
            resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        return len(os.listdir(f"{process}/fd")), resident

    def calls_made(self):
        """Of the API server's calls, by its own histogram: how many there were, how many ended within BUCKET."""
        found = collections.Counter()
        for line in self.plane.kubectl("get", "--raw", "/metrics")[0].splitlines():
            if line.startswith("apiserver_admission_webhook_admission_duration_seconds_bucket{"):
                bound = re.search(r'le="([^"]+)"', line)[1]
                found[bound] += float(line.rsplit(" ", 1)[1])
        return found["+Inf"], found[BUCKET]

    # ---- the scenarios

    def load(self, share, seconds):
        self.calls.share = self.watches.share = share
        self.calls.drop_all()
        # A review that meets the end of its connection fails open: begin when they have all ended.
        wait_until("the end of old connections", lambda: not self.calls.writers, 30)
        documents, loads = self.documents(), []
        for namespace, document in documents.items():
            loads.append(SteadyLoad(self.api, namespace, document, "", self.arguments.rate / len(documents), clients=16).__enter__())
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(1)
            if share:
                self.watches.drop_all()  # a watch says little: it would seldom meet its fault
        for load in loads:
            load.__exit__()
        self.calls.share = self.watches.share = 0
        return loads

    def bad_network(self):
        before, (calls, on_time) = self.failed_open(), self.calls_made()
        loads = self.load(self.arguments.share, self.arguments.seconds)
        self.watches.drop_all()
        lost = self.failed_open() - before
        calls, on_time = (after - begin for after, begin in zip(self.calls_made(), (calls, on_time), strict=True))
        expect(all(load.times for load in loads), "nothing was created")
        total, longest = collections.Counter(), max(max(load.times) for load in loads)
        rows = []
        for (namespace, document), load in zip(self.documents().items(), loads, strict=True):
            expect(not load.failed, f"{namespace}: {len(load.failed)} creates failed: {load.failed[:3]}")
            found = self.judge(namespace, document)
            rows.append([namespace, found.total(), found["changed"], found["unchanged"], f"{load.at_most(0.5) * 1000:.0f} ms",
                         f"{load.at_most(1):.1f} s"])
            total.update(found)
        print("\n" + table(["created", "stored", "changed", "unchanged", "median", "longest"], rows) + "\n")
        say(f"      {self.calls.connections} connections of the API server's, {self.watches.connections} of Rayhook's; faults: "
            + ", ".join(f"{self.calls.met[fault]}+{self.watches.met[fault]} {fault}" for fault in FAULTS))
        say(f"      {dict(total)}, {lost:.0f} reviews failed open")
        say(f"      {calls:.0f} calls by the API server, {calls - on_time:.0f} of them longer than {BUCKET} s")
        expect(calls, "the API server counted no calls")
        expect(on_time >= ON_TIME * calls, f"{calls - on_time:.0f} of {calls:.0f} calls took longer than {BUCKET} s, with a timeout of {TIMEOUT} s")
        expect(longest < TIMEOUT + SLACK, f"a create took {longest:.1f} s")
        expect(all(self.calls.met[fault] for fault in FAULTS), f"some fault never came: {self.calls.met}")
        expect(total["changed"] and total["unchanged"], f"the network was too good or too bad: {total}")

    def good_again(self):
        wait_until("it is ready", lambda: self.replicas[0].ops("/readyz"), 60)
        wait_until("it sees changes of Services", lambda: self.gauge("rayhook_watch_healthy") == 1, 60)
        # A busy machine may still list pods too late for a Service: once for each kind none must be left unchanged.
        wait_until("every create is changed", self.all_changed, 60)

    def unchanged(self):
        return {namespace: self.judge(namespace, document)["unchanged"] for namespace, document in self.documents().items()}

    def all_changed(self):
        before, lines = self.unchanged(), len(self.decisions())
        for load in self.load(0, 3):
            expect(load.times and not load.failed, f"{load.path}: {load.failed[:3]}")
        if self.unchanged() == before:
            return True
        say(f"      left, though the network is good: { {space: dict(found) for space, found in self.reasons(lines).items()} }")
        return False

    def as_before(self):
        descriptors, resident = self.state()
        say(f"      descriptors {self.base[0]} before, {descriptors} after; resident {self.base[1]} and {resident} KiB")
        expect(descriptors <= self.base[0] + DESCRIPTORS, f"{descriptors} descriptors, {self.base[0]} before")
        expect(resident <= self.base[1] + MEMORY, f"{resident} KiB resident, {self.base[1]} before")
        expect(self.metric('rayhook_http_errors_total{reason="internal"}') == 0, "internal errors")

    def run(self):
        self.plane.start(controllers=False)
        self.through_the_proxy()
        self.grant()
        self.start_replicas()
        self.register()
        self.plane.kubectl("patch", "mutatingwebhookconfiguration", "rayhook", "--type=json", "-p", json.dumps(
            [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": TIMEOUT}]))
        self.await_calls()
        self.learn()
        self.load(self.arguments.share, 12)  # a warm-up; what leaks would leak further
        self.base = self.state()
        say(f"registered; seed {self.arguments.seed}")
        self.scenario("a bad network", self.bad_network)
        self.scenario("a good one again", self.good_again)
        self.scenario("descriptors and memory", self.as_before)


def more_arguments(parser):
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=60, help="creates a second")
    parser.add_argument("--share", type=float, default=0.7, help="of connections that meet a fault")
    parser.add_argument("--seconds", type=int, default=35, help="how long the network is bad")


if __name__ == "__main__":
    sys.exit(main(Chaos, __doc__, more_arguments))
