# SPDX-License-Identifier: Apache-2.0
"""The API server without kubectl: one kept connection per thread, for tests that ask much or in a hurry."""

import http.client
import json
import ssl
import threading
import time

CORE = ("services", "events", "pods", "namespaces", "nodes")
GROUPS = {"deployments": "apps/v1", "statefulsets": "apps/v1", "daemonsets": "apps/v1", "replicasets": "apps/v1",
          "jobs": "batch/v1", "cronjobs": "batch/v1", "rayclusters": "ray.io/v1", "rayservices": "ray.io/v1"}


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


def plural(kind):
    return kind.lower() + "s"


class Api:
    """As the administrator. Thread-safe."""

    def __init__(self, plane):
        self.port = plane.port
        self.tls = ssl.create_default_context(cafile=plane.ca.cert)
        self.tls.load_cert_chain(*plane.admin_pair)
        self.local = threading.local()

    def send(self, method, path, body, content_type):
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=40)
        try:
            connection.request(method, path, body, {"Content-Type": content_type})
            answer = connection.getresponse()
            return answer, answer.read()
        except (OSError, http.client.HTTPException):
            self.local.connection = None
            connection.close()
            raise

    def call(self, method, path, body=None, content_type="application/json", patience=60):
        """The answer as an object, its warnings under "warnings!". A server that is away or busy is asked again."""
        raw = None if body is None else json.dumps(body).encode()
        until, again = time.monotonic() + patience, False
        while True:
            try:
                answer, text = self.send(method, path, raw, content_type)
            except (OSError, http.client.HTTPException):
                if time.monotonic() > until:
                    raise
                again = True
                time.sleep(0.05)
                continue
            if answer.status in (429, 500, 503) and b"admission webhook" not in text and time.monotonic() < until:
                time.sleep(0.1)
                continue
            if answer.status == 409 and again and method == "POST":  # the answer was lost, not the request
                return json.loads(raw)
            if answer.status >= 300:
                raise Refused(answer.status, text.decode(errors="replace")[:600])
            found = json.loads(text)
            found["warnings!"] = answer.headers.get_all("Warning", [])
            return found

    def path(self, resource, namespace=None, name=None):
        path = "/api/v1" if resource in CORE else f"/apis/{GROUPS[resource]}"
        return path + (f"/namespaces/{namespace}" if namespace else "") + f"/{resource}" + (f"/{name}" if name else "")

    def create(self, document, namespace=None):
        return self.call("POST", self.path(plural(document["kind"]), namespace), document)

    def get(self, resource, namespace, name):
        return self.call("GET", self.path(resource, namespace, name))

    def list(self, resource, namespace):
        return self.call("GET", self.path(resource, namespace))["items"]

    def delete(self, resource, namespace, name):
        return self.call("DELETE", self.path(resource, namespace, name), {"gracePeriodSeconds": 0})

    def put(self, resource, namespace, name, document):
        return self.call("PUT", self.path(resource, namespace, name), document)

    def merge(self, resource, namespace, name, patch, subresource=""):
        return self.call("PATCH", self.path(resource, namespace, name) + subresource, patch, "application/merge-patch+json")

    def namespace(self, name, labels=None):
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}})
        return name
