# SPDX-License-Identifier: Apache-2.0
"""Creates at a steady rate, whether earlier ones were answered or not, as a busy cluster's controllers make them."""

import http.client
import itertools
import json
import threading
import time

from api import plural


class SteadyLoad:
    """Creates `document` in `namespace`, `rate` times a second, as long as the `with` block runs. Afterwards:
    `times` (of those that were stored, in seconds), `unchanged` (stored without `sign` in their text), `failed`
    (status or exception of the others), and `seconds`, how long it all took."""

    def __init__(self, api, namespace, document, sign, rate, clients=32):
        self.api, self.path, self.sign, self.rate = api, api.path(plural(document["kind"]), namespace), sign.encode(), rate
        self.body = json.dumps(document).encode()
        self.times, self.failed, self.unchanged = [], [], 0
        self.numbers, self.lock, self.over = itertools.count(), threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.client) for _ in range(clients)]

    def __enter__(self):
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        self.seconds = time.monotonic() - self.began

    def client(self):
        while True:
            with self.lock:
                due = self.began + next(self.numbers) / self.rate
            if self.over.wait(max(0, due - time.monotonic())):
                return
            self.create()

    def create(self):
        sent = time.monotonic()
        try:
            answer, text = self.api.send("POST", self.path, self.body, "application/json")
        except (OSError, http.client.HTTPException) as error:
            self.failed.append(repr(error))
            return
        took = time.monotonic() - sent
        if answer.status != 201:
            self.failed.append(f"{answer.status}: {text[:300]}")
            return
        with self.lock:
            self.times.append(took)
            self.unchanged += self.sign not in text

    def reached(self):
        """Creates a second."""
        return len(self.times) / self.seconds

    def at_most(self, part):
        """The time in which that part of the creates was answered."""
        return sorted(self.times)[min(len(self.times) - 1, int(part * len(self.times)))]
