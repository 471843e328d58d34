# SPDX-License-Identifier: Apache-2.0
"""A case of outside_test.py: a server that has had all its connections open once, and what it holds then and afterwards."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
import harness  # noqa: E402
from case import Case  # noqa: E402
from harness import plain_pod, wait_until  # noqa: E402


class Outside(Case):
    def serve(self, *flags, **options):
        self.rayhook = super().serve(*flags, **options)
        # As much memory as all connections take: the allocator keeps it.
        for client in [self.rayhook.connect() for _ in range(256)]:
            self.assertEqual(client.post(plain_pod()).status, 200)
            client.close()
        self.before = self.state()
        return self.rayhook

    def state(self):
        """Descriptors and resident KiB once no connection is left."""
        wait_until(lambda: self.rayhook.metric("rayhook_connections ") == 0, "the end of all connections")
        process = f"/proc/{self.rayhook.process.pid}"
        with open(f"{process}/status") as file:
            resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        return len(os.listdir(f"{process}/fd")), resident

    def answers(self):
        """Whatever else goes on."""
        with self.rayhook.connect() as client:
            self.assertEqual(client.post(plain_pod()).status, 200)
        self.assertEqual(self.rayhook.get("/readyz")[0], 200)

    def is_as_before(self):
        """It answers, and no descriptor is left of what came before."""
        self.answers()
        self.assertEqual(self.rayhook.metric('rayhook_http_errors_total{reason="internal"}'), 0)
        # The ops port may still be closing what this test has asked it by.
        wait_until(lambda: self.state()[0] <= self.before[0], "the release of all descriptors")

    def is_well(self, what, growth=0.1):
        """`growth`: the part of its memory that it may have grown by."""
        self.is_as_before()
        descriptors, resident = self.state()
        print(f"{what}; descriptors {self.before[0]} and {descriptors}, resident {self.before[1]} and {resident} KiB", flush=True)
        self.assertLess(resident, self.before[1] * (1 + growth))
        self.assertEqual(self.rayhook.stop(), 0)
        self.assertEqual(self.rayhook.errors, "")

    def run_tool(self, *command, code=0, **options):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, **options)
        self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout + done.stderr
