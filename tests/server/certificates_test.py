# SPDX-License-Identifier: Apache-2.0
"""The certificate's files: hot reload, what is refused, starting without, clients' certificates. Part of server_test.py."""

import os
import shutil
import ssl
import time
import unittest

import harness
from harness import PATIENCE, Pki, Rayhook, plain_pod


class Mount:
    """A folder as kubelet keeps it for a Secret: links through `..data`, which is replaced by rename."""

    def __init__(self, pki, name):
        self.folder, self.generation = pki.path(name), 0
        os.mkdir(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def swap(self, **files):
        """All files at once; NAME_ENDING=path of what it is to hold."""
        self.generation += 1
        here, old = f"..generation-{self.generation}", f"..generation-{self.generation - 1}"
        os.mkdir(self.path(here))
        for name, source in files.items():
            name = name.replace("_", ".")
            shutil.copy(source, os.path.join(self.path(here), name))
            if not os.path.islink(self.path(name)):
                os.symlink(os.path.join("..data", name), self.path(name))
        os.symlink(here, self.path("..data_tmp"))
        os.rename(self.path("..data_tmp"), self.path("..data"))
        shutil.rmtree(self.path(old), ignore_errors=True)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path) as file:
        return file.read()


class Certificates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pki = Pki()
        cls.addClassCleanup(cls.pki.close)

    def setUp(self):
        self.mount = Mount(self.pki, self.id().rpartition(".")[2])

    def serve(self, *flags, **files):
        options = {"cert": self.mount.path("tls.crt"), "key": self.mount.path("tls.key"), **files}
        rayhook = Rayhook(harness.PROGRAM, self.pki, *flags, **options)
        self.addCleanup(rayhook.stop)
        return rayhook

    def leaf(self, name, names="DNS:localhost", **options):
        return self.pki.leaf(f"{name}-{self.mount.generation}", names, **options)

    def swap(self, pair):
        self.mount.swap(tls_crt=pair[0], tls_key=pair[1])

    def subject(self, rayhook):
        """The common name of what a new connection gets."""
        with rayhook.connect() as client:
            return dict(pair[0] for pair in client.socket.getpeercert()["subject"])["commonName"]

    def wait_subject(self, rayhook, wanted):
        end = time.monotonic() + PATIENCE
        while self.subject(rayhook) != wanted:
            assert time.monotonic() < end, f"still {self.subject(rayhook)}, not {wanted}"
            time.sleep(0.05)

    def wait_ready(self, rayhook, status=200):
        end = time.monotonic() + PATIENCE
        while rayhook.get("/readyz")[0] != status:
            assert time.monotonic() < end, rayhook.get("/readyz")
            time.sleep(0.05)

    def reloads(self, rayhook, result):
        return rayhook.metric('rayhook_certificate_reloads_total{result="%s"}' % result)

    def test_the_end_of_its_ca_is_told(self):
        self.swap(self.leaf("alone"))
        rayhook = self.serve()
        self.assertEqual(rayhook.metric("rayhook_ca_not_after_seconds"), 0, "there is no ca.crt")
        cert, key = self.leaf("signed")
        self.mount.swap(tls_crt=cert, tls_key=key, ca_crt=self.pki.ca)
        self.wait_subject(rayhook, "signed-1")
        day = 24 * 3600
        self.assertAlmostEqual(rayhook.metric("rayhook_ca_not_after_seconds") - time.time(), 2 * day, delta=day / 2)
        other = harness.Pki()
        self.addCleanup(other.close)
        for number, text in enumerate((read(other.ca), "no PEM", read(other.ca) + read(self.pki.ca))):
            with self.subTest(number):
                path = self.pki.path(f"ca-{number}")
                write(path, text)
                cert, key = self.leaf("again")
                self.mount.swap(tls_crt=cert, tls_key=key, ca_crt=path)
                self.wait_subject(rayhook, f"again-{number + 2}")
                self.assertEqual(rayhook.metric("rayhook_ca_not_after_seconds") > 0, number == 2, "one of those in the file")
        self.assertEqual(self.reloads(rayhook, "refused"), 0, "it is only told of")

    # ---- hot reload

    def test_kubelets_swap(self):
        self.swap(self.leaf("first"))
        rayhook = self.serve()
        with rayhook.connect() as old:
            for number in range(3):
                self.swap(self.leaf(f"next{number}"))
                self.wait_subject(rayhook, f"next{number}-{number + 1}")
                self.assertEqual(old.post(plain_pod()).status, 200, "a connection from before goes on")
        self.assertEqual((self.reloads(rayhook, "ok"), self.reloads(rayhook, "refused")), (4, 0))
        self.assertEqual(len(rayhook.find(msg="certificate loaded")), 4)

    def test_rewritten_in_place(self):
        cert, key = self.leaf("first")
        self.swap((cert, key))
        folder = self.pki.path("in-place")
        os.mkdir(folder)
        own = os.path.join(folder, "tls.crt"), os.path.join(folder, "tls.key")
        for source, target in zip((cert, key), own):
            shutil.copy(source, target)
        rayhook = self.serve(cert=own[0], key=own[1])
        new = self.leaf("second")
        write(own[0], read(new[0]))
        write(own[1], read(new[1]))
        self.wait_subject(rayhook, "second-1")
        self.assertEqual(self.reloads(rayhook, "refused"), 0, "between the two writes they did not fit, which is no fault")

    def test_the_folder_is_replaced(self):
        folder = self.pki.path("replaced")
        pairs = self.leaf("first"), self.leaf("second")

        def make(pair, where):
            os.mkdir(where)
            shutil.copy(pair[0], os.path.join(where, "tls.crt"))
            shutil.copy(pair[1], os.path.join(where, "tls.key"))
        make(pairs[0], folder)
        rayhook = self.serve(cert=os.path.join(folder, "tls.crt"), key=os.path.join(folder, "tls.key"))
        make(pairs[1], folder + ".new")
        os.rename(folder, folder + ".old")
        os.rename(folder + ".new", folder)
        self.wait_subject(rayhook, "second-0")  # by the poll: nothing happened in the folder that was watched

    def test_a_bad_new_pair_is_refused(self):
        good = self.leaf("good")
        self.swap(good)
        rayhook = self.serve("--tls-name", "localhost")
        empty = self.pki.path("empty")
        write(empty, "")
        for number, (pair, why) in enumerate((
                ((good[0], self.leaf("other")[1]), "does not belong to the certificate"),
                ((empty, good[1]), "no readable PEM certificate"),
                (self.leaf("old", days="-1"), "has expired"),
                (self.leaf("foreign", "DNS:elsewhere"), "is not for localhost but for elsewhere")), 1):
            self.swap(pair)
            rayhook.wait_metric('rayhook_certificate_reloads_total{result="refused"}', number)
            # The line is written a little after the count.
            harness.wait_until(lambda why=why: any(why in line["why"] for line in rayhook.find(level="warn")), why)
            self.assertEqual(self.subject(rayhook), "good-0")
            self.assertEqual(rayhook.get("/readyz"), (200, "ok\n"))
        os.unlink(self.mount.path("tls.key"))
        rayhook.wait_metric('rayhook_certificate_reloads_total{result="refused"}', 5)
        self.assertEqual(self.subject(rayhook), "good-0")
        os.symlink("..data/tls.key", self.mount.path("tls.key"))
        self.swap(self.leaf("mended"))
        self.wait_subject(rayhook, "mended-5")
        self.assertEqual(len(rayhook.find(level="warn")), 5, "each is said once")

    def test_under_load_no_request_fails(self):
        self.swap(self.leaf("first"))
        rayhook = self.serve()
        with rayhook.connect() as kept:
            for number in range(5):
                self.swap(self.leaf("next"))
                wanted = rayhook.metric('rayhook_certificate_reloads_total{result="ok"}') + 1
                while self.reloads(rayhook, "ok") < wanted:
                    self.assertEqual(kept.post(plain_pod()).status, 200)
                    with rayhook.connect() as new:
                        self.assertEqual(new.post(plain_pod()).status, 200)
        self.assertEqual(rayhook.metric("rayhook_handshake_failures_total"), 0)

    # ---- starting without

    def check_mended(self, why, wrong, flags=()):
        """Starts with the pair `wrong` (paths, or None), for which it is not ready; then it is mended."""
        good = self.leaf("good")
        if wrong:
            self.swap(wrong)
        rayhook = self.serve(*flags)
        status, body = rayhook.get("/readyz")
        self.assertEqual(status, 503)
        self.assertTrue(body.startswith("certificate: --"), body)
        self.assertIn(why, body)
        self.assertEqual((rayhook.get("/livez")[0], rayhook.metric("rayhook_ready")), (200, 0))
        said = rayhook.find(msg="not ready: there is no certificate to serve")
        self.assertEqual(len(said), 1)
        self.assertIn(why, said[0]["why"])
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            rayhook.connect()
        self.swap(good)
        self.wait_ready(rayhook)
        self.assertEqual(self.subject(rayhook).partition("-")[0], "good")
        self.assertEqual(len(rayhook.find(msg="not ready: there is no certificate to serve")), 1)
        self.assertEqual(rayhook.stop(), 0)

    def test_missing_at_start(self):
        self.check_mended("cannot open", None)

    def test_empty_at_start(self):
        empty = self.pki.path("nothing")
        write(empty, "")
        self.check_mended("no readable PEM certificate", (empty, empty))

    def test_half_written_at_start(self):
        cert, key = self.leaf("whole")
        half_cert, half_key = self.pki.path("half.crt"), self.pki.path("half.key")
        write(half_cert, read(cert)[:200])
        write(half_key, read(key)[:100])
        self.check_mended("no readable PEM certificate", (half_cert, key))
        self.mount = Mount(self.pki, "half-key")
        self.check_mended("no readable PEM private key", (cert, half_key))

    def test_a_key_of_another_certificate_at_start(self):
        self.check_mended("does not belong to the certificate", (self.leaf("one")[0], self.leaf("two")[1]))

    def test_an_rsa_key_with_an_ecdsa_certificate_at_start(self):
        key = self.pki.path("rsa.key")
        self.pki.openssl("genrsa", "-out", key, "2048")
        self.check_mended("does not belong to the certificate", (self.leaf("one")[0], key))

    def test_an_encrypted_key_asks_nobody(self):
        cert, plain = self.leaf("secret")
        key = self.pki.path("encrypted.key")
        self.pki.openssl("ec", "-in", plain, "-aes128", "-passout", "pass:secret", "-out", key)
        self.check_mended("without a passphrase", (cert, key))

    def test_expired_at_start(self):
        self.check_mended("has expired", self.leaf("old", days="-1"))

    def test_without_a_name_at_start(self):
        self.check_mended("subjectAltName", self.leaf("nameless", names=""))

    def test_another_name_at_start(self):
        self.check_mended("is not for localhost but for rayhook.other.svc, 10.1.2.3",
                          self.leaf("other", "DNS:rayhook.other.svc,IP:10.1.2.3"), ("--tls-name", "localhost"))

    # ---- clients

    def taken(self, rayhook, pair):
        cert, key = pair or (None, None)
        try:
            with rayhook.connect(cert=cert, key=key) as client:
                return client.post(plain_pod()).status == 200
        except (OSError, EOFError):  # in TLS 1.3 the client learns of it when it reads
            return False

    def client(self, name, names="", subject=None):
        """A client's certificate: its common name is `name`, unless a whole subject is given."""
        if not subject:
            return self.pki.leaf(name, names, usage="clientAuth")
        key, request, cert = (self.pki.path(name + end) for end in (".key", ".csr", ".crt"))
        self.pki.openssl("req", "-new", *self.pki.key(name + ".key"), "-out", request, "-subj", subject)
        self.pki.openssl("x509", "-req", "-in", request, "-CA", self.pki.ca, "-CAkey", self.pki.path("ca.key"),
                         "-CAcreateserial", "-out", cert)
        return cert, key

    def test_client_ca(self):
        self.swap(self.leaf("server"))
        rayhook = self.serve("--client-ca", self.pki.ca)
        self.assertTrue(self.taken(rayhook, self.client("anybody")))
        failures = 'rayhook_handshake_failures_total{reason="client_certificate"}'
        before = rayhook.metric(failures)
        self.assertFalse(self.taken(rayhook, None))
        self.assertFalse(self.taken(rayhook, (self.pki.cert, self.pki.cert_key)), "a server's certificate")
        rayhook.wait_metric(failures, before + 2)  # the client learns of it a moment before it is counted
        self.assertEqual(rayhook.metric(failures), before + 2)
        self.assertGreater(rayhook.metric("rayhook_client_ca_not_after_seconds"), time.time())

    def test_client_names(self):
        self.swap(self.leaf("server"))
        rayhook = self.serve("--client-ca", self.pki.ca, "--client-name", "kube-apiserver", "--client-name", "apiserver.test")
        for pair in (self.client("kube-apiserver"), self.client("by-san", "DNS:apiserver.test")):
            self.assertTrue(self.taken(rayhook, pair), pair)
        for pair in (None, self.client("kube-apiserver2"), self.client("KUBE-APISERVER"), self.client("wild", "DNS:*.test"),
                     self.client("two", subject="/CN=kube-apiserver/CN=somebody"),
                     self.client("reversed", subject="/CN=somebody/CN=kube-apiserver"),
                     self.client("organisation", subject="/O=kube-apiserver/CN=somebody")):
            self.assertFalse(self.taken(rayhook, pair), pair)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.assertRaises((OSError, EOFError)):
                with rayhook.connect(low=version, high=version) as client:
                    client.post(plain_pod())

    def test_the_client_ca_is_reloaded(self):
        self.swap(self.leaf("server"))
        other = Pki()
        self.addCleanup(other.close)
        ca = self.pki.path("client-ca.crt")
        shutil.copy(other.ca, ca)
        rayhook = self.serve("--client-ca", ca)
        ours, theirs = self.client("ours"), other.leaf("theirs", "", usage="clientAuth")
        self.assertEqual((self.taken(rayhook, ours), self.taken(rayhook, theirs)), (False, True))
        shutil.copy(self.pki.ca, ca)
        rayhook.wait_metric('rayhook_certificate_reloads_total{result="ok"}', 2)
        self.assertEqual((self.taken(rayhook, ours), self.taken(rayhook, theirs)), (True, False))
        write(ca, "nothing of use")
        rayhook.wait_metric('rayhook_certificate_reloads_total{result="refused"}', 1)
        self.assertTrue(self.taken(rayhook, ours))

    def test_a_client_ca_that_cannot_be_read_at_start(self):
        """Never served without: that would let everybody in."""
        self.swap(self.leaf("server"))
        rayhook = self.serve("--client-ca", self.pki.path("nowhere.crt"))
        self.assertEqual(rayhook.get("/readyz")[0], 503)
        self.assertFalse(self.taken(rayhook, None))
