# SPDX-License-Identifier: Apache-2.0
"""`--config` and `rayhook config`, and that docs/configuration.md, `--help` and the code say the same.
Part of cli_test.py; serve's side of it: tests/server/server_test.py."""

import json
import pathlib
import re
import sys
import tempfile
import unittest

import yaml

from support import Rayhook, containers_of, objects_of, review_of

ROOT = pathlib.Path(__file__).parents[2]

HEAD = """\
apiVersion: v1
kind: Service
metadata: {name: ray-head, namespace: team-a}
spec:
  ports: [{name: redis, port: 6379}]
  selector: {component: ray-head}
"""

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: worker, namespace: team-a}
spec:
  containers:
  - name: w
    command: [sh, -c]
    args: ["ray start --address=$RAY_HEAD_SERVICE_HOST:$RAY_HEAD_SERVICE_PORT_REDIS"]
"""


class ConfigTest(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.rayhook = Rayhook(sys.modules["__main__"].OPTIONS.rayhook)

    def file(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

    def refused(self, done, *words):
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class Config(ConfigTest):
    def test_what_is_in_force(self):
        text = self.rayhook.run("config").stdout
        defaults = json.loads(self.rayhook.run("config", "-o", "json").stdout)
        self.assertEqual(yaml.safe_load(text), defaults)
        for same in (text, json.dumps(defaults), "", "# nothing\n"):
            self.assertEqual(self.rayhook.run("config", "--config", self.file(same)).stdout, text)
        changed = self.rayhook.run("config", "--config", self.file("dnsName: fqdn\nhead: {words: [leader]}\n"), "-o", "json")
        expected = dict(defaults, dnsName="fqdn", head=dict(defaults["head"], words=["leader"]))
        self.assertEqual(json.loads(changed.stdout), expected)

    def test_refused_by_every_verb(self):
        bad = self.file("dnsname: short\n")
        for verb, *args in (["serve", "--tls-cert", "a", "--tls-key", "b"], ["mutate", "-f", "-"], ["explain", "-f", "-"],
                            ["review"], ["config"]):
            with self.subTest(verb):
                self.refused(self.rayhook.run(verb, *args, "--config", bad),
                             f"rayhook {verb}: --config {bad}: ", '"dnsname"', "dnsName")
                self.refused(self.rayhook.run(verb, *args, "--config", "/nonexistent/x"), "--config /nonexistent/x: ")
                self.refused(self.rayhook.run(verb, *args, "--config", ""), "--config ")
                self.assertEqual(self.rayhook.run(verb, *args, "--config", "-").returncode, 2)

    def test_it_reaches_every_verb(self):
        config = self.file("dnsName: namespace\n")
        done = self.rayhook.run("mutate", "-f", "-", "--config", config, stdin=HEAD + "---\n" + POD)
        self.assertIn("--address=ray-head.team-a:6379", done.stdout)
        done = self.rayhook.run("explain", "-f", "-", "--config", config, stdin=HEAD + "---\n" + POD)
        self.assertIn("RAY_HEAD_SERVICE_HOST=ray-head.team-a\n", done.stdout)
        done = self.rayhook.run("review", "--services", self.file(HEAD), "--config", config,
                                stdin=json.dumps(review_of(yaml.safe_load(POD))))
        answer = json.loads(done.stdout)["response"]
        plain = self.rayhook.review(review_of(yaml.safe_load(POD)), self.file(HEAD))
        self.assertNotEqual(answer["patch"], plain["patch"])


class Effects(ConfigTest):
    """What each key does to manifests."""

    def mutate(self, config, *documents):
        """The objects after it, and stderr."""
        text = "---\n".join(d if isinstance(d, str) else json.dumps(d) + "\n" for d in documents)
        done = self.rayhook.run("mutate", "-f", "-", "--config", self.file(config), stdin=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return objects_of(done.stdout), done.stderr

    def service(self, name="ray-head", ports=(("redis", 6379),), selector="ray-head", labels=None):
        return {"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name, "namespace": "team-a", "labels": labels or {}},
                "spec": {"ports": [{"name": n, "port": p} for n, p in ports], "selector": {"app": selector}}}

    def pod(self, *args, **spec):
        container = {"name": "w", "command": ["sh", "-c"], "args": list(args)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team-a"},
                "spec": {"containers": [container], **spec}}

    def arg(self, config, *documents):
        return self.mutate(config, *documents)[0][-1]["spec"]["containers"][0]["args"][0]

    def env(self, config, *documents):
        container = self.mutate(config, *documents)[0][-1]["spec"]["containers"][0]
        return {entry["name"]: entry.get("value") for entry in container.get("env", [])}

    def converted(self, config, *documents):
        return self.mutate(config, *documents)[0][0]["spec"].get("clusterIP") == "None"

    def test_dns_names(self):
        for config, name in (("", "ray-head"), ("dnsName: namespace", "ray-head.team-a"),
                             ("dnsName: fqdn", "ray-head.team-a.svc.cluster.local"),
                             ("dnsName: fqdn\nclusterDomain: k8s.example", "ray-head.team-a.svc.k8s.example"),
                             ("clusterDomain: k8s.example", "ray-head")):
            with self.subTest(config):
                self.assertEqual(self.arg(config, HEAD, POD), f"ray start --address={name}:6379")
                self.assertEqual(self.env(config, HEAD, POD)["RAY_HEAD_SERVICE_HOST"], name)

    def test_docker_links(self):
        plain, mention = self.pod("python train.py"), self.pod("echo $RAY_HEAD_PORT_6379_TCP_ADDR")
        self.assertNotIn("RAY_HEAD_PORT_6379_TCP_ADDR", self.env("", HEAD, plain))
        self.assertEqual(self.env("dockerLinks: always", HEAD, plain)["RAY_HEAD_PORT_6379_TCP_ADDR"], "ray-head")
        self.assertEqual(self.env("", HEAD, mention)["RAY_HEAD_PORT"], "tcp://ray-head:6379")

    def test_host_network(self):
        reader = self.pod("ray start --address=$RAY_HEAD_SERVICE_HOST:6379", hostNetwork=True)
        objects, stderr = self.mutate("", HEAD, reader)
        self.assertEqual(objects[1]["spec"]["dnsPolicy"], "ClusterFirstWithHostNet")
        self.assertIn("ray-head:6379", objects[1]["spec"]["containers"][0]["args"][0])
        for config, pod in (("hostNetworkDns: leave", reader), ("", self.pod("python x.py", hostNetwork=True)),
                            ("", dict(reader, spec=dict(reader["spec"], dnsPolicy="Default"))),
                            ("", dict(reader, spec=dict(reader["spec"], dnsPolicy="None", hostNetwork=False)))):
            objects, stderr = self.mutate(config, HEAD, pod)
            self.assertEqual(objects[1], pod)
            self.assertIn("cannot resolve Services", stderr)
        good = dict(reader, spec=dict(reader["spec"], dnsPolicy="ClusterFirstWithHostNet"))
        self.assertIn("ray-head:6379", self.arg("hostNetworkDns: leave", HEAD, good))

    def test_kuberay(self):
        def head(port):
            return self.service(ports=((port, 6379),), labels={"ray.io/node-type": "head"})
        for mode, gcs, redis in (("auto", False, True), ("convert", True, True), ("ignore", False, False)):
            self.assertEqual(self.converted(f"kuberay: {mode}", head("gcs-server")), gcs, mode)
            self.assertEqual(self.converted(f"kuberay: {mode}", head("redis")), redis, mode)
            self.assertTrue(self.converted(f"kuberay: {mode}", HEAD), mode)
            # Beside one that is left, pods are left.
            self.assertEqual(self.arg(f"kuberay: {mode}", head("redis"), POD) != yaml.safe_load(POD)["spec"]["containers"][0]["args"][0],
                             redis, mode)

    def test_what_is_a_head(self):
        other = self.service(ports=(("store", 7000),), selector="ray-leader")
        self.assertFalse(self.converted("", other))
        self.assertFalse(self.converted("head: {words: [leader]}", other))
        self.assertFalse(self.converted("head: {portNames: [store]}", other))
        self.assertTrue(self.converted("head: {words: [head, leader], portNames: [store]}", other))
        self.assertTrue(self.converted("head: {words: [leader], portNumbers: [7000]}", other))
        self.assertFalse(self.converted("head: {words: [leader]}", HEAD))
        self.assertFalse(self.converted("head: {portNames: [], portNumbers: []}", HEAD))

    def test_caps_on_restored_variables(self):
        def heads(count):
            return [self.service(f"head-{i}", ports=(("gcs", 6379), ("client", 10001))) for i in range(count)]
        reader = self.pod("echo $HEAD_1_SERVICE_HOST")
        all_of_two = self.env("dockerLinks: always", *heads(2), reader)
        self.assertEqual(len(all_of_two), 2 * (2 + 2 + 1 + 2 * 4))
        # First the links of the Service that is not named …
        kept = self.env("dockerLinks: always\nrestored: {maxVariables: 20}", *heads(2), reader)
        self.assertEqual(sorted(set(all_of_two) - set(kept)), sorted(
            name for name in all_of_two if name.startswith("HEAD_0_PORT")))
        # … then the rest of it; what the text names stays whole.
        kept = self.env("dockerLinks: always\nrestored: {maxVariables: 13}", *heads(2), reader)
        self.assertEqual(set(kept), {name for name in all_of_two if name.startswith("HEAD_1_")})
        size = sum(len(name) + len(value) for name, value in kept.items())
        same = self.env(f"dockerLinks: always\nrestored: {{maxBytes: {size}}}", *heads(2), reader)
        self.assertEqual(same, kept)
        fewer = self.env(f"dockerLinks: always\nrestored: {{maxBytes: {size - 1}}}", *heads(2), reader)
        self.assertEqual(set(fewer), {"HEAD_1_SERVICE_HOST", "HEAD_1_SERVICE_PORT", "HEAD_1_SERVICE_PORT_GCS",
                                      "HEAD_1_SERVICE_PORT_CLIENT"})
        _, stderr = self.mutate("restored: {maxVariables: 4}", *heads(2), reader)
        self.assertIn("warning", stderr)
        self.assertEqual(len(self.env("", *heads(200), reader)), 256)
        self.assertLessEqual(sum(len(n) + len(v) for n, v in self.env("", *heads(200), reader).items()), 16384)

    def test_env_from_goes_on_and_warns(self):
        pod = self.pod("ray start --address=$RAY_HEAD_SERVICE_HOST:6379")
        pod["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "c"}}]
        objects, stderr = self.mutate("", HEAD, pod)
        self.assertIn("ray-head:6379", objects[1]["spec"]["containers"][0]["args"][0])
        self.assertEqual(objects[1]["spec"]["containers"][0]["env"][0]["name"], "RAY_HEAD_SERVICE_HOST")
        self.assertIn("envFrom", stderr)

    def test_a_bare_pod_of_kubectl_apply_keeps_its_text(self):
        pod = self.pod("ray start --address=$RAY_HEAD_SERVICE_HOST:6379")
        by_apply = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}
        by_server = {"managedFields": [{"manager": "kubectl", "operation": "Apply", "apiVersion": "v1"}]}
        by_create = {"managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1"}]}
        for metadata, kept in ((by_apply, True), (by_server, True), (by_create, False)):
            made = dict(pod, metadata={**pod["metadata"], **metadata})
            objects, _ = self.mutate("", HEAD, made)
            container = containers_of(objects[1])[0]
            self.assertEqual(container["args"] == pod["spec"]["containers"][0]["args"], kept)
            self.assertIn("RAY_HEAD_SERVICE_HOST", [entry["name"] for entry in container["env"]])
            template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "team-a"},
                        "spec": {"template": {"metadata": metadata, "spec": pod["spec"]}}}
            objects, _ = self.mutate("", HEAD, template)
            self.assertIn("ray-head:6379", objects[1]["spec"]["template"]["spec"]["containers"][0]["args"][0])

    def test_brackets_of_ipv6_go(self):
        for text, after in (
                ("x [$RAY_HEAD_SERVICE_HOST]:6379", "x ray-head:6379"),
                ("x --address=[${RAY_HEAD_SERVICE_HOST}]:$RAY_HEAD_SERVICE_PORT_REDIS", "x --address=ray-head:6379"),
                ("x \"[$RAY_HEAD_SERVICE_HOST]:6379\"", "x \"ray-head:6379\""),
                ("x ray://[$RAY_HEAD_SERVICE_HOST]:6379", "x ray://ray-head:6379"),
                ("x http://[$RAY_HEAD_SERVICE_HOST]/", "x http://ray-head/"),
                ("x \"[$RAY_HEAD_SERVICE_HOST]\":6379", "x \"ray-head\":6379"),
                ("x --hosts=[$RAY_HEAD_SERVICE_HOST]", "x --hosts=[ray-head]"),
                ("x [ $RAY_HEAD_SERVICE_HOST ]", "x [ ray-head ]"),
                ("[ -n \"$RAY_HEAD_SERVICE_HOST\" ]", "[ -n \"ray-head\" ]")):
            with self.subTest(text):
                self.assertEqual(self.arg("", HEAD, self.pod(text)), after)


# `  -o,--output FORMAT:{text,json}=text …`: the flag, its type with what may stand there, its default.
FLAG = re.compile(r"  (?P<flag>(-\w,)?--[\w-]+)( [A-Z]+(:([A-Z]+ in \[[^]]*\]|\{[^}]*\}|[A-Z]+))?)?"
                  r"(=(?P<default>[^\s,]+(, [^\s,]+)*))?( \.\.\.)?(?P<required> REQUIRED\b)?( .*)?")


def flags_of(help_text):
    """{flag: default} as `--help` has them; a required one is "required"."""
    flags = {}
    for line in help_text.splitlines():
        if re.match(r"  -(?!h,--help)(?!-version)", line):
            match = FLAG.fullmatch(line)
            if not match:
                raise AssertionError("not understood: " + line)
            flags[match["flag"]] = "required" if match["required"] else match["default"] or ""
    return flags


def verbs_of(help_text):
    part = help_text.partition("Subcommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\w[\w-]*)", part, re.MULTILINE)


def rows(markdown):
    """The cells of the tables' rows, without backticks."""
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split(" |")]
            for line in markdown.splitlines() if line.startswith("| `")]


