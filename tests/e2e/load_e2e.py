#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A large cluster costs Rayhook no memory: 20,000 Services and 5,000 pods beside an empty cluster, in resident memory, at
rest, after a start among them, and while running readers are listed."""

import concurrent.futures
import multiprocessing
import os
import sys
import threading
import time

from api import Api
from processes import wait_until
from ray import head_service, headless, reader
from scenarios import Scenarios, expect, main, say, table
from webhook import Webhook, rights

ALLOWED = 8 * 1024  # KiB over the empty cluster's
CROWD = "crowd"     # the namespace with all the pods


def plain_service(number):
    """Headless and no head's, so that Rayhook hears of it. Each tenth has an IP; no more of them, because the API server
    counts all IPs whenever it gives out one."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"web-{number}"},
               "spec": {"selector": {"app": f"web-{number}"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}
    if number % 10:
        service["spec"]["clusterIP"] = "None"
    return service


def plain_pod(number):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number}", "labels": {"app": f"web-{number}"}},
           "spec": reader(f"web-{number}")}
    pod["spec"]["containers"][0]["env"] = [{"name": f"SETTING_{i}", "value": "x" * 60} for i in range(20)]
    return pod


def load(plane_port, ca, pair, documents):
    """One process of several: creates (namespace, document) pairs over a few connections."""
    class Plane:
        port, admin_pair = plane_port, pair
    Plane.ca = type("Ca", (), {"cert": ca})
    api = Api(Plane)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: api.create(one[1], one[0]), documents))


class Load(Scenarios):
    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        self.webhook = Webhook(arguments.rayhook, self.plane, directory)
        self.started.append(self.webhook)
        self.rows = []

    def logs(self):
        return [self.webhook.process] if self.webhook.process else []

    @staticmethod
    def registration(name=""):
        return "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations" + name

    def register(self):
        self.api.call("POST", self.registration(), self.webhook.configuration())

        def called():
            return headless(self.api.call("POST", self.api.path("services", "empty") + "?dryRun=All", head_service()))
        wait_until("the API server calls Rayhook", called, 60)

    def memory(self, field="VmRSS"):
        """KiB."""
        with open(f"/proc/{self.webhook.process.child.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(field + ":"))

    def work(self, namespace, rounds=1):
        """Running readers are listed for head Services, several at once, and pods are reviewed. Gives the largest
        resident memory meanwhile, and how many of the Services were made headless."""
        largest, done = [0], threading.Event()

        def sample():
            while not done.wait(0.005):
                largest[0] = max(largest[0], self.memory())
        sampler = threading.Thread(target=sample)
        sampler.start()
        made = 0
        try:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for turn in range(rounds):
                    names = [f"ray-{turn}-{i}" for i in range(8)]
                    for service in pool.map(lambda name: self.api.create(head_service(name), namespace), names):
                        made += headless(service)
                    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker"}, "spec": reader(names[0])}
                    for answer in pool.map(lambda _: self.webhook.review(pod, namespace), range(40)):
                        expect(answer["allowed"], f"{answer}")
                    for name in names:
                        self.api.delete("services", namespace, name)
        finally:
            done.set()
            sampler.join()
        return largest[0], made

    def empty(self):
        self.webhook.start()
        namespace = self.api.namespace("empty")
        self.register()
        working, _ = self.work(namespace, 3)
        self.base, self.base_working = self.memory(), working
        self.row("empty cluster", self.base, working)

    def row(self, what, rest, working):
        self.rows.append([what, f"{rest / 1024:.1f} MiB", f"{working / 1024:.1f} MiB", f"{(max(rest, working) - self.base_working) / 1024:+.1f} MiB"])

    def fill(self):
        """Not through Rayhook, which is to know of all this by watching and listing."""
        self.api.call("DELETE", self.registration("/rayhook"))
        size, start = self.arguments, time.monotonic()
        spaces = [self.api.namespace(f"load-{i}") for i in range(20)] + [self.api.namespace(CROWD)]
        documents = [(spaces[i % 20], plain_service(i)) for i in range(size.services - size.heads)]
        for i in range(size.heads):
            service = head_service(f"head-{i}", annotations={"rayhook/converted": "true"})
            service["spec"] |= {"clusterIP": "None", "publishNotReadyAddresses": True}
            documents.append((spaces[i % 20], service))
        documents += [(CROWD, plain_pod(i)) for i in range(size.pods)]
        workers = 2 * os.cpu_count()
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            pool.starmap(load, [(self.plane.port, self.plane.ca.cert, self.plane.admin_pair, documents[i::workers]) for i in range(workers)])
        self.register()
        say(f"      {size.services} Services, {size.heads} of them headless heads, and {size.pods} pods in {time.monotonic() - start:.0f} s")

    def full(self, what):
        heads = self.arguments.heads
        wait_until("all heads are known", lambda: self.webhook.metric("rayhook_services_indexed") == heads, 60)
        before = self.webhook.metric("rayhook_pod_lists_total")
        working, made = self.work(CROWD, 3)
        lists = self.webhook.metric("rayhook_pod_lists_total") - before
        rest = self.memory()
        self.row(what, rest, working)
        say(f"      {made} of 24 Services were made headless, by {lists:.0f} lists of {self.arguments.pods} pods")
        expect(lists > 0, "no pods were listed")
        more = max(rest, working) - self.base_working
        expect(more <= ALLOWED, f"{more / 1024:.1f} MiB more than beside an empty cluster, not at most 8")

    def restarted(self):
        self.webhook.stop()
        self.webhook.start()
        self.full("full cluster, Rayhook started in it")
        peak = self.memory("VmHWM") - self.base_working
        expect(peak <= ALLOWED, f"at its highest {peak / 1024:.1f} MiB more than beside an empty cluster")

    def run(self):
        self.plane.start(controllers=False)
        for document in rights():
            self.api.call("POST", f"/apis/{document['apiVersion']}/{document['kind'].lower()}s", document)
        ready = self.scenario("an empty cluster", self.empty)
        if not ready:
            return
        if not self.scenario("the cluster is filled", self.fill):
            return
        self.scenario("a full cluster: at most 8 MiB more", self.full, "full cluster, seen growing")
        self.scenario("the same, Rayhook started in it", self.restarted)
        print("\n" + table(["cluster", "at rest", "highest at work", "over the empty one"], self.rows) + "\n")


def more_arguments(parser):
    parser.add_argument("--services", type=int, default=20000)
    parser.add_argument("--heads", type=int, default=200, help="so many of them are headless heads")
    parser.add_argument("--pods", type=int, default=5000)


if __name__ == "__main__":
    sys.exit(main(Load, __doc__, more_arguments))
