#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The variables that Rayhook restores are those that kubelet's own code would have given, with the Service's
name in place of its IP: no more, no fewer, at the front of each container's env, never over the container's own."""

import collections
import json
import re
import sys

import generate
from support import containers, expect, main, patched


def mention(rng, name):
    """A text that names a variable, in one of the ways in which texts do."""
    return rng.choice([
        ["python3", "-c", f'import os; print(os.environ["{name}"])'],
        ["bash", "-c", f"ray start --address=${name}:6379 --block"],
        ["sh", "-c", f"until nc -z ${{{name}}} 6379; do sleep 1; done"],
        ["ray", "start", f"--address=$({name}):6379"],
        ["bash", "-lc", f"echo '${name}'"],
    ])


def pod(rng, services, names):
    def container(i):
        c = {"name": f"c{i}", "image": "example/ray:2", "resources": {}}
        chosen = rng.choice(names)
        if rng.random() < 0.7:
            words = mention(rng, chosen)
            if rng.random() < 0.5:
                c["command"], c["args"] = words[:-1], words[-1:]
            else:
                c["command"] = words
        own = [{"name": "MY_CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
               {"name": "MODE", "value": "train"}]
        if rng.random() < 0.2:
            plain = [n for n in names if not any(generate.is_docker_link(n, s) for s in services)]
            own.append({"name": rng.choice(plain), "value": "mine"})
        if rng.random() < 0.5:
            c["env"] = rng.sample(own, rng.randrange(0, len(own) + 1))
        return c

    made = {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"generateName": "worker-", "namespace": generate.NAMESPACE, "labels": {"app": "anything"}},
            "spec": {"containers": [container(i) for i in range(rng.randrange(1, 4))],
                     "dnsPolicy": "ClusterFirst", "enableServiceLinks": True}}
    if rng.random() < 0.4:
        made["spec"]["initContainers"] = [container(f"i{i}") for i in range(rng.randrange(1, 3))]
        if rng.random() < 0.5:
            made["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    return made


def case(rng, context):
    services = generate.services(rng)
    # What is converted is Rayhook's decision about the Service; what follows for pods is checked here.
    converted = [s for s in services if generate.converted_by(context.rayhook, s)]
    names = sorted({name for s in services for name in generate.variables(context.oracle, s)})
    # A bare X_PORT asks for nothing.
    names = [n for n in names if not any(n == generate.mangle(s["metadata"]["name"]) + "_PORT" for s in services)]
    obj = pod(rng, services, names)
    texts = json.dumps([[c.get("command"), c.get("args")] for _, _, c in containers(obj)])
    named = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", texts)) & set(names)

    expected = {}
    for service in converted:
        provided = generate.variables(context.oracle, service, host=service["metadata"]["name"])
        linked = any(generate.is_docker_link(name, service) for name in named)
        expected.update({name: value for name, value in provided.items()
                         if linked or not generate.is_docker_link(name, service)})

    response = context.rayhook.review(obj, services)
    after = patched(response, obj)
    counts = collections.Counter(converted=len(converted))
    for (_, _, old), (_, _, new) in zip(containers(obj), containers(after), strict=True):
        own = old.get("env") or []
        env = new.get("env") or []
        front, back = env[:len(env) - len(own)], env[len(env) - len(own):]
        expect([e["name"] for e in back] == [e["name"] for e in own], "the container's own env moved",
               services=services, before=old, after=new)
        wanted = {name: value for name, value in expected.items() if name not in {e["name"] for e in own}}
        restored = {e["name"]: e["value"] for e in front}
        missing = {n: v for n, v in wanted.items() if n not in restored}
        surplus = {n: v for n, v in restored.items() if n not in wanted}
        wrong = {n: (v, restored[n]) for n, v in wanted.items() if n in restored and restored[n] != v}
        expect(not (missing or surplus or wrong) and len(front) == len(restored),
               "restored variables differ from kubelet's", missing=missing, surplus=surplus, wrong=wrong,
               services=services, pod=obj, response=response)
        counts["restored"] += bool(restored)
        counts["docker-linked"] += any("_PORT_" in n and n.endswith("_ADDR") for n in restored)
    return counts


if __name__ == "__main__":
    sys.exit(main("variables oracle", case, cases=500, at_least={"restored": 0.8, "docker-linked": 0.2}))
