# SPDX-License-Identifier: Apache-2.0
"""As much of a kubelet as controllers want to see: each new pod of a namespace is soon Running and Ready."""

import http.client
import threading

from api import Refused

READY = {"status": {"phase": "Running", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}],
                    "conditions": [{"type": "Ready", "status": "True"}]}}


class Node:
    def __init__(self, api, *namespaces):
        self.api, self.namespaces, self.ended = api, namespaces, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.3):
            for namespace in self.namespaces:
                try:
                    self.look(namespace)
                except (Refused, OSError, http.client.HTTPException):
                    pass  # the API server is away, or the pod is gone

    def look(self, namespace):
        for pod in self.api.list("pods", namespace):
            if pod["status"].get("phase") == "Pending":
                self.api.merge("pods", namespace, pod["metadata"]["name"], READY, "/status")

    def stop(self):
        self.ended.set()
        self.thread.join(60)
