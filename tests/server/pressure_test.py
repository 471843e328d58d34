# SPDX-License-Identifier: Apache-2.0
"""All limits driven at once: connections, handshakes, bodies up to their budget, the largest review there may be,
and a long pod list. Memory stays bounded and nobody with a small review is refused. Part of server_test.py."""

import json
import os
import socket
import threading

from harness import NOT_FOUND, PATIENCE, ClusterTest, plain_pod, request, review, service, stored_service, wait_until
from watch_test import converted, pod

MIB = 1024 * 1024
MOST_RESIDENT = 56 * MIB
MOST_BODY = 9 * MIB
SANITIZER = bool(os.environ.get("RAYHOOK_SANITIZER"))


def resident(rayhook):
    """Resident memory now, and the most there ever was, in bytes."""
    with open(f"/proc/{rayhook.process.pid}/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return [int(lines[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM")]


def padded_pod(size):
    """A review of exactly so many bytes."""
    text = json.dumps(review("Pod", {"name": "large", "annotations": {"note": ""}}, {"containers": [{"name": "c"}]})).encode()
    return text.replace(b'"note": ""', b'"note": "' + b"x" * (size - len(text)) + b'"')


def many_structurals(size):
    """The same, of nothing but small numbers: what costs a JSON reader most."""
    text = json.dumps(review("Pod", {"name": "large"}, {"containers": [{"name": "c"}], "x": [0]})).encode()
    return text.replace(b"[0]", b"[0" + b",0" * ((size - len(text)) // 2) + b"]")


class Pressure(ClusterTest):
    def serve_pods(self, *flags):
        """Beside 200 converted Services, and a namespace with 6,000 pods of 8 KB; with a sanitizer, which leaves
        too little of a list's time for so many, 1,000."""
        count = 2 if SANITIZER else 12
        for i in range(200):
            self.api.put(converted(f"head-{i}", f"team-{i}"))
        page = [pod(f"p-{i}", "sleep 1", annotations={"note": "x" * 8000}) for i in range(500)]
        pages = [json.dumps({"kind": "PodList", "apiVersion": "v1", "items": page, "metadata": {
            "resourceVersion": "7", "continue": str(i + 1) if i < count - 1 else ""}}).encode() for i in range(count)]
        self.listed = threading.Event()

        def script(path, headers):
            if "/pods" not in path:
                return NOT_FOUND
            self.listed.set()
            return 200, pages[int(path.partition("continue=")[2] or 0)]
        self.rayhook = self.serve(script, "--split-pods-interval", "0", *flags, threads=2)
        return self.rayhook

    def connect(self, count):
        clients = [self.rayhook.connect() for _ in range(count)]
        for client in clients:
            self.addCleanup(client.close)
        return clients

    def begin(self, client, body):
        """Sends a request but for its last byte."""
        client.send(request(body, "/mutate?timeout=30s")[:-1])

    def finish(self, client, body):
        client.send(body[-1:])
        return client.answer()

    def check(self, what, base):
        now, most = resident(self.rayhook)
        print(f"{what}: {base // 1024} KiB before, at most {most // 1024}, {now // 1024} after", flush=True)
        if not SANITIZER:
            self.assertLess(most, MOST_RESIDENT)

    def test_all_limits_at_once(self):
        rayhook = self.serve_pods("--handshake-timeout", "60", "--body-timeout", "60")
        base = resident(rayhook)[0]
        bodies = [padded_pod(MOST_BODY), padded_pod(3 * MIB), padded_pod(3 * MIB), padded_pod(MIB)]
        large = self.connect(len(bodies))  # together the whole budget of 16 MiB
        for client, body in zip(large, bodies):
            self.begin(client, body)
        refused = self.connect(4)
        small_body = padded_pod(16 * 1024)
        small = self.connect(256 - 64 - len(large) - len(refused) - 2)
        for client in small:
            self.begin(client, small_body)
        for client in refused:  # one more has no room, and is told so in good order
            answer = client.post(padded_pod(17 * 1024))
            self.assertEqual((answer.status, answer.fields["retry-after"]), (503, "1"))
        lister = self.connect(1)[0]
        silent = [rayhook.connect_plain() for _ in range(64)]
        for plain in silent:
            self.addCleanup(plain.close)
        wait_until(lambda: rayhook.metric("rayhook_connections ") == 256, "256 connections")
        one_more = self.connect(1)[0]  # which ends self.client's, idle from the start
        self.assertEqual(one_more.post(plain_pod()).status, 200)

        lister.send(request(service(), "/mutate?timeout=30s"))
        self.assertTrue(self.listed.wait(PATIENCE))
        for client, body in zip(large, bodies):
            self.assertEqual(self.finish(client, body).status, 200)
        for client in small:
            self.assertEqual(self.finish(client, small_body).status, 200)
        self.assertEqual(lister.answer().json["response"]["auditAnnotations"]["reason"], "converted")
        self.check("all limits at once", base)
        self.assertEqual(rayhook.metric('rayhook_http_errors_total{reason="busy"}'), 4)
        self.assertEqual(rayhook.metric('rayhook_http_errors_total{reason="internal"}'), 0)

    def test_a_hundred_thousand_services_where_they_cannot_be_selected(self):
        """Before Kubernetes 1.31 all are listed, page by page: none but the headless ones stay in memory."""
        ordinary = [stored_service(f"s-{i}", False, f"team-{i}")[1] for i in range(499)]
        for one in ordinary:
            one["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 600}
        count = 20 if SANITIZER else 200

        def pages(path, headers):
            if "fieldSelector" in path:
                return 400, {"kind": "Status", "code": 400}
            at = int(path.partition("continue=")[2] or 0)
            return 200, {"kind": "ServiceList", "metadata": {"resourceVersion": "100", "continue": str(at + 1) if at < count - 1 else ""},
                         "items": [*ordinary, converted(f"head-{at}")]}

        def serve():
            return self.serve(lambda path, headers: NOT_FOUND, "--split-pods-interval", "0")
        empty = serve()
        base = resident(empty)[0]
        empty.stop()
        self.api.list_script = pages
        rayhook = serve()
        self.assertEqual(rayhook.metric("rayhook_services_indexed "), count)
        now, most = resident(rayhook)
        print(f"{500 * count} Services: {base // 1024} KiB with none, at most {most // 1024}, {now // 1024} after", flush=True)
        if not SANITIZER:
            self.assertLess(most - base, 8 * MIB)
            self.assertLess(now - base, 4 * MIB)

    def test_the_costliest_review(self):
        rayhook = self.serve_pods()
        base = resident(rayhook)[0]
        for client in self.connect(2):
            answer = client.post(many_structurals(MOST_BODY))
            self.assertEqual(answer.status, 400)
            self.assertIn(b"too many JSON values", answer.body)
            self.assertEqual(client.post(many_structurals(2 * MIB - 1000)).status, 200)
        self.check("the costliest review", base)
        with rayhook.connect() as client:
            self.assertEqual(client.post(plain_pod()).status, 200)
