# SPDX-License-Identifier: Apache-2.0
"""A client that breaks the rules of TLS: in the handshake, and after it. Whatever it does, the server refuses it with the
right alert, counts it, serves others meanwhile and holds nothing of it afterwards. Part of outside_test.py."""

import contextlib
import functools
import time

from tlslite.constants import ContentType
from tlslite.messages import Finished

from outside_case import Outside, harness, plain_pod, wait_until
from tls_client import TLS12, TLS13, HangUp, TlsClient

VERSIONS = {"TLS 1.2": TLS12, "TLS 1.3": TLS13}
REASONS = ("protocol", "timeout", "closed", "client_certificate")


def flip_last(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def first_half(data):
    return data[:len(data) // 2]


def hang_up(_data):
    raise HangUp


def at_finished(client, change):
    """The bytes of the client's Finished are changed, and all that come after."""
    def before(message):
        if isinstance(message, Finished):
            client.wire.change = change
    client.before = before


class ScriptedTls(Outside):
    def failures(self):
        return {reason: self.rayhook.metric(f'rayhook_handshake_failures_total{{reason="{reason}"}}') for reason in REASONS}

    @contextlib.contextmanager
    def client(self, what, version, failure=None, **options):
        """A connection; how its handshake fails is counted, once, and after it all is as before."""
        expected = self.failures()
        if failure:
            expected[failure] += 1
        try:
            with TlsClient(self.rayhook, version, **options) as client:
                yield client
            wait_until(lambda: self.failures() == expected, str(expected))
            self.is_as_before()
        except Exception as error:
            error.add_note(what)
            raise


class Handshakes(ScriptedTls):
    def test_in_crumbs(self):
        """One byte a record, one byte a segment: slow, but right."""
        self.serve()
        for name, version in VERSIONS.items():
            with self.client(f"{name} in crumbs", version, record_size=1, piece=1) as client:
                client.shake_hands()
                self.assertEqual(client.post(plain_pod()), 200)
        self.is_well("TLS in crumbs: understood")

    def test_a_false_end(self):
        """A Finished that does not fit what was said, and one whose record was changed on the way."""
        self.serve()
        def falsify(message):
            if isinstance(message, Finished):
                message.verify_data[0] ^= 1
        for name, version in VERSIONS.items():
            with self.client(f"{name}: a false Finished", version, "protocol") as client:
                client.before = falsify
                self.assertEqual(client.end(client.shake_hands), "decrypt_error")
            with self.client(f"{name}: a Finished with a bad MAC", version, "protocol") as client:
                at_finished(client, flip_last)
                self.assertEqual(client.end(client.shake_hands), "bad_record_mac")
        self.is_well("TLS handshakes with a false end: refused")

    def test_a_false_begin(self):
        self.serve()
        changes = {
            "an unknown content type": (lambda hello: b"\x63" + hello[1:], "unexpected_message"),
            "application data": (lambda hello: b"\x17" + hello[1:], "unexpected_message"),
            "a record one byte too long": (lambda hello: hello[:3] + b"\x48\x01" + hello[5:], "record_overflow"),
            "the longest length there is": (lambda hello: hello[:3] + b"\xff\xff" + hello[5:], "record_overflow"),
            "a message of 16 MiB": (lambda hello: hello[:6] + b"\xff\xff\xff" + hello[9:], "illegal_parameter"),
            "a Finished first": (lambda hello: hello[:5] + b"\x14" + hello[6:], "unexpected_message"),
            "33 empty records": (lambda hello: (hello[:3] + b"\0\0") * 33 + hello, "unexpected_message"),
            "lengths that do not fit": (lambda hello: hello[:43] + b"\xff" + hello[44:], "decode_error"),
        }
        for name, (change, alert) in changes.items():
            with self.client(name, TLS13, "protocol") as client:
                client.wire.change = change
                self.assertEqual(client.end(client.shake_hands), alert)
        self.is_well(f"TLS handshakes with a false begin, {len(changes)} of them: refused")

    def test_in_the_middle(self):
        """It stops there, or hangs up."""
        self.serve("--handshake-timeout", "1")
        for name, version in VERSIONS.items():
            for where in ("its ClientHello", "its Finished"):
                for change, failure in ((first_half, "timeout"), (hang_up, "closed")):
                    with self.client(f"{name}: {failure} at {where}", version, failure) as client:
                        if where == "its Finished":
                            at_finished(client, change)
                        else:
                            client.wire.change = change
                        with contextlib.suppress(HangUp):
                            self.assertEqual(client.end(client.shake_hands), "")
        self.is_well("TLS handshakes that stop or hang up in the middle: ended and counted")


class Records(ScriptedTls):
    """After a handshake in good order."""

    @contextlib.contextmanager
    def shaken(self, what, version):
        with self.client(what, version) as client:
            client.shake_hands()
            self.assertEqual(client.post(plain_pod()), 200)
            yield client

    def test_garbage(self):
        """Records that nobody has encrypted."""
        self.serve()
        for name, version in VERSIONS.items():
            for kind in (20, 21, 22, 23, 24, 99):
                with self.shaken(f"{name}: garbage of type {kind}", version) as client:
                    client.wire.plain.sendall(bytes([kind]) + b"\3\3\0\x40" + bytes(range(64)))
                    self.assertEqual(client.end(), "bad_record_mac" if version == TLS12 or kind == 23 else "unexpected_message")
        self.is_well("garbage after TLS handshakes: refused")

    def test_false_records(self):
        """Encrypted well, but for the first, which breaks off a request."""
        rayhook = self.serve()
        for name, version in VERSIONS.items():
            with self.shaken(f"{name}: a bad MAC", version) as client:
                truncated = rayhook.metric('rayhook_http_errors_total{reason="truncated"}')
                client.sendall(harness.request(plain_pod())[:-1])
                client.wire.change = flip_last
                self.assertEqual(client.end(functools.partial(client.sendall, b"}")), "bad_record_mac")
                self.assertEqual(rayhook.metric('rayhook_http_errors_total{reason="truncated"}'), truncated + 1)
            for what, kind, content, alert in (
                    ("a byte too much", ContentType.application_data, bytes(16385), "record_overflow"),
                    ("an unknown content type", 99, b"x", "unexpected_message"),
                    ("a Finished out of turn", ContentType.handshake, b"\x14\0\0\x0c" + bytes(12), "unexpected_message")):
                with self.shaken(f"{name}: {what}", version) as client:
                    client.record(kind, content)
                    self.assertEqual(client.end(), alert)
        self.is_well("false records after TLS handshakes: refused")

    def test_floods(self):
        """Of what is allowed now and then."""
        self.serve()
        for name, version in VERSIONS.items():
            for what, count, kind, content in (("empty records", 33, ContentType.application_data, b""),
                                               ("warnings", 5, ContentType.alert, b"\1\x5a")):
                with self.shaken(f"{name}: {count} {what}", version) as client:
                    with client.burst():
                        for _ in range(count):
                            client.record(kind, content)
                    self.assertEqual(client.end(), "unexpected_message")
        self.is_well("floods of empty records and of warnings: ended")

    def test_renegotiation(self):
        self.serve()
        with self.shaken("a second ClientHello", TLS12) as client:
            client.record(ContentType.handshake, client.first_hello)
            self.assertEqual(client.end(), "no_renegotiation")
        with self.shaken("a second ClientHello", TLS13) as client:
            client.record(ContentType.handshake, client.first_hello)
            self.assertEqual(client.end(), "unexpected_message")
        with self.shaken("2,000 of them, and no answer read", TLS12) as client:
            for _ in range(2000):
                client.record(ContentType.handshake, client.first_hello)
            self.answers()
        self.is_well("TLS renegotiation: refused")

    def test_key_updates(self):
        """As many as a client likes, but they win it no time: nothing has been asked on the connection."""
        self.serve("--idle-timeout", "3")
        with self.shaken("KeyUpdates in good order", TLS13) as client:
            for number in range(1000):
                client.update_keys(requested=number % 2 == 0)
            self.assertEqual(client.post(plain_pod()), 200)
        for what, content, alert in (("of no kind", b"\x18\0\0\1\7", "illegal_parameter"),
                                     ("two in a record", b"\x18\0\0\1\0" * 2, "unexpected_message"),
                                     ("of no length", b"\x18\0\0\0", "decode_error")):
            with self.shaken(f"a KeyUpdate: {what}", TLS13) as client:
                client.record(ContentType.handshake, content)
                self.assertEqual(client.end(), alert)
        with self.shaken("KeyUpdates without end, and no answer read", TLS13) as client:
            self.assertEqual(client.end(functools.partial(self.flood, client)), "")
        self.is_well("KeyUpdates: followed, and ended in time")

    def flood(self, client):
        end = time.monotonic() + harness.PATIENCE
        while time.monotonic() < end:
            for _ in range(200):
                client.update_keys(requested=True)
            self.answers()
