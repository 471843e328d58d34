#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A head Service and the workload that reads its variables, made in every order, through two replicas of Rayhook, which
are killed, drained and cut off meanwhile: no pair ends half. Prints the table of docs/reliability.md."""

import collections
import concurrent.futures
import datetime
import itertools
import json
import os
import random
import sys
import time

from api import Refused
from processes import wait_until
from ray import cared_for, ending, finished, head_service, pods_of, reader, workload
from replicas import Replicas
from scenarios import expect, main, say, table

KINDS = ("Deployment", "StatefulSet", "Job", "DaemonSet", "Pod")
SPELLINGS = ("shell", "kubelet", "environment")
NAME, READERS = "ray-head", "ray-workers"
ENDINGS = ("converted", "as before", "by name", "HALF")


class Pair:
    """One head Service and one workload, in a namespace of their own."""

    def __init__(self, suite, number, kind, spelling="shell"):
        self.suite, self.api, self.kind, self.spelling = suite, suite.api, kind, spelling
        self.namespace = self.api.namespace(f"pair-{number}")
        self.service = head_service(NAME)
        self.workload = workload(kind, READERS, reader(NAME, spelling))
        self.pods = pods_of(kind)
        self.complete = None  # when both halves had been sent

    def make_service(self):
        self.api.create(self.service, self.namespace)

    def make_workload(self):
        self.api.create(self.workload, self.namespace)

    def stored(self):
        """The pods, once there are as many as there should be."""
        pods = [pod for pod in self.api.list("pods", self.namespace) if not finished(pod)]
        return pods if len(pods) >= self.pods else None

    def end(self):
        """Waits for the pods; gives how it ended, and how long after its second half that was."""
        if self.complete is None:
            self.complete = time.monotonic()
        pods = wait_until(f"{self.pods} pods of the {self.kind} in {self.namespace}", self.stored, 120, every=0.3)
        took = time.monotonic() - self.complete
        how = ending(self.api.get("services", self.namespace, NAME), pods, NAME)
        return how, took

    def show(self):
        service = self.api.get("services", self.namespace, NAME)
        pods = self.api.list("pods", self.namespace)
        said = sorted((line for line in self.suite.decisions() if line.get("namespace") == self.namespace), key=lambda line: line["ts"])
        return (f"{self.namespace} ({self.kind}, {self.spelling}): clusterIP {service['spec'].get('clusterIP')}, created "
                f"{service['metadata']['creationTimestamp']}; pods " + json.dumps(
                    [[p["metadata"]["name"], p["metadata"]["creationTimestamp"], p["spec"]["containers"][0]] for p in pods])
                + "\n" + "\n".join(map(json.dumps, said)))


class Orders(Replicas):
    arguments_of_serve = ("--shutdown-delay", "2")

    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        self.random = random.Random(arguments.seed)
        self.numbers = itertools.count(1)
        self.rows, self.total = [], collections.Counter()
        self.pool = concurrent.futures.ThreadPoolExecutor(arguments.at_once)

    def pairs(self, count, kinds=KINDS, spellings=SPELLINGS):
        """Kinds in turn, and for each of them the spellings in turn."""
        return [Pair(self, next(self.numbers), kinds[i % len(kinds)], spellings[i // len(kinds) % len(spellings)]) for i in range(count)]

    # ---- orders: each makes both halves of one pair

    @staticmethod
    def apart(first, second, gap):
        """Sends the second `gap` seconds after the first, which may be held meanwhile."""
        def later():
            time.sleep(gap)
            second()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for sent in [pool.submit(first), pool.submit(later)]:
                sent.result()

    def service_first(self, pair, gap):
        self.apart(pair.make_service, pair.make_workload, gap)

    def workload_first(self, pair, gap):
        self.apart(pair.make_workload, pair.make_service, gap)

    def both_at_once(self, pair, _gap):
        self.apart(pair.make_service, pair.make_workload, 0)

    def apply_directory(self, pair, service_first):
        """As `kubectl apply -f dir` does it: file by file, in the order of their names."""
        directory = os.path.join(self.directory, pair.namespace)
        os.mkdir(directory)
        names = ("1-service.json", "2-workers.json") if service_first else ("service.json", "deployment.json")
        for name, document in zip(names, (pair.service, pair.workload), strict=True):
            with open(os.path.join(directory, name), "w") as out:
                json.dump(document, out)
        self.plane.kubectl("apply", "-n", pair.namespace, "-f", directory)

    def around_the_minute(self, pair, after):
        """A CronJob makes its Job at the full minute, and the Service comes some time after that."""
        now = datetime.datetime.now().timestamp()
        minute = now - now % 60 + 60
        pair.make_workload()
        time.sleep(max(0, minute + after - datetime.datetime.now().timestamp()))
        pair.make_service()

    def missed_for_long(self, pair, gap):
        """The workload asked for its Service until Rayhook no longer waited for it; then both are made anew."""
        pair.make_workload()
        time.sleep(self.arguments.patience + 5)
        self.plane.kubectl("delete", pair.kind, READERS, "-n", pair.namespace, "--cascade=foreground", "--grace-period=0", "--force")
        wait_until("its pods are gone", lambda: not self.api.list("pods", pair.namespace), 60)
        # By another name: Kubernetes' Job controller keeps what it expects of a Job by name, and where it has not seen
        # that one go it waits five minutes for pods that it has made already (pkg/controller/job, expectations).
        pair.workload = workload(pair.kind, READERS + "-anew", reader(NAME, pair.spelling))
        self.workload_first(pair, gap)

    # ---- one row of the table

    def judge(self, what, pairs, ends, races=False):
        """`ends`: of each pair, how it ended, and how long that took. Where it races with something that no webhook can
        know, a pair may be half for a moment: then Rayhook finds it by itself, and the command that it logs mends it."""
        half = [pair for pair, (how, _) in zip(pairs, ends, strict=True) if how == "HALF"]
        if half and races:
            self.mend(half)
            ends = [(pair.end()[0], took) for pair, (_, took) in zip(pairs, ends, strict=True)]
        ended = collections.Counter(how for how, _ in ends)
        spaces, reasons = {pair.namespace for pair in pairs}, self.reasons()
        denied = sum(reasons[space]["service-awaited"] for space in spaces)
        times = sorted(took for _, took in ends)
        self.total.update(ended)
        self.total["mended"] += len(half) - ended["HALF"]
        self.rows.append([what, len(pairs), *(ended[how] for how in ENDINGS), len(half) - ended["HALF"], denied,
                          f"{times[len(times) // 2]:.1f} s", f"{times[-1]:.1f} s"])
        say(f"      {what}: {dict(ended)}" + (f", {len(half)} of them mended as logged" if half and races else ""))
        halves = [pair.show() for pair, (how, _) in zip(pairs, ends, strict=True) if how == "HALF"]
        expect(not halves, f"{len(halves)} of {len(pairs)} pairs ended half:\n" + "\n".join(halves[:3]))

    def mend(self, half):
        """Runs what Rayhook printed for the split pods of these pairs, and for no other pods."""
        split = {(pair.namespace, pod["metadata"]["name"]) for pair in half for pod in pair.stored() if not cared_for(pod, NAME)}
        spaces = {pair.namespace for pair in half}

        def listed():
            found = {(line["namespace"], line["pod"]): line["command"] for line in self.decisions()
                     if "command" in line and line["namespace"] in spaces}
            return found if set(found) >= split else None
        commands = wait_until(f"{len(split)} split pods are logged", listed, 60)
        surplus = set(commands) - split
        expect(not surplus, f"no split pods, but logged: {surplus}")
        list(self.pool.map(self.shell, commands.values()))

    def soon(self):
        return self.random.uniform(0, 0.02)

    def start_order(self, what, count, make, gaps, pool=None, races=False, **of_pairs):
        """Begins to make the pairs, many at once; `gaps` gives each its own. Gives what ends the row."""
        pairs = self.pairs(count * self.arguments.size, **of_pairs)

        def one(pair):
            make(pair, gaps())
            return pair.end()
        running = [(pool or self.pool).submit(one, pair) for pair in pairs]
        return lambda: self.scenario(what, lambda: self.judge(what, pairs, [each.result() for each in running], races))

    def order(self, *arguments, **of_pairs):
        self.start_order(*arguments, **of_pairs)()

    def slow_orders(self):
        """Those that mostly wait; they run beside the others."""
        def between(low, high):
            return lambda: self.random.uniform(low, high)
        orders = [
            ("readers, then Service, 5 s", 20, self.workload_first, between(4.5, 5.5), KINDS, False),
            # A hold ends after 2 s: bare pods are let go in the moment in which their Service comes.
            ("readers, then Service, 1.9-2.2 s", 10, self.workload_first, between(1.9, 2.2), KINDS, True),
            ("bare pods, then Service, 1.7-2.1 s", 20, self.workload_first, between(1.7, 2.1), ("Pod",), True),
            # After 20 s nothing is refused any more.
            ("readers, then Service, 22-28 s", 5, self.workload_first, between(22, 28), KINDS, True),
            ("missed for long, made anew 0-100 ms apart", 15, self.missed_for_long, between(0, 0.1), ("Deployment", "StatefulSet", "Job"), True),
            ("CronJob, Service before its minute", 5, self.service_first, self.soon, ("CronJob",), False),
            ("CronJob, Service about its minute", 10, self.around_the_minute, between(0, 0.5), ("CronJob",), False),
            ("CronJob, Service 5 s after its minute", 5, self.around_the_minute, lambda: 5, ("CronJob",), False),
        ]
        pool = concurrent.futures.ThreadPoolExecutor(sum(order[1] for order in orders) * self.arguments.size)
        return [self.start_order(*order, pool=pool, kinds=kinds, races=races) for *order, kinds, races in orders]

    # ---- Rayhook and the API server come and go

    def between(self, what, count, meanwhile):
        """One half of each pair, then `meanwhile`, then the other half; in both orders."""
        pairs = self.pairs(count * self.arguments.size)
        waiting = []  # readers that are held, or refused and retried, until the Service comes
        for i, pair in enumerate(pairs):
            if i % 2:
                pair.make_service()
            elif pair.kind != "Pod":
                pair.make_workload()
            else:
                waiting.append(pair)
        meanwhile()

        def second(numbered):
            i, pair = numbered
            if i % 2:
                pair.make_workload()
            elif pair in waiting:
                self.workload_first(pair, self.soon())
            else:
                pair.make_service()
            return pair.end()
        self.judge(what, pairs, list(self.pool.map(second, enumerate(pairs))))

    def kill_both(self):
        for replica in self.replicas:
            replica.kill()
        self.start_replicas()

    def drain_in_turn(self, what, count):
        """A roll-out: each replica gets SIGTERM and comes back, while pairs are being made. No call is lost."""
        lost = self.failed_open()
        pairs = self.pairs(count * self.arguments.size)

        def one(numbered):
            i, pair = numbered
            time.sleep(self.random.uniform(0, 4))
            (self.workload_first if i % 2 else self.service_first)(pair, self.soon())
            return pair.end()
        running = [self.pool.submit(one, numbered) for numbered in enumerate(pairs)]
        rounds = 0
        while rounds == 0 or not all(each.done() for each in running):
            self.roll_out()
            rounds += 1
        say(f"      {rounds} roll-outs meanwhile")
        self.judge(what, pairs, [each.result() for each in running])
        lost = self.failed_open() - lost
        expect(lost == 0, f"{lost:.0f} reviews failed during the roll-outs")

    def away(self, what, count):
        """Workloads are made while Rayhook is away (failurePolicy Ignore lets them pass), beside Services that it had
        converted; others are under way when it is killed. It finds the split pods when it is back, and the commands
        that it prints mend them."""
        # The namespaces of earlier pairs would be looked at before these, one by one and without haste.
        list(self.pool.map(lambda i: self.forget(f"pair-{i}"), range(1, next(self.numbers))))
        pairs = self.pairs(count * self.arguments.size)
        for pair in pairs[::2]:
            pair.make_service()
        racing = [self.pool.submit(self.workload_first, pair, self.random.uniform(0, 0.5)) for pair in pairs[1::2]]
        wait_until("reviews are held", lambda: self.metric("rayhook_held_reviews") or all(each.done() for each in racing), 30, every=0.01)
        for replica in self.replicas:
            replica.kill()
        for pair in pairs[::2]:
            pair.make_workload()
        for each in racing:
            each.result()
        ends = [pair.end() for pair in pairs]
        half = sum(how == "HALF" for how, _ in ends)
        expect(half >= len(pairs[::2]), f"only {half} pairs are half: the test tests nothing")
        self.start_replicas()
        self.judge(what, pairs, ends, races=True)

    def forget(self, namespace):
        try:
            self.api.delete("services", namespace, NAME)
        except Refused as error:
            expect(error.status == 404, f"{namespace}: {error}")

    def shell(self, command):
        done = self.plane.shell(command)
        expect(done.returncode == 0, f"{command}: {done.stderr}")

    def both_took_part(self):
        shares = [replica.metric("rayhook_reviews_total") for replica in self.replicas]
        holds = {result: int(self.metric(f'rayhook_holds_total{{result="{result}"}}')) for result in ("came", "gone", "refused")}
        say(f"      reviews by replica: {shares}; held: {holds}")
        expect(min(shares) > sum(shares) / 10, f"reviews by replica: {shares}")

    # ---- the run

    def run(self):
        self.plane.start()
        self.grant()
        self.start_replicas()
        self.register()
        self.await_calls()
        # For DaemonSets; no scheduler or kubelet asks whether it is ready.
        self.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})
        self.api.merge("nodes", None, "node", {"spec": {"taints": None}})
        say("two replicas are registered")
        slow = self.slow_orders()
        self.order("Service, then readers, 0-20 ms", 40, self.service_first, self.soon)
        self.order("readers, then Service, 0-20 ms", 60, self.workload_first, self.soon)
        self.order("both at once", 30, self.both_at_once, self.soon)
        self.order("bare pods, then Service, 0-20 ms", 40, self.workload_first, self.soon, kinds=("Pod",))
        self.order("readers in code alone, then Service, 0-20 ms", 30, self.workload_first, self.soon, spellings=("code",), races=True)
        self.order("kubectl apply -f dir, Service first", 12, self.apply_directory, lambda: True, kinds=KINDS[:-1])
        self.order("kubectl apply -f dir, readers first", 20, self.apply_directory, lambda: False)
        for finish in slow:
            finish()
        self.scenario("both replicas took their share", self.both_took_part)
        for what, run, *more in (
                ("Rayhook killed and restarted between", self.between, 20, self.kill_both),
                ("API server restarted between", self.between, 20, self.plane.restart_api_server),
                ("replicas drained in turn meanwhile", self.drain_in_turn, 40),
                ("Rayhook killed, away, then mended as logged", self.away, 20)):
            self.scenario(what, run, what, *more)
        self.pool.shutdown()
        print("\n" + table(["order", "pairs", *ENDINGS, "mended", "denied", "median", "longest"], self.rows) + "\n")
        say(f"{sum(self.total.values())} pairs: {dict(self.total)}")


def more_arguments(parser):
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--size", type=int, default=1, help="so many times as many pairs")
    parser.add_argument("--at-once", type=int, default=12, help="pairs that are made at the same time")
    parser.set_defaults(patience=20)  # unknownService.retryFor


if __name__ == "__main__":
    sys.exit(main(Orders, __doc__, more_arguments))
