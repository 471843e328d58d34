#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many reviews over many connections, a tenth of which break off anywhere: afterwards resident memory (within 5 %)
and descriptors are where they were after a warm-up, and the server is well.

What the allocator keeps differs by some percent from one moment to the next, so memory is the least of several rounds,
before and after: what leaks is in all of them.

  soak.py --rayhook PATH --load PATH [--long] [--seed N]

Short (in `make test`): 60,000 reviews, 6,000 connections. --long (`make soak`): a million, and 100,000."""

import argparse
import collections
import json
import os
import subprocess
import sys
import time

import harness
from harness import Pki, Rayhook, plain_pod, review, service, wait_until, worker

MANIFEST = """
apiVersion: v1
kind: Service
metadata: {name: ray-head}
spec:
  selector: {app: ray-head}
  ports: [{name: gcs-server, port: 6379, targetPort: 6379}]
"""


def resident(pid):
    """Resident memory in KiB."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


ROUNDS = 5


def bodies(pki):
    """Files with reviews of each kind, one of them large."""
    large = review("Pod", {"name": "large", "annotations": {"note": "x" * 100_000}},
                   {"containers": [{"name": f"c{i}", "image": "i"} for i in range(50)]})
    paths = []
    for number, body in enumerate([service(), worker(), plain_pod(), worker("not-there"), service("web", ports=()), plain_pod(),
                                   worker(), plain_pod(), service(dry_run=True), large]):
        paths.append(pki.path(f"body-{number}.json"))
        with open(paths[-1], "w") as file:
            json.dump(body, file)
    return paths


def settled(rayhook):
    """Resident memory and descriptors once no connection is left."""
    wait_until(lambda: rayhook.metric("rayhook_connections ") == 0, "the end of all connections")
    wait_until(lambda: rayhook.metric("rayhook_in_flight_reviews ") == 0, "the end of all reviews")
    time.sleep(1)  # the tick that gives memory back
    return resident(rayhook.process.pid), descriptors(rayhook.process.pid)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rayhook", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    reviews, reconnects = (1_100_000, 100_000) if options.long else (60_000, 6_000)

    pki = Pki()
    with open(pki.path("services.yaml"), "w") as file:
        file.write(MANIFEST)
    rayhook = Rayhook(os.path.abspath(options.rayhook), pki, "--log-level", "info",
                      lookup="file:" + pki.path("services.yaml"))
    failures = []
    try:
        files = bodies(pki)

        def load(reviews, reconnects, seed):
            done = subprocess.run([options.load, str(rayhook.port), pki.ca, str(reviews), str(reconnects), "10", str(seed), *files],
                                  stdout=subprocess.PIPE, text=True)
            return json.loads(done.stdout)

        def rounds(reviews, reconnects, seed):
            """The load in so many parts; gives their sums, and what is least of memory and most of descriptors."""
            sums, seen = collections.Counter(), []
            for number in range(ROUNDS):
                sums.update(load(reviews // ROUNDS, reconnects // ROUNDS, seed + number))
                seen.append(settled(rayhook))
            return sums, (min(memory for memory, _ in seen), max(number for _, number in seen))

        load(60_000, 6_000, options.seed)
        _, before = rounds(60_000, 6_000, options.seed + 100)
        begin = time.monotonic()
        done, after = rounds(reviews, reconnects, options.seed + 1000)
        took = time.monotonic() - begin
        print(f"{done['reviews']} reviews over {done['connections']} connections, {done['aborted']} of them broken off, "
              f"in {took:.0f} s; resident {before[0]} KiB before, {after[0]} after; descriptors {before[1]} and {after[1]}")

        def check(holds, what):
            if not holds:
                failures.append(what)

        check(done["failures"] == 0, f"{done['failures']} connections did not get the answers they should have")
        check(done["aborted"] > reconnects / 20, "too few connections were broken off to prove anything")
        check(abs(after[0] - before[0]) <= 0.05 * before[0], "resident memory is not where it was")
        check(after[1] == before[1], "descriptors are not where they were")
        check(rayhook.metric('rayhook_http_errors_total{reason="internal"}') == 0, "there were internal errors")
        check(rayhook.get("/readyz")[0] == 200, "it is not ready")
        with rayhook.connect() as client:
            check(client.post(service()).json["response"].get("patch"), "a head Service is not converted any more")
    finally:
        code = rayhook.stop()
        pki.close()
    if code != 0:
        failures.append(f"it ended with {code}")
    for what in failures:
        print("soak: " + what, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
