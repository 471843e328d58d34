# SPDX-License-Identifier: Apache-2.0
"""Real Ray clusters on the node: applied, looked at through the head's dashboard, given jobs."""

import copy
import json
import os
import time
import urllib.error
import urllib.request

import yaml

from processes import wait_until
from scenarios import expect

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD, SERVICE, WORKERS = "deployment-ray-head", "service-ray-cluster", "deployment-ray-worker"
IMAGE = "rayproject/ray:2.7.2"
JOB = "python3 -c \"import ray; ray.init(); print(ray.get(ray.remote(lambda: 42).remote()))\""
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def documents(workers=2):
    """tests/cluster/static-ray-cluster.yaml: Service, head, workers."""
    with open(os.path.join(HERE, "static-ray-cluster.yaml")) as file:
        found = list(yaml.safe_load_all(file))
    found[2]["spec"]["replicas"] = workers
    return copy.deepcopy(found)


def text(documents):
    return yaml.safe_dump_all(documents)


def job(name, command, mounts=(), **spec):
    """A Kubernetes Job with one container."""
    container = {"name": "main", "image": IMAGE, "command": command, "volumeMounts": list(mounts)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"backoffLimit": 2, "template": {"spec": {
        "restartPolicy": "Never", "containers": [container], **spec}}}}


def ray_cluster():
    """One for KubeRay: a head and a worker."""
    def template(name):
        return {"spec": {"terminationGracePeriodSeconds": 2, "containers": [{"name": name, "image": IMAGE, "resources": {
            "requests": {"cpu": "50m"}, "limits": {"cpu": "2", "memory": "2G"}}}]}}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "demo"}, "spec": {
        "rayVersion": "2.7.2",
        "headGroupSpec": {"rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0", "object-store-memory": "100000000"}, "template": template("head")},
        "workerGroupSpecs": [{"groupName": "workers", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "template": template("worker"),
                              "rayStartParams": {"num-cpus": "1", "object-store-memory": "100000000"}}]}}


def ask(url, body=None):
    """A dashboard's answer, or None while it has none."""
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None, {"Content-Type": "application/json"})
    try:
        with _opener.open(request, timeout=20) as answer:
            return json.load(answer)
    except (OSError, ValueError):
        return None


class RayCluster:
    """One in a namespace of its own. `head` selects the head's pod."""

    def __init__(self, plane, namespace, head="app=ray-cluster-head", workers="app=ray-cluster-worker"):
        self.plane, self.namespace, self.head, self.workers = plane, namespace, head, workers

    def pods(self, selector):
        found = self.plane.get("pods", "-n", self.namespace, "-l", selector)["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def head_pod(self):
        pods = [pod for pod in self.pods(self.head) if pod["status"].get("podIP") and pod["status"]["phase"] == "Running"]
        return pods[0] if pods else None

    def dashboard(self):
        pod = self.head_pod()
        return f"http://{pod['status']['podIP']}:8265" if pod else None

    def alive(self):
        """Workers that have joined and are alive, by their addresses; None while the dashboard does not answer."""
        url = self.dashboard()
        found = ask(f"{url}/nodes?view=summary") if url else None
        if not found or not found.get("result"):
            return None
        return {node["raylet"]["nodeManagerAddress"] for node in found["data"]["summary"]
                if node.get("raylet", {}).get("state") == "ALIVE" and not node["raylet"].get("isHeadNode")}

    def addresses(self):
        return {pod["status"].get("podIP") for pod in self.pods(self.workers)}

    def joined(self, count, seconds=150):
        """Waits until so many workers, those that are there, have joined; gives the seconds it took."""
        start = time.monotonic()

        def all_there():
            alive = self.alive()
            return alive is not None and len(alive & self.addresses()) == count
        try:
            wait_until(f"{count} workers in {self.namespace}", all_there, seconds, 0.5)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; alive: {self.alive()}, pods: {self.addresses()}\n{self.logs()}") from None
        return time.monotonic() - start

    def logs(self):
        """What a failure is understood by."""
        return self.plane.run("-n", self.namespace, "get", "pods,services", "-o", "wide").stdout + "".join(
            f"--- {pod['metadata']['name']}\n" + self.plane.run("-n", self.namespace, "logs", "--tail=12", "--all-containers", pod["metadata"]["name"]).stdout
            for pod in self.pods(self.head) + self.pods(self.workers))

    def agents_known(self):
        """Waits until the head would choose a job's agent from all nodes' agents: it hears of them later than of the nodes."""
        def all_known():
            found = ask(f"{self.dashboard()}/internal/node_module")
            return bool(found) and found["data"]["registeredAgents"] > len(self.pods(self.workers))
        wait_until(f"the head of {self.namespace} knows all agents", all_known, 60, 0.5)

    def is_own_agent(self, job):
        """Whether the head gave that job to its own agent, which never needs the head's Service."""
        log = "/tmp/ray/session_latest/logs/dashboard_agent.log"
        done = self.plane.run("-n", self.namespace, "exec", self.head_pod()["metadata"]["name"], "--",
                              "grep", "-q", f"Starting job with submission_id: {job['submission_id']}", log)
        expect(done.returncode in (0, 1), f"{log}: {done.stderr}")
        return done.returncode == 0

    def job(self, entrypoint=JOB, seconds=180):
        """Submits one and waits for its end: (status, seconds, what the dashboard says of it)."""
        start = time.monotonic()

        def submit():
            url = self.dashboard()
            return url and ask(f"{url}/api/jobs/", {"entrypoint": entrypoint})
        submitted = wait_until("a job is taken", submit, 60, 0.5)
        url = f"{self.dashboard()}/api/jobs/{submitted['submission_id']}"

        def ended():
            found = ask(url)
            return found if found and found["status"] in ("SUCCEEDED", "FAILED", "STOPPED") else None
        found = wait_until("the job ends", ended, seconds, 0.2)
        return found["status"], time.monotonic() - start, found

    def jobs(self, count):
        """So many, one after the other; all must succeed. Gives the times."""
        times = []
        for number in range(count):
            status, took, found = self.job()
            expect(status == "SUCCEEDED",
                   f"job {number + 1} of {count} in {self.namespace}: {status} after {took:.1f} s: {found.get('message')}\n{self.logs()}")
            times.append(took)
        return times
