#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rayhook serve` from outside: HTTPS, probes and metrics, log lines, limits, life cycle, start errors.

  server_test.py --rayhook PATH [unittest's own arguments]"""

import argparse
import base64
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

import harness
from harness import PATIENCE, Client, Rayhook, plain_pod, request, service, worker
from case import Case
from certificates_test import Certificates  # noqa: F401: unittest finds it here
from limits_test import AllAtWork, Limits  # noqa: F401: unittest finds them here
from lookup_test import ClusterLookup  # noqa: F401: unittest finds it here
from pressure_test import Pressure  # noqa: F401
from watch_test import Flood, Hold, RunningReaders, SplitPods, Watch  # noqa: F401

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3

MANIFEST = """
apiVersion: v1
kind: Service
metadata: {name: ray-head}
spec:
  selector: {app: ray-head}
  ports: [{name: gcs-server, port: 6379, targetPort: 6379}]
"""


class Https(Case):
    """One server for all of these."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.pki.path("services.yaml")
        with open(path, "w") as file:
            file.write(MANIFEST)
        cls.rayhook = Rayhook(harness.PROGRAM, cls.pki, "--log-level", "debug", lookup="file:" + path)
        cls.addClassCleanup(cls.rayhook.stop)

    def connect(self, **options):
        client = self.rayhook.connect(**options)
        self.addCleanup(client.close)
        return client

    def test_a_head_service_is_converted(self):
        answer = self.connect().post(service(uid="convert-me"))
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.fields["content-type"], "application/json")
        response = answer.json["response"]
        self.assertEqual((response["uid"], response["allowed"]), ("convert-me", True))
        patch = json.loads(base64.b64decode(response["patch"]))
        self.assertIn({"op": "add", "path": "/spec/clusterIP", "value": "None"}, patch)

    def test_a_worker_is_rewritten(self):
        answer = self.connect().post(worker(uid="rewrite-me"))
        patch = json.loads(base64.b64decode(answer.json["response"]["patch"]))
        self.assertIn("ray start --address=ray-head:6379", [op["value"] for op in patch])
        line = self.rayhook.wait_for(msg="decision", uid="rewrite-me")
        self.assertEqual({key: line[key] for key in (
            "level", "namespace", "generateName", "kind", "operation", "user", "dryRun", "reason", "outcome", "mode")}, {
            "level": "info", "namespace": "team-a", "generateName": "worker-", "kind": "Pod", "operation": "CREATE",
            "user": "alice", "dryRun": False, "reason": "rewritten", "outcome": "patch", "mode": "mutate"})
        self.assertIn("$RAY_HEAD_SERVICE_HOST", [change["before"] for change in line["changes"]])
        self.assertIn("ray-head", [change["after"] for change in line["changes"]])
        self.assertEqual(line["patchBytes"], len(base64.b64decode(answer.json["response"]["patch"])))
        self.assertGreaterEqual(line["durationMicros"], 0)

    def test_keep_alive(self):
        client = self.connect()
        for i in range(200):
            self.assertEqual(client.post(plain_pod(uid=f"keep-{i}")).json["response"]["uid"], f"keep-{i}")

    def test_pipelined_in_one_write(self):
        client = self.connect()
        client.send(b"".join(request(plain_pod(uid=f"pipe-{i}")) for i in range(20)))
        for i in range(20):
            self.assertEqual(client.answer().json["response"]["uid"], f"pipe-{i}")

    def test_audit_never_patches(self):
        answer = self.connect().post(service(uid="only-audit"), path="/audit")
        self.assertEqual(answer.json["response"]["auditAnnotations"]["reason"], "converted")
        self.assertNotIn("patch", answer.json["response"])
        self.assertEqual(self.rayhook.wait_for(msg="decision", uid="only-audit")["mode"], "audit")

    def test_dry_run_gets_the_same_answer(self):
        client = self.connect()
        self.assertEqual(client.post(service(dry_run=True)).json, client.post(service()).json)

    def test_refusals(self):
        client = self.connect()
        good = plain_pod()
        for answer, status in [
                (client.post(good, path="/"), 404), (client.post(good, path="/mutate/x"), 404),
                (client.post(good, Content_Type="text/plain"), 400), (client.post(b"{"), 400), (client.post(b""), 400),
                (client.post({"kind": "AdmissionReview"}), 400), (client.post(b"\x00\xff"), 400), (client.post(b"[" * 100_000), 400)]:
            self.assertEqual(answer.status, status)
            self.assertEqual(answer.body.count(b"\n"), 1)
            self.assertTrue(answer.body.isascii())
        client.send(b"GET /mutate HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = client.answer()
        self.assertEqual((answer.status, answer.fields["allow"]), (405, "POST"))
        self.assertEqual(client.post(good).status, 200, "and the connection goes on")

    def test_body_limit(self):
        limit = 9 * 1024 * 1024
        body = json.dumps(plain_pod()).encode()
        client = self.connect()
        self.assertEqual(client.post(body.ljust(limit)).status, 200)
        answer = client.post(body.ljust(limit + 1))
        self.assertEqual((answer.status, answer.fields["connection"]), (413, "close"))
        self.assertTrue(client.ended())

    def test_chunked_body_limit(self):
        client = self.connect()
        head = b"POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        body = json.dumps(plain_pod()).encode()
        client.send(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        self.assertEqual(client.answer().status, 200)
        client.send(head)
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        for _ in range(9):
            client.send(chunk)
        client.send(b"1\r\n")
        self.assertEqual(client.answer().status, 413)

    def test_header_limit(self):
        client = self.connect()
        client.send(b"POST /mutate HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 9000)
        self.assertEqual(client.answer().status, 431)
        self.assertTrue(client.ended())

    def test_smuggling_ends_the_connection(self):
        client = self.connect()
        inner = b"GET /inner HTTP/1.1\r\nHost: h\r\n\r\n"
        client.send(b"POST /mutate HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\n12345" + inner)
        self.assertEqual(client.answer().status, 400)
        self.assertTrue(client.ended())

    def test_expect_continue(self):
        client = self.connect()
        body = json.dumps(plain_pod()).encode()
        client.send(request(body, Expect="100-continue")[:-len(body)])
        self.assertEqual(client.answer().status, 100)
        client.send(body)
        self.assertEqual(client.answer().status, 200)

    def test_http10(self):
        client = self.connect()
        body = json.dumps(plain_pod()).encode()
        client.send(b"POST /mutate HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertEqual(client.answer().fields["connection"], "close")
        self.assertTrue(client.ended())

    def test_log_lines_cannot_be_forged(self):
        evil = 'x"}\n{"level":"error","msg":"forged"}\r\n\u2028\x00\x1b[31m'
        review = worker(uid="forger", user=evil)
        review["request"]["object"]["metadata"]["generateName"] = evil
        review["request"]["object"]["spec"]["containers"][0]["name"] = evil
        self.assertEqual(self.connect().post(review).status, 200)
        line = self.rayhook.wait_for(msg="decision", uid="forger")
        self.assertEqual((line["user"], line["generateName"]), (evil, evil))
        self.assertEqual(self.rayhook.find(msg="forged"), [])
        for raw in self.rayhook.raw:
            self.assertTrue(raw.endswith(b"}\n") and b"\x1b" not in raw and b"\x00" not in raw, raw)

    def test_tls_versions(self):
        for version in (V12, V13):
            client = self.connect(low=version, high=version)
            self.assertEqual(client.post(plain_pod()).status, 200)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.connect(low=ssl.TLSVersion.TLSv1, high=ssl.TLSVersion.TLSv1_1)

    def test_tls_12_has_forward_secrecy_only(self):
        self.assertIn("ECDHE", self.connect(low=V12, high=V12).socket.cipher()[0])

    def test_alpn(self):
        self.assertEqual(self.connect(alpn=["h2", "http/1.1"]).socket.selected_alpn_protocol(), "http/1.1")
        self.assertIsNone(self.connect(alpn=[]).socket.selected_alpn_protocol())
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.connect(alpn=["h2"])

    def test_no_session_tickets(self):
        client = self.connect()
        client.post(plain_pod())
        self.assertFalse(client.socket.session.has_ticket)

    def test_plain_http_and_noise_on_the_tls_port(self):
        before = self.rayhook.metric('rayhook_handshake_failures_total{reason="protocol"}')
        for noise in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(300), b"\x16\x03\x01\xff\xff" + b"\x00" * 100):
            with socket.create_connection(("127.0.0.1", self.rayhook.port), timeout=PATIENCE) as plain:
                plain.sendall(noise)
                plain.shutdown(socket.SHUT_WR)
                while plain.recv(1000):
                    pass
        self.rayhook.wait_metric('rayhook_handshake_failures_total{reason="protocol"}', before + 2)
        self.assertEqual(self.connect().post(plain_pod()).status, 200)

    def test_probes_and_metrics(self):
        self.connect().post(service(uid="counted"))
        self.assertEqual(self.rayhook.get("/livez"), (200, "ok\n"))
        self.assertEqual(self.rayhook.get("/readyz"), (200, "ok\n"))
        self.assertEqual(self.rayhook.get("/nothing")[0], 404)
        status, text = self.rayhook.get("/metrics")
        self.assertEqual(status, 200)
        self.assertRegex(text, r'rayhook_reviews_total\{kind="Service",operation="CREATE",outcome="patch",reason="converted",'
                               r'dry_run="false",mode="mutate"\} [1-9]')
        for name in ("rayhook_review_duration_seconds_bucket", "rayhook_in_flight_reviews", "rayhook_http_errors_total",
                     "rayhook_connections", "rayhook_build_info", "rayhook_log_lines_lost_total", "rayhook_ready"):
            self.assertIn("\n" + name, text)

    def test_the_plain_port_takes_only_get(self):
        with socket.create_connection(("127.0.0.1", self.rayhook.ops), timeout=PATIENCE) as plain:
            plain.sendall(b"DELETE /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
            self.assertTrue(plain.recv(1000).startswith(b"HTTP/1.1 405 "))
            plain.sendall(b"HEAD /readyz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            self.assertTrue(plain.recv(1000).endswith(b"\r\n\r\n"))

    def test_aborted_clients_leave_nothing(self):
        opened = self.rayhook.metric("rayhook_connections_total")
        whole = request(plain_pod())
        for cut in range(0, len(whole), 17):
            client = self.rayhook.connect()
            client.send(whole[:cut])
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset
            client.close()
        self.rayhook.wait_metric("rayhook_connections_total", opened + len(whole) // 17)
        end = time.monotonic() + PATIENCE
        while self.rayhook.metric("rayhook_connections ") > 0 and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.rayhook.metric("rayhook_connections "), 0)
        self.assertEqual(self.rayhook.metric("rayhook_in_flight_reviews "), 0)


class BeforeItHappens(Case):
    def test_what_alerts_and_dashboard_ask_for_is_there(self):
        """At zero: Prometheus' `increase` does not see the event with which a series appears."""
        folder = os.path.join(ROOT, "manifests", "chart", "monitoring")
        selectors = set()
        for name in ("prometheus-rule.yaml", "dashboard.json"):
            with open(os.path.join(folder, name)) as file:
                selectors |= set(re.findall(r"\b(rayhook_\w+)(?:{(.*?)})?", file.read().replace('\\"', '"')))
        samples = [re.fullmatch(r"(\w+)(?:{(.*)})? \S+", line) for line in self.serve().get("/metrics")[1].splitlines() if line[0] != "#"]
        self.assertGreater(len(selectors), 20)
        for name, labels in selectors:
            wanted = re.findall(r'(\w+)(=~?)"(.*?)"', labels)
            self.assertEqual(len(wanted), labels.count('="') + labels.count('=~"'), labels)

            def fits(sample):
                has = dict(re.findall(r'(\w+)="(.*?)"', sample[2] or ""))
                return sample[1] == name and all(re.fullmatch(text if sign == "=~" else re.escape(text), has.get(label, "")) for label, sign, text in wanted)
            self.assertTrue(any(map(fits, samples)), f"{name}{{{labels}}} is not there before it happens")


class LifeCycle(Case):
    def load(self, rayhook, count, failures, done):
        """`count` clients that send as fast as they can, until they are told to close."""
        def go(number):
            try:
                with rayhook.connect() as client:
                    while True:
                        answer = client.post(plain_pod(uid=f"load-{number}"))
                        if answer.status != 200:
                            failures.append(answer.status)
                        done[number] += 1
                        if answer.fields.get("connection") == "close":
                            return
            except Exception as error:  # noqa: BLE001: whatever it is, it is a failed request
                failures.append(repr(error))
        threads = [threading.Thread(target=go, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        return threads

    def test_sigterm_under_load_fails_no_request(self):
        for _ in range(3):
            rayhook, failures, done = self.serve(), [], [0] * 8
            threads = self.load(rayhook, 8, failures, done)
            end = time.monotonic() + PATIENCE
            while min(done) < 20 and time.monotonic() < end and not failures:
                time.sleep(0.01)
            self.assertEqual(rayhook.stop(), 0, rayhook.raw[-3:])
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            self.assertEqual([line["msg"] for line in rayhook.lines[-3:-1]], ["draining", "stopped"])

    def test_readyz_falls_at_once_and_service_goes_on(self):
        rayhook = self.serve("--shutdown-delay", "2")
        with rayhook.connect() as old:
            old.post(plain_pod())
            rayhook.terminate()
            rayhook.wait_for(msg="draining")
            self.assertEqual(rayhook.get("/readyz"), (503, "draining: told to end\n"))
            self.assertEqual(rayhook.get("/livez")[0], 200)
            self.assertEqual(old.post(plain_pod()).fields["connection"], "close")
            with rayhook.connect() as new:
                answer = new.post(plain_pod())
                self.assertEqual((answer.status, answer.fields["connection"]), (200, "close"))
        self.assertEqual(rayhook.stop(), 0)

    def test_an_idle_connection_does_not_hold_up_the_end(self):
        rayhook = self.serve()
        with rayhook.connect() as client:
            client.post(plain_pod())
            begin = time.monotonic()
            self.assertEqual(rayhook.stop(), 0)
            self.assertLess(time.monotonic() - begin, 6 * harness.SLOW)  # the client closes nothing
            self.assertTrue(client.ended())

    def test_a_request_under_way_is_finished(self):
        rayhook = self.serve()
        whole = request(plain_pod())
        with rayhook.connect() as client:
            client.send(whole[:-20])
            time.sleep(0.2)
            rayhook.terminate()
            rayhook.wait_for(msg="draining")
            time.sleep(1.5)
            client.send(whole[-20:])
            self.assertEqual(client.answer().status, 200)
        self.assertEqual(rayhook.stop(), 0)

    def test_the_end_has_a_deadline(self):
        rayhook = self.serve("--shutdown-timeout", "1")
        with rayhook.connect() as client:
            client.send(request(plain_pod())[:-20])
            time.sleep(0.2)
            begin = time.monotonic()
            self.assertEqual(rayhook.stop(), 0)
            self.assertLess(time.monotonic() - begin, 4 * harness.SLOW)
            self.assertEqual(len(rayhook.find(msg="stopped while connections were open")), 1)

    def test_a_second_signal_ends_it(self):
        rayhook = self.serve("--shutdown-delay", "300")
        rayhook.process.send_signal(signal.SIGINT)
        rayhook.wait_for(msg="draining")
        rayhook.process.send_signal(signal.SIGTERM)
        rayhook.told = True
        self.assertEqual(rayhook.stop(), 1)

    def test_a_log_that_nobody_reads_stops_nothing(self):
        process = subprocess.Popen(
            [harness.PROGRAM, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--tls-cert",
             self.pki.cert, "--tls-key", self.pki.cert_key, "--lookup", "none", "--log-level", "debug"], stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = b""
        while b'"listening"' not in line:
            line = process.stdout.readline()
        port = int(json.loads(line)["address"].rpartition(":")[2])
        server = type("Server", (), {"pki": self.pki})
        with Client(server, plain=socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as client:
            for _ in range(3000):
                self.assertEqual(client.post(service()).status, 200)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)
        process.stdout.close()


class Start(Case):
    """What ends it at once: the command line, addresses, look-ups. Certificates never do."""

    def test_addresses(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            code, text = self.refused_start(**{"--listen": f"127.0.0.1:{taken.getsockname()[1]}"})
        self.assertEqual(code, 1)
        self.assertIn("cannot listen there: Address already in use", text)
        for bad in ("localhost:1", "127.0.0.1", "127.0.0.1:99999", "1.2.3.4.5:1"):
            code, text = self.refused_start(**{"--ops-listen": bad})
            self.assertEqual(code, 2)
            self.assertIn("--ops-listen " + bad, text)

    def test_lookups(self):
        self.assertEqual(self.refused_start(**{"--lookup": "telepathy"})[0], 2)
        code, text = self.refused_start(**{"--lookup": "file:/nowhere.yaml"})
        self.assertEqual(code, 1)
        self.assertIn("/nowhere.yaml", text)
        broken = self.pki.path("broken.yaml")
        with open(broken, "w") as file:
            file.write("a: [b\n")
        code, text = self.refused_start(**{"--lookup": "file:" + broken})
        self.assertEqual(code, 1)
        self.assertIn("broken.yaml", text)
        code, text = self.refused_start(**{"--lookup": "cluster", "--kubeconfig": "/nowhere"})
        self.assertEqual(code, 1)
        self.assertIn("--kubeconfig: cannot open /nowhere", text)

    def test_client_names_without_a_ca(self):
        code, text = self.refused_start("--client-name", "kube-apiserver")
        self.assertEqual(code, 2)
        self.assertIn("--client-ca", text)

    def test_a_configuration_file(self):
        path = self.pki.path("rayhook.yaml")
        with open(path, "w") as file:
            file.write("head: {words: [leader]}\n")
        self.assertEqual(self.serve().wait_for(msg="starting")["config"], "none")
        rayhook = self.serve("--config", path)
        self.assertEqual(rayhook.wait_for(msg="starting")["config"], path)
        with rayhook.connect() as client:
            answer = client.post(service())
        self.assertEqual(answer.json["response"]["auditAnnotations"]["reason"], "head-unclear")
        with open(path, "w") as file:
            file.write("head: {word: [leader]}\n")
        code, text = self.refused_start("--config", path)
        self.assertEqual(code, 1)
        self.assertEqual(text, f"rayhook serve: --config {path}: there is no key \"head.word\"; the nearest one is words, "
                               "under head\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--rayhook", required=True)
    options, rest = parser.parse_known_args()
    harness.PROGRAM = os.path.abspath(options.rayhook)
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")
