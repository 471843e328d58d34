#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line from outside: python3 cli_test.py --rayhook PROGRAM --corpus DIRECTORY"""

import argparse
import base64
import copy
import json
import pathlib
import resource
import sys
import tempfile
import unittest

import yaml

from certs_test import CertsTest  # noqa: F401: unittest finds it here
from config_test import Config, Documentation, Effects  # noqa: F401: unittest finds them here
from support import Rayhook, objects_of, patched, pod_of, containers_of, review_of, texts_of

OPTIONS = None

HEAD = """\
apiVersion: v1
kind: Service
metadata:
  name: ray-head   # the head
spec:
  ports: [{name: redis, port: 6379}]
  selector: {component: ray-head}
"""

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  containers:
  - name: w
    command: [sh, -c]
    args: ["ray start --address=$RAY_HEAD_SERVICE_HOST:$RAY_HEAD_SERVICE_PORT_REDIS"]
"""


HEAD_OF_TEAM_A = """apiVersion: v1
kind: Service
metadata: {name: ray-head, namespace: team-a}
spec: {selector: {app: ray-head}, ports: [{name: gcs-server, port: 6379}]}
"""


def pod_in(namespace, args):
    return f"""apiVersion: v1
kind: Pod
metadata: {{name: worker{", namespace: " + namespace if namespace else ""}}}
spec:
  containers:
  - name: ray
    command: [sh, -c]
    args: {json.dumps(args)}
"""


class CliTest(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.rayhook = Rayhook(OPTIONS.rayhook)

    def refused(self, done, code=1, *words):
        """Exit code, one line on stderr, nothing on stdout."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.endswith("\n"))
        for word in words:
            self.assertIn(word, done.stderr)


