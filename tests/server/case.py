# SPDX-License-Identifier: Apache-2.0
"""A case of the server tests: certificates of its own, servers that are stopped, starts that are refused."""

import subprocess
import unittest

import harness
from harness import PATIENCE, Pki, Rayhook


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pki = Pki()
        cls.addClassCleanup(cls.pki.close)

    def serve(self, *flags, **options):
        rayhook = Rayhook(harness.PROGRAM, self.pki, *flags, **options)
        self.addCleanup(rayhook.stop)
        return rayhook

    def refused_start(self, *flags, **files):
        """Runs serve with something wrong; returns its exit code and stderr."""
        arguments = {"--listen": "127.0.0.1:0", "--ops-listen": "127.0.0.1:0", "--tls-cert": self.pki.cert,
                     "--tls-key": self.pki.cert_key, "--lookup": "none", **files}
        command = [harness.PROGRAM, "serve"] + [part for pair in arguments.items() for part in pair] + list(flags)
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.returncode, done.stderr
