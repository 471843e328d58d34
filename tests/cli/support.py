# SPDX-License-Identifier: Apache-2.0
"""Runs the program, and says what manifests say: shared by the command line tests."""

import json
import os
import resource
import subprocess

import yaml

# Far more than any test needs; a runaway ends here and not with the machine.
MEMORY_LIMIT = 4 << 30


def _limit_memory():
    if "RAYHOOK_SANITIZER" in os.environ:  # their shadow of all addresses counts as memory
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


class Rayhook:
    """The program under test."""

    def __init__(self, path):
        self.path = path

    def run(self, *args, stdin="", timeout=60, **extra):
        """One call; `stdin` is text or bytes. The result's streams are text."""
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        done = subprocess.run([self.path, *args], input=data, timeout=timeout, check=False,
                              capture_output=True, preexec_fn=_limit_memory, **extra)
        done.stdout = done.stdout.decode()
        done.stderr = done.stderr.decode()
        return done

    def mutate(self, text, *args, timeout=60):
        """Manifest text in, changed text out."""
        done = self.run("mutate", "-f", "-", *args, stdin=text, timeout=timeout)
        if done.returncode != 0:
            raise AssertionError(f"mutate: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def review(self, review, services=None):
        """One AdmissionReview (a dict) in, the answer's `response` out."""
        args = ["--services", str(services)] if services else []
        done = self.run("review", *args, stdin=json.dumps(review))
        if done.returncode != 0:
            raise AssertionError(f"review: exit {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)["response"]


def objects_of(text):
    """The objects of a manifest as another YAML reader sees them, items of Lists one by one."""
    out = []
    for document in yaml.safe_load_all(text):
        if document is None:
            continue
        if document.get("kind", "").endswith("List") and "items" in document:
            out.extend(document["items"])
        else:
            out.append(document)
    return out


def pod_of(item):
    """The pod or pod template of an object, or None."""
    if item["kind"] == "Pod":
        return item
    template = item.get("spec", {}).get("template")
    return template if isinstance(template, dict) and "spec" in template else None


def containers_of(pod):
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def texts_of(item):
    """The strings of command, args and env values, as (place, text)."""
    pod = pod_of(item)
    if pod is None:
        return []
    out = []
    for container in containers_of(pod):
        for field in ("command", "args"):
            for i, text in enumerate(container.get(field) or []):
                out.append(((container["name"], field, i), text))
        for entry in container.get("env") or []:
            if "value" in entry:
                out.append(((container["name"], "env", entry["name"]), entry["value"]))
    return out


def review_of(item, uid="u-1"):
    """The AdmissionReview of an object's CREATE; of a workload, that of one of its pods."""
    pod = pod_of(item)
    kind = "Service" if item["kind"] == "Service" else "Pod"
    made = item
    if pod is not None and pod is not item:
        made = {"apiVersion": "v1", "kind": "Pod",
                "metadata": dict(pod.get("metadata") or {}), "spec": pod["spec"]}
        made["metadata"]["generateName"] = item["metadata"].get("name", "x") + "-"
        made["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r-1",
             "controller": True}]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": uid, "kind": {"group": "", "version": "v1", "kind": kind},
        "resource": {"group": "", "version": "v1", "resource": kind.lower() + "s"},
        "namespace": item["metadata"].get("namespace", "default"), "operation": "CREATE",
        "userInfo": {"username": "tester"}, "object": made, "dryRun": False}}


def patched(document, operations):
    """RFC 6902, the strict part that Rayhook uses."""
    out = json.loads(json.dumps(document))
    for operation in operations:
        *above, last = [token.replace("~1", "/").replace("~0", "~")
                        for token in operation["path"].split("/")[1:]]
        parent = out
        for token in above:
            parent = parent[int(token)] if isinstance(parent, list) else parent[token]
        value = operation["value"]
        if isinstance(parent, list):
            if operation["op"] == "add":
                assert int(last) <= len(parent)
                parent.insert(int(last), value)
            else:
                parent[int(last)] = value
        else:
            assert operation["op"] == "add" or last in parent, operation
            parent[last] = value
    return out