def seconds_used():
    """Processor time of the programs that were run: other work on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def patch_of(response):
    return json.loads(base64.b64decode(response["patch"])) if "patch" in response else []


class Corpus(CliTest):
    """EXPECTED.json, through `mutate` and through `review`."""

    def files(self):
        directory = pathlib.Path(OPTIONS.corpus)
        expected = json.loads((directory / "EXPECTED.json").read_text())
        self.assertGreater(len(expected), 20)
        for entry in expected:
            yield entry, directory / entry["file"]

    def check_service(self, before, after, state):
        if state == "headless":
            self.assertEqual(after["spec"]["clusterIP"], "None")
            self.assertIs(after["spec"]["publishNotReadyAddresses"], True)
            self.assertEqual(after["metadata"]["annotations"]["rayhook/converted"], "true")
            rest = copy.deepcopy(after)
            del rest["spec"]["clusterIP"], rest["spec"]["publishNotReadyAddresses"]
            for key in ("rayhook/converted", "rayhook/decision"):
                del rest["metadata"]["annotations"][key]
            if not before["metadata"].get("annotations"):
                del rest["metadata"]["annotations"]
            self.assertEqual(rest, before)
        else:
            self.assertEqual(after, before)

    def check_texts(self, before, after, rewrites):
        """Own texts are as before, but for the rewrites; restored variables stand in front."""
        old, new = texts_of(before), dict(texts_of(after))
        for place, text in old:
            for rewrite in rewrites:
                text = text.replace(rewrite["before"], rewrite["after"])
            self.assertEqual(new[place], text, place)
        pod, pod_after = pod_of(before), pod_of(after)
        if pod is None:
            return
        for container, changed in zip(containers_of(pod), containers_of(pod_after)):
            own = container.get("env") or []
            names = [entry["name"] for entry in changed.get("env") or []]
            self.assertEqual(names[len(names) - len(own):], [entry["name"] for entry in own])
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual({k: v for k, v in changed.items() if k not in ("command", "args", "env")},
                             {k: v for k, v in container.items() if k not in ("command", "args", "env")})

    def check(self, entry, before, after):
        self.assertEqual(len(before), len(after))
        for old, new in zip(before, after):
            if old["kind"] == "Service":
                self.check_service(old, new, entry["services"][old["metadata"]["name"]])
            else:
                self.check_texts(old, new, entry["rewrites"])
        everything = "\n".join(text for item in after for _, text in texts_of(item))
        for rewrite in entry["rewrites"]:
            self.assertIn(rewrite["after"], everything)
            self.assertNotIn(rewrite["before"], everything)

    def test_mutate(self):
        for entry, path in self.files():
            with self.subTest(entry["file"]):
                text = path.read_text()
                done = self.rayhook.run("mutate", "-f", str(path))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check(entry, objects_of(text), objects_of(done.stdout))
                comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
                for comment in comments:
                    self.assertIn(comment, done.stdout.splitlines())
                again = self.rayhook.run("mutate", "-f", "-", stdin=done.stdout)
                self.assertEqual(again.stdout, done.stdout)
                self.assertIn("0 of ", again.stderr)
                as_json = json.loads(self.rayhook.mutate(text, "-o", "json"))
                self.assertEqual(as_json["kind"], "List")
                self.assertEqual(as_json["items"], objects_of(done.stdout))

    def test_mutate_says_what_it_leaves(self):
        worker = pod_in(None, ["ray start --address=$RAY_HEAD_SERVICE_HOST:6379"])
        done = self.rayhook.run("mutate", "-f", "-", stdin=HEAD_OF_TEAM_A + "---\n" + worker)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("pod/worker: unchanged: service-absent: ", done.stderr)
        self.assertIn("in another namespace", done.stderr)
        self.assertIn("1 of 2 objects changed, 1 left (see above), 0 warnings", done.stderr)
        number = worker.replace("args:", "env: [{name: PORT, value: 6379}]\n    args:")
        done = self.rayhook.run("mutate", "-f", "-", stdin=number)
        self.assertIn("pod/worker: unchanged: malformed: ", done.stderr)
        self.assertIn("put it in quotes", done.stderr)

    def test_exported_services_are_judged_as_the_webhook_would_see_them(self):
        """Without their uid, but with the cluster IP that they once got: whether it was asked for cannot be told."""
        exported = HEAD.replace("metadata:\n", "metadata:\n  uid: 7f6025f2-b09d-41eb-82ed-fcf25b27793a\n").replace(
            "spec:\n", "spec:\n  clusterIP: 10.96.0.7\n  clusterIPs: [10.96.0.7]\n", 1)
        self.assertIn("uid:", exported)
        self.assertIn("clusterIP:", exported)
        done = self.rayhook.run("mutate", "-f", "-", stdin=exported + "---\n" + POD)
        self.assertIn("service/ray-head: unchanged: ip-chosen: ", done.stderr)
        self.assertIn("0 of 2 objects changed", done.stderr)
        told = json.loads(self.rayhook.run("explain", "-f", "-", "-o", "json", stdin=exported).stdout)
        self.assertEqual([one["reason"] for one in told], ["ip-chosen"])

    def test_a_service_that_stands_twice(self):
        """Its pods would follow one of them, and the other might not be headless."""
        other = HEAD.replace("spec:\n", "spec:\n  type: NodePort\n", 1)
        for verb in ("mutate", "explain"):
            done = self.rayhook.run(verb, "-f", "-", stdin=HEAD + "---\n" + other + "---\n" + POD)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("service/ray-head stands twice in the input, and not alike", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(self.rayhook.run("mutate", "-f", "-", stdin=HEAD + "---\n" + HEAD).returncode, 0)
        elsewhere = other.replace("  name: ray-head", "  namespace: other\n  name: ray-head")
        self.assertEqual(self.rayhook.run("mutate", "-f", "-", stdin=HEAD + "---\n" + elsewhere).returncode, 0)

    def test_only_the_program_itself_ends_its_help_with_its_example(self):
        self.assertIn("mutate -f cluster.yaml", self.rayhook.run("--help").stdout)
        for verb in ("serve", "version", "config"):
            self.assertNotIn("mutate -f cluster.yaml", self.rayhook.run(verb, "--help").stdout)

    def test_review(self):
        for entry, path in self.files():
            with self.subTest(entry["file"]):
                self.review_file(entry, path)

    def review_file(self, entry, path):
        before = objects_of(path.read_text())
        after = []
        for item in before:
            review = review_of(item)
            response = self.rayhook.review(review, path)
            self.assertEqual(response["uid"], "u-1")
            self.assertIs(response["allowed"], True)
            made = patched(review["request"]["object"], patch_of(response))
            review["request"]["object"] = made
            self.assertEqual(patch_of(self.rayhook.review(review, path)), [])
            if pod_of(item) is not None and pod_of(item) is not item:
                whole = copy.deepcopy(item)
                whole["spec"]["template"]["spec"] = made["spec"]
                after.append(whole)
            else:
                after.append(made)
        self.check(entry, before, after)

    def test_explain(self):
        for entry, path in self.files():
            with self.subTest(entry["file"]):
                done = self.rayhook.run("explain", "-f", str(path), "-o", "json")
                self.assertEqual(done.returncode, 0, done.stderr)
                told = {(o["kind"], o["name"]): o for o in json.loads(done.stdout)}
                for name, state in entry["services"].items():
                    self.assertEqual(told["Service", name]["changed"], state == "headless")
                    self.assertEqual(told["Service", name]["reason"] == "converted", state == "headless")
                text = self.rayhook.run("explain", "-f", str(path))
                self.assertEqual(text.returncode, 0)
                self.assertNotIn("\x1b", text.stdout)


class Layout(CliTest):
    """What `mutate` keeps: types, quoting, comments, order, bytes."""

    def test_untouched_files_come_out_byte_for_byte(self):
        for text in ("", "\n", "# only a comment\n", "---\n", "a: b",
                     "\ufeffa: 1\r\nb:   [ 1,2 ]\r\n", "---\na: 1\n...\n# c\n---\n\n---\nb: 'x'\n...\n",
                     "%YAML 1.1\n---\na: 0o17\n", '{"a":\t1}\n{"b": 2}\n',
                     "kind: ConfigMap\ndata:\n  x: |+\n    a\n\n\n---\nkind: Secret\n"):
            with self.subTest(text=text):
                self.assertEqual(self.rayhook.mutate(text), text)

    def test_types_and_texts_are_kept(self):
        pod = yaml.safe_load(POD)
        odd = {"a": "123", "b": "yes", "c": "1e3", "d": None, "e": "two\nlines\n", "f": "日本 é 🙂",
               "g": "null", "h": "0x1F", "i": "", "j": " lead", "k": "x: y", "l": "# no", "m": "a\n\nb",
               "n": "~", "o": "on", "p": "1_000", "q": "2001-01-01", "r": "\ttab", "s": "-", "t": "'\""}
        pod["metadata"]["annotations"] = {k: v for k, v in odd.items() if v is not None}
        pod["spec"]["volumes"] = [{"name": "v", "configMap": {"defaultMode": 420, "optional": None}}]
        pod["spec"]["containers"][0]["env"] = [{"name": "LONG", "value": "word " * 60 + "end"}]
        for style in (None, "'", '"', "|", ">"):
            for width in (20, 80, 10000):
                text = HEAD + "---\n" + yaml.dump(pod, default_style=style, width=width, allow_unicode=True)
                with self.subTest(style=style, width=width):
                    self.check_kept(text)

    def check_kept(self, text):
        before, after = objects_of(text)[1], objects_of(self.rayhook.mutate(text))[1]
        self.assertEqual(after["metadata"]["annotations"].pop("rayhook/decision")[:9], "rewritten")
        container = after["spec"]["containers"][0]
        self.assertEqual(container["args"], ["ray start --address=ray-head:6379"])
        container["args"] = before["spec"]["containers"][0]["args"]
        container["env"] = container["env"][-len(before["spec"]["containers"][0]["env"]):]
        self.assertEqual(after, before)

    def test_octal_and_other_spellings_stay(self):
        text = (HEAD + "---\n" + POD + "  volumes:\n  - {name: v, secret: {defaultMode: 0o644}}\n"
                "  - {name: w, secret: {defaultMode: 0644}}\n  priority: 1_0\n")
        out = self.rayhook.mutate(text)
        for spelling in ("0o644", "0644", "1_0", "ray-head   # the head"):
            self.assertIn(spelling, out)
        volumes = json.loads(self.rayhook.mutate(text, "-o", "json"))["items"][1]["spec"]["volumes"]
        self.assertEqual([v["secret"]["defaultMode"] for v in volumes], [420, 420])

    def test_comments_and_layout_stay(self):
        script = ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: w  # name\nspec:\n  containers:\n"
                  "  # before\n  - name: w\n    command: ['bash', '-c']\n    args:\n    - |\n"
                  "      # a $RAY_HEAD_SERVICE_HOST comment\n      ray start \\\n"
                  "        --address=${RAY_HEAD_SERVICE_HOST}:6379   # there\n    env:   # mine\n"
                  "    # about A\n    - name: A\n      value: 'x'  # x\n# end\n")
        out = self.rayhook.mutate(HEAD + "---\n" + script).split("---\n")[1]
        lines = script.replace("${RAY_HEAD_SERVICE_HOST}:6379", "ray-head:6379").splitlines()
        rest = iter(out.splitlines())
        for line in lines:  # all are there, in order
            self.assertIn(line, rest)

    def test_plain_values_that_would_become_numbers_are_quoted(self):
        pod = POD.replace("    args:", "    env: [{name: P, value: $(RAY_HEAD_SERVICE_PORT)}]\n    args:")
        out = objects_of(self.rayhook.mutate(HEAD + "---\n" + pod))[1]
        self.assertEqual(out["spec"]["containers"][0]["env"][-1], {"name": "P", "value": "6379"})

    def test_shared_anchors(self):
        text = HEAD + """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  unrelated: &c   # stays
  - &one
    name: w
    command: [sh, -c, "ray start --address=$RAY_HEAD_SERVICE_HOST:6379"]
  template:
    spec:
      containers:
      - *one
      - <<: *one
        name: other
