#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rayhook certs rotate` against a real API server: install, renewal, a new CA, two at once, and what goes wrong.

  certs_e2e.py --rayhook PATH --bin DIR [unittest's own arguments]"""

import argparse
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import pki
from control_plane import ControlPlane
from processes import Process, free_ports, wait_until

SHORT = ("--leaf-days", "20", "--renew-before-days", "10")  # so that one with the defaults renews it


def openssl(*arguments, stdin=None):
    return subprocess.run(["openssl", *arguments], capture_output=True, text=True, input=stdin, check=True).stdout


def rights(namespace, configuration):
    """What the jobs' ServiceAccount may do, and no more."""
    group, subject = "rbac.authorization.k8s.io", {"kind": "User", "name": "rayhook-certs", "apiGroup": "rbac.authorization.k8s.io"}
    metadata = {"name": "rayhook-certs", "namespace": namespace}
    wide = {"name": f"rayhook-certs-{namespace}"}
    return [
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["rayhook-tls", "rayhook-ca"], "verbs": ["get", "update"]}]},
        {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": metadata, "subjects": [subject],
         "roleRef": {"apiGroup": group, "kind": "Role", "name": "rayhook-certs"}},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": wide, "rules": [
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["mutatingwebhookconfigurations"],
             "resourceNames": [configuration], "verbs": ["get", "patch"]}]},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": wide, "subjects": [subject],
         "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": wide["name"]}}]


def webhook(name, namespace, policy="Ignore", **client):
    """One that is called for nothing but Services of its own namespace."""
    return {"name": name, "clientConfig": client, "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": policy, "timeoutSeconds": 5,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}


