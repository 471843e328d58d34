# SPDX-License-Identifier: Apache-2.0
"""`serve --lookup cluster` and its watch, beside a scripted API server that misbehaves: the one place where
a scripted one is right, since the real one cannot be made to. Part of server_test.py."""

import base64
import collections
import json
import os
import threading
import time

import harness
from harness import (NOT_FOUND, WATCH_HEAD, ClusterTest, chunk, plain_pod, service, stored_service, wait_until,
                     watch_line, worker)


def converted(name="ray-head", namespace="team-a", **more):
    stored = stored_service(name, True, namespace)[1]
    stored["metadata"].update(more)
    return stored


def owned(review, kind="ReplicaSet", api="apps/v1"):
    review["request"]["object"]["metadata"]["ownerReferences"] = [
        {"apiVersion": api, "kind": kind, "name": "x", "uid": "1", "controller": True}]
    return review


def pod_list(*pods, version="7", more=""):
    return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": version, "continue": more},
                 "items": list(pods)}


def pod(name, script="sleep 1", phase="Running", **metadata):
    return {"metadata": {"name": name, "namespace": "team-a", **metadata}, "status": {"phase": phase},
            "spec": {"containers": [{"name": "c", "image": "i", "command": ["sh", "-c", script]}]}}


READER = "echo $RAY_HEAD_SERVICE_HOST"


