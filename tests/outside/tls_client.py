# SPDX-License-Identifier: Apache-2.0
"""tlslite-ng's client, every message, record and byte of which can be changed on its way out. It does not look at the
server's certificate: that is others' work."""

import contextlib
import socket

from tlslite.constants import AlertDescription, KeyUpdateMessageType
from tlslite.errors import TLSAbruptCloseError, TLSRemoteAlert
from tlslite.handshakesettings import HandshakeSettings
from tlslite.messages import ClientHello, Message
from tlslite.tlsconnection import TLSConnection

from harness import request

TLS12, TLS13 = (3, 3), (3, 4)


class HangUp(Exception):
    """What a change may raise: the connection is closed there and then."""


class Wire:
    """A TCP connection on which `change(bytes)` is sent in place of what is given, `piece` bytes at a time."""

    def __init__(self, plain, piece):
        self.plain, self.piece, self.change = plain, piece, None

    def __getattr__(self, name):
        return getattr(self.plain, name)

    def send(self, data):
        self.sendall(data)
        return len(data)

    def sendall(self, data):
        data = self.change(bytes(data)) if self.change else bytes(data)
        for begin in range(0, len(data), self.piece):
            self.plain.sendall(data[begin:begin + self.piece])


class TlsClient(TLSConnection):
    """`before(message)` is called before each message of the handshake, which it may change; `wire.change` is what
    becomes of the bytes. `record_size`: the most that a record holds."""

    def __init__(self, rayhook, version, record_size=16384, piece=65536):
        plain = rayhook.connect_plain()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.wire, self.before, self.first_hello = Wire(plain, piece), lambda message: None, None
        super().__init__(self.wire)
        self.recordSize = record_size
        self.settings = HandshakeSettings()
        self.settings.minVersion = self.settings.maxVersion = version
        self.settings.versions = [version]
        self.settings.eccCurves, self.settings.keyShares = ["x25519", "secp256r1"], ["x25519"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.plain.close()

    def _sendMsg(self, msg, *args, **options):
        if isinstance(msg, ClientHello) and not self.first_hello:
            self.first_hello = bytes(msg.write())
        self.before(msg)
        return super()._sendMsg(msg, *args, **options)

    def shake_hands(self):
        self.handshakeClientCert(settings=self.settings, serverName="localhost", alpn=[bytearray(b"http/1.1")])

    def post(self, body):
        """Sends a review; returns the status of its answer."""
        self.sendall(request(body))
        return int(self.read(min=12).split()[1])

    def record(self, kind, content):
        """One record in good order, whatever is in it, and however much."""
        for _ in self._recordLayer.sendRecord(Message(kind, bytearray(content))):
            pass

    @contextlib.contextmanager
    def burst(self):
        """What is sent meanwhile is sent in one."""
        self.sock.buffer_writes = True
        yield
        self.sock.flush()
        self.sock.buffer_writes = False

    def update_keys(self, requested):
        """A KeyUpdate, which the server must answer with its own if `requested`."""
        kinds = KeyUpdateMessageType
        for _ in self.send_keyupdate_request(kinds.update_requested if requested else kinds.update_not_requested):
            pass

    def end(self, act=lambda: None):
        """What the server ends the connection with, while `act` is done or afterwards: the name of its alert, "" without."""
        try:
            act()
            while self.read():
                pass
        except TLSRemoteAlert as alert:
            return AlertDescription.toStr(alert.description)
        except TimeoutError:
            raise
        except (TLSAbruptCloseError, OSError):
            return ""
        return "close_notify"
