#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the API server for scripts/demo.sh: sends a manifest's objects to the webhook by curl, applies the patches
and shows what changed. Fails unless the static cluster comes out right."""

import argparse
import base64
import copy
import difflib
import json
import os
import subprocess
import sys
import uuid

import yaml

COLOUR = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("NO_COLOR")


def paint(code, text):
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


class Wrong(Exception):
    pass


def created(document):
    """The object that the API server is asked to create: a workload's pods, as its controller makes them."""
    if "template" not in document.get("spec", {}):
        return document
    name = document["metadata"]["name"]
    pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(document["spec"]["template"])}
    pod["metadata"].update(
        generateName=f"{name}-7d9c5b8f6-",
        ownerReferences=[{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-7d9c5b8f6",
                          "uid": str(uuid.uuid4()), "controller": True, "blockOwnerDeletion": True}])
    return pod


def review(request):
    kind = request["kind"]
    return {
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": str(uuid.uuid4()),
            "kind": {"group": "", "version": "v1", "kind": kind},
            "resource": {"group": "", "version": "v1", "resource": kind.lower() + "s"},
            "namespace": "demo", "name": request["metadata"].get("name", ""), "operation": "CREATE",
            "userInfo": {"username": "demo"}, "object": request, "dryRun": False,
        },
    }


def curl(url, ca, sent, answer):
    result = subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", "10", "--noproxy", "*", "--cacert", ca,
         "--header", "Content-Type: application/json", "--data-binary", f"@{sent}", "--output", answer,
         "--write-out", "%{http_code}", f"{url}?timeout=5s"], capture_output=True, text=True)
    if result.returncode or result.stdout != "200":
        raise Wrong(f"curl: {result.stderr.strip() or 'HTTP status ' + result.stdout}")
    with open(answer, encoding="utf-8") as file:
        return json.load(file)["response"]


def patched(document, patch):
    """JSON Patch with the two operations that Rayhook uses."""
    document = copy.deepcopy(document)
    for operation in patch:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place = document
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if isinstance(place, dict):
            place[last] = operation["value"]
        elif operation["op"] == "replace":
            place[int(last)] = operation["value"]
        else:
            place.insert(len(place) if last == "-" else int(last), operation["value"])
    return document


def lines(document):
    return yaml.safe_dump(document, sort_keys=False, width=1000).splitlines()


def show(title, before, after):
    changed = before != after
    print("\n" + paint("1", title) + ("" if changed else ": unchanged"))
    for line in list(difflib.unified_diff(lines(before), lines(after), lineterm="", n=2))[2:]:
        code = {"+": "32", "-": "31", "@": "36"}.get(line[:1])
        print("  " + (paint(code, line) if code else line))


def expect(condition, message, found):
    if not condition:
        raise Wrong(f"{message}; but it has:\n{json.dumps(found, indent=2)}")


def check(name, before, after):
    """What the example must become."""
    spec = after["spec"]
    if after["kind"] == "Service":
        expect(spec.get("clusterIP") == "None", "the Service should have become headless (clusterIP: None)", spec)
        expect(spec.get("publishNotReadyAddresses") is True, "the Service should publish pods that are not ready", spec)
        return
    was, now = (pod["spec"]["containers"][0]["args"][0] for pod in (before, after))
    wanted = was.replace("$SERVICE_RAY_CLUSTER_SERVICE_HOST:$SERVICE_RAY_CLUSTER_SERVICE_PORT_GCS_SERVER",
                         "service-ray-cluster:6380")
    expect(now == wanted, f"the arguments of {name} should read {wanted!r}", now)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("example")
    arguments = parser.parse_args()
    with open(arguments.example, encoding="utf-8") as file:
        documents = [document for document in yaml.safe_load_all(file) if document]
    rewritten = 0
    for document in documents:
        before = created(document)
        name = f"{before['kind'].lower()}-{document['metadata']['name']}"
        sent, answer = (os.path.join(arguments.dir, f"{name}-{what}.json") for what in ("review", "answer"))
        asked = review(before)
        with open(sent, "w", encoding="utf-8") as file:
            json.dump(asked, file, indent=1)
        response = curl(arguments.url, arguments.ca, sent, answer)
        expect(response["uid"] == asked["request"]["uid"], "the answer should carry the review's uid", response)
        expect(response["allowed"] is True, f"{name} should be admitted", response)
        patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        after = patched(before, patch)
        show(f"{before['kind']} {document['metadata']['name']}", before, after)
        for warning in response.get("warnings") or []:
            print(paint("33", f"  Warning: {warning}"))
        check(name, before, after)
        rewritten += "--address=service-ray-cluster:6380" in json.dumps(after)
    expect(rewritten == 1, "exactly one pod should join at --address=service-ray-cluster:6380", rewritten)


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        print(f"\n{wrong}", file=sys.stderr)
        sys.exit(1)