"""
        done = self.rayhook.run("mutate", "-f", "-", stdin=text)
        item = objects_of(done.stdout)[1]
        self.assertIn("$RAY_HEAD", item["spec"]["unrelated"][0]["command"][2])
        self.assertNotIn("env", item["spec"]["unrelated"][0])
        for container in item["spec"]["template"]["spec"]["containers"]:
            self.assertEqual(container["command"][2], "ray start --address=ray-head:6379")
            self.assertIn("RAY_HEAD_SERVICE_HOST", [e["name"] for e in container["env"]])
        self.assertTrue("# stays" in done.stdout or "comments could not be kept" in done.stderr)

    def test_json_stays_json(self):
        items = [yaml.safe_load(HEAD), yaml.safe_load(POD)]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        for text in (json.dumps(listed), json.dumps(listed, indent=2), json.dumps(listed, indent=1) + "\n"):
            out = json.loads(self.rayhook.mutate(text))
            self.assertEqual(out["items"][0]["spec"]["clusterIP"], "None")
            self.assertEqual(out["items"][1]["spec"]["containers"][0]["args"],
                             ["ray start --address=ray-head:6379"])
        items[1]["spec"]["containers"][0]["env"] = []
        rows = "".join(json.dumps(item) + "\n" for item in items)
        out = [json.loads(line) for line in self.rayhook.mutate(rows).splitlines()]
        self.assertEqual(out[0]["spec"]["clusterIP"], "None")
        self.assertTrue(out[1]["spec"]["containers"][0]["env"])

    def test_line_ends_of_windows(self):
        out = self.rayhook.mutate((HEAD + "---\n" + POD).replace("\n", "\r\n"))
        self.assertEqual(out.count("\n"), out.count("\r\n"))
        self.assertIn("ray-head:6379", out)

    def test_kinds_with_templates(self):
        template = {"metadata": {}, "spec": yaml.safe_load(POD)["spec"]}
        spec = {"template": template}
        kinds = [
            ("apps/v1", "Deployment", spec), ("apps/v1", "StatefulSet", spec),
            ("apps/v1", "DaemonSet", spec), ("apps/v1", "ReplicaSet", spec),
            ("v1", "ReplicationController", spec), ("batch/v1", "Job", spec),
            ("batch/v1", "CronJob", {"jobTemplate": {"spec": spec}}),
            ("ray.io/v1", "RayCluster", {"headGroupSpec": {}, "workerGroupSpecs": [spec, spec]}),
            ("ray.io/v1", "RayJob", {"rayClusterSpec": {"workerGroupSpecs": [spec]}, "submitterPodTemplate": template}),
            ("ray.io/v1", "RayService", {"rayClusterConfig": {"workerGroupSpecs": [spec]}}),
            ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {"workerTemplate": template}}),
            ("example.com/v1", "Unheard", spec)]
        for api, kind, body in kinds:
            with self.subTest(kind):
                text = HEAD + "---\n" + json.dumps(
                    {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": body})
                before, after = json.dumps(body), json.dumps(objects_of(self.rayhook.mutate(text))[1]["spec"])
                self.assertEqual(after.count("ray-head:6379"), before.count("$RAY_HEAD_SERVICE_HOST"))
        knative = HEAD + "---\n" + json.dumps({"apiVersion": "serving.knative.dev/v1", "kind": "Service",
                                               "metadata": {"name": "k"}, "spec": spec})
        self.assertIn("ray-head:6379", self.rayhook.mutate(knative))

    def test_lists(self):
        for kind, api in (("List", "v1"), ("ServiceList", "v1")):
            service = yaml.safe_load(HEAD)
            if kind == "ServiceList":
                del service["apiVersion"], service["kind"]
            out = yaml.safe_load(self.rayhook.mutate(yaml.dump(
                {"apiVersion": api, "kind": kind, "items": [service]})))
            self.assertEqual(out["items"][0]["spec"]["clusterIP"], "None")
            self.assertEqual("kind" in out["items"][0], kind == "List")


class Several(CliTest):
    def test_files_know_each_other(self):
        with tempfile.TemporaryDirectory() as directory:
            pod, head = pathlib.Path(directory, "pod.yaml"), pathlib.Path(directory, "head.yaml")
            pod.write_text(POD.rstrip("\n"))
            head.write_text(HEAD)
            done = self.rayhook.run("mutate", "-f", str(pod), "-f", str(head))
            self.assertEqual([o["kind"] for o in objects_of(done.stdout)], ["Pod", "Service"])
            self.assertIn("ray-head:6379", done.stdout)
            self.assertIn("2 of 2 objects changed", done.stderr)
            shown = self.rayhook.run("mutate", "-f", str(pod), "-f", str(head), "-o", "diff")
            self.assertIn("--- " + str(pod), shown.stdout)
            self.assertIn("+  clusterIP: None", shown.stdout)
            self.assertNotIn("\x1b", shown.stdout)
            coloured = self.rayhook.run("mutate", "-f", str(head), "-o", "diff", "--color", "always")
            self.assertIn("\x1b[32m", coloured.stdout)

    def test_namespaces_are_told_apart(self):
        other = HEAD.replace("  name: ray-head", "  namespace: other\n  name: ray-head")
        self.assertNotIn("ray-head:6379", self.rayhook.mutate(other + "---\n" + POD))
        self.assertIn("ray-head:6379", self.rayhook.mutate(HEAD + "---\n" + POD))

    def test_ten_thousand_documents(self):
        deployment = yaml.dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "NAME"},
                                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "NAME"}},
                                         "template": {"metadata": {"labels": {"app": "NAME"}},
                                                      "spec": yaml.safe_load(POD)["spec"]}}})
        plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {a: b}\n"
        mixes = {
            "workers of one head": [HEAD] + [deployment] * 9999,
            "a head for each": [d for i in range(2500) for d in
                                (HEAD.replace("ray-head ", f"ray-head-{i} ").replace("  name:", f"  namespace: n{i}\n  name:"), plain)] + [deployment] * 5000,
            "ten heads in one namespace": [HEAD.replace("ray-head ", f"ray-head-{i} ") for i in range(10)]
                                          + [deployment] * 9990,
            "configuration only": [plain] * 10000,
        }
        for name, documents in mixes.items():
            with self.subTest(name):
                text = "---\n".join(d.replace("NAME", f"x-{i}") for i, d in enumerate(documents))
                start = seconds_used()
                out = self.rayhook.mutate(text, timeout=120)
                took = seconds_used() - start
                print(f"{name}: {len(text) >> 10} KiB in {took:.2f} s", file=sys.stderr)
                self.assertEqual(out.count("\nkind: "), text.count("\nkind: "))
                self.assertLess(took, OPTIONS.seconds)


def nested(depth):
    return "".join(" " * i + "a:\n" for i in range(depth))


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(12))

REFUSED = {  # what is in it → a word of the complaint
    "nul": ("a: b\0c\n", "NUL"),
    "control": ("a: b\x01c\n", "control"),
    "utf-8": (b"a: \xff\xfe\n", "UTF-8"),
    "utf-8 overlong": (b"a: \xc0\xaf\n", "UTF-8"),
    "flow depth": ("[" * 100_000, "deeper"),
    "flow mapping depth": ("{a: " * 100_000, "deeper"),
    "json depth": ('{"a":' * 100_000 + "1" + "}" * 100_000, "deeper"),
    "block depth": (nested(2000), "deeper"),
    "sequence depth": ("- " * 100_000, "deeper"),
    "alias bomb": (BOMB, "alias"),
    "merge bomb": ("a: &a {" + ", ".join(f"k{i}: {{}}" for i in range(100)) + "}\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} {{x: [{', '.join(['{<<: *' + chr(97 + i) + '}'] * 20)}]}}\n" for i in range(8)), "alias"),
    "self alias": ("a: &a [*a]\n", "deeper"),
    "unknown alias": ("a: *nowhere\n", "nowhere"),
    "duplicate key": ("kind: A\nmetadata:\n  x: 1\n  x: 2\n", "line 4"),
    "duplicate key in json": ('{"kind": "A",\n "kind": "B"}', "kind"),
    "list as a document": ("- a\n- b\n", "apiVersion"),
    "text as a document": ("hello\n", "apiVersion"),
    "helm template": ("a: {{ .Values.x }}\n", "template"),
    "tab": ("a:\n\tb: c\n", "tab"),
    "open quote": ('a: "b\n', "quote"),
    "open bracket": ("a: [b\nc: d\n", "line"),
    "wrong indentation": ("a:\n  b: 1\n c: 2\n", "indentation"),
    "mapping in a line": ("a: b: c\n", "line 1"),
    "tag that does not fit": ("a: !!int x\n", "int"),
    "binary": ("a: !!binary aGk=\n", "binary"),
    "escape": ('a: "\\q"\n', "escape"),
    "infinity": ("a: .inf\n", ".inf"),
    "complex key": ("? [a]\n: b\n", "key"),
}


class Hostile(CliTest):
    def test_manifests_that_are_refused(self):
        for name, (text, word) in REFUSED.items():
            for verb in ("mutate", "explain"):
                with self.subTest(name, verb=verb):
                    self.refused(self.rayhook.run(verb, "-f", "-", stdin=text), 1, word, "standard input")

    def test_wrong_shapes_pass_through(self):
        for text in ("kind: Service\napiVersion: v1\n", "kind: Service\napiVersion: v1\nspec: 7\n",
                     "kind: Pod\napiVersion: v1\nspec: {containers: null}\n",
                     "kind: Pod\napiVersion: v1\nspec: {containers: [null, 3, {args: 7}, {env: [null]}]}\n",
                     "kind: Deployment\napiVersion: apps/v1\nspec: {template: {metadata: [], spec: {containers: [{name: 3}]}}}\n",
                     "kind: Service\napiVersion: v1\nmetadata: x\nspec: {ports: [{port: -1}]}\n",
                     "kind: 3\napiVersion: [v1]\nmetadata: {name: {}}\n", "kind: List\nitems: [1, null, []]\n",
                     "kind: List\nitems: null\n", "kind: PodList\nitems: [{spec: {containers: [{}]}}]\n"):
            with self.subTest(text):
                self.assertEqual(self.rayhook.mutate(text), text)
                self.assertEqual(self.rayhook.run("explain", "-f", "-", stdin=text).returncode, 0)

    def test_large_manifests(self):
        containers = "".join(f"  - {{name: c{i}, args: ['$(RAY_HEAD_SERVICE_HOST)']}}\n" for i in range(10_000))
        head, pod = POD.split("  - name: w")[0], POD.split("    args:")[0]
        big = {"containers": head + containers,
               "dollars": pod + "    args: ['" + "$" * (8 << 20) + "']\n",
               "references": pod + "    args: ['" + "$RAY_HEAD_SERVICE_HOST " * 200_000 + "']\n",
               "lines": pod + "    args:\n    - |\n" + "      echo $RAY_HEAD_SERVICE_HOST '\n" * 100_000,
               "keys": "kind: ConfigMap\ndata:\n" + "".join(f"  k{i}: v\n" for i in range(200_000)),
               "blanks": "a: 'x" + " " * (8 << 20) + "y'\n", "hashes": "a: x\n" + "#" * (8 << 20) + "\n",
               "colons": "a: '" + ": " * (4 << 20) + "'\n"}
        for name, text in big.items():
            with self.subTest(name):
                start = seconds_used()
                done = self.rayhook.run("mutate", "-f", "-", stdin=HEAD + "---\n" + text, timeout=120)
                print(f"{name}: {seconds_used() - start:.2f} s", file=sys.stderr)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertLess(seconds_used() - start, 4 * OPTIONS.seconds)

    def test_too_many_values(self):
        self.refused(self.rayhook.run("mutate", "-f", "-", stdin="a: [" + "1," * 5_000_000 + "]\n"), 1, "split")

    def test_every_truncation_of_a_manifest(self):
        text = (HEAD + "---\n" + POD).replace("ray-head   #", "'ray-head' &x #")[:400]
        for end in range(0, len(text), 3):
            done = self.rayhook.run("mutate", "-f", "-", stdin=text[:end])
            self.assertIn(done.returncode, (0, 1), text[:end])

    def test_reviews_that_are_refused(self):
        good = review_of(yaml.safe_load(HEAD))
        no_uid = copy.deepcopy(good)
        del no_uid["request"]["uid"]
        for name, text in {"empty": "", "no json": "hello", "half": json.dumps(good)[:-40], "array": "[]",
                           "null": "null", "no request": '{"kind":"AdmissionReview"}', "no uid": json.dumps(no_uid),
                           "depth": "[" * 100_000, "utf-8": b'{"kind": "\xff"}', "nul": "\0" * 100,
                           "too large": " " * (9 * 1024 * 1024 + 1)}.items():
            with self.subTest(name):
                self.refused(self.rayhook.run("review", stdin=text), 1)

    def test_reviews_of_broken_objects_are_admitted(self):
        for made in (None, 3, [], {}, {"kind": "Pod"}, {"kind": "Pod", "spec": {"containers": {}}},
                     {"kind": "Pod", "metadata": [], "spec": {"containers": [None, {"env": 3}]}}):
            with self.subTest(made=made):
                review = review_of(yaml.safe_load(POD))
                review["request"]["object"] = made
                response = self.rayhook.review(review)
                self.assertIs(response["allowed"], True)
                self.assertNotIn("patch", response)


class Usage(CliTest):
    def test_bad_usage(self):
        for args in ([], ["frobnicate"], ["mutate"], ["mutate", "-f"], ["mutate", "-f", "-", "-o", "xml"],
                     ["mutate", "-f", "-", "--nope"], ["explain"], ["version", "-o", "yaml"], ["review", "--services"],
                     ["mutate", "-f", "-", "-f", "-"]):
            with self.subTest(args):
                self.refused(self.rayhook.run(*args), 2, "rayhook")

    def test_files_that_cannot_be_read(self):
        for path in ("/nonexistent/x.yaml", "/"):
            for args in (["mutate", "-f", path], ["explain", "-f", path], ["review", "--services", path]):
                self.refused(self.rayhook.run(*args), 1, path)

    def test_nothing_half_written(self):
        self.refused(self.rayhook.run("mutate", "-f", "-", stdin=HEAD + "---\na: [\n"), 1, "document 2")

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            import subprocess
            done = subprocess.run([OPTIONS.rayhook, "mutate", "-f", "-"], input=HEAD.encode(), stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)

    def test_help_has_examples(self):
        self.assertIn("Example", self.rayhook.run("--help").stdout)
        for verb in ("mutate", "explain", "review"):
            done = self.rayhook.run(verb, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("rayhook " + verb, done.stdout)
            self.assertIn("Example", done.stdout)

    def test_version(self):
        plain = self.rayhook.run("version").stdout
        self.assertRegex(plain, r"\Arayhook \d+\.\d+\.\d+\n\Z")
        told = json.loads(self.rayhook.run("version", "-o", "json").stdout)
        self.assertEqual(f"rayhook {told['version']}\n", plain)
        self.assertIn("openssl", told["libraries"])

    def test_review_without_services(self):
        response = self.rayhook.review(review_of(yaml.safe_load(POD)))
        self.assertNotIn("patch", response)
        self.assertEqual(response["auditAnnotations"]["reason"], "service-unknown")
        response = self.rayhook.review(review_of(yaml.safe_load(HEAD)))
        self.assertEqual(response["auditAnnotations"]["reason"], "converted")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rayhook", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--seconds", type=float, default=5, help="what 10,000 documents may take")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
