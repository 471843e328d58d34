# SPDX-License-Identifier: Apache-2.0
"""etcd, kube-apiserver and kube-controller-manager on loopback, in a directory of their own."""

import json
import os
import subprocess

import pki
from processes import Process, free_ports


class KubectlError(Exception):
    pass


class ControlPlane:
    def __init__(self, programs, directory, server_flags=(), node_address=None):
        """`server_flags`: more flags for kube-apiserver. `node_address`: where pods reach it; all that pods need is
        on then: service accounts, every controller, the way to kubelets."""
        self.programs, self.directory, self.server_flags, self.node_address = programs, directory, server_flags, node_address
        self.processes = []
        self.ca = pki.Authority(directory, "cluster")
        self.etcd_port, self.peer_port, self.port, self.controllers_port = free_ports(4)
        self.url = f"https://127.0.0.1:{self.port}"
        self.admin = self.kubeconfig("admin", "/O=system:masters/CN=admin")
        self.admin_pair = self.ca.pair("admin")

    def kubeconfig(self, name, subject):
        """A kubeconfig whose user is a client certificate of that subject."""
        cert, key = self.ca.issue(name, subject)
        path = os.path.join(self.directory, f"{name}.kubeconfig")
        with open(path, "w") as out:
            json.dump({
                "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
                "clusters": [{"name": "e2e", "cluster": {
                    "server": self.url, "certificate-authority-data": pki.inline(self.ca.cert)}}],
                "users": [{"name": name, "user": {
                    "client-certificate-data": pki.inline(cert), "client-key-data": pki.inline(key)}}],
                "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
            }, out, indent=1)
        os.chmod(path, 0o600)
        return path

    def spawn(self, name, *arguments):
        process = Process(name, [os.path.join(self.programs, name), *arguments], self.directory)
        self.processes.append(process)
        return process

    def restart_api_server(self):
        """A new one at the same address. It would wait a minute for its watches to end: it is not let."""
        self.server.stop(3)
        self.processes.remove(self.server)
        self.start_api_server()

    def start(self, controllers=True):
        peer, etcd = f"http://127.0.0.1:{self.peer_port}", f"http://127.0.0.1:{self.etcd_port}"
        self.spawn("etcd", "--data-dir", os.path.join(self.directory, "etcd"), "--unsafe-no-fsync", "--name=e2e",
                   f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peer}",
                   f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=e2e={peer}", "--log-level=warn")
        names = ["IP:127.0.0.1", "IP:10.96.0.1", "DNS:localhost", "DNS:kubernetes.default.svc"]
        cert, key = self.ca.issue("apiserver", "/CN=kube-apiserver", names + [f"IP:{self.node_address}"] * bool(self.node_address))
        self.accounts = accounts = pki.key(os.path.join(self.directory, "service-accounts.key"))
        pki.openssl("pkey", "-in", accounts, "-pubout", "-out", accounts + ".pub")
        self.api_server_flags = [
            f"--etcd-servers={etcd}", f"--secure-port={self.port}", *self.reached_by(), f"--tls-cert-file={cert}",
            f"--tls-private-key-file={key}", f"--client-ca-file={self.ca.cert}", "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={accounts}.pub",
            f"--service-account-signing-key-file={accounts}", "--allow-privileged=true", *self.server_flags]
        self.start_api_server()
        if controllers:
            self.start_controllers()

    def reached_by(self):
        if not self.node_address:
            return ["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
                    "--disable-admission-plugins=ServiceAccount"]
        cert, key = self.ca.issue("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
        return ["--bind-address=0.0.0.0", f"--advertise-address={self.node_address}", "--kubelet-preferred-address-types=InternalIP",
                f"--kubelet-client-certificate={cert}", f"--kubelet-client-key={key}"]

    def start_controllers(self):
        if self.node_address:
            return self.start_all_controllers()
        self.spawn(
            "kube-controller-manager", f"--kubeconfig={self.admin}", "--leader-elect=false", "--bind-address=127.0.0.1",
            f"--secure-port={self.controllers_port}", f"--cert-dir={self.directory}", "--kube-api-qps=400", "--kube-api-burst=800",
            "--controllers=deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,"
            "job-controller,cronjob-controller,namespace-controller,garbage-collector-controller").check()

    def start_all_controllers(self):
        self.spawn(
            "kube-controller-manager", f"--kubeconfig={self.admin}", "--leader-elect=false", "--bind-address=127.0.0.1",
            f"--secure-port={self.controllers_port}", f"--cert-dir={self.directory}", "--kube-api-qps=400", "--kube-api-burst=800",
            "--use-service-account-credentials=false", f"--service-account-private-key-file={self.accounts}",
            f"--root-ca-file={self.ca.cert}").check()

    def start_api_server(self):
        self.server = self.spawn("kube-apiserver", *self.api_server_flags)
        self.server.wait_until("kube-apiserver ready", lambda: self.answers("/readyz"), 120)

    def answers(self, path):
        return self.run("get", "--raw", path).returncode == 0

    def run(self, *arguments, stdin=None, kubeconfig=None):
        """kubectl, as the administrator or as another."""
        return subprocess.run([os.path.join(self.programs, "kubectl"), "--kubeconfig", kubeconfig or self.admin, *arguments],
                              input=stdin, capture_output=True, text=True, timeout=180,
                              env={"HOME": self.directory, "PATH": "/usr/bin:/bin"})

    def shell(self, command):
        """A command line with kubectl in it, as the administrator would type it."""
        return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=180,
                              env={"HOME": self.directory, "PATH": f"{self.programs}:/usr/bin:/bin", "KUBECONFIG": self.admin})

    def kubectl(self, *arguments, stdin=None):
        """Like run, but refusals are exceptions; gives (stdout, warnings on stderr)."""
        done = self.run(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout, done.stderr

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json")[0])

    def stop(self):
        for process in reversed(self.processes):
            process.stop(3)