class Watch(ClusterTest):
    """Nothing but the watch tells of Services here: each single GET is answered with 404."""

    def serve(self, *flags, **options):
        return super().serve(lambda path, headers: pod_list() if "/pods" in path else NOT_FOUND, *flags, **options)

    def restarts(self, rayhook, reason):
        return rayhook.metric(f'rayhook_watch_restarts_total{{reason="{reason}"}}')

    def follows(self, what="the watch"):
        """A Service that is made now reaches it: the watch works."""
        name = f"made-{len(self.api.events)}"
        self.api.put(converted(name))
        wait_until(lambda: self.reason(harness.reader(name)) == "rewritten", what)

    def test_every_pod_of_the_namespace_is_cared_for(self):
        self.api.put(converted())
        self.serve()
        self.assertEqual(self.reason(plain_pod()), "restored")
        self.assertEqual(self.reason(plain_pod(namespace="team-b")), "no-reference")
        self.assertEqual(self.reason(worker()), "rewritten")
        self.assertEqual([path for path in self.api.paths() if "/services/" in path], [], "all that from memory")

    def test_what_is_made_changed_and_removed_is_followed(self):
        rayhook = self.serve()
        self.assertEqual(self.reason(plain_pod()), "no-reference")
        self.api.put(converted())
        wait_until(lambda: self.reason(plain_pod()) == "restored")
        self.assertEqual(rayhook.metric("rayhook_services_indexed "), 1)
        lost = converted()
        del lost["metadata"]["annotations"]
        self.api.put(lost)
        wait_until(lambda: self.reason(plain_pod()) == "no-reference", "a lost annotation")
        self.assertEqual(self.reason(harness.reader()), "rewritten", "its text is cared for all the same")
        self.api.delete("team-a", "ray-head")
        wait_until(lambda: self.reason(harness.reader()) == "service-absent", "the removal")
        self.assertEqual(rayhook.metric("rayhook_services_indexed "), 0)

    def test_not_ready_before_the_first_list(self):
        gate = threading.Event()
        self.api.list_script = lambda path, headers: gate.wait(harness.PATIENCE) and self.api.DEFAULT
        rayhook = self.serve(ready=False)
        self.assertEqual(rayhook.get("/readyz")[0], 503)
        self.assertEqual(rayhook.get("/livez")[0], 200)
        answer = self.client.post(plain_pod())
        self.assertEqual((answer.status, answer.fields["retry-after"], answer.fields["connection"]), (503, "1", "close"))
        gate.set()
        rayhook.wait_metric("rayhook_ready ", 1)
        wait_until(lambda: rayhook.get("/readyz")[0] == 200)
        self.assertEqual(rayhook.metric('rayhook_http_errors_total{reason="starting"}'), 1)

    def test_a_list_in_pages(self):
        services = [converted(f"head-{i}") for i in range(3)]

        def pages(path, headers):
            at = 2 if "continue=to%3Dken%2F2" in path else 1 if "continue=1" in path else 0
            return 200, {"kind": "ServiceList", "metadata": {"resourceVersion": "100", "continue": ("1", "to=ken/2", "")[at]},
                         "items": services[at:at + 1]}
        self.api.list_script = pages
        rayhook = self.serve()
        self.assertEqual(rayhook.metric("rayhook_services_indexed "), 3)
        self.assertIn("limit=500", self.api.watches[0][0])

    def test_only_headless_services_are_asked_for(self):
        self.serve()
        for path, _ in self.api.watches:
            self.assertIn("fieldSelector=spec.clusterIP%3DNone", path)

    def test_an_old_api_server_without_the_field_selector(self):
        def refuse(path, headers):
            return (400, {"kind": "Status", "code": 400}) if "fieldSelector" in path else self.api.DEFAULT
        self.api.list_script = self.api.watch_script = refuse
        self.api.put(converted())
        self.api.put(stored_service("ordinary", False)[1])
        rayhook = self.serve()
        self.assertEqual(self.reason(plain_pod()), "restored")
        self.assertEqual(rayhook.metric("rayhook_services_indexed "), 1, "the others are passed over")
        self.follows()

    def test_a_field_selector_that_only_the_watch_refuses(self):
        self.api.watch_script = lambda path, headers: (400, {}) if "fieldSelector" in path else self.api.DEFAULT
        self.serve()
        self.follows()

    def test_a_version_that_is_too_old(self):
        """410, as an answer and as an event: a new list follows, and no word is lost about it."""
        for form in ((410, {"kind": "Status", "code": 410}),
                     WATCH_HEAD + chunk(watch_line("ERROR", {"kind": "Status", "code": 410, "message": "too old"})) + chunk(b"")):
            with self.subTest(str(form)[:20]):
                answers = [form]
                self.api.watch_script = lambda path, headers: answers.pop() if answers else self.api.DEFAULT
                rayhook = self.serve()
                rayhook.wait_metric('rayhook_watch_restarts_total{reason="gone"}', 1)
                self.follows()
                self.assertEqual(len([path for path, _ in self.api.watches if "watch=1" not in path]), 2)
                self.assertEqual([line for line in rayhook.lines if line and line["level"] == "warn"], [])
                rayhook.stop()
                self.api.watches.clear()

    def misbehave(self, answer, reason, times=1, flags=()):
        """The first watches are answered so; the ones after work. What was known stays known meanwhile."""
        self.api.put(converted())
        answers = [answer] * times
        self.api.watch_script = lambda path, headers: answers.pop() if answers else self.api.DEFAULT
        rayhook = self.serve(*flags)
        rayhook.wait_metric(f'rayhook_watch_restarts_total{{reason="{reason}"}}', times)
        self.assertEqual(self.reason(plain_pod()), "restored")
        self.follows(f"the watch after {reason}")
        rayhook.wait_metric("rayhook_watch_healthy ", 1)
        return rayhook

    def test_gone_in_the_middle_of_a_line(self):
        line = watch_line("ADDED", converted("other"))
        self.misbehave(WATCH_HEAD + chunk(line[:50]), "unreachable")

    def test_gone_in_the_middle_of_a_chunk(self):
        self.misbehave(WATCH_HEAD + b"ffff\r\n{", "unreachable")

    def test_json_that_breaks_off(self):
        line = watch_line("ADDED", converted("other"))
        self.misbehave(WATCH_HEAD + chunk(line[:50] + b"\n"), "malformed")

    def test_events_that_make_no_sense(self):
        for line in (b"null\n", b"[]\n", b"\xff\xfe\n", watch_line("WHAT", {}), watch_line("ADDED", {"metadata": {"name": 7}}),
                     b'{"type":"ADDED"}\n'):
            with self.subTest(line):
                self.misbehave(WATCH_HEAD + chunk(line) + chunk(b""), "malformed").stop()

    def test_a_line_without_end(self):
        self.misbehave(WATCH_HEAD + chunk(b"x" * 3_000_000), "malformed")

    def test_500(self):
        rayhook = self.misbehave((500, {}), "refused", times=2)
        self.assertEqual(len(rayhook.find(level="warn")), 1, "said once")
        self.assertIn("status 500", rayhook.find(level="warn")[0]["error"])
        self.assertEqual(len(rayhook.find(msg="the Service watch is in step with the API server")), 2)

    def test_403_says_what_is_not_allowed(self):
        rayhook = self.misbehave((403, {}), "forbidden")
        self.assertIn("not allowed", rayhook.find(level="warn")[0]["error"])

    def test_429_with_retry_after(self):
        begin = time.monotonic()
        self.misbehave((429, {}, {"Retry-After": "2"}), "busy")
        self.assertGreater(time.monotonic() - begin, 1.9)

    def test_a_redirect_is_not_followed(self):
        self.misbehave((302, b"", {"Location": "https://127.0.0.1:1/"}), "refused")

    def test_no_http(self):
        self.misbehave(b"\x00\x01\x02 nonsense\r\n\r\n", "unreachable")

    def test_a_stalled_stream(self):
        """A half-open connection: nothing comes, and no end either."""
        self.api.put(converted())
        streams = []

        def stall(path, headers):
            streams.append(path)
            return None if len(streams) == 1 else self.api.DEFAULT
        self.api.watch_script = stall
        rayhook = self.serve("--watch-idle-timeout", "1")
        rayhook.wait_metric('rayhook_watch_restarts_total{reason="unreachable"}', 1)
        self.assertEqual(self.reason(plain_pod()), "restored")
        self.follows()

    def test_a_list_that_misbehaves(self):
        self.api.put(converted())
        for answers in ([(500, {}), (200, b"{"), (200, b"[]"), (200, {"kind": "ServiceList"})],
                        [(200, {"items": [], "metadata": {}}), (200, {"items": [], "metadata": {"resourceVersion": ""}}),
                         b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]):
            self.api.list_script = lambda path, headers, left=answers: left.pop() if left else self.api.DEFAULT
            rayhook = self.serve()
            self.assertEqual(self.reason(plain_pod()), "restored")
            rayhook.stop()

    def test_a_service_that_cannot_be_read_hides_no_other(self):
        self.api.put(converted("a-good-one"))
        self.api.services["team-a", "bad"] = {"metadata": {"name": "bad", "namespace": "team-a"}, "spec": {"ports": "none"}}
        rayhook = self.serve()
        self.assertEqual(rayhook.metric("rayhook_services_indexed "), 1)

    def test_events_that_come_twice(self):
        self.api.put(converted())
        self.api.events = [(version, line * 3) for version, line in self.api.events]
        self.api.version += 1
        rayhook = self.serve()
        self.api.events += [(self.api.version + 1, watch_line("ADDED", converted(resourceVersion="900")) * 2)]
        self.follows()
        self.assertEqual(rayhook.metric("rayhook_services_indexed "), 2)

    def test_a_token_that_expires(self):
        token, valid = self.pki.path("watch-token"), ["one"]
        with open(token, "w") as file:
            file.write("one")

        def script(path, headers):
            return self.api.DEFAULT if headers["Authorization"] == "Bearer " + valid[0] else (401, {})
        self.api.list_script = self.api.watch_script = script
        rayhook = self.serve(kubeconfig=self.kubeconfig(user={"tokenFile": token}))
        valid[0] = "another"
        with open(token + ".new", "w") as file:
            file.write("another")
        os.rename(token + ".new", token)
        self.api.end_watches()
        self.follows()
        self.assertEqual(self.restarts(rayhook, "forbidden"), 0, "the 401 made it read the file")

    def test_bookmarks_move_the_version(self):
        lines = [chunk(watch_line("BOOKMARK", {"kind": "Service", "metadata": {"resourceVersion": "150"}})) + chunk(b"")]
        self.api.watch_script = lambda path, headers: WATCH_HEAD + lines.pop() if lines else self.api.DEFAULT
        self.serve()
        wait_until(lambda: any("watch=1" in path and "resourceVersion=150" in path for path, _ in self.api.watches))

    def test_broken_and_back(self):
        """While it is broken: what is known, and GETs that know better."""
        self.api.put(converted())
        rayhook = self.serve()
        self.api.list_script = self.api.watch_script = lambda path, headers: (500, {})
        self.api.end_watches()
        rayhook.wait_for(level="warn")
        wait_until(lambda: rayhook.metric("rayhook_watch_healthy ") == 0)
        self.assertEqual(rayhook.get("/readyz")[0], 200)
        self.assertEqual(self.reason(plain_pod()), "restored", "what is known")
        self.assertEqual(self.reason(harness.reader()), "service-absent", "a GET knows better")
        self.api.script = lambda path, headers: (500, {})
        wait_until(lambda: self.reason(harness.reader()) == "rewritten", "what is known, where the GET fails")
        self.api.list_script = self.api.watch_script = lambda path, headers: self.api.DEFAULT
        rayhook.wait_metric("rayhook_watch_healthy ", 1)
        self.follows()

    def test_sigterm_during_a_list_that_hangs(self):
        self.api.list_script = lambda path, headers: None
        rayhook = self.serve(ready=False)
        wait_until(lambda: self.api.watches)
        self.assertEqual(rayhook.stop(), 0)


