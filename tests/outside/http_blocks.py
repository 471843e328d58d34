#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""boofuzz against a running server: each part of a review's request in turn takes the values that boofuzz thinks up,
over a TLS connection of its own each time.

  http_blocks.py PORT CA CASES    with boofuzz on PYTHONPATH; CASES for each part"""

import os
import socket
import ssl
import sys
import tempfile

import boofuzz

BODY = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","operation":"CREATE"}}'
PARTS = {"method": "POST", "space": " ", "target": "/mutate", "question": "?timeout=", "timeout": "10s", "version": " HTTP/1.1",
         "line-end": "\r\n", "host-name": "Host", "colon": ": ", "host": "localhost\r\n",
         "type": "Content-Type: ", "media-type": "application/json\r\n", "length-name": "Content-Length: ", "length": str(len(BODY)),
         "more": "\r\nX-More: ", "value": "x", "end": "\r\n\r\n", "body": BODY.decode()}
CHUNKED = {"head": "POST /mutate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", "coding-name": "Transfer-Encoding: ",
           "coding": "chunked", "head-end": "\r\n\r\n", "chunk-size": f"{len(BODY):x}", "extension": ";a=b", "chunk-line-end": "\r\n",
           "chunk": BODY.decode(), "chunk-end": "\r\n", "last": "0", "trailer": "\r\nX-Trailer: x", "very-end": "\r\n\r\n"}


class Connection(boofuzz.SSLSocketConnection):
    def _connect_socket(self):
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super()._connect_socket()


def request(parts, fuzzed):
    """A request in which one part is fuzzed."""
    return boofuzz.Request(f"request-{fuzzed}", children=tuple(
        boofuzz.String(name=name, default_value=text, fuzzable=name == fuzzed) for name, text in parts.items()))


def main():
    port, ca, cases = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    context = ssl.create_default_context(cafile=ca)
    tried = 0
    with tempfile.TemporaryDirectory(prefix="rayhook-boofuzz-") as folder:
        os.chdir(folder)  # where boofuzz keeps its results
        for parts in (PARTS, CHUNKED):
            for fuzzed in parts:
                connection = Connection("127.0.0.1", port, sslcontext=context, server_hostname="localhost")
                session = boofuzz.Session(
                    target=boofuzz.Target(connection=connection), index_end=cases, web_port=None, keep_web_open=False, fuzz_loggers=[],
                    receive_data_after_each_request=False, ignore_connection_reset=True, ignore_connection_aborted=True,
                    ignore_connection_ssl_errors=True, db_filename=os.path.join(folder, f"{fuzzed}.db"))
                session.connect(request(parts, fuzzed))
                session.fuzz()
                tried += session.num_cases_actually_fuzzed
    print(f"{tried} requests were tried")


if __name__ == "__main__":
    main()
