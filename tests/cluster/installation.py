# SPDX-License-Identifier: Apache-2.0
"""A node with Rayhook installed on it, and what the rows ask of it."""

import base64
import contextlib
import json
import os
import re
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pages
import rays
import yaml
from api import Api, Refused
from control_plane import ControlPlane
from kubernetes_node import ADDRESS, Node
from processes import Process, free_ports, wait_until
from scenarios import Scenarios, expect, say

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NAMESPACE = "rayhook-system"


class Creations:
    """Creates and deletes worker pods that no scheduler takes, ten a second, until it is left."""

    def __init__(self, plane, namespace):
        self.api, self.namespace = Api(plane), namespace
        self.count, self.wrong, self.stopping = 0, [], threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        spec = rays.documents()[2]["spec"]["template"]["spec"] | {"schedulerName": "none"}
        while not self.stopping.wait(0.1):
            name = f"creation-{self.count}"
            self.count += 1
            try:
                stored = self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, self.namespace)
                if f"--address={rays.SERVICE}:6380" not in stored["spec"]["containers"][0]["args"][0]:
                    self.wrong.append(f"{name} was not changed")
                self.api.delete("pods", self.namespace, name)
            except (Refused, OSError) as error:
                self.wrong.append(f"{name}: {error}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


class Installation(Scenarios):
    def __init__(self, arguments, directory):
        Node.own_machine()
        super().__init__(arguments, directory)
        self.node = Node(self.plane, arguments.node_bin, directory, arguments.cgroup)
        self.started.append(self.node)
        os.chdir(ROOT)  # the pages' commands are typed there

    def control_plane(self):
        return ControlPlane(self.arguments.bin, self.directory, node_address=ADDRESS)

    def logs(self):
        return [process for process in self.node.processes if process.name in ("kubelet", "containerd")]

    @staticmethod
    def outer_pid():
        with open("/proc/self/status") as status:
            return next(line.split()[1] for line in status if line.startswith("NSpid"))

    def bring_up(self):
        self.plane.start()
        self.node.start()
        for archive in ("pause.tar", "ray.tar"):
            self.node.take_image(os.path.join(self.arguments.images, archive))
        self.node.take_image(os.path.join(ROOT, "build", "image", "rayhook-0.1.0-amd64.tar"))
        self.node.ready()
        say("the node is ready")

    def apply(self, namespace, documents, label=None):
        if self.plane.run("get", "namespace", namespace).returncode != 0:
            self.plane.kubectl("create", "namespace", namespace)
            if label:
                self.plane.kubectl("label", "namespace", namespace, label)
        return self.plane.kubectl("-n", namespace, "apply", "-f", "-", stdin=rays.text(documents))

    def helm(self, *arguments):
        done = subprocess.run([os.path.join(self.arguments.tools, "bin", "helm"), "--kubeconfig", self.plane.admin, *arguments],
                              capture_output=True, text=True, env={"HOME": self.directory, "PATH": "/usr/bin:/bin"})
        expect(done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr}{done.stdout}")
        return done.stdout + done.stderr  # a test's log comes on stderr

    # ---- Rayhook

    def install(self):
        start = time.monotonic()
        self.plane.kubectl("apply", "-k", "manifests/default")
        self.rolled_out()
        took = time.monotonic() - start
        self.plane.kubectl("apply", "-k", "manifests/probe")
        done = self.plane.run("-n", "rayhook-probe", "wait", "--for=condition=complete", "--timeout=60s", "job/probe")
        logs = self.plane.run("-n", "rayhook-probe", "logs", "job/probe")
        expect(done.returncode == 0, f"the probe fails: {done.stderr}{logs.stdout}{logs.stderr}")
        self.plane.kubectl("delete", "-k", "manifests/probe", "--wait=false")
        return f"two replicas ready after {took:.0f} s; the probe says: {logs.stdout.splitlines()[-1]}"

    def rolled_out(self):
        try:
            self.plane.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/rayhook", "--timeout=120s")
        except Exception as error:
            state = self.plane.run("-n", NAMESPACE, "get", "pods,jobs", "-o", "wide").stdout
            logs = self.plane.run("-n", NAMESPACE, "logs", "--all-containers", "--prefix", "--tail=15", "-l", "app.kubernetes.io/name=rayhook")
            raise RuntimeError(f"{error}\n{state}{logs.stdout}{logs.stderr}") from None

    def pods(self):
        """Its pods, those that drain among them."""
        return self.plane.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=webhook")["items"]

    def replicas(self):
        """The addresses of its pods."""
        return [pod["status"]["podIP"] for pod in self.pods() if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("podIP")]

    def metric(self, name):
        """Sum over all replicas and samples."""
        opener, total = urllib.request.build_opener(urllib.request.ProxyHandler({})), 0.0
        for address in self.replicas():
            with opener.open(f"http://{address}:8080/metrics", timeout=5) as answer:
                total += sum(float(line.rsplit(" ", 1)[1]) for line in answer.read().decode().splitlines()
                             if re.match(rf"{name}[ {{]", line))
        return total

    def decisions(self):
        out = self.plane.kubectl("-n", NAMESPACE, "logs", "-l", "app.kubernetes.io/component=webhook", "--tail=-1")[0]
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def fail_open(self):
        out, _ = self.plane.kubectl("get", "--raw", "/metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in out.splitlines() if line.startswith("apiserver_admission_webhook_fail_open_count{"))

    def configure(self, text):
        """A kustomization of a user's own, with that configuration."""
        folder = os.path.join(self.directory, "own")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.yaml"), "w") as out:
            out.write(text)
        with open(os.path.join(folder, "kustomization.yaml"), "w") as out:
            yaml.safe_dump({"resources": [os.path.relpath(os.path.join(ROOT, "manifests", "default"), os.path.realpath(folder))],
                            "configMapGenerator": [{"name": "rayhook-config", "namespace": NAMESPACE, "behavior": "merge", "files": ["config.yaml"]}]}, out)
        self.plane.run("-n", NAMESPACE, "delete", "job", "rayhook-certs-install")
        self.plane.kubectl("apply", "-k", folder)
        self.rolled_out()
        # A replica that drains answers as it was configured.
        wait_until("the old replicas are gone", lambda: len(self.pods()) == 2, 60, 0.5)

    def rotate_authority(self):
        """A new CA and leaf by `certs rotate`, and every replica serves it."""
        def leaf():
            return self.plane.get("secret", "rayhook-tls", "-n", NAMESPACE)["data"]["tls.crt"]
        before = leaf()

        def rotate(*arguments):
            done = subprocess.run([self.arguments.rayhook, "certs", "rotate", "--kubeconfig", self.plane.admin, *arguments], capture_output=True, text=True)
            expect(done.returncode == 0, f"certs rotate: {done.stderr}")
            return done.stdout

        def trusted():
            [hook, *_] = self.plane.get("mutatingwebhookconfiguration", "rayhook")["webhooks"]
            return base64.b64decode(hook["clientConfig"]["caBundle"]).count(b"BEGIN CERTIFICATE")
        rotate("--force", "ca", "--settle", "5")
        after = base64.b64decode(leaf())
        expect(base64.b64encode(after).decode() != before, "the leaf is the same")
        path = os.path.join(self.directory, "leaf.pem")
        with open(path, "wb") as out:
            out.write(after)
        wanted = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-serial"], capture_output=True, text=True).stdout.strip().lower()

        def served(address):
            shown = subprocess.run(f"openssl s_client -connect {address}:8443 </dev/null 2>/dev/null | openssl x509 -noout -serial",
                                   shell=True, capture_output=True, text=True)
            return shown.stdout.strip().lower()
        said = rotate("--overlap", "0")
        # Kubelet brings a changed Secret into its pods within a minute or so.
        if not all(served(address) == wanted for address in self.replicas()):
            expect(trusted() == 2, f"a replica serves a certificate of the CA before, which is trusted no more: {said}")
        wait_until("all replicas serve the new certificate", lambda: all(served(address) == wanted for address in self.replicas()), 150, 1)
        # By the page's command: in the cluster, with the rights of the account.
        done = self.plane.shell(pages.block("certificates.md", "certs-now"))
        expect(done.returncode == 0, f"the command of docs/certificates.md: {done.stderr}")
        self.plane.kubectl("wait", "--for=condition=complete", "job/certs-now", "-n", NAMESPACE, "--timeout=60s")
        said = self.plane.kubectl("logs", "job/certs-now", "-n", NAMESPACE)[0]
        expect(trusted() == 1 and "cannot be asked" not in said, f"every replica serves the new certificate, and {trusted()} CAs are trusted: {said}")

    def creations(self, namespace):
        return Creations(self.plane, namespace)

    # ---- beside it

    def start_kuberay(self):
        self.plane.kubectl("create", "-f", os.path.realpath(os.path.join(self.arguments.bin, "kuberay-1.5.0-crds")))
        wait_until("KubeRay's kinds are known", lambda: self.plane.run("get", "rayclusters", "-A").returncode == 0, 60)
        metrics, probe = free_ports(2)
        operator = Process("kuberay", [
            os.path.join(self.arguments.bin, "kuberay-1.5.0"), "--kubeconfig", self.plane.admin, "--metrics-addr", f"127.0.0.1:{metrics}",
            "--health-probe-bind-address", f"127.0.0.1:{probe}", "--enable-leader-election=false"],
            self.directory, {**os.environ, "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": "true"})
        self.started.append(operator)

    @contextlib.contextmanager
    def alerts(self):
        """Prometheus watches the API server; gives a function that says whether the expression of an alert of ours is true."""
        with open(os.path.join(ROOT, "manifests", "chart", "monitoring", "prometheus-rule.yaml")) as file:
            rules = {rule["alert"]: rule["expr"] for group in yaml.safe_load(file)["spec"]["groups"] for rule in group["rules"]}
        cert, key = self.plane.admin_pair
        config = os.path.join(self.directory, "prometheus.yaml")
        with open(config, "w") as out:
            yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [
                {"job_name": "apiserver", "scheme": "https", "static_configs": [{"targets": [f"127.0.0.1:{self.plane.port}"]}],
                 "tls_config": {"ca_file": self.plane.ca.cert, "cert_file": cert, "key_file": key}}]}, out)
        [port] = free_ports(1)
        prometheus = Process("prometheus", [
            os.path.join(self.arguments.tools, "bin", "prometheus"), f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}",
            f"--storage.tsdb.path={os.path.join(self.directory, 'tsdb')}"], self.directory)

        def ask(query):
            found = rays.ask(f"http://127.0.0.1:{port}/api/v1/query?query=" + urllib.parse.quote(query))
            return bool(found and found["data"]["result"])
        try:
            prometheus.wait_until("Prometheus scrapes", lambda: ask("count_over_time(up[1m]) > 2"), 60)
            yield lambda alert: ask(rules[alert])
        finally:
            prometheus.stop()