class Hold(ClusterTest):
    """Pods that come before their Service."""

    def setUp(self):
        super().setUp()
        self.known = NOT_FOUND
        self.rayhook = self.serve(lambda path, headers: self.known)

    def held(self, review, path="/mutate?timeout=10s"):
        """Sends a review that is held; its answer is read later."""
        client = self.rayhook.connect()
        self.addCleanup(client.close)
        client.send(harness.request(review, path))
        wait_until(lambda: self.rayhook.metric("rayhook_held_reviews ") > 0, "the hold")
        return client

    def test_the_watch_ends_the_wait(self):
        client = self.held(worker())
        self.api.put(converted())
        response = client.answer().json["response"]
        self.assertEqual(response["auditAnnotations"]["reason"], "rewritten")
        self.assertEqual(self.rayhook.metric('rayhook_holds_total{result="came"}'), 1)
        self.assertEqual(self.rayhook.metric("rayhook_held_reviews "), 0)

    def test_so_does_a_service_that_is_not_headless(self):
        client = self.held(worker())
        self.known = stored_service("ray-head", False)
        self.assertEqual(client.answer().json["response"]["auditAnnotations"]["reason"], "rewritten", "convertible")

    def test_two_seconds_at_most_and_then_a_controller_is_told_to_come_back(self):
        begin = time.monotonic()
        response = self.client.post(owned(worker())).json["response"]
        took = time.monotonic() - begin
        self.assertGreater(took, 1.9)
        self.assertLess(took, 2 + harness.SLOW)
        self.assertEqual((response["allowed"], response["status"]["code"]), (False, 429))
        self.assertEqual(response["auditAnnotations"]["reason"], "service-awaited")
        self.assertNotIn("details", response["status"])
        self.assertEqual(self.rayhook.wait_for(reason="service-awaited")["outcome"], "deny")

    def test_a_name_in_peace_is_waited_for_again_once_its_service_is_being_made(self):
        path = self.pki.path("short.yaml")
        with open(path, "w") as out:
            out.write("unknownService: {hold: 300ms, retryFor: 300ms}\n")
        self.rayhook = self.serve(lambda path, headers: pod_list() if "/pods" in path else NOT_FOUND, "--config", path)
        def held():
            before = self.rayhook.metric("rayhook_holds_total")
            self.assertEqual(self.reason(worker()), "service-absent")
            return self.rayhook.metric("rayhook_holds_total") > before
        self.assertTrue(held())
        wait_until(lambda: not held(), "peace")
        self.assertEqual(self.reason(service()), "converted")
        self.assertTrue(held(), "its Service is being made: it is worth waiting again")

    def test_a_bare_pod_is_admitted(self):
        self.assertEqual(self.reason(worker()), "service-absent")
        self.assertEqual(self.rayhook.metric('rayhook_holds_total{result="gone"}'), 1)

    def test_half_of_the_reviews_time_at_most(self):
        begin = time.monotonic()
        self.reason(worker(), path="/mutate?timeout=1s")
        self.assertLess(time.monotonic() - begin, 0.9 * harness.SLOW)

    def test_not_in_a_dry_run_nor_for_an_audit(self):
        begin = time.monotonic()
        self.assertEqual(self.reason(owned(worker(dry_run=True))), "service-absent")
        self.assertEqual(self.reason(owned(worker()), path="/audit?timeout=10s"), "service-absent")
        self.assertLess(time.monotonic() - begin, 1.5 * harness.SLOW)
        self.assertEqual(self.rayhook.metric("rayhook_holds_total"), 0)
        self.assertEqual(self.reason(owned(worker()), allowed=False), "service-awaited", "and no window was opened or closed")

    def test_only_for_a_ray_address(self):
        begin = time.monotonic()
        self.assertEqual(self.reason(owned(harness.reader())), "service-absent")
        self.assertLess(time.monotonic() - begin, 1.5 * harness.SLOW)

    def test_a_failing_look_up_means_leave(self):
        self.known = (500, {})
        begin = time.monotonic()
        self.assertEqual(self.reason(owned(worker())), "service-unknown")
        self.assertLess(time.monotonic() - begin, 1.5 * harness.SLOW)

    def test_no_more_than_thirty_two(self):
        clients = [self.rayhook.connect() for _ in range(40)]
        for number, client in enumerate(clients):
            client.send(harness.request(worker(f"head-{number}")))
        self.rayhook.wait_metric('rayhook_holds_total{result="refused"}', 8)
        self.assertLessEqual(self.rayhook.metric("rayhook_held_reviews "), 32)
        for client in clients:
            self.assertEqual(client.answer().json["response"]["auditAnnotations"]["reason"], "service-absent")
            client.close()
        self.assertEqual(self.rayhook.metric('rayhook_holds_total{result="gone"}'), 32)

    def test_others_are_served_meanwhile(self):
        client = self.held(worker())
        begin = time.monotonic()
        self.assertEqual(self.reason(plain_pod()), "no-reference")
        self.assertLess(time.monotonic() - begin, 1 * harness.SLOW)
        client.answer()


