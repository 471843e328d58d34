#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubelet's own expansion of a rewritten pod, with only what its env has, gives the same command, args and env as
that of the original with the service variables (their values with the Service's name in place of its IP)."""

import collections
import sys

import generate
from support import containers, expect, main, patched


def text(rng, names, pairs_of_one):
    """A string full of what can go wrong with $(X)."""
    def piece():
        name = rng.choice(names)
        return rng.choice([
            f"$({name})", f"$({name})", f"$({name}):6379", f"--address=$({name})", f"ray://$({name}):10001",
            f"$$({name})", f"$$$({name})", f"$$$$({name})", f"$({name}", f"$({name.lower()})", f"$( {name})",
            f"$({name}X)", f"$({name[:-1]})", f"({name})", f"${name}", f"${{{name}}}", f"$$", "$", "$()", "$(MINE)",
            f"$(MISSING_SERVICE_HOST):$({name})", f"'$({name})'", f"\\$({name})", f"[$({name})]:6379", f"$($({name}))",
            f"$(hostname -I) $({name})", "$(KUBERNETES_SERVICE_HOST)", "ä€😀", " ", "\n", "\"", f"$({name})$({name})",
        ])
    if rng.random() < 0.3:
        host = rng.choice([n for n in names if n.endswith("_SERVICE_HOST")])
        prefix = host.removesuffix("HOST") + "PORT" if pairs_of_one else ""
        ports = [n for n in names if "_SERVICE_PORT" in n and n.startswith(prefix)]
        if ports:
            return f"--address=$({host}):$({rng.choice(ports)})"
    return "".join(piece() for _ in range(rng.randrange(1, 5)))


def pod(rng, names):
    def container(i):
        c = {"name": f"c{i}", "image": "example/ray:2", "resources": {}}
        # Host and port of two Services are left for the restored variables. A container that defines such a name
        # itself, but only after it has used it so, is nobody's.
        own = rng.choice([n for n in names if "_SERVICE_" in n]) if rng.random() < 0.1 else None
        mixed = own is None and rng.random() < 0.5
        # No shell: what a shell would make of the text is the differential test's matter.
        c["command"] = rng.choice([["ray"], ["/usr/bin/env", "ray"], ["python3"]]) + [text(rng, names, not mixed)]
        if rng.random() < 0.6:
            c["args"] = [text(rng, names, not mixed) for _ in range(rng.randrange(0, 4))]
        env = [{"name": f"V{k}", "value": text(rng, names + [f"V{rng.randrange(3)}"], not mixed)}
               for k in range(rng.randrange(0, 4))]
        env += rng.choice([[], [{"name": "MINE", "value": "mine"}], [{"name": "EMPTY"}]])
        if own:
            env.append({"name": own, "value": "own"})
        if env or rng.random() < 0.3:
            rng.shuffle(env)
            c["env"] = env
        return c

    made = {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"generateName": "worker-", "namespace": generate.NAMESPACE},
            "spec": {"containers": [container(i) for i in range(rng.randrange(1, 3))]}}
    if rng.random() < 0.3:
        made["spec"]["initContainers"] = [container("i")]
    return made


def run(oracle, container, service_env):
    """What kubelet starts: command, args and environment."""
    def expand(value, env):
        return oracle("expand", text=value, env=env)["text"]
    own = {}
    for entry in container.get("env") or []:
        own[entry["name"]] = expand(entry.get("value", ""), {**service_env, **own})
    env = {**service_env, **own}
    return {"command": [expand(word, env) for word in container.get("command") or []],
            "args": [expand(word, env) for word in container.get("args") or []],
            "env": env}


def without_brackets(value, hosts):
    """`[$(X_SERVICE_HOST)]` may lose its brackets: they are for IPv6 addresses, and wrong around a name."""
    if isinstance(value, dict):
        return {name: without_brackets(inner, hosts) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_brackets(inner, hosts) for inner in value]
    for host in hosts:
        value = value.replace(f"[{host}]", host)
    return value


def case(rng, context):
    services = generate.services(rng)
    before, still, all_names = {}, {}, []
    for service in services:
        if generate.converted_by(context.rayhook, service):
            provided = generate.variables(context.oracle, service, host=service["metadata"]["name"])
        else:
            provided = generate.variables(context.oracle, service)
            still.update(provided)
        before.update(provided)
        all_names += sorted(provided)
    names = rng.sample(all_names, min(len(all_names), 6)) + [n for n in all_names if n.endswith("_SERVICE_HOST")]
    obj = pod(rng, names)
    response = context.rayhook.review(obj, services)
    after = patched(response, obj)

    counts = collections.Counter()
    for (_, _, old), (_, _, new) in zip(containers(obj), containers(after), strict=True):
        want, have = run(context.oracle, old, before), run(context.oracle, new, still)
        # A docker-link variable that no text names may be gone.
        gone = {n for n in want["env"] if n not in have["env"] and any(generate.is_docker_link(n, s) for s in services)}
        for name in gone:
            del want["env"][name]
        hosts = [s["metadata"]["name"] for s in services]
        want, have = without_brackets(want, hosts), without_brackets(have, hosts)
        expect(want == have, "kubelet starts something else", want=want, have=have, before=old, after=new,
               services=services)
        counts["containers"] += 1
        counts["rewritten"] += any(old.get(f) != new.get(f) for f in ("command", "args")) or (
            [e.get("value") for e in old.get("env") or []] !=
            [e.get("value") for e in (new.get("env") or [])[-len(old.get("env") or [None]):]])
    return counts


if __name__ == "__main__":
    sys.exit(main("expansion oracle", case, cases=500, at_least={"rewritten": 0.2}))
