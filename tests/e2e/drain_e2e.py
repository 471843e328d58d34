#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Roll-outs and rotations of certificates under a steady load of creates, through a real API server: every pod that is
stored is changed, and no create fails. Prints the table of docs/reliability.md."""

import base64
import json
import os
import subprocess
import sys
import threading

from processes import wait_until
from ray import head_service, headless, reader
from replicas import Replicas
from scenarios import expect, main, say, table
from steady_load import SteadyLoad

SYSTEM = "rayhook-system"
CHANGED = "--address=ray-head:6380"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "worker-"}, "spec": reader()}


class Drain(Replicas):
    arguments_of_serve = ("--shutdown-delay", "2", "--tls-name", "127.0.0.1")

    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        self.rows = []
        for replica in self.replicas:
            mount = os.path.join(directory, f"{replica.name}-tls")
            os.mkdir(mount)
            replica.cert, replica.key = (os.path.join(mount, name) for name in ("tls.crt", "tls.key"))

    # ---- certificates

    def rotate(self, *flags):
        done = subprocess.run([self.arguments.rayhook, "certs", "rotate", "--kubeconfig", self.plane.admin, "--namespace", SYSTEM,
                               "--extra-name", "127.0.0.1", "--settle", "2", *flags], capture_output=True, text=True, timeout=120)
        expect(done.returncode == 0, f"certs rotate {' '.join(flags)}: {done.stderr}")

    def bring(self, replica):
        """What kubelet does some time after the Secret has changed."""
        for name, text in self.plane.get("secret", "rayhook-tls", "-n", SYSTEM)["data"].items():
            path = os.path.join(os.path.dirname(replica.cert), name)
            with open(path + ".new", "wb") as file:
                file.write(base64.b64decode(text))
            os.rename(path + ".new", path)

    def bring_and_wait(self, replica):
        before = self.serial(replica)
        self.bring(replica)
        wait_until(f"{replica.name} serves the new certificate", lambda: self.serial(replica) != before, 60)

    def serial(self, replica):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{replica.port}"], input="", capture_output=True, text=True)
        return subprocess.run(["openssl", "x509", "-noout", "-serial"], input=done.stdout, capture_output=True, text=True).stdout

    # ---- what happens under load

    def roll_outs(self):
        for _ in range(2):
            self.roll_out()

    def replace(self, what):
        """The Secret changes; one replica learns of it, a roll-out goes on, and the other learns of it late."""
        self.rotate("--force", what)
        self.bring_and_wait(self.replicas[0])
        self.roll_out()
        self.bring_and_wait(self.replicas[1])
        self.rotate("--overlap", "0")
        self.roll_out()

    # ---- one row of the table

    def under_load(self, what, policy, meanwhile, *arguments):
        self.set_policy(policy)
        namespace = self.api.namespace(f"load-{len(self.rows)}")
        expect(headless(self.api.create(head_service(), namespace)), "the head Service is not converted")
        lost = self.failed_open()
        with SteadyLoad(self.api, namespace, POD, CHANGED, self.arguments.rate) as load:
            threading.Event().wait(1)  # the steady state
            meanwhile(*arguments)
        lost = self.failed_open() - lost
        stored = self.stored(namespace)
        unchanged = sum(CHANGED not in json.dumps(pod["spec"]) for pod in stored)
        self.rows.append([what, policy, len(stored), f"{load.reached():.0f}", len(load.failed), unchanged, f"{lost:.0f}",
                          *(f"{load.at_most(part) * 1000:.0f} ms" for part in (0.5, 0.99, 1))])
        say(f"      {self.rows[-1]}")
        expect(not load.failed, f"{len(load.failed)} creates failed: {load.failed[:3]}")
        expect(unchanged == 0 == load.unchanged, f"{unchanged} of {len(stored)} pods are stored unchanged")
        expect(lost == 0, f"{lost:.0f} reviews failed open")
        expect(len(stored) == len(load.times), f"{len(load.times)} pods were created, {len(stored)} are there")

    def stored(self, namespace):
        found, more = [], ""
        while True:
            page = self.api.call("GET", self.api.path("pods", namespace) + f"?limit=1000&continue={more}")
            found += page["items"]
            more = page["metadata"].get("continue")
            if not more:
                return found

    def set_policy(self, policy):
        self.plane.kubectl("patch", "mutatingwebhookconfiguration", "rayhook", "--type=json", "-p", json.dumps(
            [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": policy}]))

    # ---- the run

    def run(self):
        self.plane.start(controllers=False)
        self.grant()
        self.api.namespace(SYSTEM)
        self.register()
        self.rotate()
        for replica in self.replicas:
            self.bring(replica)
        self.start_replicas()
        self.await_calls()
        say(f"two replicas are registered; {self.arguments.rate} creates a second are asked for")
        for what, policy, *meanwhile in (
                ("two roll-outs", "Ignore", self.roll_outs),
                ("two roll-outs", "Fail", self.roll_outs),
                ("a new certificate, two roll-outs", "Ignore", self.replace, "leaf"),
                ("a new certificate, two roll-outs", "Fail", self.replace, "leaf"),
                ("a new CA, two roll-outs", "Ignore", self.replace, "ca"),
                ("a new CA, two roll-outs", "Fail", self.replace, "ca")):
            self.scenario(f"{what}, failurePolicy {policy}", self.under_load, what, policy, *meanwhile)
        print("\n" + table(["meanwhile", "failurePolicy", "pods stored", "a second", "creates failed", "unchanged", "failed open",
                            "median", "99 %", "longest"], self.rows) + "\n")


def more_arguments(parser):
    parser.add_argument("--rate", type=int, default=200, help="creates a second")


if __name__ == "__main__":
    sys.exit(main(Drain, __doc__, more_arguments))