class RunningReaders(ClusterTest):
    """What a Service meets at its creation."""

    def answers(self, *pages, status=200):
        pages = list(pages)

        def script(path, headers):
            if "/pods" not in path:
                return NOT_FOUND
            at = int(path.partition("continue=")[2] or 0)
            return pod_list(*pages[at], more=str(at + 1) if at + 1 < len(pages) else "")
        return script

    def test_none(self):
        self.serve(self.answers([pod("a"), pod("b")], [pod("c")]))
        self.assertEqual(self.reason(service()), "converted")
        self.assertEqual([path for path, _ in self.api.requests],
                         ["/api/v1/namespaces/team-a/pods?limit=500", "/api/v1/namespaces/team-a/pods?limit=500&continue=1"])

    def test_one_is_found_on_the_second_page(self):
        rayhook = self.serve(self.answers([pod("a")], [pod("b", READER), pod("c", READER)], [pod("d")]))
        answer = self.client.post(service()).json["response"]
        self.assertEqual(answer["auditAnnotations"]["reason"], "running-readers")
        self.assertIn("pod b", answer["warnings"][0])
        self.assertNotIn("patch", answer)
        self.assertEqual(len(self.api.requests), 2, "the list stops at the first reader")
        self.assertEqual(rayhook.metric('rayhook_pod_lists_total{result="reader_found"}'), 1)

    def test_who_is_no_reader(self):
        defined = pod("own", READER)
        defined["spec"]["containers"][0]["env"] = [{"name": "RAY_HEAD_SERVICE_HOST", "value": "x"}]
        linkless = pod("linkless", READER)
        linkless["spec"]["enableServiceLinks"] = False
        self.serve(self.answers([pod("done", READER, phase="Succeeded"), pod("failed", READER, phase="Failed"),
                                 pod("going", READER, deletionTimestamp="2026-01-01T00:00:00Z"), defined, linkless,
                                 pod("other", "echo $OTHER_SERVICE_HOST"), {"metadata": 7}, pod("none", 7)]))
        self.assertEqual(self.reason(service()), "converted")

    def test_a_pod_that_was_admitted_just_now_is_seen(self):
        """What is admitted is stored a moment later: the list comes after that moment."""
        listed = []

        def script(path, headers):
            listed.append(time.monotonic())
            return pod_list(pod("late", READER))
        self.serve(script)
        begin = time.monotonic()
        self.assertEqual(self.reason(service()), "running-readers")
        self.assertGreaterEqual(listed[0] - begin, 0.2)
        dry = service()
        dry["request"]["dryRun"] = True
        self.assertEqual(self.reason(dry), "running-readers")

    def test_an_opted_out_pod_counts(self):
        self.serve(self.answers([pod("out", READER, annotations={"rayhook/mode": "ignore"})]))
        self.assertEqual(self.reason(service()), "running-readers")

    def test_a_worker_that_the_selector_matches(self):
        self.serve(self.answers([pod("w", "ray start --address=x:1", labels={"app": "ray-head"})]))
        self.assertEqual(self.reason(service()), "matches-workers")

    def test_a_third_of_the_time_and_then_it_stays(self):
        rayhook = self.serve(lambda path, headers: None)
        begin = time.monotonic()
        self.assertEqual(self.reason(service(), path="/mutate?timeout=3s"), "readers-unknown")
        self.assertLess(time.monotonic() - begin, 1.5 * harness.SLOW)
        rayhook.wait_for(msg="the pods of a namespace could not be listed in time")

    def test_a_list_that_fails_means_it_stays(self):
        for answer in ((500, {}), (403, {}), (200, b"{"), (200, {"items": []}), b"", (410, {})):
            with self.subTest(str(answer)[:30]):
                rayhook = self.serve(lambda path, headers, answer=answer: answer)
                self.assertEqual(self.reason(service()), "readers-unknown")
                rayhook.stop()

    def test_lists_of_one_namespace_are_shared(self):
        gate = threading.Event()

        def script(path, headers):
            gate.wait(harness.PATIENCE)
            return pod_list()
        rayhook = self.serve(script)
        clients = [rayhook.connect() for _ in range(12)]
        for number, client in enumerate(clients):
            client.send(harness.request(service(f"head-{number}"), "/mutate?timeout=30s"))
        rayhook.wait_metric("rayhook_in_flight_reviews ", 12)
        # Each asks a moment after it came, and so in order: when the last has given up, the others wait for a list.
        self.assertEqual(self.reason(service("last"), "/mutate?timeout=1s"), "readers-unknown")
        gate.set()
        for client in clients:
            self.assertEqual(client.answer().json["response"]["auditAnnotations"]["reason"], "converted")
            client.close()
        self.assertEqual(len(self.api.requests), 3, "two that ran, and one for all that came while they did")

    def test_two_lists_at_once(self):
        gate, running, most = threading.Event(), [0], [0]

        def script(path, headers):
            running[0] += 1
            most[0] = max(most[0], running[0])
            gate.wait(harness.PATIENCE)
            running[0] -= 1
            return pod_list()
        rayhook = self.serve(script)
        clients = [rayhook.connect() for _ in range(6)]
        for number, client in enumerate(clients):
            client.send(harness.request(service(namespace=f"team-{number}"), "/mutate?timeout=30s"))
        rayhook.wait_metric("rayhook_in_flight_reviews ", 6)
        wait_until(lambda: running[0] == 2)
        gate.set()
        for client in clients:
            self.assertEqual(client.answer().json["response"]["auditAnnotations"]["reason"], "converted")
            client.close()
        self.assertEqual(most[0], 2)


