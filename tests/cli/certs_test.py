# SPDX-License-Identifier: Apache-2.0
"""`rayhook certs` on files; in a cluster: tests/e2e/certs_e2e.py. Part of cli_test.py."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from support import Rayhook


class CertsTest(unittest.TestCase):
    def setUp(self):
        self.rayhook = Rayhook(sys.modules["__main__"].OPTIONS.rayhook)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rayhook-certs-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def certs(self, *arguments, code=0):
        done = self.rayhook.run("certs", *map(str, arguments))
        self.assertEqual(done.returncode, code, done.stderr)
        if code:
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        return done.stderr if code else done.stdout

    def issue(self, name="dev", *arguments):
        self.certs("issue", self.folder / name, *arguments)
        return [self.folder / name / file for file in ("ca.crt", "tls.crt", "tls.key")]

    def openssl(self, *arguments):
        return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True)

    def test_issue(self):
        ca, cert, key = self.issue("dev", "--name", "rayhook.ns.svc", "--name", "127.0.0.1", "--days", "7")
        self.assertEqual(os.stat(key).st_mode & 0o777, 0o600)
        self.assertEqual(sorted(os.listdir(self.folder / "dev")), ["ca.crt", "tls.crt", "tls.key"])
        for name in (("-verify_hostname", "rayhook.ns.svc"), ("-verify_ip", "127.0.0.1")):
            verified = self.openssl("verify", "-x509_strict", "-purpose", "sslserver", *name, "-CAfile", ca, cert)
            self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertNotEqual(self.openssl("verify", "-verify_hostname", "other.ns.svc", "-CAfile", ca, cert).returncode, 0)
        self.assertEqual(self.openssl("x509", "-in", cert, "-noout", "-checkend", 6 * 86400).returncode, 0)
        self.assertEqual(self.openssl("x509", "-in", cert, "-noout", "-checkend", 8 * 86400).returncode, 1)
        before = cert.read_text()
        self.issue("dev")
        self.assertNotEqual(cert.read_text(), before)
        self.assertEqual(os.stat(key).st_mode & 0o777, 0o600)

    def test_issue_refuses(self):
        self.assertIn('"a b" is neither a DNS name nor an IP address', self.certs("issue", self.folder / "x", "--name", "a b", code=2))
        self.assertFalse((self.folder / "x").exists())
        (self.folder / "file").write_text("")
        self.assertIn("file", self.certs("issue", self.folder / "file" / "x", code=1))
        self.assertIn("--days", self.certs("issue", self.folder, "--days", "0", code=2))
        self.certs("issue", code=2)

    def test_show(self):
        ca, cert, key = self.issue("dev", "--name", "a.svc", "--name", "::1")
        text = self.certs("show", cert, ca)
        self.assertRegex(text, r"\((89|90) days left\)")  # whole days, rounded down: 89 from the first second on
        for line in ("names    a.svc, ::1", "key      EC P-256", "key      EC P-256, a CA"):
            self.assertIn(line, text)
        [one] = json.loads(self.certs("show", "-o", "json", cert))
        self.assertEqual((one["names"], one["ca"], one["key"]), (["a.svc", "::1"], False, "EC P-256"))
        self.assertAlmostEqual(one["notAfter"], time.time() + 90 * 86400, delta=300)
        serial = self.openssl("x509", "-in", cert, "-noout", "-serial").stdout.strip().partition("=")[2]
        self.assertEqual(one["serial"], serial.lower())
        self.assertIn("no readable PEM certificate", self.certs("show", key, code=1))
        self.assertIn("cannot open", self.certs("show", self.folder / "nowhere", code=1))

    def test_check(self):
        ca, cert, key = self.issue("dev", "--name", "a.svc")
        other_ca, _, other_key = self.issue("other", "--name", "a.svc")
        pair = ("check", "--tls-cert", cert, "--tls-key", key)
        said = self.certs(*pair, "--ca", ca, "--name", "a.svc", "--days", "89")
        self.assertRegex(said, r"\Aok: --tls-cert \S+ is for a\.svc, trusted by --ca \S+, until \d{4}-\d\d-\d\d \d\d:\d\d UTC\n\Z")
        for arguments, why in (((*pair, "--name", "b.svc"), "is not for b.svc but for a.svc"),
                               ((*pair, "--ca", other_ca), "does not lead to a CA that is trusted"),
                               ((*pair, "--days", "91"), "in less than 91 days; renew it"),
                               ((*pair, "--ca", key), "no readable PEM certificate"),
                               (("check", "--tls-cert", cert, "--tls-key", other_key), "does not belong to the certificate")):
            self.assertIn(why, self.certs(*arguments, code=1))
        self.certs("check", "--tls-key", key, code=2)
        self.certs("check", "--ca", ca, code=2)

    def test_check_what_is_served(self):
        ca, cert, key = self.issue("dev")
        server = subprocess.Popen([self.rayhook.path, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--tls-cert",
                                   cert, "--tls-key", key, "--lookup", "none"], stdout=subprocess.PIPE, text=True)
        try:
            address = ""
            while not address:
                line = json.loads(server.stdout.readline())
                address = line["address"] if line["msg"] == "listening" else ""
            self.assertIn(f"ok: the certificate that {address} serves is for localhost",
                          self.certs("check", "--connect", address, "--ca", ca, "--name", "localhost"))
            other = self.issue("other")[0]
            self.assertIn("does not lead", self.certs("check", "--connect", address, "--ca", other, code=1))
        finally:
            server.terminate()
            server.communicate()
        self.assertIn("cannot be asked: Connection refused", self.certs("check", "--connect", address, "--ca", ca, code=1))
        self.assertIn("expected HOST:PORT", self.certs("check", "--connect", "here", "--ca", ca, code=2))

    def test_a_cluster_that_is_not_there(self):
        for verb in ("show", "check", "rotate"):
            self.assertIn("give --kubeconfig", self.certs(verb, code=1))
            self.assertIn("cannot open", self.certs(verb, "--kubeconfig", self.folder / "nowhere", code=1))
            self.assertIn("no name of an object", self.certs(verb, "--namespace", "../x", code=2))
        self.assertIn("--renew-before-days must be less", self.certs("rotate", "--leaf-days", "10", code=2))
        self.assertIn("--ca-days must be more", self.certs("rotate", "--ca-days", "100", code=2))
        self.assertTrue(re.search(r"--force", self.certs("rotate", "--force", "all", code=2)))
