# SPDX-License-Identifier: Apache-2.0
"""What the oracle tests share: running `rayhook review` and the Go oracle, many cases, one verdict."""

import argparse
import base64
import collections
import concurrent.futures
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time


class Failure(Exception):
    """A case that does not hold; the text says what was expected and what came."""


def same(a, b):
    """Equal as JSON: unlike ==, tells true from 1 and 1 from 1.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def show(value):
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)


def expect(condition, message, **values):
    if not condition:
        raise Failure("\n".join([message] + [f"  {name}: {show(value)}" for name, value in values.items()]))


class Oracle:
    """One process of the Go oracle per subcommand, started when first asked."""

    def __init__(self, directory):
        self.program = os.path.join(directory, "oracle")
        self.processes = {}
        self.lock = threading.Lock()

    def __call__(self, subcommand, **question):
        with self.lock:
            if subcommand not in self.processes:
                self.processes[subcommand] = subprocess.Popen(
                    [self.program, subcommand], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            process = self.processes[subcommand]
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        if not answer:
            raise RuntimeError(f"oracle {subcommand} ended; its message stands above")
        return json.loads(answer)

    def close(self):
        for process in self.processes.values():
            process.stdin.close()
            process.wait()
            process.stdout.close()


def admission_review(obj, namespace="team-a", uid="3f1c0de5-0000-4000-8000-000000000001"):
    """The review that the API server would send for the CREATE of this object."""
    kind = obj["kind"]
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": kind},
        "resource": {"group": "", "version": "v1", "resource": kind.lower() + "s"},
        "requestKind": {"group": "", "version": "v1", "kind": kind},
        "requestResource": {"group": "", "version": "v1", "resource": kind.lower() + "s"},
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller",
                     "groups": ["system:serviceaccounts", "system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    if "name" in (obj.get("metadata") or {}):
        request["name"] = obj["metadata"]["name"]
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


class Rayhook:
    """`rayhook review`: one process per review, as a user would run it."""

    def __init__(self, program, scratch):
        self.program = program
        self.scratch = scratch

    def services_file(self, services):
        handle, path = tempfile.mkstemp(dir=self.scratch, suffix=".yaml")
        with os.fdopen(handle, "w") as out:
            for service in services:
                out.write("---\n" + json.dumps(service) + "\n")
        return path

    def review(self, obj, services=()):
        """The checked `response`, with `patch` decoded (None where there is none)."""
        question = admission_review(obj)
        path = self.services_file(services)
        try:
            done = subprocess.run([self.program, "review", "--services", path], timeout=30,
                                  input=json.dumps(question).encode(), capture_output=True)
        except subprocess.TimeoutExpired:
            raise Failure(f"rayhook review hangs\n  object: {json.dumps(obj)}\n  services: {json.dumps(services)}") from None
        finally:
            os.unlink(path)
        expect(done.returncode == 0, f"rayhook review: exit {done.returncode}",
               stderr=done.stderr.decode(errors="replace"), object=obj)
        try:
            answer = json.loads(done.stdout)
        except ValueError as error:
            raise Failure(f"answer is not JSON ({error}): {done.stdout[:2000]!r}") from None
        expect(answer.get("kind") == "AdmissionReview" and answer.get("apiVersion") == "admission.k8s.io/v1",
               "not an AdmissionReview of v1", answer=answer)
        response = answer["response"]
        expect(response.get("uid") == question["request"]["uid"], "uid not echoed", response=response)
        expect(response.get("allowed") is True, "not allowed", response=response, object=obj)
        expect(("patch" in response) == ("patchType" in response), "patch without patchType", response=response)
        for warning in response.get("warnings", []):
            expect(len(warning) <= 120 and warning.isprintable(), "bad warning", warning=warning)
        if "patch" in response:
            expect(response["patchType"] == "JSONPatch", "bad patchType", response=response)
            response["patch"] = json.loads(base64.b64decode(response["patch"], validate=True))
            expect(response["patch"], "empty patch sent", response=response)
        else:
            response["patch"] = None
        return response


def pointer(path):
    if path == "":
        return []
    if not path.startswith("/"):
        raise Failure(f"not a JSON pointer: {path!r}")
    tokens = path[1:].split("/")
    for token in tokens:
        if "~" in token.replace("~0", "").replace("~1", ""):
            raise Failure(f"bad escape in JSON pointer: {path!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens]


def index(token, limit):
    if not (token.isascii() and token.isdigit()) or (len(token) > 1 and token[0] == "0"):
        raise Failure(f"not an array index: {token!r}")
    if int(token) > limit:
        raise Failure(f"array index {token} is past {limit}")
    return int(token)


def apply_patch(document, patch):
    """RFC 6902 by the letter, for the two operations Rayhook may use. Returns a new document."""
    document = copy.deepcopy(document)
    for op in patch:
        if set(op) != {"op", "path", "value"} or op["op"] not in ("add", "replace"):
            raise Failure(f"operation not allowed: {show(op)}")
        *parents, last = pointer(op["path"])  # the whole document is never replaced
        target = document
        for token in parents:
            if isinstance(target, dict):
                if token not in target:
                    raise Failure(f"parent missing: {show(op)}")
                target = target[token]
            elif isinstance(target, list):
                target = target[index(token, len(target) - 1)]
            else:
                raise Failure(f"parent is no object or array: {show(op)}")
        value = copy.deepcopy(op["value"])
        if isinstance(target, dict):
            if op["op"] == "replace" and last not in target:
                raise Failure(f"replace of a missing member: {show(op)}")
            target[last] = value
        elif isinstance(target, list):
            if op["op"] == "replace":
                target[index(last, len(target) - 1)] = value
            elif last == "-":
                target.append(value)
            else:
                target.insert(index(last, len(target)), value)
        else:
            raise Failure(f"target is no object or array: {show(op)}")
    return document


def patched(response, obj):
    return apply_patch(obj, response["patch"] or [])


def containers(pod):
    spec = pod.get("spec") or {}
    return [(group, i, container) for group in ("initContainers", "containers")
            for i, container in enumerate(spec.get(group) or [])]


class Context:
    def __init__(self, args, scratch):
        self.rayhook = Rayhook(args.rayhook, scratch)
        self.oracle = Oracle(args.bin)


def main(name, case, cases, at_least):
    """Runs `case(rng, context) -> Counter` for many seeds. `at_least` says which share of the cases must have
    met what the test is about, so that it cannot pass by testing nothing."""
    parser = argparse.ArgumentParser(description=name)
    parser.add_argument("--rayhook", required=True, help="the program")
    parser.add_argument("--bin", required=True, help="directory printed by tests/e2e/binaries.sh")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--only", type=int, help="run this one case")
    parser.add_argument("--show", type=int, default=3, help="print so many failures in full")
    args = parser.parse_args()
    for program in (args.rayhook, os.path.join(args.bin, "oracle")):
        if not os.access(program, os.X_OK):
            parser.error(f"no such program: {program}")
    start, counts, failures = time.monotonic(), collections.Counter(), []

    def one(number):
        try:
            return number, case(random.Random(f"{args.seed}/{number}"), context), None
        except Failure as failure:
            return number, collections.Counter(), failure

    with tempfile.TemporaryDirectory(prefix="rayhook-oracle-") as scratch:
        context = Context(args, scratch)
        try:
            numbers = range(args.cases) if args.only is None else [args.only]
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                for number, counted, failure in pool.map(one, numbers):
                    counts.update(counted)
                    if failure:
                        failures.append(number)
                        if len(failures) <= args.show:
                            print(f"case {number} (--seed {args.seed} --only {number}): {failure}\n", flush=True)
        finally:
            context.oracle.close()
    tried = len(numbers)
    for what, share in at_least.items():
        if args.only is None and counts[what] < share * tried:
            print(f"only {counts[what]} of {tried} cases met `{what}`: the test does not test enough")
            failures.append(what)
    print(f"{name}: {tried} cases, {len(failures)} failed, {time.monotonic() - start:.1f} s; "
          + ", ".join(f"{what} {count}" for what, count in sorted(counts.items())))
    if failures:
        print("failed:", *failures[:50])
    return 1 if failures else 0