class Flood(ClusterTest):
    """Reviews that somebody forges, each with names of its own: what the API server is asked stays bounded."""

    def flood(self, make, path, enough):
        """Sends reviews until `enough`; gives how long it took, and how often there was each reason."""
        clients = [self.rayhook.connect() for _ in range(8)]
        for client in clients:
            self.addCleanup(client.close)
        number, begin, reasons = 0, time.monotonic(), collections.Counter()
        while not enough():
            self.assertLess(time.monotonic() - begin, 3 * harness.PATIENCE, "no limit is met")
            for _ in range(25):
                for client in clients:
                    client.send(harness.request(make(number), path))
                    number += 1
                for client in clients:
                    reasons[client.answer().json["response"]["auditAnnotations"]["reason"]] += 1
        return time.monotonic() - begin, reasons

    def test_lists_of_pods(self):
        self.rayhook = self.serve(lambda path, headers: pod_list())

        def refused():
            return self.rayhook.metric('rayhook_pod_lists_total{result="busy"}') > 200
        took, reasons = self.flood(lambda number: service(namespace=f"made-up-{number}", dry_run=True), "/mutate?timeout=10s", refused)
        self.assertLessEqual(len(self.api.requests), 500 + 50 * took + 2)
        self.assertGreaterEqual(reasons["converted"], 500, "an honest burst is within it")
        self.assertEqual(set(reasons), {"converted", "readers-unknown"}, "over it: as with no answer in time")
        self.assertIn("a second", self.rayhook.wait_for(msg="the pods of a namespace could not be listed in time")["error"])

    def test_gets_of_services(self):
        """The API server is not there any more, so the test's own one sets no pace; each try is counted."""
        self.rayhook = self.serve(lambda path, headers: NOT_FOUND)
        self.api.close()

        def tries():
            return sum(self.rayhook.metric(f'rayhook_lookups_total{{result="{how}"}}') for how in ("failed", "absent"))

        def make(number):
            script = "".join(f"echo $MADE_UP_{number}_{i}_SERVICE_HOST;" for i in range(16))
            return harness.review("Pod", {"name": "forged"}, {"containers": [{"name": "c", "image": "i", "command": ["sh", "-c", script]}]})

        def refused():
            return self.rayhook.metric('rayhook_lookups_total{result="busy"}') > 200
        took, reasons = self.flood(make, "/mutate?timeout=10s", refused)
        self.assertLessEqual(tries(), 1200 + 600 * took + 2)
        self.assertGreaterEqual(tries(), 1200, "an honest burst is within it")
        self.assertEqual(set(reasons) - {"service-absent"}, {"service-unknown"})


