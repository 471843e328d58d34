# SPDX-License-Identifier: Apache-2.0
"""`serve --lookup cluster` against a scripted API server. Part of server_test.py."""

import base64
import json
import os
import threading
import time

import harness
from harness import NOT_FOUND, ApiServer, ClusterTest, Pki, plain_pod, reader, service, stored_service

NOT_YET = "Services cannot be listed yet: not ready"


class ClusterLookup(ClusterTest):
    def test_a_converted_service(self):
        self.serve(lambda path, headers: stored_service("ray-head", True))
        answer = self.client.post(reader())
        patch = json.loads(base64.b64decode(answer.json["response"]["patch"]))
        self.assertIn("wget http://ray-head:6379", [op["value"] for op in patch])
        path, fields = self.api.requests[0]
        self.assertEqual(path, "/api/v1/namespaces/team-a/services/ray-head")
        self.assertEqual(fields["Authorization"], "Bearer secret-token")
        self.assertTrue(fields["User-Agent"].startswith("rayhook/"))
        self.assertEqual(fields["Host"], self.api.url.removeprefix("https://"))

    def test_one_get_serves_for_a_while(self):
        rayhook = self.serve(lambda path, headers: stored_service("ray-head", True))
        for _ in range(20):
            self.assertEqual(self.reason(), "rewritten")
        asked = len(self.api.requests)
        self.assertLess(asked, 20)
        self.assertEqual(rayhook.metric('rayhook_lookups_total{result="present"}'), asked)
        self.assertEqual(rayhook.metric('rayhook_lookups_total{result="cached"}'), 20 - asked)

    def test_absent_is_remembered_for_a_moment_only(self):
        state = [NOT_FOUND]
        self.serve(lambda path, headers: state[0])
        self.assertEqual(self.reason(), "service-absent")
        self.assertEqual(self.reason(), "service-absent")
        self.assertEqual(len(self.api.requests), 1)
        state[0] = stored_service("ray-head", True)
        harness.wait_until(lambda: self.reason() == "rewritten")

    def test_connections_are_kept(self):
        self.serve(lambda path, headers: NOT_FOUND)
        for i in range(10):
            self.reason(reader(f"head-{i}"))
        self.assertEqual((len(self.api.requests), self.api.connections), (10, 1))

    def test_a_connection_that_was_closed_meanwhile_costs_nothing(self):
        def script(path, headers):
            body = json.dumps(NOT_FOUND[1]).encode()  # says nothing of closing, and closes
            return b"HTTP/1.1 404 x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        self.serve(script)
        for i in range(5):
            self.assertEqual(self.reason(reader(f"head-{i}")), "service-absent")

    def test_dry_runs_write_no_memory(self):
        self.serve(lambda path, headers: stored_service("ray-head", True))
        self.assertEqual(self.reason(reader(dry_run=True)), "rewritten")
        self.assertEqual(self.reason(reader(dry_run=True)), "rewritten")
        self.assertEqual(len(self.api.requests), 2)

    def test_who_mentions_nothing_asks_nothing(self):
        self.serve(lambda path, headers: self.fail("asked"))
        self.assertEqual(self.reason(plain_pod()), "no-reference")
        self.assertEqual(self.reason(service("other", ports=[{"port": 80}])), "not-a-head")
        self.assertEqual(self.api.requests, [])

    def test_trouble_means_unknown(self):
        name = [0]
        answers = {
            "500": (500, {}), "403": (403, {"kind": "Status", "reason": "Forbidden"}), "429": (429, {}),
            "404 of something else": (404, b"<html>"), "redirect": b"HTTP/1.1 302 x\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
            "no JSON": (200, b"{"), "another object": stored_service("other", True), "garbage": b"\x00\xff" * 100,
            "nothing": b"", "cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
            "endless header": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
            "huge body": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{",
            "big body": (200, b" " * (3 * 1024 * 1024)),
        }
        answer = [None]
        rayhook = self.serve(lambda path, headers: answer[0])
        for what, answer[0] in answers.items():
            with self.subTest(what):
                name[0] += 1
                self.assertEqual(self.reason(reader(f"head-{name[0]}")), "service-unknown")
        self.assertEqual(rayhook.metric('rayhook_lookups_total{result="failed"}'), len(answers))
        self.assertEqual(len(rayhook.find(msg="a Service could not be looked up")), 1, "said now and then, not each time")

    def test_unknown_is_not_remembered(self):
        answers = [(500, {}), stored_service("ray-head", True)]
        self.serve(lambda path, headers: answers.pop(0))
        self.assertEqual(self.reason(), "service-unknown")
        self.assertEqual(self.reason(), "rewritten")

    def test_a_stalled_server_never_overruns_the_review(self):
        rayhook = self.serve(lambda path, headers: None)
        for path, least, most in (("/mutate?timeout=1s", 0.7, 1.0), ("/mutate?timeout=2s", 1.5, 2.0)):
            begin = time.monotonic()
            self.assertEqual(self.reason(path=path), "service-unknown")
            took = time.monotonic() - begin
            self.assertGreater(took, least)
            self.assertLess(took, most + (harness.SLOW - 1))
        self.assertEqual(rayhook.metric("rayhook_in_flight_reviews "), 0)
        rayhook.wait_for(msg="a Service could not be looked up")

    def test_whoever_joins_a_get_has_a_time_of_its_own(self):
        """A review with little time began the GET; it ends with that, and is made anew for the other."""
        answers = [None, stored_service("ray-head", True)]
        rayhook = self.serve(lambda path, headers: answers.pop(0))
        with rayhook.connect() as hasty, rayhook.connect() as patient:
            hasty.send(harness.request(reader(), path="/mutate?timeout=1s"))
            harness.wait_until(lambda: self.api.requests)
            patient.send(harness.request(reader(), path="/mutate?timeout=20s"))
            reasons = [client.answer().json["response"]["auditAnnotations"]["reason"] for client in (hasty, patient)]
        self.assertEqual(reasons, ["service-unknown", "rewritten"])
        self.assertEqual(len(self.api.requests), 2)

    def test_others_are_served_meanwhile(self):
        rayhook = self.serve(lambda path, headers: None)
        with rayhook.connect() as other:
            other.send(harness.request(reader()))
            time.sleep(0.1)
            begin = time.monotonic()
            self.assertEqual(self.reason(plain_pod()), "no-reference")
            self.assertLess(time.monotonic() - begin, 1 * harness.SLOW)
            self.api.stalled.set()
            self.assertEqual(other.answer().status, 200)

    def test_gets_for_one_name_are_shared(self):
        gate = threading.Event()

        def script(path, headers):
            gate.wait(harness.PATIENCE)
            return stored_service("ray-head", True)
        rayhook = self.serve(script)
        clients = [rayhook.connect() for _ in range(10)]
        for client in clients:
            client.send(harness.request(reader()))
        rayhook.wait_metric("rayhook_in_flight_reviews ", 10)
        gate.set()
        for client in clients:
            self.assertEqual(client.answer().json["response"]["auditAnnotations"]["reason"], "rewritten")
            client.close()
        self.assertEqual(len(self.api.requests), 1)

    def test_many_names_at_once(self):
        rayhook = self.serve(lambda path, headers: time.sleep(0.02) or NOT_FOUND)
        clients = [rayhook.connect() for _ in range(40)]
        for number, client in enumerate(clients):
            client.send(harness.request(reader(f"head-{number}")))
        for client in clients:
            self.assertEqual(client.answer().json["response"]["auditAnnotations"]["reason"], "service-absent")
            client.close()
        self.assertEqual(len(self.api.requests), 40)
        self.assertLessEqual(self.api.connections, 40)

    def test_a_forged_namespace_reaches_no_other_path(self):
        self.serve(lambda path, headers: stored_service("ray-head", True))
        for namespace in ("../../secrets", "a/b", "", "A", "a%2f", "a b", "a\r\nX: y", "a" * 64):
            self.assertEqual(self.reason(reader(namespace=namespace)), "service-unknown")
        self.assertEqual(self.api.requests, [])

    def test_a_token_that_rotates(self):
        token, valid = self.pki.path("token"), ["one"]
        with open(token, "w") as file:
            file.write("one\n")

        def script(path, headers):
            return NOT_FOUND if headers["Authorization"] == "Bearer " + valid[0] else (401, {})
        self.serve(script, kubeconfig=self.kubeconfig(user={"tokenFile": token}))
        self.assertEqual(self.reason(reader("head-1")), "service-absent")
        valid[0] = "two, newer".replace(", ", "-")
        with open(token + ".new", "w") as file:
            file.write(valid[0])
        os.rename(token + ".new", token)
        self.assertEqual(self.reason(reader("head-2")), "service-absent", "the 401 made it look at the file")
        valid[0] = "three"
        self.assertEqual(self.reason(reader("head-3")), "service-unknown")

    def test_a_client_certificate(self):
        self.serve(lambda path, headers: NOT_FOUND, kubeconfig=self.kubeconfig(
            user={"client-certificate": self.client_cert, "client-key": self.client_key}))
        self.assertEqual(self.reason(), "service-absent")
        self.assertNotIn("Authorization", self.api.requests[0][1])

    def test_the_server_is_verified(self):
        stranger = Pki()
        self.addCleanup(stranger.close)
        rayhook = self.serve(lambda path, headers: NOT_FOUND, ready=False,
                             kubeconfig=self.kubeconfig(**{"certificate-authority": stranger.ca}))
        self.assertIn("certificate", rayhook.wait_for(msg=NOT_YET)["error"])
        self.assertEqual(self.api.watches, [], "and no token was shown to it")

    def test_its_name_too(self):
        rayhook = self.serve(lambda path, headers: NOT_FOUND, ready=False,
                             kubeconfig=self.kubeconfig(**{"tls-server-name": "kubernetes.example"}))
        self.assertIn("certificate", rayhook.wait_for(msg=NOT_YET)["error"])
        self.assertEqual(self.api.watches, [])

    def test_another_name_that_is_right(self):
        self.serve(lambda path, headers: NOT_FOUND, kubeconfig=self.kubeconfig(**{"tls-server-name": "localhost"}))
        self.assertEqual(self.reason(), "service-absent")

    def test_a_server_that_is_away_and_comes_back(self):
        kubeconfig = self.kubeconfig()
        rayhook = self.serve(lambda path, headers: NOT_FOUND, kubeconfig=kubeconfig)
        self.api.close()
        begin = time.monotonic()
        self.assertEqual(self.reason(), "service-unknown")
        self.assertLess(time.monotonic() - begin, 2 * harness.SLOW)
        self.assertIn("error", rayhook.wait_for(msg="a Service could not be looked up"))

    def test_sigterm_while_a_review_waits(self):
        rayhook = self.serve(lambda path, headers: None)
        self.client.send(harness.request(reader(), path="/mutate?timeout=2s"))
        rayhook.wait_metric("rayhook_in_flight_reviews ", 1)
        rayhook.terminate()
        answer = self.client.answer()
        self.assertEqual((answer.status, answer.fields["connection"]), (200, "close"))
        self.assertEqual(rayhook.stop(), 0)

    def test_the_token_is_never_logged(self):
        rayhook = self.serve(lambda path, headers: (500, {}), "--log-level", "debug")
        self.reason()
        rayhook.stop()
        self.assertNotIn(b"secret-token", b"".join(rayhook.raw))
