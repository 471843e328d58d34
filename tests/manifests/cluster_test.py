#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs Rayhook on a real API server as users do, by Helm and by kustomize, and runs the program with the rights,
arguments, configuration and certificate that the manifests give it.

Everything is in a network namespace of its own, where the Service's cluster IP is an address of the loopback device:
so the webhook configuration is used just as it is written, name, port, path, selectors, conditions and all."""

import argparse
import base64
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

import render  # noqa: E402
from control_plane import ControlPlane, KubectlError  # noqa: E402
from probe import PROBE, Probe  # noqa: E402
from processes import Process, wait_until  # noqa: E402
from wrong import Wrong, expect  # noqa: E402

START = time.monotonic()
NAMESPACE = "rayhook-system"
SERVER, CERTS = (f"system:serviceaccount:{NAMESPACE}:{name}" for name in ("rayhook", "rayhook-certs"))
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                "rules": [{"level": "Metadata", "users": [SERVER, CERTS]}, {"level": "None"}]}

HEAD = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ray-head"},
        "spec": {"selector": {"component": "ray-head"}, "ports": [{"name": "gcs-server", "port": 6379}]}}
WORKER = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "worker-"},
          "spec": {"containers": [{"name": "ray", "image": "ray", "command": ["/bin/bash", "-c"],
                                   "args": ["ray start --address=$RAY_HEAD_SERVICE_HOST:$RAY_HEAD_SERVICE_PORT_GCS_SERVER"]}]}}


def say(text):
    print(f"[{time.monotonic() - START:6.1f}s] {text}", flush=True)


def changed(document, **spec):
    return {**document, "spec": {**document["spec"], **spec}}


class Suite:
    def __init__(self, arguments, directory):
        self.arguments, self.directory = arguments, directory
        policy, self.audit_log = os.path.join(directory, "audit-policy.json"), os.path.join(directory, "audit.log")
        with open(policy, "w") as out:
            json.dump(AUDIT_POLICY, out)
        self.plane = ControlPlane(arguments.bin, directory, [
            f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}",
            # Few seats, so that they can be taken (see own_seats).
            "--max-requests-inflight=20", "--max-mutating-requests-inflight=20"])
        self.rayhook = None
        self.probe = Probe(self)

    # ---- helpers

    def kubectl(self, *arguments, **options):
        return self.plane.kubectl(*arguments, **options)

    def helm(self, *arguments):
        done = subprocess.run([os.path.join(self.arguments.tools, "bin", "helm"), "--kubeconfig", self.plane.admin, "--namespace", NAMESPACE, *arguments],
                              capture_output=True, text=True, timeout=120, env={"HOME": self.directory, "PATH": "/usr/bin:/bin"})
        expect(done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def account(self, name, namespace=NAMESPACE):
        """A kubeconfig with a real token of that service account."""
        token, _ = self.kubectl("create", "token", name, "-n", namespace)
        with open(self.plane.admin) as file:
            config = json.load(file)
        config["users"] = [{"name": "admin", "user": {"token": token.strip()}}]
        path = os.path.join(self.directory, f"{name}.kubeconfig")
        with open(path, "w") as out:
            json.dump(config, out)
        os.chmod(path, 0o600)
        return path, token.strip()

    def create(self, document, namespace, *options):
        document = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
        out, warnings = self.kubectl("create", "-f", "-", "-o", "json", *options, stdin=json.dumps(document))
        return json.loads(out), warnings

    def plane_ca(self):
        """A CA that has not signed Rayhook's certificate, as a caBundle."""
        with open(self.plane.ca.cert, "rb") as file:
            return base64.b64encode(file.read()).decode()

    def metric(self, name):
        """Sum by the label `name`: which webhook was called, which was left out."""
        out, _ = self.kubectl("get", "--raw", "/metrics")
        found = {}
        for line in out.splitlines():
            if line.startswith(name + "{"):
                webhook = line.split('name="', 1)[1].split('"', 1)[0]
                found[webhook] = found.get(webhook, 0) + float(line.rsplit(" ", 1)[1])
        return found

    def called(self, action):
        """Which of our webhooks the API server called meanwhile."""
        before = self.metric("apiserver_admission_webhook_request_total")
        result = action()
        after = self.metric("apiserver_admission_webhook_request_total")
        return {name for name, count in after.items() if count > before.get(name, 0)}, result

    def leftovers(self):
        names = []
        for kind in ("namespaces", "clusterroles", "clusterrolebindings", "mutatingwebhookconfigurations", "flowschemas", "prioritylevelconfigurations"):
            names += [f"{kind}/{item['metadata']['name']}" for item in self.plane.get(kind)["items"] if "rayhook" in item["metadata"]["name"]]
        return names

    # ---- by Helm

    def helm_installs(self):
        notes = self.helm("install", "rayhook", render.CHART, "--dry-run=server", "--namespace", "default")
        expect("created in kube-system, default." in notes and "NOTHING THAT YOU CREATE IN default IS CHANGED" in notes, f"in default: {notes}")
        notes = self.helm("install", "rayhook", render.CHART, "--create-namespace")
        expect(f"created in kube-system, {NAMESPACE}." in notes and "NOTHING" not in notes, f"in {NAMESPACE}: {notes}")
        hooks = self.plane.get("mutatingwebhookconfiguration", "rayhook")["webhooks"]
        expect(len(hooks) == 6, f"{len(hooks)} webhooks")
        # What whoever makes the certificate does later must outlast an upgrade.
        patch = [{"op": "add", "path": f"/webhooks/{i}/clientConfig/caBundle", "value": base64.b64encode(b"A CA").decode()} for i in range(6)]
        self.kubectl("patch", "mutatingwebhookconfiguration", "rayhook", "--type=json", "-p", json.dumps(patch))
        self.helm("upgrade", "rayhook", render.CHART, "--set", "replicas=3", "--set", "webhook.timeoutSeconds=7")
        hooks = self.plane.get("mutatingwebhookconfiguration", "rayhook")["webhooks"]
        expect([h["clientConfig"].get("caBundle") for h in hooks] == [patch[0]["value"]] * 6, f"caBundle after the upgrade: {hooks[0]['clientConfig']}")
        expect({h["timeoutSeconds"] for h in hooks} == {7}, "the upgrade was not applied")
        jobs = [item["metadata"]["name"] for item in self.plane.get("jobs", "-n", NAMESPACE)["items"]]
        expect("rayhook-certs-install-2" in jobs, f"Jobs after the upgrade: {jobs}")
        self.helm("rollback", "rayhook", "1")
        for ends_as in ("Succeeded", "Failed", "Succeeded"):  # and again, over what the one before left
            passed = self.helm_test(ends_as)
            expect(passed == (ends_as == "Succeeded"), f"helm test, whose pod has {ends_as}, {'passed' if passed else 'failed'}")
        expect(f"namespaces/{PROBE}" not in self.leftovers(), "helm test left its namespace")
        self.helm("uninstall", "rayhook", "--wait")
        expect(self.leftovers() == [f"namespaces/{NAMESPACE}"], f"helm uninstall left {self.leftovers()}")
        self.kubectl("delete", "namespace", NAMESPACE, "--timeout=60s")

    def helm_test(self, phase):
        """Runs it, with its pod ending as a kubelet would tell."""
        result = []

        def run():
            try:
                result.append(self.helm("test", "rayhook", "--timeout", "60s"))
            except Wrong:
                result.append(None)
        thread = threading.Thread(target=run)
        thread.start()
        pod = wait_until("the pod of helm test", lambda: [p for p in self.plane.get("pods", "-n", PROBE)["items"] if p["status"]["phase"] == "Pending"], 60)[0]
        self.kubectl("patch", "pod", pod["metadata"]["name"], "-n", PROBE, "--subresource=status", "-p", json.dumps({"status": {"phase": phase}}))
        thread.join(90)
        return result[0] is not None

    # ---- by kustomize

    def every_way(self):
        """Each component is taken by the API server, but for kinds that other projects define."""
        self.kubectl("create", "namespace", NAMESPACE)
        for way in render.WAYS:
            objects = [d for d in render.documents(render.kustomize(os.path.join(self.arguments.bin, "kubectl"), way))
                       if d["apiVersion"].split("/")[0] not in ("cert-manager.io", "monitoring.coreos.com")]
            _, warnings = self.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
            expect("Warning: resource namespaces/" in warnings or not warnings, f"{way}: {warnings}")
        self.kubectl("delete", "namespace", NAMESPACE, "--timeout=60s")

    def kustomize_installs(self):
        _, warnings = self.kubectl("apply", "-k", os.path.join(render.MANIFESTS, "default"))
        expect(not warnings, f"warnings: {warnings}")
        # The namespace enforces the restricted Pod Security Standard, so their being there shows that they keep it.
        def pods():
            items = self.plane.get("pods", "-n", NAMESPACE)["items"]
            return items if len(items) == 3 else None
        names = [pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in wait_until("two pods of the Deployment and one of the Job", pods, 60)]
        expect(sorted(names) == ["certs", "webhook", "webhook"], f"pods: {names}")
        self.kubectl("create", "job", "by-hand", "--from=cronjob/rayhook-certs", "-n", NAMESPACE)
        wait_until("a pod of the CronJob's", lambda: len(self.plane.get("pods", "-n", NAMESPACE)["items"]) == 4, 60)
        self.kubectl("delete", "job", "by-hand", "-n", NAMESPACE)

    def certificate(self):
        """By the arguments of the Job, with the rights of its service account."""
        [container] = self.plane.get("job", "rayhook-certs-install", "-n", NAMESPACE)["spec"]["template"]["spec"]["containers"]
        kubeconfig, _ = self.account("rayhook-certs")
        def rotate(*more):
            done = subprocess.run([self.arguments.rayhook, *container["args"], "--kubeconfig", kubeconfig, *more], capture_output=True, text=True, timeout=60)
            expect(done.returncode == 0, f"rayhook {' '.join(container['args'])}: {done.stderr.strip()}")
        rotate()
        rotate("--force", "ca", "--settle", "0")
        rotate("--overlap", "0")
        bundles = {h["clientConfig"].get("caBundle") for h in self.plane.get("mutatingwebhookconfiguration", "rayhook")["webhooks"]}
        expect(len(bundles) == 1 and all(bundles), f"caBundles: {bundles}")
        rotate()
        # Applying the manifests again changes nothing, the certificate least of all.
        out, _ = self.kubectl("apply", "-k", os.path.join(render.MANIFESTS, "default"))
        # (kubectl always sends a budget's whole spec, and says so; its generation tells whether that was a change.)
        other = [line for line in out.splitlines() if not line.endswith(" unchanged") and not line.startswith("poddisruptionbudget")]
        expect(not other, f"kubectl apply says: {other}")
        expect(self.plane.get("poddisruptionbudget", "rayhook", "-n", NAMESPACE)["metadata"]["generation"] == 1, "the budget changed")
        expect({h["clientConfig"].get("caBundle") for h in self.plane.get("mutatingwebhookconfiguration", "rayhook")["webhooks"]} == bundles, "another caBundle")

    def serve(self):
        """As in the pods: arguments, configuration, Secret and token are those of the manifests; only addresses and
        folders are other ones."""
        [container] = self.plane.get("deployment", "rayhook", "-n", NAMESPACE)["spec"]["template"]["spec"]["containers"]
        volumes = {v["name"]: v for v in self.plane.get("deployment", "rayhook", "-n", NAMESPACE)["spec"]["template"]["spec"]["volumes"]}
        folder = os.path.join(self.directory, "etc")
        os.makedirs(os.path.join(folder, "tls"))
        secret = self.plane.get("secret", volumes["tls"]["secret"]["secretName"], "-n", NAMESPACE)["data"]
        for name, value in secret.items():
            with open(os.path.join(folder, "tls", name), "wb") as out:
                out.write(base64.b64decode(value))
        config = self.plane.get("configmap", volumes["config"]["configMap"]["name"], "-n", NAMESPACE)["data"]
        with open(os.path.join(folder, "config.yaml"), "w") as out:
            out.write(config["config.yaml"])
        self.defaults(config["config.yaml"])
        self.address = self.plane.get("service", "rayhook", "-n", NAMESPACE)["spec"]["clusterIP"]
        subprocess.run(["ip", "address", "add", f"{self.address}/32", "dev", "lo"], check=True)
        kubeconfig, self.token = self.account("rayhook")
        replaced = {":8443": f"{self.address}:443", ":8080": "127.0.0.1:8080"}
        self.command = [self.arguments.rayhook, *(replaced.get(a, a).replace("/etc/rayhook", folder) for a in container["args"]),
                        "--kubeconfig", kubeconfig, "--log-level", "debug"]
        self.start()

        def calls():
            return self.create(HEAD, "default", "--dry-run=server")[0]["spec"].get("clusterIP") == "None"
        self.rayhook.wait_until("the API server calls Rayhook", calls, 30)

    def defaults(self, text):
        """What stands in the shipped configuration as a comment is every key, with its default."""
        shown = os.path.join(self.directory, "shown.yaml")
        with open(shown, "w") as out:
            out.write(re.sub(r"^#(?! )", "", text, flags=re.MULTILINE))

        def in_force(*arguments):
            return json.loads(render.run(self.arguments.rayhook, "config", "-o", "json", *arguments))
        with open(shown) as file:
            expect(list(yaml.safe_load(file)) == list(in_force()), "manifests/base/config.yaml shows other keys than there are")
        expect(in_force("--config", shown) == in_force(), "manifests/base/config.yaml shows other values than the defaults")

    def start(self):
        self.rayhook = Process("rayhook", self.command, self.directory)
        self.rayhook.wait_until("rayhook ready", lambda: self.ops("/readyz") is not None, 30)

    def ops(self, path):
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:8080{path}", timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return None

    # ---- who is called for what

    def namespaces(self):
        """The label rayhook/mode, and the namespaces that are left out."""
        for name, mode, expected in (("plain", None, "enforce"), ("ignored", "ignore", None), ("audited", "audit", "audit"),
                                     ("strict", "strict", "strict"), ("odd", "enforced", "enforce")):
            self.kubectl("create", "namespace", name)
            if mode:
                self.kubectl("label", "namespace", name, f"rayhook/mode={mode}")
            for document, kind in ((HEAD, "services"), (WORKER, "pods")):
                names, (stored, _) = self.called(lambda: self.create(document, name))
                wanted = {f"{kind}.{expected}.rayhook"} if expected else set()
                expect(names == wanted, f"{kind} in a namespace with mode {mode}: called {names}, not {wanted}")
                if kind == "services":
                    expect((stored["spec"]["clusterIP"] == "None") == (expected in ("enforce", "strict")), f"mode {mode}: clusterIP {stored['spec']['clusterIP']}")
                else:
                    text = stored["spec"]["containers"][0]["args"][0]
                    expect(("--address=ray-head:6379" in text) == (expected in ("enforce", "strict")), f"mode {mode}: {text}")
        for name in ("kube-system", NAMESPACE):
            names, (stored, _) = self.called(lambda: self.create(HEAD, name))
            expect(not names and stored["spec"]["clusterIP"] != "None", f"Service in {name}: called {names}")

    def conditions(self):
        """What can never change is not sent, and everything else is."""
        no_text = {"containers": [{"name": "python", "image": "python", "command": ["python", "main.py"]}]}
        cases = [
            ("a headless Service", changed(HEAD, clusterIP="None"), False),
            ("a Service with its own IP", changed(HEAD, clusterIP="10.96.77.77"), True),
            ("a NodePort Service", changed(HEAD, type="NodePort"), True),
            ("an ExternalName Service", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "ExternalName", "externalName": "x.example"}}, True),
            ("a pod without annotations", WORKER, True),
            ("a pod with other annotations", {**WORKER, "metadata": {"generateName": "worker-", "annotations": {"a": "b"}}}, True),
            ("a pod whose text says nothing", {**WORKER, "spec": no_text}, True),
            ("a pod that asks for service links", changed(WORKER, enableServiceLinks=True), True),
            ("a pod without service links", changed(WORKER, enableServiceLinks=False), False),
            ("a mirror pod", {**changed(WORKER, nodeName="node"), "metadata": {"generateName": "worker-", "annotations": {"kubernetes.io/config.mirror": "x"}}}, False),
        ]
        self.kubectl("create", "namespace", "conditions")
        for what, document, wanted in cases:
            names, _ = self.called(lambda: self.create(document, "conditions", "--dry-run=server"))
            expect(bool(names) == wanted, f"{what}: called {names}")
        errors = self.metric("apiserver_admission_match_condition_evaluation_errors_total")
        expect(not errors, f"conditions that could not be evaluated: {errors}")

    # ---- monitoring

    def monitoring(self):
        """Prometheus scrapes both, and then every query of the dashboard and of the alerts is put to it."""
        with open(os.path.join(render.CHART, "monitoring", "dashboard.json")) as file:
            queries = [target["expr"] for panel in json.load(file)["panels"] for target in panel.get("targets", [])]
        with open(os.path.join(render.CHART, "monitoring", "prometheus-rule.yaml")) as file:
            alerts = [rule["expr"] for group in yaml.safe_load(file)["spec"]["groups"] for rule in group["rules"]]
        # Every name of ours is one that the server has: a typing error would be an alert that never fires.
        names = {line.split()[2] for line in self.ops("/metrics").splitlines() if line.startswith("# TYPE")}
        asked = {re.sub("_(bucket|count)$", "", name) for query in queries + alerts for name in re.findall(r"\brayhook_\w+", query)}
        expect(asked <= names, f"metrics that the server does not have: {sorted(asked - names)}")

        config = os.path.join(self.directory, "prometheus.yaml")
        with open(config, "w") as out:
            yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [
                {"job_name": "rayhook", "static_configs": [{"targets": ["127.0.0.1:8080"], "labels": {"pod": "rayhook-0"}}]},
                {"job_name": "apiserver", "scheme": "https", "static_configs": [{"targets": [f"127.0.0.1:{self.plane.port}"]}],
                 "tls_config": {"ca_file": self.plane.ca.cert, "cert_file": os.path.join(self.directory, "admin.crt"),
                                "key_file": os.path.join(self.directory, "admin.key")}}]}, out)
        prometheus = Process("prometheus", [
            os.path.join(self.arguments.tools, "bin", "prometheus"), f"--config.file={config}", "--web.listen-address=127.0.0.1:9090",
            f"--storage.tsdb.path={os.path.join(self.directory, 'tsdb')}"], self.directory)

        def ask(query):
            url = "http://127.0.0.1:9090/api/v1/query?query=" + urllib.parse.quote(query)
            try:
                with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as answer:
                    return json.load(answer)["data"]["result"]
            except urllib.error.HTTPError as error:
                if error.code == 503:  # it is just starting
                    return []
                raise Wrong(f"{query}: {error.read().decode()}") from None
            except OSError:
                return []
        try:
            prometheus.wait_until("both are scraped, twice", lambda: len(ask("count_over_time(up[1m]) > 2 and up == 1")) == 2, 60)
            for query in queries:
                query = query.replace("$__rate_interval", "1m")
                # Without data it would be an empty panel; but nothing failed open here.
                expect(ask(query) or "fail_open" in query, f"no data: {query}")
            for query in alerts:
                ask(query)
        finally:
            prometheus.stop()

    # ---- rights

    def rights(self):
        """Nothing but this may be done; and (see `rights_used`) all of it is."""
        self.granted = {
            SERVER: {("get", "services", ""), ("list", "services", ""), ("watch", "services", ""), ("list", "pods", "")},
            CERTS: {(verb, "secrets", name) for verb in ("get", "update") for name in ("rayhook-tls", "rayhook-ca")}
            | {("create", "secrets", ""), ("list", "endpointslices", "")} | {(verb, "mutatingwebhookconfigurations", "rayhook") for verb in ("get", "patch")},
        }
        verbs = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
        resources = {"": ("services", "pods", "secrets", "configmaps", "namespaces", "nodes", "events", "serviceaccounts", "endpoints"),
                     "apps": ("deployments",), "admissionregistration.k8s.io": ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
                     "rbac.authorization.k8s.io": ("clusterroles",), "discovery.k8s.io": ("endpointslices",)}
        reviews = []
        for user in (SERVER, CERTS):
            for group, names in resources.items():
                for resource in names:
                    for verb in verbs:
                        for name in ("", "rayhook-tls", "rayhook-ca", "rayhook", "other"):
                            for namespace in (NAMESPACE, "default", ""):
                                reviews.append((user, verb, group, resource, name, namespace))
        connection = self.plane_connection()
        for user, verb, group, resource, name, namespace in reviews:
            attributes = {"verb": verb, "group": group, "resource": resource, "name": name, "namespace": namespace}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
                "user": user, "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"], "resourceAttributes": attributes}}
            allowed = connection("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]
            rights = self.granted[user]
            # A Role's rights end at its namespace; a right without a name is for all names.
            wanted = ((verb, resource, "") in rights or (verb, resource, name) in rights) and (resource not in ("secrets", "endpointslices") or namespace == NAMESPACE)
            expect(allowed == wanted, f"{user} {'may' if allowed else 'may not'} {verb} {resource} {name!r} in {namespace!r}")

    def plane_connection(self):
        import http.client
        context = ssl.create_default_context(cafile=self.plane.ca.cert)
        context.load_cert_chain(os.path.join(self.directory, "admin.crt"), os.path.join(self.directory, "admin.key"))
        connection = http.client.HTTPSConnection("127.0.0.1", self.plane.port, context=context, timeout=30)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def ask(method, path, body):
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        return ask

    def rights_used(self):
        """By the API server's audit log: nothing was refused, and each right was needed."""
        used, refused = {SERVER: set(), CERTS: set()}, []
        with open(self.audit_log) as log:
            for line in log:
                event = json.loads(line)
                reference = event.get("objectRef", {})
                right = (event["verb"], reference.get("resource"), reference.get("name", ""))
                used[event["user"]["username"]].add(right)
                if event.get("responseStatus", {}).get("code") == 403:
                    refused.append((event["user"]["username"], right))
        expect(not refused, f"refused: {refused}")
        # An API server from 1.34 on gives the first list through the watch; an older one is asked for a list.
        spare = {SERVER: {("list", "services", "")}, CERTS: set()}
        for user, rights in self.granted.items():
            needed = {(verb, resource, "") if (verb, resource, "") in rights else (verb, resource, name) for verb, resource, name in used[user]}
            idle = rights - needed - spare[user]
            expect(not idle, f"{user} has rights that it did not use: {sorted(idle)}")

    # ---- seats at the API server

    def own_seats(self):
        """While others have taken every seat that is theirs and queue for more, Rayhook's questions are answered."""
        self.kubectl("create", "namespace", "noise")
        self.kubectl("create", "serviceaccount", "noisy", "-n", "noise")
        self.kubectl("create", "role", "noisy", "-n", "noise", "--verb=create,get", "--resource=configmaps,services")
        self.kubectl("create", "rolebinding", "noisy", "-n", "noise", "--role=noisy", "--serviceaccount=noise:noisy")
        noisy, _ = self.kubectl("create", "token", "noisy", "-n", "noise")
        silent = socket.create_server(("127.0.0.1", 0), backlog=200)  # takes connections and says nothing
        self.kubectl("create", "-f", "-", stdin=json.dumps({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "silent"},
            "webhooks": [{"name": "silent.manifests.test", "clientConfig": {"url": f"https://127.0.0.1:{silent.getsockname()[1]}/"},
                          "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                          "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "noise"}},
                          "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 30, "failurePolicy": "Ignore"}]}))
        context = ssl.create_default_context(cafile=self.plane.ca.cert)

        def ask(token, path, body=None):
            request = urllib.request.Request(self.plane.url + path, json.dumps(body).encode() if body else None,
                                             {"Authorization": f"Bearer {token.strip()}", "Content-Type": "application/json"})
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
            try:
                with opener.open(request, timeout=120) as answer:
                    return answer.headers.get("X-Kubernetes-Pf-Prioritylevel-Uid")
            except OSError as error:
                return error

        def configmap(number):
            ask(noisy, "/api/v1/namespaces/noise/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"noise-{number}"}})
        threads = [threading.Thread(target=configmap, args=(number,), daemon=True) for number in range(80)]
        for thread in threads:
            thread.start()

        def queued():
            out, _ = self.kubectl("get", "--raw", "/metrics")
            return any(line.startswith("apiserver_flowcontrol_current_inqueue_requests{") and 'priority_level="workload-low"' in line
                       and float(line.rsplit(" ", 1)[1]) > 0 for line in out.splitlines())
        wait_until("others queue", queued, 30)
        waiting = threading.Thread(target=ask, args=(noisy, "/api/v1/namespaces/noise/services/none"), daemon=True)
        waiting.start()
        level = self.plane.get("prioritylevelconfiguration", "rayhook")["metadata"]["uid"]
        for _ in range(20):
            got = ask(self.token, "/api/v1/namespaces/plain/services/ray-head")
            expect(got == level, f"Rayhook's question was answered by another priority level: {got}")
        expect(queued() and waiting.is_alive(), "the others did not wait: the test shows nothing")
        silent.close()
        for thread in threads + [waiting]:
            thread.join(120)
        self.kubectl("delete", "mutatingwebhookconfiguration", "silent")
        self.kubectl("delete", "namespace", "noise", "--wait=false")

    # ---- without it

    def away(self):
        code = self.rayhook.stop()
        expect(code == 0, f"rayhook ended with {code}:\n{self.rayhook.tail()}")
        other = {**HEAD, "metadata": {"name": "ray-head-2"}}
        with self.probe.applied():
            self.probe.fails("replicas", "connection refused")
        for name in ("plain", "audited", "ignored", "kube-system", NAMESPACE):
            stored, _ = self.create(other, name)
            expect(stored["spec"]["clusterIP"] != "None", f"headless in {name}, without Rayhook")
        for document in (other, WORKER):
            try:
                self.create(document, "strict")
            except KubectlError as error:
                expect("strict.rayhook" in str(error), f"refused, but by whom? {error}")
            else:
                raise Wrong(f"a {document['kind']} was admitted in a strict namespace")

    def removed(self):
        self.kubectl("delete", "-k", os.path.join(render.MANIFESTS, "default"), "--timeout=60s")
        expect(not self.leftovers(), f"left: {self.leftovers()}")
        stored, _ = self.create({**HEAD, "metadata": {"name": "ray-head-3"}}, "strict")
        expect(stored["spec"]["clusterIP"] != "None", "headless, and Rayhook is gone")

    def run(self):
        self.plane.start()
        say("etcd, kube-apiserver and kube-controller-manager are up")
        for what, step in (
                ("helm install, upgrade, rollback and uninstall; the caBundle outlasts it", self.helm_installs),
                ("each component is taken by the API server", self.every_way),
                ("kubectl apply -k manifests/default; its pods keep the restricted standard", self.kustomize_installs),
                ("the Job's command makes the certificate, with the Job's rights", self.certificate),
                ("the Deployment's command serves, with the Deployment's rights", self.serve),
                ("the probe succeeds, and leaves nothing", self.probe.succeeds),
                ("the probe says what is wrong", self.probe.says_what_is_wrong),
                ("namespaces say by their label what they want", self.namespaces),
                ("conditions leave out what can never change, and nothing else", self.conditions),
                ("every query of the dashboard has data, every alert's names exist", self.monitoring),
                ("no right but those that are needed", self.rights),
                ("each right is needed", self.rights_used),
                ("Rayhook's questions do not queue behind others'", self.own_seats),
                ("while it is away nothing is refused but where strict was asked for", self.away),
                ("kubectl delete -k leaves nothing", self.removed)):
            start = time.monotonic()
            try:
                step()
            except (Wrong, KubectlError, TimeoutError, RuntimeError, KeyError) as error:
                say(f"FAIL  {what}: {error if isinstance(error, (Wrong, KubectlError)) else traceback.format_exc()}")
                if self.rayhook:
                    print(f"--- the end of rayhook's log\n{self.rayhook.tail(30)}---")
                return 1
            say(f"ok    {what} ({time.monotonic() - start:.1f} s)")
        return 0

    def stop(self):
        if self.rayhook:
            self.rayhook.stop()
        self.plane.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rayhook", required=True, help="the program")
    parser.add_argument("--bin", required=True, help="directory printed by tests/e2e/binaries.sh")
    parser.add_argument("--tools", required=True, help="directory printed by tools.sh")
    parser.add_argument("--keep", action="store_true", help="keep the directory with logs, keys and data")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
        if subprocess.run([*own, "true"], capture_output=True).returncode != 0 or not shutil.which("ip"):
            print(f"no network namespace can be made here ({' '.join(own)}), or iproute2 is missing")
            return 77
        os.execvp("unshare", [*own, sys.executable, *sys.argv, "--inside"])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    directory = tempfile.mkdtemp(prefix="rayhook-manifests-")
    suite = None
    try:
        suite = Suite(arguments, directory)
        return suite.run()
    except KeyboardInterrupt:
        return 130
    finally:
        for signum in (signal.SIGTERM, signal.SIGINT):  # once is enough
            signal.signal(signum, signal.SIG_IGN)
        if suite:
            suite.stop()
        if arguments.keep:
            say(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
