#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""boofuzz against a running server: each part of a review's request in turn takes the values that boofuzz thinks up,
over a TLS connection of its own each time.

  http_blocks.py PORT CA STEP    with boofuzz on PYTHONPATH; a part takes one value in STEP, its neighbour the next"""

import functools
import itertools
import multiprocessing
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


class Part(boofuzz.String):
    """One in `step` of the values that boofuzz has for a text, from the one numbered `first` on."""
    first, step = 0, 1

    def mutations(self, default_value):
        return itertools.islice(super().mutations(default_value), self.first, None, self.step)


def request(parts, fuzzed):
    """A request in which one part is fuzzed."""
    return boofuzz.Request(f"request-{fuzzed}", children=tuple(
        Part(name=name, default_value=text, fuzzable=name == fuzzed) for name, text in parts.items()))


def fuzz(port, ca, step, number, parts, fuzzed):
    """Tries the values of one part; returns how many."""
    Part.first, Part.step = number % step, step
    connection = Connection("127.0.0.1", port, sslcontext=ssl.create_default_context(cafile=ca), server_hostname="localhost")
    session = boofuzz.Session(
        target=boofuzz.Target(connection=connection), web_port=None, keep_web_open=False, fuzz_loggers=[],
        receive_data_after_each_request=False, ignore_connection_reset=True, ignore_connection_aborted=True,
        ignore_connection_ssl_errors=True, db_filename=os.path.abspath(f"{fuzzed}.db"), fuzz_db_keep_only_n_pass_cases=1)
    session.connect(request(parts, fuzzed))
    session.fuzz()
    return session.num_cases_actually_fuzzed


def main():
    port, ca, step = int(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
    jobs = [(number, parts, fuzzed) for parts in (PARTS, CHUNKED) for number, fuzzed in enumerate(parts)]
    with tempfile.TemporaryDirectory(prefix="rayhook-boofuzz-") as folder:
        os.chdir(folder)  # where boofuzz keeps its results
        with multiprocessing.Pool() as pool:
            tried = pool.starmap(functools.partial(fuzz, port, ca, step), jobs, chunksize=1)
    print(f"{sum(tried)} requests were tried")


if __name__ == "__main__":
    main()
