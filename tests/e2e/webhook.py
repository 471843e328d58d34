# SPDX-License-Identifier: Apache-2.0
"""`rayhook serve` beside the control plane, and its registration with the API server."""

import http.client
import json
import signal
import ssl
import urllib.error
import urllib.request

import pki
from processes import Process, free_ports

NAME = "rayhook.e2e.test"


def rights():
    """What the serving pods may do: read Services and Pods, nothing else."""
    return [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "rayhook"},
         "rules": [{"apiGroups": [""], "resources": ["services", "pods"], "verbs": ["get", "list", "watch"]}]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "rayhook"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "rayhook"},
         "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "rayhook"}]},
    ]


class Webhook:
    """One replica. `authority` is shared by replicas behind one address; `arguments` are further ones of serve."""

    def __init__(self, program, plane, directory, name="rayhook", authority=None, arguments=()):
        self.program, self.plane, self.directory, self.name, self.arguments = program, plane, directory, name, arguments
        self.ca = authority or pki.Authority(directory, "webhook")
        self.cert, self.key = self.ca.issue(name, "/CN=rayhook", ["IP:127.0.0.1", "DNS:localhost"])
        self.port, self.ops_port = free_ports(2)
        self.kubeconfig = plane.kubeconfig(f"{name}-user", "/CN=rayhook")
        self.process = None

    def launch(self):
        self.process = Process(self.name, [
            self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--ops-listen", f"127.0.0.1:{self.ops_port}",
            "--tls-cert", self.cert, "--tls-key", self.key, "--lookup", "cluster", "--kubeconfig", self.kubeconfig,
            *self.arguments], self.directory)

    def await_ready(self):
        self.process.wait_until("rayhook ready", lambda: self.ops("/readyz") is not None, 60)

    def start(self):
        self.launch()
        self.await_ready()

    def kill(self):
        """Without a word: SIGKILL to this very process."""
        self.process.child.send_signal(signal.SIGKILL)
        self.process.child.wait()

    def ops(self, path):
        """The body of an answer of the plain port; None if it is not 200."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{self.ops_port}{path}", timeout=5) as answer:
                return answer.read().decode() if answer.status == 200 else None
        except (urllib.error.URLError, OSError):
            return None

    def metric(self, name):
        """The sum of a metric's samples whose text, up to the value, contains `name`."""
        lines = [line for line in (self.ops("/metrics") or "").splitlines() if not line.startswith("#")]
        return sum(float(value) for text, value in (line.rsplit(" ", 1) for line in lines) if name in text)

    def review(self, document, namespace, path="/mutate", **request):
        """This replica's response to a review as the API server would send it."""
        kind = document["kind"]
        question = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "3f1c0de5-0000-4000-8000-000000000001", "operation": "CREATE", "namespace": namespace,
            "kind": {"group": "", "version": "v1", "kind": kind}, "userInfo": {"username": "e2e"},
            "resource": {"group": "", "version": "v1", "resource": kind.lower() + "s"}, "object": document, **request}}
        tls = ssl.create_default_context(cafile=self.ca.cert)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=tls, timeout=20)
        try:
            connection.request("POST", path + "?timeout=5s", json.dumps(question), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())["response"]
        finally:
            connection.close()

    def decisions(self):
        """The JSON lines of its log."""
        found = []
        with open(self.process.log, errors="replace") as log:
            for line in log:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
        return found

    def configuration(self, port=None, path="/mutate"):
        """Its registration; `port` is that of a balancer in front of it."""
        return {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "rayhook"},
            "webhooks": [{
                "name": NAME,
                "clientConfig": {"url": f"https://127.0.0.1:{port or self.port}{path}", "caBundle": pki.inline(self.ca.cert)},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                           "resources": ["services", "pods"], "scope": "Namespaced"}],
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5,
                "failurePolicy": "Ignore", "reinvocationPolicy": "IfNeeded",
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
                    {"key": "rayhook/mode", "operator": "NotIn", "values": ["ignore", "audit"]}]},
            }],
        }

    def stop(self):
        return self.process.stop() if self.process else None
