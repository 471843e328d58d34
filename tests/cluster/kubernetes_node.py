# SPDX-License-Identifier: Apache-2.0
"""One Kubernetes node: containerd, kubelet, kube-proxy, a bridge without hairpin, CoreDNS. It must be alone in network,
mount and process namespaces of its own (see `isolate.py`): it mounts over /run and /var/log, and when the namespaces
end, so do all its processes and mounts."""

import json
import os
import subprocess

from processes import Process, wait_until

ADDRESS = "10.99.0.1"
PODS = "10.98.0.0/16"
HERE = os.path.dirname(os.path.abspath(__file__))
# On a pod network like this one a pod does not reach itself through its own Service: the fault that Rayhook cures.
NETWORK = {"cniVersion": "0.4.0", "name": "pods", "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": False,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Node:
    def __init__(self, plane, programs, directory, cgroup):
        """`programs`: the directory that binaries.sh printed; `cgroup`: below which all pods live."""
        self.plane, self.programs, self.directory, self.cgroup = plane, programs, directory, cgroup
        self.socket = os.path.join(directory, "containerd.sock")
        self.processes = []

    def spawn(self, name, *arguments, **environment):
        process = Process(name, [os.path.join(self.programs, name), *arguments], self.directory,
                          {"PATH": f"{self.programs}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.directory, **environment})
        self.processes.append(process)
        return process

    def path(self, name, content=None):
        path = os.path.join(self.directory, name)
        if content is not None:
            with open(path, "w") as out:
                out.write(content if isinstance(content, str) else json.dumps(content))
        return path

    @staticmethod
    def own_machine():
        """The node's own network and the folders that it would leave something in."""
        run("mount", "--make-rshared", "/")
        for folder in ("/run", "/var/log", "/var/lib/cni"):
            os.makedirs(folder, exist_ok=True)
            run("mount", "-t", "tmpfs", "tmpfs", folder)
        os.makedirs("/run/netns")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "node0", "type", "bridge")
        run("ip", "address", "add", f"{ADDRESS}/24", "dev", "node0")
        run("ip", "link", "set", "node0", "up")
        run("ip", "route", "add", "default", "via", "10.99.0.254")
        with open("/proc/sys/net/ipv4/ip_forward", "w") as file:
            file.write("1")

    def start(self):
        self.start_containerd()
        self.start_kubelet()
        self.spawn("kube-scheduler", f"--kubeconfig={self.plane.admin}", "--leader-elect=false", "--secure-port=0")
        self.spawn("kube-proxy", f"--kubeconfig={self.plane.admin}", "--hostname-override=node", f"--cluster-cidr={PODS}",
                   "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
                   "--oom-score-adj=0")
        corefile = self.path("Corefile", f"""cluster.local:53 {{
    bind {ADDRESS}
    errors
    kubernetes cluster.local {{
        kubeconfig {self.plane.admin}
    }}
}}
""")
        self.spawn("coredns", "-conf", corefile)

    def start_containerd(self):
        cni = self.path("cni")
        os.makedirs(cni)
        self.path("cni/pods.conflist", NETWORK)
        config = self.path("containerd.toml", f"""version = 2
root = "{self.path('containerd')}"
state = "{self.path('containerd-state')}"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{os.path.join(HERE, 'oci_runtime.py')}"
""")
        containerd = self.spawn("containerd", "--config", config, RUNC=os.path.join(self.programs, "runc"))
        containerd.wait_until("containerd answers", lambda: self.ctr("version", check=False).returncode == 0, 60)

    def ctr(self, *arguments, check=True):
        done = subprocess.run([os.path.join(self.programs, "ctr"), "--address", self.socket, "--namespace", "k8s.io", *arguments],
                              capture_output=True, text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"ctr {' '.join(arguments)}: {done.stderr.strip()}")
        return done

    def take_image(self, archive):
        self.ctr("images", "import", archive)

    def start_kubelet(self):
        config = self.path("kubelet.json", {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": ADDRESS,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}, "x509": {"clientCAFile": self.plane.ca.cert}},
            "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "cgroupRoot": self.cgroup, "enforceNodeAllocatable": [],
            "failCgroupV1": False, "failSwapOn": False, "clusterDNS": [ADDRESS], "clusterDomain": "cluster.local", "resolvConf": "",
            "containerRuntimeEndpoint": f"unix://{self.socket}", "hairpinMode": "none", "oomScoreAdj": 0, "serializeImagePulls": False,
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,  # never: nothing could pull one again
            "podLogsDir": self.path("pods"), "volumePluginDir": self.path("volume-plugins"), "healthzPort": 0,
            "shutdownGracePeriod": "0s", "nodeStatusUpdateFrequency": "5s",
            "syncFrequency": "10s"})  # a changed Secret is there within this, not a minute
        self.kubelet = self.spawn("kubelet", f"--config={config}", f"--kubeconfig={self.plane.admin}", "--hostname-override=node",
                                  f"--node-ip={ADDRESS}", f"--root-dir={self.path('kubelet')}", f"--cert-dir={self.path('kubelet-certs')}")

    def ready(self):
        def status():
            items = self.plane.get("nodes")["items"]
            return any(c["type"] == "Ready" and c["status"] == "True" for node in items for c in node["status"]["conditions"])
        self.kubelet.wait_until("the node is ready", status, 120)
        for process in self.processes:
            process.check()
        wait_until("default service account", lambda: self.plane.run("get", "serviceaccount", "default").returncode == 0, 60)

    def stop(self):
        """Pods and all end with the namespaces."""
        for process in reversed(self.processes):
            process.stop(2)
