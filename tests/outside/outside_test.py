#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suites that others have written, against a running server: testssl.sh, slowhttptest, h2spec and boofuzz. What each must
say stands here; besides, the server is well afterwards, and holds no more than before.

  outside_test.py --rayhook PATH --tools DIR [unittest's own arguments]    DIR is what tools.sh prints"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
import harness  # noqa: E402
from case import Case  # noqa: E402
from harness import plain_pod, wait_until  # noqa: E402

TOOLS = None
# What testssl.sh holds against any certificate of a test: it is of a private CA and valid for a day.
OF_A_TEST = {"cert_expirationStatus", "cert_notAfter", "cert_revocation", "cert_chain_of_trust", "engine_problem"}


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

    def is_well(self, what, memory=8192):
        """`memory`: KiB that it may have grown by."""
        with self.rayhook.connect() as client:
            self.assertEqual(client.post(plain_pod()).status, 200)
        self.assertEqual(self.rayhook.get("/readyz")[0], 200)
        self.assertEqual(self.rayhook.metric('rayhook_http_errors_total{reason="internal"}'), 0)
        # The ops port may still be closing what this test has asked it by.
        wait_until(lambda: self.state()[0] <= self.before[0], "the release of all descriptors")
        descriptors, resident = self.state()
        print(f"{what}; descriptors {self.before[0]} and {descriptors}, resident {self.before[1]} and {resident} KiB", flush=True)
        self.assertLess(resident, self.before[1] + memory)
        self.assertEqual(self.rayhook.stop(), 0)
        self.assertEqual(self.rayhook.errors, "")

    def run_tool(self, *command, code=0, **options):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, **options)
        self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout + done.stderr


class Testssl(Outside):
    def test_protocols_ciphers_and_known_holes(self):
        """No finding of medium severity or worse, but for what any certificate of a test gets."""
        rayhook = self.serve()
        report = self.pki.path("testssl.json")
        self.run_tool("testssl", "--quiet", "--warnings", "off", "--color", "0", "--openssl-timeout", "10", "--nodns", "none", "--ip",
                      "127.0.0.1", "--add-ca", self.pki.ca, "-p", "-s", "-f", "-P", "-S", "-U", "--jsonfile", report,
                      f"localhost:{rayhook.port}")
        with open(report) as file:
            findings = {one["id"]: one for one in json.load(file)}
        for looked_at in ("TLS1_2", "TLS1_3", "PFS", "heartbleed", "LUCKY13", "cipher_order"):
            self.assertIn(looked_at, findings, "testssl.sh did not look at all")
        bad = [one for name, one in findings.items()
               if one["severity"] not in ("OK", "INFO", "LOW") and name.split(" ")[0] not in OF_A_TEST]
        self.assertEqual(bad, [])
        self.is_well(f"testssl.sh: {len(findings)} findings, none bad")


class Slow(Outside):
    """More slow connections than there may be. All are ended by the server's own deadlines, before slowhttptest gives up,
    and at every probe meanwhile the server is there for others."""
    CONNECTIONS = 300

    def attack(self, *mode):
        rayhook = self.serve("--header-timeout", "3", "--body-timeout", "3", "--write-timeout", "3", "--idle-timeout", "5")
        child = subprocess.Popen(["slowhttptest", *mode, "-c", str(self.CONNECTIONS), "-r", "100", "-l", "30", "-p", "3", "-v", "1",
                                  "-u", f"https://127.0.0.1:{rayhook.port}/mutate"], stdout=subprocess.PIPE, text=True)
        try:
            rayhook.wait_metric("rayhook_connections_total", self.CONNECTIONS)
            wait_until(lambda: rayhook.metric("rayhook_connections ") <= 1, "the end of the slow connections")  # 1: a probe
            self.assertIsNone(child.poll() if "-X" in mode else None, "slowhttptest gave up first")
            said = child.communicate(timeout=60)[0]
        finally:
            child.kill()
            child.wait()
        self.assertNotIn("NO\x1b", said, said[-2000:])
        self.assertGreater(said.count("YES"), 0, said[-2000:])
        return said

    def test_headers(self):
        self.assertIn("No open connections left", self.attack("-H", "-i", "1", "-t", "POST"))
        self.is_well("slow headers: all ended, always available")

    def test_bodies(self):
        self.assertIn("No open connections left", self.attack("-B", "-i", "1", "-f", "application/json", "-s", "8192"))
        self.is_well("slow bodies: all ended, always available")

    def test_reading(self):
        """What waits for a slow reader lies in the kernel's buffers: the server has long gone on."""
        self.attack("-X", "-t", "POST", "-k", "3", "-n", "1", "-w", "1", "-y", "2")
        self.is_well("slow reading: all ended, always available")


class H2spec(Outside):
    def test_http2_is_refused_in_good_order(self):
        """Not one case passes: the handshake ends with the alert that says why."""
        rayhook = self.serve()
        said = self.run_tool(os.path.join(TOOLS, "bin", "h2spec"), "-h", "127.0.0.1", "-p", str(rayhook.port), "-t", "-k", "-P", "/mutate",
                             "-o", "1", code=1)
        self.assertIn("no application protocol", said)
        self.assertNotIn("✔", said)
        self.assertGreater(rayhook.metric('rayhook_handshake_failures_total{reason="protocol"}'), 0)
        self.is_well("h2spec: refused")


class Boofuzz(Outside):
    def test_each_part_of_a_request(self):
        rayhook = self.serve()
        begin = time.monotonic()
        said = self.run_tool(sys.executable, os.path.join(HERE, "http_blocks.py"), str(rayhook.port), self.pki.ca, "120",
                             env={**os.environ, "PYTHONPATH": os.path.join(TOOLS, "python")})
        tried = int(said.split()[0])
        self.assertGreater(tried, 3000)
        self.assertGreaterEqual(rayhook.metric("rayhook_connections_total"), tried)
        refused = rayhook.metric("rayhook_http_errors_total")
        self.is_well(f"boofuzz: {tried} requests in {time.monotonic() - begin:.0f} s, {refused:.0f} refused or broken off")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--rayhook", required=True)
    parser.add_argument("--tools", required=True)
    options, rest = parser.parse_known_args()
    harness.PROGRAM, TOOLS = os.path.abspath(options.rayhook), options.tools
    for program in ("testssl", "slowhttptest"):
        if not shutil.which(program):
            print(f"{program} is missing: scripts/install-deps.sh outside", file=sys.stderr)
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")
