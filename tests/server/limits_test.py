# SPDX-License-Identifier: Apache-2.0
"""The limits of connections, each at the limit and one past it, and who is shut out when they are reached: whoever
waits, never the API server. Part of server_test.py."""

import os
import signal
import socket
import ssl
import threading
import time

import harness
from case import Case
from harness import PATIENCE, ClusterTest, Rayhook, plain_pod, reader, request
from pressure_test import padded_pod


class Limits(Case):
    def test_slow_clients_are_cut_off(self):
        rayhook = self.serve("--handshake-timeout", "1", "--header-timeout", "1", "--body-timeout", "1")
        begin = time.monotonic()
        header, body = rayhook.connect(), rayhook.connect()
        silent = rayhook.connect_plain()
        whole = request(plain_pod())
        stop = threading.Event()

        def drip(client, data):
            try:
                for i in range(len(data)):
                    client.send(data[i:i + 1])
                    if stop.wait(0.1):
                        return
            except OSError:
                pass

        body.send(whole[:whole.index(b"{")])
        drips = [threading.Thread(target=drip, args=pair) for pair in ((header, whole), (body, whole[whole.index(b"{"):]))]
        for thread in drips:
            thread.start()
        self.assertEqual(silent.recv(10), b"")
        self.assertEqual((header.read(), body.read()), (b"", b""))
        self.assertLess(time.monotonic() - begin, 3.5 * harness.SLOW, "a byte now and then wins no time")
        stop.set()
        for thread in drips:
            thread.join()
        for client in (silent, header, body):
            client.close()
        for name in ('http_errors_total{reason="header_timeout"}', 'http_errors_total{reason="body_timeout"}',
                     'handshake_failures_total{reason="timeout"}'):
            rayhook.wait_metric("rayhook_" + name, 1)
            self.assertEqual(rayhook.metric("rayhook_" + name), 1, name)

    def test_idle_connections_end_in_their_time(self):
        rayhook = self.serve("--idle-timeout", "2")
        with rayhook.connect() as client:
            client.post(plain_pod())
            time.sleep(0.9)
            client.post(plain_pod())
            begin = time.monotonic()
            self.assertTrue(client.ended())
            self.assertGreater(time.monotonic() - begin, 1.5)
        self.assertEqual(rayhook.metric("rayhook_http_errors_total"), 0)

    # ---- at the limit, and one past it

    def silent(self, rayhook, count):
        """Connections on which nothing is ever said, the oldest first."""
        opened = [rayhook.connect_plain() for _ in range(count)]
        for plain in opened:
            self.addCleanup(plain.close)
        return opened

    def clients(self, rayhook, count):
        opened = [rayhook.connect() for _ in range(count)]
        for client in opened:
            self.addCleanup(client.close)
        return opened

    @staticmethod
    def is_open(plain):
        """Of one on which nothing is said."""
        plain.setblocking(False)
        try:
            return plain.recv(1) != b""
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        finally:
            plain.settimeout(PATIENCE)

    def given_up(self, rayhook):
        return rayhook.metric("rayhook_connections_refused_total")

    def test_one_connection_past_the_limit_ends_the_one_that_idles_longest(self):
        rayhook = self.serve("--threads", "1", "--max-connections", "3")
        held = self.clients(rayhook, 3)
        for client in [held[1], held[0], held[2]]:
            self.assertEqual(client.post(plain_pod()).status, 200)
        self.assertEqual(self.given_up(rayhook), 0)
        held += self.clients(rayhook, 1)
        self.assertTrue(held[1].ended())
        for client in [held[0], held[2], held[3]]:
            self.assertEqual(client.post(plain_pod()).status, 200)
        self.assertEqual(self.given_up(rayhook), 1)
        rayhook.wait_for(msg="connections or requests came to nothing", connectionsRefused=1)

    def test_a_fresh_connection_is_not_given_up_for_the_next(self):
        """Though it has not sent anything yet: the API server's has not either, at first."""
        rayhook = self.serve("--threads", "1", "--max-connections", "3")
        slow = self.clients(rayhook, 2)
        for client in slow:
            client.send(request(plain_pod())[:-1])
        with rayhook.connect() as other:  # once the one thread has answered this, it has read what the slow ones sent
            self.assertEqual(other.post(plain_pod()).status, 200)
        rayhook.wait_metric("rayhook_connections ", 2)
        fresh = self.clients(rayhook, 1)
        for number in range(2):
            fresh += self.clients(rayhook, 1)
            self.assertTrue(slow[number].ended())
        for client in fresh:
            self.assertEqual(client.post(plain_pod()).status, 200)

    def test_slow_clients_on_all_connections_do_not_keep_the_api_server_out(self):
        rayhook = self.serve("--max-connections", "32", "--header-timeout", "60", "--body-timeout", "60")
        whole = request(plain_pod())
        for number, client in enumerate(self.clients(rayhook, 32)):
            client.send(whole[:30] if number % 2 else whole[:-1])
        for _ in range(8):
            with rayhook.connect() as client:
                self.assertEqual(client.post(plain_pod()).status, 200)

    def test_one_handshake_past_the_limit_ends_the_oldest(self):
        rayhook = self.serve("--threads", "1", "--max-handshakes", "3", "--handshake-timeout", "60")
        held = self.silent(rayhook, 3)
        harness.wait_until(lambda: rayhook.metric("rayhook_connections ") == 3, "three handshakes")
        self.assertEqual([self.is_open(plain) for plain in held], [True] * 3)
        held += self.silent(rayhook, 1)
        harness.wait_until(lambda: not self.is_open(held[0]), "the end of the oldest")
        self.assertEqual([self.is_open(plain) for plain in held], [False, True, True, True])
        self.assertEqual((self.given_up(rayhook), rayhook.metric("rayhook_handshake_failures_total")), (1, 0))

    def test_a_scan_that_holds_all_handshakes_open_does_not_keep_the_api_server_out(self):
        rayhook = self.serve("--handshake-timeout", "60")
        scan = self.silent(rayhook, 200)
        with rayhook.connect() as client:
            self.assertEqual(client.post(plain_pod()).status, 200)
            scan += self.silent(rayhook, 100)
            self.assertEqual(client.post(plain_pod()).status, 200, "one that has been served stays")
        with rayhook.connect() as client:
            self.assertEqual(client.post(plain_pod()).status, 200)
        self.assertLessEqual(sum(self.is_open(plain) for plain in scan), 64)
        self.assertEqual(rayhook.metric("rayhook_handshake_failures_total"), 0)

    def test_one_byte_past_the_bodies_budget(self):
        budget = 9 * 1024 * 1024
        rayhook = self.serve("--max-body-bytes", str(budget))
        large, other = self.clients(rayhook, 2)
        first = padded_pod(budget - 20000)
        large.send(request(first)[:-1])
        self.assertEqual(other.post(padded_pod(20000)).status, 200)
        answer = other.post(padded_pod(20001))
        self.assertEqual((answer.status, answer.fields["retry-after"]), (503, "1"))
        large.send(first[-1:])
        self.assertEqual(large.answer().status, 200)
        self.assertEqual(other.post(padded_pod(20001)).status, 200)

    def test_the_last_request_of_a_connection(self):
        rayhook = self.serve("--max-requests", "3")
        client, = self.clients(rayhook, 1)
        client.send(request(plain_pod()) * 4)
        self.assertEqual([client.answer().fields.get("connection") for _ in range(3)], [None, None, "close"])
        self.assertTrue(client.ended())

    def test_slow_but_in_time(self):
        """A little less than each of the limits that test_slow_clients_are_cut_off is past."""
        rayhook = self.serve("--handshake-timeout", "3", "--header-timeout", "3", "--body-timeout", "3")
        context = ssl.create_default_context(cafile=self.pki.ca)
        plain, = self.silent(rayhook, 1)
        time.sleep(2)
        whole = request(plain_pod())
        with context.wrap_socket(plain, server_hostname="localhost") as slow:
            for piece in (whole[:20], whole[20:whole.index(b"{") + 5], whole[whole.index(b"{") + 5:]):
                slow.sendall(piece)
                if piece != whole[-len(piece):]:
                    time.sleep(2)
            self.assertTrue(slow.recv(100).startswith(b"HTTP/1.1 200 "))
        self.assertEqual(rayhook.metric("rayhook_http_errors_total"), 0)

    def test_who_takes_no_answers_is_cut_off(self):
        rayhook = self.serve("--write-timeout", "1")
        client, = self.clients(rayhook, 1)
        many = request(plain_pod()) * 200
        with self.assertRaises(OSError):
            while True:
                client.send(many)
        self.assertEqual(rayhook.metric('rayhook_http_errors_total{reason="write_timeout"}'), 1)

    def test_who_came_last_while_it_was_held_up_is_answered(self):
        """Throttled, say. Those before are more than there may be, and gone when they are accepted."""
        rayhook = self.serve("--threads", "1")
        rayhook.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(3000):
                rayhook.connect_plain().close()
            plain = rayhook.connect_plain()
        finally:
            rayhook.process.send_signal(signal.SIGCONT)
        with rayhook.connect(plain=plain) as client:
            self.assertEqual(client.post(plain_pod()).status, 200)

    def test_a_port_scan_costs_a_line_a_minute(self):
        """The first fault is told at once, the others together; a real request in between is answered."""
        rayhook = self.serve("--idle-timeout", "60")
        # All of its own are open once it has answered.
        harness.wait_until(lambda: self.answered(rayhook), "the first answer")
        harness.wait_until(lambda: rayhook.metric("rayhook_connections ") == 0, "the end of that connection")
        opened = self.descriptors(rayhook)
        count = 3000 if not os.environ.get("RAYHOOK_SANITIZER") else 500
        for i in range(count):
            with rayhook.connect_plain() as plain:
                if i % 3 == 1:
                    plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
                elif i % 3 == 2:
                    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset
            if i % 500 == 0:
                self.assertTrue(self.answered(rayhook), "an answer in between")
        harness.wait_until(lambda: rayhook.metric("rayhook_connections ") == 0, "the end of all connections")
        harness.wait_until(lambda: self.descriptors(rayhook) <= opened, "the release of all descriptors")

        def failed():
            return rayhook.metric("rayhook_handshake_failures_total") + self.given_up(rayhook)
        harness.wait_until(lambda: failed() >= count, "the acceptance of the last ones")
        counted = failed()
        self.assertEqual(rayhook.stop(), 0)
        told = rayhook.find(msg="connections or requests came to nothing")
        self.assertLessEqual(len(told), 3)
        self.assertEqual(sum(sum(line.get("handshakes", {}).values()) + line.get("connectionsRefused", 0) for line in told),
                         counted)
        self.assertLess(len(rayhook.raw), 20)

    def answered(self, rayhook):
        try:
            with rayhook.connect() as client:
                self.assertEqual(client.post(plain_pod()).status, 200)
                return True
        except OSError:
            return False

    @staticmethod
    def descriptors(rayhook):
        return len(os.listdir(f"/proc/{rayhook.process.pid}/fd"))

    def test_connection_age(self):
        rayhook = self.serve("--max-connection-age", "1")
        with rayhook.connect() as client:
            self.assertNotIn("connection", client.post(plain_pod()).fields)
            time.sleep(1.1)
            self.assertEqual(client.post(plain_pod()).fields["connection"], "close")
            self.assertTrue(client.ended())

    def test_no_descriptors_left(self):
        """The listener outlives EMFILE, without spinning, and serves again afterwards."""
        with open(harness.PROGRAM, "rb") as file:
            if b"__ubsan_handle" in file.read():
                return  # UBSan needs a pipe to look at an object's type, and takes its absence for a fault
        limited = self.pki.path("limited.sh")
        with open(limited, "w") as file:
            file.write(f'#!/bin/sh\nulimit -n 40\nexec "{harness.PROGRAM}" "$@"\n')
        os.chmod(limited, 0o755)
        rayhook = Rayhook(limited, self.pki, "--handshake-timeout", "2")
        self.addCleanup(rayhook.stop)
        held = [rayhook.connect_plain() for _ in range(60)]
        time.sleep(1)
        before = time.monotonic(), self.cpu(rayhook)
        time.sleep(1)
        self.assertLess(self.cpu(rayhook) - before[1], 0.3 * harness.SLOW)
        for plain in held:
            plain.close()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                with rayhook.connect() as client:
                    self.assertEqual(client.post(plain_pod()).status, 200)
                    break
            except (OSError, EOFError):
                time.sleep(0.1)
        else:
            self.fail("it never recovered")
        self.assertGreater(rayhook.metric("rayhook_accept_failures_total"), 0)

    @staticmethod
    def cpu(rayhook):
        with open(f"/proc/{rayhook.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class AllAtWork(ClusterTest):
    def test_the_new_connection_is_refused_if_no_other_waits(self):
        asked, go_on = threading.Semaphore(0), threading.Event()

        def script(_path, _headers):
            asked.release()
            go_on.wait(PATIENCE)
            return harness.NOT_FOUND
        rayhook = self.serve(script, "--max-connections", "3")
        busy = [self.client, *(rayhook.connect() for _ in range(2))]
        for number, client in enumerate(busy):
            self.addCleanup(client.close)
            client.send(request(reader(f"head-{number}")))
            self.assertTrue(asked.acquire(timeout=PATIENCE))
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            rayhook.connect()
        go_on.set()
        for client in busy:
            self.assertEqual(client.answer().status, 200)
        self.assertEqual(rayhook.metric("rayhook_connections_refused_total"), 1)