def flattened(mapping, above=""):
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from flattened(value, above + key + ".")
        else:
            yield above + key, "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list) else str(value)


class Documentation(ConfigTest):
    """docs/configuration.md has what the program has, no more and no less."""

    def setUp(self):
        super().setUp()
        self.page = (ROOT / "docs/configuration.md").read_text()
        self.defaults = json.loads(self.rayhook.run("config", "-o", "json").stdout)

    def test_keys(self):
        keys = self.page.partition("## Keys")[2].partition("\n## ")[0]
        self.assertEqual([(key, default) for key, default, *_ in rows(keys)], list(flattened(self.defaults)))

    def test_the_example_has_all_defaults(self):
        example = ROOT / "examples/config.yaml"
        self.assertEqual(yaml.safe_load(example.read_text()), self.defaults)
        done = self.rayhook.run("config", "--config", str(example), "-o", "json")
        self.assertEqual(json.loads(done.stdout), self.defaults, done.stderr)

    def test_the_manifests_have_all_defaults_as_comments(self):
        text = (ROOT / "manifests/base/config.yaml").read_text()
        self.assertIsNone(yaml.safe_load(text))
        keys = re.sub(r"^#(?! \S)", "", text, flags=re.MULTILINE)  # `# Prose`, but `#key:` and `#  key:`
        self.assertEqual(yaml.safe_load(keys), self.defaults)

    def told(self, *verb):
        """{verb: {flag: default}} of this verb and those below it, by their `--help`."""
        text = self.rayhook.run(*verb, "--help").stdout
        told = {" ".join(verb): flags_of(text)} if verb else {}
        for below in verbs_of(text):
            told.update(self.told(*verb, below))
        return {name: flags for name, flags in told.items() if flags}

    def test_flags(self):
        told = self.told()
        self.assertIn("serve", told)
        self.assertGreater(len(told["serve"]), 15)
        sections = re.split(r"^### `rayhook ([\w -]+)`$", self.page, flags=re.MULTILINE)[1:]
        documented = {verb: {flag.split()[0]: default for flag, default, *_ in rows(section)}
                      for verb, section in zip(sections[::2], sections[1::2])}
        self.assertEqual(documented, told)
