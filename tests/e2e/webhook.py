# SPDX-License-Identifier: Apache-2.0
"""`rayhook serve` beside the control plane, and its registration with the API server."""

import json
import os
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
    def __init__(self, program, plane, directory):
        self.program, self.plane, self.directory = program, plane, directory
        self.ca = pki.Authority(directory, "webhook")
        self.cert, self.key = self.ca.issue("rayhook", "/CN=rayhook", ["IP:127.0.0.1", "DNS:localhost"])
        self.port, self.ops_port = free_ports(2)
        self.kubeconfig = plane.kubeconfig("rayhook-user", "/CN=rayhook")
        self.process = None

    def start(self):
        self.process = Process("rayhook", [
            self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--ops-listen", f"127.0.0.1:{self.ops_port}",
            "--tls-cert", self.cert, "--tls-key", self.key, "--lookup", "cluster", "--kubeconfig", self.kubeconfig,
        ], self.directory)
        self.process.wait_until("rayhook ready", lambda: self.ops("/readyz") is not None, 30)

    def ops(self, path):
        """The body of an answer of the plain port; None if it is not 200."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{self.ops_port}{path}", timeout=5) as answer:
                return answer.read().decode() if answer.status == 200 else None
        except (urllib.error.URLError, OSError):
            return None

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

    def configuration(self):
        return {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "rayhook"},
            "webhooks": [{
                "name": NAME,
                "clientConfig": {"url": f"https://127.0.0.1:{self.port}/mutate", "caBundle": pki.inline(self.ca.cert)},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                           "resources": ["services", "pods"], "scope": "Namespaced"}],
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5,
                "failurePolicy": "Ignore", "reinvocationPolicy": "IfNeeded",
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]},
            }],
        }

    def stop(self):
        return self.process.stop() if self.process else None