class SplitPods(ClusterTest):
    """Pods that were made beside a converted Service while Rayhook was away."""

    def test_are_counted_and_said_with_what_mends_them(self):
        self.api.put(converted())
        owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "1", "controller": True}]
        pods = [pod("split", READER, ownerReferences=owner), pod("bare", READER), pod("done", READER, phase="Succeeded")]
        rayhook = self.serve(lambda path, headers: pod_list(*pods) if "/pods" in path else NOT_FOUND)
        rayhook.wait_metric("rayhook_split_pods ", 2)
        self.assertEqual(rayhook.wait_for(pod="split")["command"], "kubectl -n team-a delete pod split")
        self.assertEqual(rayhook.wait_for(pod="bare")["command"],
                         "kubectl -n team-a get pod bare -o json | kubectl -n team-a replace --force -f -")
        self.assertEqual(rayhook.find(pod="done"), [])

    def test_are_looked_for_again(self):
        self.api.put(converted())
        pods = [pod("split", READER)]
        rayhook = self.serve(lambda path, headers: pod_list(*pods), "--split-pods-interval", "1")
        rayhook.wait_metric("rayhook_split_pods ", 1)
        mended = self.client.post(worker()).json["response"]
        self.assertIn("patch", mended)
        self.assertTrue(json.loads(base64.b64decode(mended["patch"])))
        pods.clear()
        wait_until(lambda: rayhook.metric("rayhook_split_pods ") == 0)

    def test_a_list_that_fails_at_the_start_is_tried_again_soon(self):
        """The interval is ten minutes here: only the retry can find it."""
        self.api.put(converted())
        answers = [(500, {})]
        rayhook = self.serve(lambda path, headers: answers.pop() if answers else pod_list(pod("split", READER)))
        rayhook.wait_for(msg="pods could not be listed to look for split ones")
        rayhook.wait_metric("rayhook_split_pods ", 1)
        self.assertEqual(rayhook.wait_for(pod="split")["command"].split()[-1], "-")
        self.assertEqual(len(self.api.requests), 2, "one retry, not many")

    def test_a_list_that_fails_takes_nothing_back(self):
        self.api.put(converted())
        answer = [pod_list(pod("split", READER))]
        rayhook = self.serve(lambda path, headers: answer[0], "--split-pods-interval", "1")
        rayhook.wait_metric("rayhook_split_pods ", 1)
        answer[0] = (500, {})
        wait_until(lambda: rayhook.metric('rayhook_pod_lists_total{result="failed"}') >= 2, "two lists that fail")
        self.assertEqual(rayhook.metric("rayhook_split_pods "), 1)
        answer[0] = pod_list()
        wait_until(lambda: rayhook.metric("rayhook_split_pods ") == 0, "the list that succeeds")

    def test_an_old_database_is_no_split_pod(self):
        """Only pods whose text names what they lack, or whose code may: those that came after their Service."""
        rayhook = self.serve(lambda path, headers: pod_list(
            pod("old-database", creationTimestamp="2026-01-01T00:00:00Z"),
            pod("made-together", creationTimestamp="2026-05-01T12:00:00Z"),
            pod("old-reader", READER, creationTimestamp="2026-01-01T00:00:00Z"),
            pod("old-link", "echo $RAY_HEAD_PORT", creationTimestamp="2026-01-01T00:00:00Z"),
            pod("new-and-silent", creationTimestamp="2026-05-01T12:00:01Z"),
            pod("opted-out", annotations={"rayhook/mode": "ignore"}, creationTimestamp="2026-05-01T12:00:01Z")))
        self.api.put(converted(creationTimestamp="2026-05-01T12:00:00Z"))
        rayhook.wait_metric("rayhook_split_pods ", 3)
        commands = {line["pod"] for line in rayhook.lines if line and "command" in line}
        self.assertEqual(commands, {"old-reader", "old-link", "new-and-silent"})
        self.assertIn("its code may read", rayhook.wait_for(pod="new-and-silent")["msg"])
        self.assertIn("its text names", rayhook.wait_for(pod="old-reader")["msg"])
        told = {line["pod"]: line["level"] for line in rayhook.lines if line and "older than" in line.get("msg", "")}
        self.assertEqual(told, {"old-database": "info", "made-together": "info"}, "without a command")

    def test_at_start_older_pods_are_not_even_told_of(self):
        self.api.put(converted(creationTimestamp="2026-05-01T12:00:00Z"))
        rayhook = self.serve(lambda path, headers: pod_list(
            pod("old-database", creationTimestamp="2026-01-01T00:00:00Z"), pod("split", READER)))
        rayhook.wait_metric("rayhook_split_pods ", 1)
        self.assertEqual(rayhook.find(pod="old-database"), [])

    def test_made_in_the_moment_of_the_conversion_are_found_soon(self):
        """Nothing can be held for ever: a reader may be admitted by one replica while another converts its Service."""
        rayhook = self.serve(lambda path, headers: pod_list(pod("raced", READER + " $SECOND_HEAD_SERVICE_HOST")) if "/pods" in path else NOT_FOUND)
        self.api.put(converted())
        rayhook.wait_metric("rayhook_split_pods ", 1)
        self.assertIn("get pod raced", rayhook.wait_for(pod="raced")["command"])
        lists = len(self.api.requests)
        self.api.put(converted(labels={"changed": "yes"}))
        wait_until(lambda: rayhook.metric("rayhook_services_indexed ") == 1)
        self.api.put(converted("second-head", "team-b"))
        wait_until(lambda: any("team-b" in path for path, _ in self.api.requests), "the look at the other namespace")
        self.assertEqual([path for path, _ in self.api.requests[lists:] if "team-a" in path], [], "a change is no conversion")
        rayhook.wait_metric("rayhook_split_pods ", 2)

    def test_only_where_a_service_was_converted(self):
        lost = converted()
        del lost["metadata"]["annotations"]
        self.api.put(lost)
        self.serve(lambda path, headers: NOT_FOUND, "--split-pods-interval", "1")
        time.sleep(0.2)
        self.assertEqual(self.api.requests, [])
