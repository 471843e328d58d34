#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suites that others have written, against a running server: testssl.sh, slowhttptest, h2spec, boofuzz, and tlslite-ng
(tls_test.py). What each must say stands here; besides, the server is well afterwards, and holds no more than before.

  outside_test.py --rayhook PATH --tools DIR [unittest's own arguments]    DIR is what tools.sh prints"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

from outside_case import HERE, Outside, harness, wait_until

TOOLS = None
# What testssl.sh holds against any certificate of a test: it is of a private CA and valid for a day.
OF_A_TEST = {"cert_expirationStatus", "cert_notAfter", "cert_revocation", "cert_chain_of_trust", "engine_problem"}


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
    # Up to 320 are open at once (256, and handshakes), each with a request begun, where the 256 of the warm-up had had
    # their answers.
    GROWTH = 0.25

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
        self.is_well("slow headers: all ended, always available", self.GROWTH)

    def test_bodies(self):
        self.assertIn("No open connections left", self.attack("-B", "-i", "1", "-f", "application/json", "-s", "8192"))
        self.is_well("slow bodies: all ended, always available", self.GROWTH)

    def test_reading(self):
        """What waits for a slow reader lies in the kernel's buffers: the server has long gone on."""
        self.attack("-X", "-t", "POST", "-k", "3", "-n", "1", "-w", "1", "-y", "2")
        self.is_well("slow reading: all ended, always available", self.GROWTH)


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
        said = self.run_tool(sys.executable, os.path.join(HERE, "http_blocks.py"), str(rayhook.port), self.pki.ca, "2",
                             env={**os.environ, "PYTHONPATH": os.path.join(TOOLS, "python")})
        tried = int(said.split()[0])
        self.assertGreaterEqual(tried, 20000)
        self.assertGreaterEqual(rayhook.metric("rayhook_connections_total"), tried)
        refused = rayhook.metric("rayhook_http_errors_total")
        self.is_well(f"boofuzz: {tried} requests in {time.monotonic() - begin:.0f} s, {refused:.0f} refused or broken off")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--rayhook", required=True)
    parser.add_argument("--tools", required=True)
    options, rest = parser.parse_known_args()
    harness.PROGRAM, TOOLS = os.path.abspath(options.rayhook), options.tools
    sys.path.append(os.path.join(TOOLS, "python"))
    from tls_test import Handshakes, Records  # noqa: E402,F401
    for program in ("testssl", "slowhttptest"):
        if not shutil.which(program):
            print(f"{program} is missing: scripts/install-deps.sh outside", file=sys.stderr)
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")
