#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must hold for any pod and any Service, however odd:
   * the patch applies by the letter of RFC 6902 and under the API server's own json-patch, with equal results;
   * nothing but the replaced tokens, the restored variables and our annotations differs from the original;
   * reviewing the result again changes nothing;
   * what the real validation accepted before it accepts after;
   * a pod gets the same beside a Service that was converted and stored as beside one about to be."""

import collections
import json
import re
import sys

import generate
from support import containers, expect, main, patched, same


def maybe(rng, chance, value):
    return value if rng.random() < chance else None


def some_text(rng, names):
    def token():
        name = rng.choice(names)
        return rng.choice([f"${name}", f"${{{name}}}", f"$({name})", f"'${name}'", f'"${{{name}}}"', f"$${name}", f"\\${name}",
                           f"${{{name}:-x}}", f"${{{name}%%.*}}", f"[${name}]", f"${name}HOSTNAME", f"$$({name})", f"${{{name}",
                           f"os.environ['{name}']", "$(hostname -I)", f"`echo ${name}`", f"$(echo ${name})", f"$'{name}'"])

    def piece():
        return rng.choice([token(), token(), f"--address={token()}:{token()}", f"--address {token()}:6379", f"http://{token()}:8265",
                           f"ray://{token()}:{token()}", "ray start --block ", " && ", "; ", "\n", "\\\n", "# $X\n", "cat <<EOF\n",
                           "\nEOF\n", "cat <<'EOF'\n", "'", '"', "$", "\\", "ä€😀\t", f"export {rng.choice(names)}=1; ", "\x01", "~/", "</>&"])
    return "".join(piece() for _ in range(rng.randrange(0, 8)))


def some_exec(rng, names):
    return {"exec": {"command": rng.choice([["sh", "-c"], ["bash", "-lc"], []]) + [some_text(rng, names) or "true"]}}


def container(rng, names, name):
    c = {"name": name, "image": "example/ray:2", "imagePullPolicy": "IfNotPresent",
         "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
    shell = rng.choice([["sh", "-c"], ["/bin/bash", "-c", "--"], ["bash", "-ec"], ["ray"], None])
    if shell:
        c["command"] = shell + ([] if rng.random() < 0.5 else [some_text(rng, names)])
    elif rng.random() < 0.1:
        c["command"] = rng.choice([None, []])
    if rng.random() < 0.7:
        c["args"] = [some_text(rng, names) for _ in range(rng.choice([0, 1, 1, 1, 2, 5]))]
    env = [{"name": f"V{i}", "value": some_text(rng, names)} for i in range(rng.randrange(0, 4))]
    env += rng.choice([[], [{"name": "EMPTY"}], [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}}],
                       [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                       [{"name": rng.choice(names), "value": "own"}], [{"name": "V0", "value": "twice"}]])
    rng.shuffle(env)
    shape = rng.random()
    if shape < 0.6 and env:
        c["env"] = env
    elif shape < 0.8:
        c["env"] = rng.choice([None, []])
    if rng.random() < 0.1:
        c["envFrom"] = rng.choice([[{"configMapRef": {"name": "m"}}], [], None])
    if rng.random() < 0.2:
        c[rng.choice(["livenessProbe", "readinessProbe", "startupProbe"])] = some_exec(rng, names)
    if rng.random() < 0.1:
        c["lifecycle"] = {rng.choice(["postStart", "preStop"]): some_exec(rng, names)}
    if rng.random() < 0.3:
        c["resources"] = rng.choice([{}, {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}])
    return c


def some_pod(rng, names):
    metadata = {"namespace": generate.NAMESPACE}
    metadata[rng.choice(["name", "generateName"])] = "worker-a"
    for key, value in (("labels", {"app": "w", "ray.io/node-type": "worker"}), ("annotations", rng.choice([{"a/b": "x", "m": "é"}, {"a/b~c": "x"}])),
                       ("ownerReferences", [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}])):
        if rng.random() < 0.5:
            metadata[key] = value
    if rng.random() < 0.1:
        metadata["annotations"] = rng.choice([None, {}, {"rayhook/mode": "ignore"}, {"kubernetes.io/config.mirror": "h"},
                                              {"kubectl.kubernetes.io/last-applied-configuration": "{}\n"}])
    spec = {"containers": [container(rng, names, f"c{i}") for i in range(rng.choice([1, 1, 2, 3, 12]))],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "securityContext": {}, "schedulerName": "default-scheduler"}
    if rng.random() < 0.4:
        spec["initContainers"] = [container(rng, names, f"i{i}") for i in range(rng.randrange(0, 3))]
        for c in spec["initContainers"]:
            c.pop("lifecycle", None)
            for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
                c.pop(probe, None)
            if rng.random() < 0.3:
                c["restartPolicy"] = "Always"
    if rng.random() < 0.7:
        spec["dnsPolicy"] = rng.choice(["ClusterFirst"] * 5 + ["Default", "ClusterFirstWithHostNet"])
    if rng.random() < 0.1:
        spec["hostNetwork"] = True
    if rng.random() < 0.5:
        spec["enableServiceLinks"] = rng.random() < 0.9
    if rng.random() < 0.02:
        spec["containers"] = rng.choice([None, []])
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {}}
    if rng.random() < 0.02:
        obj["spec"] = rng.choice([None, {}])
    return obj


def some_service(rng):
    service = generate.head_service(rng, rng.choice(generate.HEADS)) if rng.random() < 0.8 else \
        generate.other_service(rng, rng.choice(generate.OTHERS))
    spec, metadata = service["spec"], service["metadata"]
    for key, chance, values in (
            ("type", 0.5, ["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", ""]),
            ("clusterIP", 0.25, ["", "None", "10.96.0.9", "fd00::9"]),
            ("clusterIPs", 0.15, [[], ["10.96.0.9"], ["None"], None, ["10.96.0.9", "fd00::9"]]),
            ("externalTrafficPolicy", 0.1, ["Cluster", "Local"]),
            ("internalTrafficPolicy", 0.2, ["Cluster", "Local"]),
            ("ipFamilyPolicy", 0.15, ["SingleStack", "PreferDualStack", "RequireDualStack"]),
            ("ipFamilies", 0.15, [["IPv4"], ["IPv6"], ["IPv4", "IPv6"]]),
            ("externalIPs", 0.08, [["192.0.2.7"], [], None]),
            ("sessionAffinity", 0.2, ["None", "ClientIP"]),
            ("publishNotReadyAddresses", 0.2, [True, False]),
            ("loadBalancerIP", 0.05, ["192.0.2.8"]),
            ("loadBalancerClass", 0.05, ["example.com/lb"]),
            ("loadBalancerSourceRanges", 0.05, [["192.0.2.0/24"]]),
            ("allocateLoadBalancerNodePorts", 0.05, [True, False]),
            ("healthCheckNodePort", 0.05, [30999]),
            ("externalName", 0.05, ["head.example.com"]),
            ("trafficDistribution", 0.05, ["PreferClose"]),
            ("selector", 0.05, [None, {}])):
        if rng.random() < chance:
            spec[key] = rng.choice(values)
    if rng.random() < 0.1:
        rng.choice(spec["ports"])["nodePort"] = 30111
    if rng.random() < 0.1:
        rng.choice(spec["ports"])["targetPort"] = rng.choice([6379, "gcs", "6379"])
    if rng.random() < 0.05:
        spec["ports"] = rng.choice([[], None])
    if rng.random() < 0.4:
        metadata["labels"] = rng.choice([{"app": "ray"}, {"ray.io/node-type": "head", "ray.io/cluster": "c"}, {}, None])
    if rng.random() < 0.3:
        metadata["annotations"] = rng.choice([{"x/y": "v"}, {"x/y~z": "v"}, {}, None, {"rayhook/mode": "ignore"}, {"rayhook/converted": "true"}])
    if rng.random() < 0.05:
        metadata.pop("namespace")
    if rng.random() < 0.03:
        service["status"] = {"loadBalancer": {}}
    return service


def strip_annotations(obj, names):
    """The object without our annotations and without an empty annotations member."""
    obj = json.loads(json.dumps(obj))
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        for name in names:
            (metadata.get("annotations") or {}).pop(name, None)
        if not metadata.get("annotations"):
            metadata.pop("annotations", None)
    return obj


def check_service(before, after):
    """Only what the Service rule names may differ."""
    ours = ("rayhook/converted", "rayhook/decision")
    old, new = strip_annotations(before, ours), strip_annotations(after, ours)
    expect(after["spec"].get("clusterIP") == "None" and after["spec"].get("publishNotReadyAddresses") is True,
           "half a conversion", after=after)
    expect(("clusterIPs" not in before["spec"]) or before["spec"]["clusterIPs"] is None
           or after["spec"]["clusterIPs"] == ["None"], "clusterIPs not in step", after=after)
    annotations = after["metadata"]["annotations"]
    expect(annotations.get("rayhook/converted") == "true" and "@" in annotations.get("rayhook/decision", ""),
           "annotations", after=after)
    for key in ("clusterIP", "clusterIPs", "publishNotReadyAddresses"):
        old["spec"].pop(key, None)
        new["spec"].pop(key, None)
    expect(same(old, new), "something else of the Service changed", before=old, after=new)


class Texts:
    """Whether a text is another with some references replaced."""

    def __init__(self, services, oracle):
        self.values = {}
        for service in services:
            if service["spec"].get("ports"):
                self.values.update(generate.variables(oracle, service, host=service["metadata"]["name"]))
        names = "|".join(map(re.escape, sorted(self.values, key=len, reverse=True)))
        # `$$X` in a script is `$X` to the shell, after kubelet; ${X:-...} goes whole or not at all.
        bare = rf"\$\$?(?:{names})(?![A-Za-z0-9_])|\$\$?\{{(?:{names})(?::?[-=][^{{}}]*)?\}}|\$\((?:{names})\)"
        self.token = re.compile(rf"\[(?:{bare})\]|{bare}") if names else None
        self.name = re.compile(names) if names else None

    def agree(self, before, after):
        if before == after:
            return True
        if not self.token or not isinstance(before, str) or not isinstance(after, str):
            return False
        pattern, end = "", 0
        for match in self.token.finditer(before):
            value = re.escape(self.values[self.name.search(match[0])[0]])
            kept = rf"|\[{value}\]" if match[0].startswith("[") else rf"|\$+{value}" if match[0].startswith("$$") else ""
            pattern += re.escape(before[end:match.start()]) + f"(?:{re.escape(match[0])}|{value}{kept})"
            end = match.end()
        return re.fullmatch(pattern + re.escape(before[end:]), after) is not None


def check_strings(before, after, texts, where):
    expect(type(before) is type(after) and len(before or []) == len(after or []), f"{where}: another shape", before=before, after=after)
    for old, new in zip(before or [], after or []):
        expect(texts.agree(old, new), f"{where}: more than tokens replaced", before=old, after=new)


EXECS = [("livenessProbe",), ("readinessProbe",), ("startupProbe",), ("lifecycle", "postStart"), ("lifecycle", "preStop")]


def cut_execs(c):
    cut = []
    for path in EXECS:
        at = c
        for step in path + ("exec",):
            at = (at or {}).get(step)
        if at:
            cut.append((path, at.pop("command", None)))
    return cut


def check_pod(before, after, texts):
    old, new = strip_annotations(before, ("rayhook/decision",)), strip_annotations(after, ("rayhook/decision",))
    expect("@" in (after["metadata"]["annotations"] or {}).get("rayhook/decision", ""), "no rayhook/decision", after=after)
    for (group, i, c), (_, _, d) in zip(containers(old), containers(new), strict=True):
        where = f"{group}[{i}]"
        for field in ("command", "args"):
            check_strings(c.pop(field, None), d.pop(field, None), texts, f"{where}.{field}")
        for (path, was), (_, became) in zip(cut_execs(c), cut_execs(d), strict=True):
            check_strings(was, became, texts, f"{where}.{path}")
        own, env = c.pop("env", None) or [], d.pop("env", None) or []
        front, back = env[:len(env) - len(own)], env[len(env) - len(own):]
        for e in front:
            expect(set(e) == {"name", "value"} and texts.values.get(e["name"]) == e["value"], f"{where}: restored", entry=e)
        names = [e["name"] for e in front + own]
        expect(len({e["name"] for e in front}) == len(front) and not {e["name"] for e in front} & {e["name"] for e in own},
               f"{where}: a name restored twice or over the container's own", names=names)
        for e, f in zip(own, back, strict=True):
            check_strings([e.pop("value", None)], [f.pop("value", None)], texts, f"{where}.env {e['name']}")
            expect(same(e, f), f"{where}: env", before=e, after=f)
    if after["spec"].get("hostNetwork") and old["spec"].get("dnsPolicy", "ClusterFirst") == "ClusterFirst" \
            and new["spec"].get("dnsPolicy") == "ClusterFirstWithHostNet":
        old["spec"].pop("dnsPolicy", None)
        new["spec"].pop("dnsPolicy", None)
    expect(same(old, new), "something else of the pod changed", before=old, after=new)


def case(rng, context):
    services = generate.services(rng)
    if rng.random() < 0.5:
        kind, obj, question = "service", some_service(rng), "validate-service"
    else:
        names = sorted({n for s in services for n in generate.variables(context.oracle, s)} | {"MINE", "KUBERNETES_SERVICE_HOST"})
        names += [n for n in names if n.endswith("_SERVICE_HOST")] * 5
        kind, obj, question = "pod", some_pod(rng, names), "validate-pod"
    response = context.rayhook.review(obj, services)
    counts = collections.Counter({kind + "s": 1, kind + "s patched": response["patch"] is not None})

    valid = context.oracle(question, **{kind: obj})["errors"] == []
    counts[f"valid {kind}s"] += valid
    if response["patch"] is None:
        return counts
    after = patched(response, obj)  # by the letter of RFC 6902
    theirs = context.oracle("patch", doc=obj, patch=response["patch"])
    expect("error" not in theirs, "the API server's json-patch refuses", patch=response["patch"], answer=theirs, object=obj)
    expect(same(after, theirs["doc"]), "the two appliers differ", strict=after, theirs=theirs["doc"])
    expect("unknown field" not in theirs["strict"], "a member that the type does not have", strict=theirs["strict"])
    if valid:
        errors = context.oracle(question, **{kind: after})["errors"]
        expect(not errors, "was valid, is no more", errors=errors, before=obj, after=after)
    if kind == "service":
        check_service(obj, after)
    else:
        check_pod(obj, after, Texts(services, context.oracle))
    again = context.rayhook.review(after, services)
    if kind == "pod":
        stored = [generate.stored(generate.converted_by(context.rayhook, s)) or s for s in services]
        beside = context.rayhook.review(obj, stored)
        expect(same(beside["patch"], response["patch"]), "another patch beside the stored Services",
               beside=beside["patch"], first=response["patch"], object=obj, services=services)
    expect(again["patch"] is None, "f(f(x)) is not f(x)", first=response["patch"], second=again["patch"], object=obj)
    return counts


if __name__ == "__main__":
    sys.exit(main("property test", case, cases=1500,
                  at_least={"services patched": 0.1, "pods patched": 0.2, "valid services": 0.15, "valid pods": 0.2}))
