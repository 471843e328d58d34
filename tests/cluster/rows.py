# SPDX-License-Identifier: Apache-2.0
"""The rows of the table, in order. Each says what it expects, and asserts it; what it returns is what was seen."""

import concurrent.futures
import json
import os
import re
import time

import pages
import rays
from installation import NAMESPACE, ROOT, Installation
from rays import HEAD, SERVICE, WORKERS, RayCluster
from scenarios import expect, say, table
from processes import wait_until

NOT_OURS = [  # what Rayhook leaves, the reason, and whether kubectl says it too
    ("nodeport", {"type": "NodePort"}, {}, "service-type", True),
    ("other-port", {"ports": [{"name": "gcs-server", "port": 6379, "targetPort": 6380}]}, {}, "port-differs", True),
    ("opted-out", {}, {"rayhook/mode": "ignore"}, "opted-out", False)]


class Rows(Installation):
    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        self.table = []
        self.static = RayCluster(self.plane, "static")
        self.fresh = RayCluster(self.plane, "fresh")

    def row(self, name, run):
        if not re.search(self.arguments.only, name) and run not in (self.install, self.cured):
            return True
        start = time.monotonic()
        seen = []
        passed = self.scenario(name, lambda: seen.append(run()))
        self.table.append((name, seen[0] if passed else "FAILED", f"{time.monotonic() - start:.0f}"))
        return passed

    def side_by_side(self, *groups):
        with concurrent.futures.ThreadPoolExecutor() as threads:
            for done in [threads.submit(lambda group=group: [self.row(*row) for row in group]) for group in groups]:
                done.result()

    def print_table(self):
        print(table(("scenario", "seen", "seconds"), self.table), flush=True)

    def run(self):
        self.bring_up()
        if not self.row("no Rayhook, a static Ray cluster as written", self.fault):
            return
        if not self.row("Rayhook by `kubectl apply -k manifests/default`, and its probe", self.install):
            return
        self.row("the same manifest, unchanged, with Rayhook", self.cured)
        # They wait most of the time, for Ray, and touch different namespaces.
        self.side_by_side(
            [("the faulty cluster is brought over as docs/migration.md says", self.migrated),
             ("workers before their Service", self.early),
             ("`kubectl apply -f` of a folder", self.folder),
             ("`helm install` of a chart with both", self.chart)],
            [("scaled up, a worker killed, the head killed", self.disturbed),
             ("a Python driver that reads the variables, a script from a ConfigMap", self.drivers),
             ("an init container that waits for the head", self.waiting),
             ("a hostNetwork worker", self.host_network),
             ("NodePort, port ≠ target port, opted out, audit", self.left_alone)])
        self.row("a namespace that is opted out", self.ignored)
        self.row("a RayCluster of the KubeRay operator, `kuberay: convert`", self.kuberay)
        self.row("rolled out and certificates rotated under creations", self.rolled)
        self.row("scaled to zero and back", self.away)
        self.row("removed", self.removed)
        self.row("Rayhook by `helm install`, `helm test`, and `helm uninstall`", self.by_helm)

    # ---- the fault, and its cure

    def fault(self):
        self.apply("static", rays.documents())
        took = self.static.joined(2)
        service = self.plane.get("service", SERVICE, "-n", "static")["spec"]["clusterIP"]
        pod = self.static.head_pod()

        def connects(address):
            return self.plane.run("-n", "static", "exec", pod["metadata"]["name"], "--", "timeout", "5", "bash", "-c",
                                  f"exec 3<>/dev/tcp/{address}/6380").returncode
        expect(connects(pod["status"]["podIP"]) == 0, "the head does not reach itself by its pod's address")
        expect(connects(service) == 124, f"the head reaches itself through its Service ({connects(service)}): this network has hairpin")
        number, status, seconds, found = self.by_a_worker(self.static)
        message = found.get("message") or ""
        expect(status == "FAILED", f"a job by a worker's agent: {status}: the fault is not there")
        expect(service in message or "connect" in message, f"failed, but for another reason: {message}")
        return f"workers joined after {took:.0f} s; the head's own Service IP times out; job {number} failed after {seconds:.0f} s"

    def by_a_worker(self, cluster):
        """The first job whose agent is a worker's: its number, and what `job` gives. A head stays with the agent that it has
        drawn; its own succeeds, whatever the Service is. Then another head draws again."""
        for number in range(1, 9):
            cluster.agents_known()
            status, seconds, found = cluster.job()
            if status != "SUCCEEDED" or not cluster.is_own_agent(found):
                return number, status, seconds, found
            self.new_head(cluster)
            cluster.joined(2, 240)
        expect(False, "eight heads have drawn their own agent")

    def new_head(self, cluster):
        before = cluster.head_pod()["metadata"]["name"]
        self.plane.kubectl("-n", cluster.namespace, "delete", "pod", before, "--grace-period=1")
        wait_until("another head", lambda: (cluster.head_pod() or {"metadata": {"name": before}})["metadata"]["name"] != before, 60)

    def cured(self):
        start = time.monotonic()
        self.apply("fresh", rays.documents())
        expect(self.plane.get("service", SERVICE, "-n", "fresh")["spec"]["clusterIP"] == "None", "the Service is not headless")
        self.fresh.joined(2)
        took = time.monotonic() - start
        self.by_a_worker(self.fresh)
        times = self.fresh.jobs(10)
        return f"headless, workers joined after {took:.0f} s; 10 of 10 jobs by a worker's agent succeeded, {min(times):.0f} to {max(times):.0f} s each"

    def typed(self, command):
        done = self.plane.shell(command)
        expect(done.returncode == 0, f"{command}: {done.stderr}")
        return done.stdout

    def listed_commands(self, namespace):
        """What Rayhook's log says to do there, by the command of docs/migration.md."""
        return self.typed(pages.block("migration.md", ".command // empty", NAME=namespace)).splitlines()

    def mend(self, namespace):
        commands = wait_until("split pods are listed", lambda: self.listed_commands(namespace), 60, 0.5)
        for command in commands:
            say(f"      {command}")
            self.typed(command)
        return len(commands)

    def migrated(self):
        names = {"NAME": "static", "SERVICE": SERVICE}
        readers = self.typed(pages.block("migration.md", "ownerReferences", **names))
        expect(WORKERS in readers and HEAD not in readers, f"readers: {readers}")
        self.typed(pages.block("migration.md", "rollout restart", **names, **{"deployment/WORKLOAD": f"deployment/{WORKERS}"}))
        self.typed(pages.block("migration.md", "replace --force", **names))
        expect(self.plane.get("service", SERVICE, "-n", "static")["spec"]["clusterIP"] == "None", "the Service is not headless")
        # The head reads nothing, and the workers were restarted: nothing is left to do.
        older = wait_until("older pods are told of", lambda: self.typed(pages.block("migration.md", "startswith", **names)).split(), 60, 0.5)
        expect(older == [self.static.head_pod()["metadata"]["name"]], f"older than the Service: {older}")
        expect(not self.listed_commands("static"), f"{self.listed_commands('static')}: what is there to mend?")
        self.static.joined(2)
        self.by_a_worker(self.static)
        times = self.static.jobs(3)
        self.plane.kubectl("delete", "namespace", "static", "--wait=false")
        return f"the log tells of the head alone, which is older than its Service; 3 of 3 jobs by a worker's agent succeeded, {min(times):.0f} to {max(times):.0f} s each"

    def disturbed(self):
        self.plane.kubectl("-n", "fresh", "scale", "deployment", WORKERS, "--replicas=3")
        scaled = self.fresh.joined(3)
        self.plane.kubectl("-n", "fresh", "delete", "pod", self.fresh.pods(self.fresh.workers)[0]["metadata"]["name"], "--grace-period=1")
        killed = self.fresh.joined(3)
        self.fresh.agents_known()  # Ray 2.7.2: who has joined this very moment may never notice that the head has gone
        self.new_head(self.fresh)
        back = self.fresh.joined(3, 240)
        self.fresh.jobs(2)
        return f"a third worker joined after {scaled:.0f} s, the killed one's after {killed:.0f} s, all after {back:.0f} s of a new head; 2 of 2 jobs succeeded"

    # ---- readers

    def finished(self, namespace, *names):
        for name in names:
            try:
                self.plane.kubectl("-n", namespace, "wait", "--for=condition=complete", f"job/{name}", "--timeout=120s")
            except Exception as error:
                logs = self.plane.run("-n", namespace, "logs", f"job/{name}", "--all-containers", "--tail=20")
                raise RuntimeError(f"{error}\n{logs.stdout}{logs.stderr}") from None

    def drivers(self):
        host, port = (f"os.environ['SERVICE_RAY_CLUSTER_{name}']" for name in ("SERVICE_HOST", "SERVICE_PORT_DASHBOARD"))
        driver = f"""import os, time
from ray.job_submission import JobSubmissionClient
client = JobSubmissionClient('http://' + {host} + ':' + {port})
job = client.submit_job(entrypoint='echo done')
while str(client.get_job_status(job)) not in ('SUCCEEDED', 'FAILED'): time.sleep(0.5)
assert client.get_job_status(job) == 'SUCCEEDED', client.get_job_info(job)
"""
        script = "ray job submit --address http://$SERVICE_RAY_CLUSTER_SERVICE_HOST:$SERVICE_RAY_CLUSTER_SERVICE_PORT_DASHBOARD -- echo done\n"
        volume = {"volumes": [{"name": "scripts", "configMap": {"name": "scripts"}}]}
        self.apply("fresh", [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts"}, "data": {"submit.sh": script}},
            rays.job("driver", ["python3", "-c", driver]),
            rays.job("script", ["bash", "/scripts/submit.sh"], [{"name": "scripts", "mountPath": "/scripts"}], **volume)])
        self.finished("fresh", "driver", "script")
        return "both reach the head by `os.environ` and by `$…`, and end well"

    def waiting(self):
        wait = "until (exec 3<>/dev/tcp/$SERVICE_RAY_CLUSTER_SERVICE_HOST/$SERVICE_RAY_CLUSTER_SERVICE_PORT_GCS_SERVER); do sleep 1; done"
        first = {"name": "wait", "image": rays.IMAGE, "command": ["bash", "-c", wait]}
        service, head, _ = rays.documents()
        self.apply("waits", [service, rays.job("waits", ["true"], initContainers=[first])])

        def waits():
            [pod] = self.plane.get("pods", "-n", "waits", "-l", "job-name=waits")["items"] or [{"status": {}}]
            return any("running" in one["state"] for one in pod["status"].get("initContainerStatuses", []))
        wait_until("the init container waits", waits, 60)
        self.apply("waits", [head])
        self.finished("waits", "waits")
        self.plane.kubectl("delete", "namespace", "waits", "--wait=false")
        return "runs until the head is there, then ends"

    def host_network(self):
        document = rays.documents(workers=1)[2]
        document["metadata"]["name"] = "host-worker"
        document["spec"]["selector"]["matchLabels"] = document["spec"]["template"]["metadata"]["labels"] = {"app": "host-worker"}
        document["spec"]["template"]["spec"]["hostNetwork"] = True
        self.apply("fresh", [document])
        start = time.monotonic()
        # Its address is whichever of the node's leads to the head.
        wait_until("the worker of the node's network joins", lambda: (self.fresh.alive() or set()) - self.fresh.addresses(), 150, 0.5)
        took = time.monotonic() - start
        [pod] = self.fresh.pods("app=host-worker")
        expect(pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet", f"dnsPolicy: {pod['spec']['dnsPolicy']}")
        self.plane.kubectl("-n", "fresh", "delete", "deployment", "host-worker")
        return f"joined after {took:.0f} s, with dnsPolicy ClusterFirstWithHostNet"

    # ---- any order

    def whole(self, namespace):
        cluster = RayCluster(self.plane, namespace)
        took = cluster.joined(1)
        expect(self.plane.get("service", SERVICE, "-n", namespace)["spec"]["clusterIP"] == "None", "the Service is not headless")
        [pod] = cluster.pods(cluster.workers)
        expect(f"--address={SERVICE}:6380" in pod["spec"]["containers"][0]["args"][0], f"{pod['spec']['containers'][0]['args']}")
        cluster.jobs(1)
        self.plane.kubectl("delete", "namespace", namespace, "--wait=false")
        return f"headless and rewritten; joined after {took:.0f} s, a job succeeded"

    def early(self):
        service, head, workers = rays.documents(workers=1)
        self.apply("early", [workers])
        wait_until("a worker is looked at", lambda: any(line.get("namespace") == "early" for line in self.decisions()), 30)
        self.apply("early", [service, head])
        return self.whole("early")

    def folder(self):
        folder = os.path.join(self.directory, "folder")
        os.makedirs(folder)
        service, head, workers = rays.documents(workers=1)
        for name, document in (("a-workers", workers), ("b-service", service), ("c-head", head)):
            with open(os.path.join(folder, f"{name}.yaml"), "w") as out:
                out.write(rays.text([document]))
        self.plane.kubectl("create", "namespace", "folder")
        self.plane.kubectl("-n", "folder", "apply", "-f", folder)
        return self.whole("folder")

    def chart(self):
        chart = os.path.join(self.directory, "chart")
        os.makedirs(os.path.join(chart, "templates"))
        with open(os.path.join(chart, "Chart.yaml"), "w") as out:
            json.dump({"apiVersion": "v2", "name": "ray", "version": "1.0.0"}, out)
        with open(os.path.join(chart, "templates", "all.yaml"), "w") as out:
            out.write(rays.text(rays.documents(workers=1)))
        self.helm("install", "ray", chart, "--namespace", "chart", "--create-namespace")
        return self.whole("chart")

    # ---- what is left alone

    def left_alone(self):
        self.plane.kubectl("create", "namespace", "left")
        self.plane.kubectl("create", "namespace", "audited")
        self.plane.kubectl("label", "namespace", "audited", "rayhook/mode=audit")
        for name, spec, annotations, reason, warned in NOT_OURS:
            document = rays.documents()[0]
            document["metadata"] = {"name": name, "annotations": annotations}
            document["spec"] |= spec
            _, warnings = self.apply("left", [document])
            stored = self.plane.get("service", name, "-n", "left")
            expect(stored["spec"]["clusterIP"] != "None", f"{name} is headless")
            expect(not warned or reason in warnings, f"{name}: kubectl says {warnings!r}")
            wait_until(f"the log of {name}", lambda name=name, reason=reason: any(
                line.get("name") == name and line.get("reason") == reason for line in self.decisions()), 20)
        self.apply("audited", rays.documents()[:1])
        expect(self.plane.get("service", SERVICE, "-n", "audited")["spec"]["clusterIP"] != "None", "headless, in an audit namespace")
        wait_until("the auditor's log", lambda: any(
            line.get("namespace") == "audited" and line.get("mode") == "audit" and line.get("reason") == "converted" for line in self.decisions()), 20)
        return "untouched; reasons in kubectl's warnings and in the log"

    def ignored(self):
        before = self.metric("rayhook_reviews_total")
        self.apply("ignored", [*rays.documents(workers=0)[:1], rays.job("pod", ["true"])], "rayhook/mode=ignore")
        self.finished("ignored", "pod")
        expect(self.plane.get("service", SERVICE, "-n", "ignored")["spec"]["clusterIP"] != "None", "headless")
        after = self.metric("rayhook_reviews_total")
        expect(after == before, f"{after - before} reviews were sent")
        return "untouched, nothing was sent to Rayhook"

    # ---- KubeRay

    def kuberay(self):
        self.configure("kuberay: convert\n")
        self.start_kuberay()
        self.apply("kuberay", [rays.ray_cluster()])
        cluster = RayCluster(self.plane, "kuberay", "ray.io/node-type=head", "ray.io/node-type=worker")
        took = cluster.joined(1)
        service = self.plane.get("service", "demo-head-svc", "-n", "kuberay")
        expect(service["spec"]["clusterIP"] == "None" and service["metadata"]["annotations"]["rayhook/converted"] == "true",
               f"not converted; the log: {[line for line in self.decisions() if line.get('name') == 'demo-head-svc']}")
        times = cluster.jobs(2)
        self.plane.kubectl("delete", "namespace", "kuberay", "--wait=false")
        return f"head Service headless, joined after {took:.0f} s; 2 of 2 jobs succeeded, {min(times):.0f} to {max(times):.0f} s each"

    # ---- Rayhook itself

    def rolled(self):
        failed_open = self.fail_open()
        with self.creations("fresh") as creations:
            self.node.ctr("images", "tag", "docker.io/library/rayhook:0.1.0", "docker.io/library/rayhook:next")
            self.plane.kubectl("-n", "rayhook-system", "set", "image", "deployment/rayhook", "*=rayhook:next")
            self.rolled_out()
            rolled = creations.count
            self.rotate_authority()
        expect(not creations.wrong, f"{len(creations.wrong)} of {creations.count}: {creations.wrong[:3]}")
        expect(self.fail_open() == failed_open, f"fail-open count: {failed_open} before, {self.fail_open()} after")
        expect(rolled >= 5 and creations.count > rolled + 20, f"{rolled}, {creations.count} creations: too few to mean something")
        return f"{creations.count} pods created, each changed, none refused; fail-open count unmoved"

    def away(self):
        failed_open, workers = self.fail_open(), len(self.fresh.pods(self.fresh.workers))
        with self.alerts() as alerts:
            self.plane.kubectl("-n", "rayhook-system", "scale", "deployment/rayhook", "--replicas=0")
            wait_until("Rayhook is away", lambda: not self.replicas(), 60)

            def firing():
                pod = self.fresh.pods(self.fresh.workers)[0]["metadata"]["name"]
                self.plane.kubectl("-n", "fresh", "delete", "pod", pod, "--grace-period=1")
                wait_until("another pod", lambda: len(self.fresh.pods(self.fresh.workers)) == workers, 30)
                return alerts("RayhookFailsOpen")
            wait_until("the alert RayhookFailsOpen is true", firing, 90, 1)
        expect(self.fail_open() > failed_open, "the fail-open count did not move")
        self.plane.kubectl("-n", "rayhook-system", "scale", "deployment/rayhook", "--replicas=2")
        self.rolled_out()
        # Ready is not yet reached: kube-proxy has to follow. What is made anew before that is split again.
        wait_until("the API server reaches Rayhook again", self.is_asked, 30)
        split = wait_until("split pods are counted", lambda: self.metric("rayhook_split_pods"), 60)
        count = self.mend("fresh")
        took = self.fresh.joined(workers)
        self.fresh.jobs(1)
        wait_until("no split pod is counted any more", lambda: self.metric("rayhook_split_pods") == 0, 90, 1)
        return (f"pods were created, the alert's expression is true; split pods counted (both replicas: {split:.0f}) and mended by the log's "
                f"commands ({count}), joined after {took:.0f} s, a job succeeded, none counted any more")

    def is_asked(self):
        service = rays.documents()[0]
        service["metadata"]["name"] = "is-it-asked"
        out, _ = self.plane.kubectl("-n", "fresh", "create", "--dry-run=server", "-o", "json", "-f", "-", stdin=rays.text([service]))
        return json.loads(out)["spec"]["clusterIP"] == "None"

    def removed(self):
        converted = self.typed(pages.block("install.md", '"rayhook/converted"] == "true"')).split()
        expect(f"fresh/{SERVICE}" in converted, f"converted: {converted}")
        self.typed(pages.block("install.md", "delete mutatingwebhookconfiguration"))
        self.fresh.jobs(1)
        self.typed(pages.block("operations.md", "publishNotReadyAddresses", NAME="fresh", SERVICE=SERVICE))
        self.typed(pages.block("install.md", "delete -k manifests/default --ignore-not-found"))
        expect(self.plane.get("service", SERVICE, "-n", "fresh")["spec"]["clusterIP"] != "None", "still headless")
        workers = len(self.fresh.pods(self.fresh.workers))
        self.fresh.joined(workers)
        self.plane.kubectl("-n", "fresh", "scale", "deployment", WORKERS, f"--replicas={workers + 1}")
        took = self.fresh.joined(workers + 1)
        return f"a job succeeded without Rayhook; then the Service has its cluster IP again, the workers stay, and a new one joined by its variables after {took:.0f} s"

    def by_helm(self):
        self.helm("install", "rayhook", os.path.join(ROOT, "manifests", "chart"), "--namespace", NAMESPACE, "--create-namespace")
        start = time.monotonic()
        self.rolled_out()
        took = time.monotonic() - start
        said = self.helm("test", "rayhook", "--namespace", NAMESPACE, "--timeout", "120s")
        expect("Rayhook works in this cluster" in said, f"helm test prints: {said}")
        self.helm("uninstall", "rayhook", "--namespace", NAMESPACE)
        return f"two replicas ready after {took:.0f} s; helm test prints: Rayhook works in this cluster"