class Rotate(unittest.TestCase):
    plane = program = bin = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="rayhook-certs-e2e-")
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.plane = ControlPlane(cls.bin, cls.directory)
        cls.addClassCleanup(cls.plane.stop)
        cls.plane.start()
        cls.kubeconfig = cls.plane.kubeconfig("rayhook-certs", "/CN=rayhook-certs")

    def setUp(self):
        self.namespace = self.id().rpartition(".")[2].replace("_", "-")
        self.plane.kubectl("create", "namespace", self.namespace)
        self.apply(*rights(self.namespace, self.namespace))
        self.addCleanup(self.plane.run, "delete", "mutatingwebhookconfiguration", self.namespace, "--ignore-not-found")

    def apply(self, *objects):
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def configure(self, *webhooks):
        if not webhooks:
            service = {"namespace": self.namespace, "name": "rayhook", "path": "/mutate"}
            webhooks = [webhook(f"{name}.rayhook.e2e", self.namespace, service=service) for name in ("plain", "strict")]
        self.plane.kubectl("create", "-f", "-", stdin=json.dumps({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.namespace, "labels": {"keep": "me"}}, "webhooks": webhooks}))

    def command(self, verb, *flags, kubeconfig=None):
        return [self.program, "certs", verb, "--kubeconfig", kubeconfig or self.kubeconfig, "--namespace", self.namespace,
                "--webhook-configuration", self.namespace, *flags]

    def certs(self, verb, *flags, code=0, **options):
        """Runs it; gives what it said."""
        done = subprocess.run(self.command(verb, *flags, **options), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1 if code else 0, done.stderr)
        return done.stderr if code else done.stdout

    def rotate(self, *flags, settle=0, **options):
        return self.certs("rotate", "--settle", str(settle), *flags, **options)

    def secret(self, name="rayhook-tls"):
        return {key: base64.b64decode(value).decode()
                for key, value in self.plane.get("secret", name, "-n", self.namespace)["data"].items()}

    def configuration(self):
        return self.plane.get("mutatingwebhookconfiguration", self.namespace)

    def bundles(self):
        return [base64.b64decode(one["clientConfig"].get("caBundle", "")).decode() for one in self.configuration()["webhooks"]]

    def versions(self):
        """What any write would change."""
        objects = [self.configuration()] + [self.plane.get("secret", name, "-n", self.namespace) for name in ("rayhook-tls", "rayhook-ca")]
        return [one["metadata"]["resourceVersion"] for one in objects]

    def verified(self, leaf, bundle):
        """Whether OpenSSL's own program takes the leaf."""
        files = [os.path.join(self.directory, f"{self.namespace}-{name}") for name in ("leaf", "bundle")]
        for path, text in zip(files, (leaf, bundle)):
            with open(path, "w") as file:
                file.write(text)
        return subprocess.run(["openssl", "verify", "-purpose", "sslserver", "-x509_strict", "-verify_hostname",
                               f"rayhook.{self.namespace}.svc", "-CAfile", files[1], files[0]], capture_output=True).returncode == 0

    def assert_good(self, authorities=1):
        """The state that every run should leave: all of one CA, which is the first in each caBundle."""
        leaf, authority = self.secret(), self.secret("rayhook-ca")
        self.assertEqual(leaf["ca.crt"], authority["tls.crt"])
        for bundle in self.bundles():
            self.assertTrue(bundle.startswith(authority["tls.crt"]))
            self.assertEqual(bundle.count("BEGIN CERTIFICATE"), authorities)
            self.assertTrue(self.verified(leaf["tls.crt"], bundle))
        self.assertIn("ok: ", self.certs("check"))

    # ---- a replica

    def mount(self):
        folder = os.path.join(self.directory, f"{self.namespace}-mount")
        os.mkdir(folder)
        return folder

    def bring(self, mount):
        """What kubelet does some time after a Secret has changed."""
        for name, text in self.secret().items():
            with open(os.path.join(mount, name + ".new"), "w") as file:
                file.write(text)
            os.rename(os.path.join(mount, name + ".new"), os.path.join(mount, name))

    def serve(self, mount, port, ops, *more):
        server = Process(f"rayhook-{self.namespace}", [
            self.program, "serve", "--listen", f"127.0.0.1:{port}", "--ops-listen", f"127.0.0.1:{ops}", "--lookup", "none",
            "--tls-cert", os.path.join(mount, "tls.crt"), "--tls-key", os.path.join(mount, "tls.key"), *more], self.directory)
        self.addCleanup(server.stop)
        return server

    def served_serial(self, port):
        """Empty while nothing is served."""
        shown = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}"], input="", capture_output=True, text=True)
        return openssl("x509", "-noout", "-serial", stdin=shown.stdout) if "BEGIN CERTIFICATE" in shown.stdout else ""

    # ---- the ordinary life

    def test_install(self):
        said = self.rotate(code=1)  # the Job may well be faster than the rest of the manifests
        self.assertIn("there is no MutatingWebhookConfiguration", said)
        before = self.secret()
        self.configure()
        self.assertIn("all is well", self.rotate())
        self.assertEqual(self.secret(), before, "the first run's certificate was good")
        self.assert_good()
        leaf, authority = (self.plane.get("secret", name, "-n", self.namespace) for name in ("rayhook-tls", "rayhook-ca"))
        self.assertEqual((leaf["type"], sorted(leaf["data"])), ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"]))
        self.assertEqual((authority["type"], sorted(authority["data"])), ("kubernetes.io/tls", ["tls.crt", "tls.key"]))
        self.assertNotIn(authority["data"]["tls.key"], leaf["data"].values(), "the CA's key is not for serving pods")
        text = openssl("x509", "-noout", "-text", stdin=self.secret()["tls.crt"])
        self.assertIn(f"DNS:rayhook.{self.namespace}.svc\n", text)
        self.assertIn("ASN1 OID: prime256v1", text)
        self.assertIn("CA:FALSE", text)

    def test_only_the_ca_bundle_changes(self):
        self.configure()
        before = self.configuration()
        self.rotate()
        after = self.configuration()
        for one in after["webhooks"]:
            self.assertTrue(one["clientConfig"].pop("caBundle"))
        for both in (before, after):
            for volatile in ("resourceVersion", "generation", "managedFields"):
                both["metadata"].pop(volatile, None)
        self.assertEqual(before, after)

    def test_nothing_to_do(self):
        self.configure()
        self.rotate()
        before = self.versions()
        for _ in range(3):
            self.assertEqual(self.rotate().count("\n"), 1)
        self.assertEqual(self.versions(), before)

    def test_renewal_of_the_leaf(self):
        self.configure()
        self.rotate(*SHORT)
        before, authority, version = self.secret(), self.secret("rayhook-ca"), self.versions()[0]
        self.assertIn("in less than 30 days", self.rotate())
        after = self.secret()
        self.assertNotEqual(after["tls.crt"], before["tls.crt"])
        self.assertNotEqual(after["tls.key"], before["tls.key"])
        self.assertEqual(self.secret("rayhook-ca"), authority)
        self.assertEqual(self.versions()[0], version, "the webhook configuration is none of a renewal's business")
        self.assertNotIn("new certificate", self.rotate())
        self.assertIn("asked for", self.rotate("--force", "leaf"))
        self.assertNotEqual(self.secret()["tls.crt"], after["tls.crt"])
        self.assert_good()

    def test_a_new_ca_overlaps(self):
        self.configure()
        self.rotate()
        before, authority = self.secret(), self.secret("rayhook-ca")
        said = self.rotate("--force", "ca")
        self.assertIn("the CA before stays in the caBundle", said)
        self.assert_good(authorities=2)
        after = self.secret()
        self.assertNotEqual(self.secret("rayhook-ca")["tls.crt"], authority["tls.crt"])
        for bundle in self.bundles():
            self.assertTrue(self.verified(before["tls.crt"], bundle), "replicas that have not seen the new Secret are still verified")
        self.assertFalse(self.verified(before["tls.crt"], after["ca.crt"]))
        versions = self.versions()
        self.rotate()
        self.assertEqual(self.versions(), versions, "until the overlap is over nothing happens")
        self.assertIn("only the CA of the certificate is needed", self.rotate("--overlap", "0"))
        self.assert_good(authorities=1)
        self.assertEqual(self.secret(), after)

    def slice(self, name, port, **conditions):
        """An EndpointSlice of Rayhook's Service: of names, since one of IP addresses may not say loopback."""
        self.apply({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "FQDN",
                    "metadata": {"name": name, "namespace": self.namespace, "labels": {"kubernetes.io/service-name": "rayhook"}},
                    "ports": [{"name": "ops", "port": 1}, {"name": "https", "port": port}],
                    "endpoints": [{"addresses": ["127.0.0.1"], "conditions": conditions}]})

    def test_an_overlap_lasts_until_every_replica_serves_the_new_leaf(self):
        self.configure()
        self.rotate()
        port, closed, *more = free_ports(4)
        mount = self.mount()
        self.bring(mount)
        self.serve(mount, port, more[0], "--tls-name", f"rayhook.{self.namespace}.svc")
        self.slice("replica", port, ready=True)
        self.slice("gone", more[1], ready=False, serving=False, terminating=True)
        self.rotate("--force", "ca")
        said = self.rotate("--overlap", "0")
        self.assertIn(f"a certificate of it is still served by 127.0.0.1:{port} (", said)
        self.assert_good(authorities=2)
        self.plane.kubectl("delete", "rolebinding", "rayhook-certs", "-n", self.namespace)
        self.assertIn("forbidden", self.rotate("--overlap", "0", code=1))
        self.apply(*rights(self.namespace, self.namespace))
        self.slice("unreachable", closed)
        self.bring(mount)
        address = ("--connect", f"127.0.0.1:{port}", "--name", f"rayhook.{self.namespace}.svc")
        serial = openssl("x509", "-noout", "-serial", stdin=self.secret()["tls.crt"])
        wait_until("the new certificate is served", lambda: self.served_serial(port) == serial, 30)
        said = self.rotate("--overlap", "0")
        self.assertIn(f"replica 127.0.0.1:{closed} cannot be asked: Connection refused; for it the overlap goes by the clock\n", said)
        self.assertNotIn(f":{more[1]}", said, "nobody asks an endpoint that is not called")
        self.assertIn("only the CA of the certificate is needed", said)
        self.assert_good(authorities=1)
        self.assertIn("ok: ", self.certs("check", *address))

    def test_a_ca_that_ends(self):
        self.configure()
        self.rotate("--ca-days", "60", *SHORT)
        authority = self.secret("rayhook-ca")["tls.crt"]
        self.assertIn("new CA: the one before ends at", self.rotate())
        self.assertNotEqual(self.secret("rayhook-ca")["tls.crt"], authority)
        self.assert_good(authorities=2)

    def test_extra_names(self):
        self.configure()
        self.rotate()
        self.assertIn("is not for 127.0.0.1 but for", self.rotate("--extra-name", "127.0.0.1", "--extra-name", "rayhook.example"))
        self.assertIn("127.0.0.1, rayhook.example", self.certs("show").replace("\n", " "))
        self.assertIn("ok: ", self.certs("check", "--name", "rayhook.example"))

    # ---- two at once

    def at_once(self, count, *flags):
        running = [subprocess.Popen(self.command("rotate", "--settle", "0", *flags), stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True) for _ in range(count)]
        return [(process.communicate(timeout=120)[0], process.returncode) for process in running]

    def test_two_at_once(self):
        self.configure()
        for said, code in self.at_once(6):
            self.assertEqual(code, 0, said)
        self.assert_good()
        for _ in range(3):
            before = self.secret("rayhook-ca")
            for said, code in self.at_once(4, "--force", "ca"):
                self.assertEqual(code, 0, said)
            self.assertNotEqual(self.secret("rayhook-ca"), before)
            self.assertIn("ok: ", self.certs("check"))
        self.rotate("--overlap", "0")
        self.assert_good()

    def test_somebody_else_writes_the_configuration(self):
        self.configure()
        self.rotate()
        stop = threading.Event()

        def label():
            number = 0
            while not stop.is_set():
                number += 1
                self.plane.run("label", "--overwrite", "mutatingwebhookconfiguration", self.namespace, f"number=n{number}")
        other = threading.Thread(target=label)
        other.start()
        try:
            for _ in range(5):
                self.rotate("--force", "ca")
        finally:
            stop.set()
            other.join()
        self.assertIn("number", self.configuration()["metadata"]["labels"])
        self.assert_good(authorities=6)

    # ---- what goes wrong

    def write_secret(self, name, **texts):
        self.plane.kubectl("patch", "secret", name, "-n", self.namespace, "--type=merge", "-p", json.dumps(
            {"data": {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in texts.items()}}))

    def test_cut_off_after_each_step(self):
        """The state between two steps is taken up by the next run, and at none is the served leaf unverified."""
        self.configure()
        self.rotate()
        served, bundles = self.secret(), self.configuration()
        self.rotate("--force", "ca")
        authority = self.secret("rayhook-ca")
        for written in ("the CA alone", "the CA and the caBundle"):
            self.write_secret("rayhook-tls", **{key.replace(".", "_"): text for key, text in served.items()})
            if written == "the CA alone":
                self.plane.kubectl("patch", "mutatingwebhookconfiguration", self.namespace, "--type=json", "-p", json.dumps([
                    {"op": "replace", "path": f"/webhooks/{i}/clientConfig/caBundle", "value": one["clientConfig"]["caBundle"]}
                    for i, one in enumerate(bundles["webhooks"])]))
            self.assertTrue(all(self.verified(served["tls.crt"], bundle) for bundle in self.bundles()), written)
            said = self.rotate()
            self.assertEqual("the CA must be in it before it signs" in said, written == "the CA alone")
            self.assertIn("the one before is not of this CA", said)
            self.assertTrue(all(self.verified(served["tls.crt"], bundle) for bundle in self.bundles()), written)
            self.assertEqual(self.secret("rayhook-ca"), authority)
            self.assert_good(authorities=2)

    def test_broken_secrets_are_mended(self):
        self.configure()
        self.rotate()
        authority = self.secret("rayhook-ca")
        for texts in ({"tls_crt": "nonsense"}, {"tls_key": ""}, {"ca_crt": ""}, {"tls_key": authority["tls.key"]}):
            self.write_secret("rayhook-tls", **texts)
            self.assertIn("new certificate", self.rotate())
            self.assert_good()
        self.plane.kubectl("delete", "secret", "rayhook-tls", "-n", self.namespace)
        self.rotate()
        self.assert_good()
        self.assertEqual(self.secret("rayhook-ca"), authority, "the CA was never at fault")
        for texts in ({"tls_crt": ""}, {"tls_key": "nonsense"}, {"tls_crt": self.secret()["tls.crt"], "tls_key": self.secret()["tls.key"]}):
            self.write_secret("rayhook-ca", **texts)
            self.assertIn("new CA", self.rotate())
            self.assertIn("ok: ", self.certs("check"))
        self.plane.kubectl("delete", "secret", "rayhook-ca", "-n", self.namespace)
        self.rotate()
        self.rotate("--overlap", "0")
        self.assert_good()

    def test_a_bundle_of_nonsense(self):
        service = {"namespace": self.namespace, "name": "rayhook"}
        self.configure(webhook("a.rayhook.e2e", self.namespace, service=service))
        self.rotate()
        self.plane.kubectl("patch", "mutatingwebhookconfiguration", self.namespace, "--type=json", "-p", json.dumps(
            [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]))
        self.assertIn("holds no readable PEM certificate", self.certs("check", code=1))
        self.rotate()
        self.assert_good()

    def test_what_others_keep_there_stays(self):
        self.configure()
        self.rotate()
        self.plane.kubectl("annotate", "secret", "rayhook-tls", "-n", self.namespace, "of-a-user=yes")
        self.write_secret("rayhook-tls", other="mine")
        self.rotate("--force", "leaf")
        self.assertEqual(self.secret()["other"], "mine")
        self.assertEqual(self.plane.get("secret", "rayhook-tls", "-n", self.namespace)["metadata"]["annotations"]["of-a-user"], "yes")

    def test_cert_managers_secret_is_left(self):
        self.configure()
        self.rotate()
        self.plane.kubectl("annotate", "secret", "rayhook-tls", "-n", self.namespace, "cert-manager.io/certificate-name=rayhook")
        before = self.versions()
        self.assertIn("is cert-manager's", self.rotate("--force", "leaf", code=1))
        self.assertEqual(self.versions(), before)

    def test_without_the_rights(self):
        other = self.plane.kubeconfig("nobody", "/CN=nobody")
        said = self.rotate(code=1, kubeconfig=other)
        self.assertIn("the API server says: ", said)
        self.assertIn("forbidden", said)

    def test_check_says_what_is_wrong(self):
        self.configure()
        self.assertIn("there is no Secret", self.certs("check", code=1))
        self.rotate()
        self.assertIn("is not for rayhook.elsewhere.svc", self.certs("check", "--name", "rayhook.elsewhere.svc", code=1))
        self.assertIn("in less than 91 days", self.certs("check", "--days", "91", code=1))
        foreign = pki.Authority(self.directory, "foreign")
        self.plane.kubectl("patch", "mutatingwebhookconfiguration", self.namespace, "--type=json", "-p", json.dumps(
            [{"op": "replace", "path": "/webhooks/1/clientConfig/caBundle", "value": pki.inline(foreign.cert)}]))
        said = self.certs("check", code=1)
        self.assertIn("does not lead to a CA that is trusted", said)
        self.assertIn("the caBundle of strict.rayhook.e2e", said)

    # ---- the whole of it, with the server

    def test_no_create_fails_during_a_rotation(self):
        """Through the API server with failurePolicy Fail, while leaf and CA are replaced and the server learns of it late."""
        port, ops = free_ports(2)
        self.configure(webhook("served.rayhook.e2e", self.namespace, "Fail", url=f"https://127.0.0.1:{port}/mutate"))
        extra = ("--extra-name", "127.0.0.1")
        self.rotate(*extra)
        mount = self.mount()
        self.bring(mount)
        server = self.serve(mount, port, ops, "--tls-name", "127.0.0.1", "--max-connection-age", "1")
        service = json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "ray-head-"}, "spec": {
            "selector": {"app": "ray-head"}, "ports": [{"name": "gcs-server", "port": 6379}]}})

        def create():
            return self.plane.run("create", "--dry-run=server", "-o", "json", "-n", self.namespace, "-f", "-", stdin=service)
        server.wait_until("the API server calls it", lambda: create().returncode == 0, 30)
        stop, failures, done = threading.Event(), [], [0]

        def load():
            while not stop.is_set():
                answer = create()
                if answer.returncode or json.loads(answer.stdout)["spec"].get("clusterIP") != "None":
                    failures.append(answer.stdout + answer.stderr)
                done[0] += 1
        clients = [threading.Thread(target=load) for _ in range(2)]
        for client in clients:
            client.start()

        def loads():
            with open(server.log) as log:
                return log.read().count("certificate loaded")

        def some_more():
            wanted = done[0] + 10
            wait_until("more creates", lambda: done[0] >= wanted or failures, 60)
        try:
            for number, what in enumerate(("leaf", "ca", "leaf", "ca"), 2):
                self.rotate("--force", what, *extra, settle=1)
                some_more()  # with the certificate from before
                address = ("--connect", f"127.0.0.1:{port}", "--name", "127.0.0.1")
                self.assertIn("ok: the certificate that", self.certs("check", *address))
                self.bring(mount)
                wait_until("it is loaded", lambda: loads() >= number, 30)
                some_more()
                self.rotate("--overlap", "0", *extra)
                some_more()
        finally:
            stop.set()
            for client in clients:
                client.join()
        self.assertEqual(failures, [])
        self.assertGreater(done[0], 100)
        self.assert_good()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--rayhook", required=True)
    parser.add_argument("--bin", required=True)
    options, rest = parser.parse_known_args()
    Rotate.program, Rotate.bin = os.path.abspath(options.rayhook), options.bin
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is stopped on the way out
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")
