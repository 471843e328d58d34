# SPDX-License-Identifier: Apache-2.0
"""Two replicas of Rayhook behind one address, registered with the API server, as in a cluster."""

import collections

import pki
from balancer import Balancer
from processes import wait_until
from ray import head_service, headless
from scenarios import Scenarios, expect
from webhook import Webhook, rights


class Replicas(Scenarios):
    """Scenarios with self.replicas."""

    arguments_of_serve = ()

    def __init__(self, arguments, directory):
        super().__init__(arguments, directory)
        authority = pki.Authority(directory, "webhook")
        self.replicas = [Webhook(arguments.rayhook, self.plane, directory, name, authority, self.arguments_of_serve)
                         for name in ("rayhook-a", "rayhook-b")]
        self.balancer = Balancer([replica.port for replica in self.replicas])
        self.started += [self.balancer, *self.replicas]

    def logs(self):
        return [replica.process for replica in self.replicas if replica.process]

    def grant(self):
        for document in rights():
            self.api.call("POST", f"/apis/{document['apiVersion']}/{document['kind'].lower()}s", document)

    def start_replicas(self):
        for replica in self.replicas:
            replica.launch()
        for replica in self.replicas:
            replica.await_ready()

    def register(self, path="/mutate"):
        self.api.call("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
                      self.replicas[0].configuration(self.balancer.port, path))

    def await_calls(self):
        """Until the API server calls Rayhook, which takes a moment after it was registered."""
        namespace = self.api.namespace("probe")

        def called():
            done = self.api.call("POST", self.api.path("services", namespace) + "?dryRun=All", head_service())
            return headless(done)
        wait_until("the API server calls Rayhook", called, 60)

    def roll_out(self):
        """Each replica in turn is told to end, and comes back; new connections go where a Service would send them."""
        for replica in self.replicas:
            child = replica.process.child
            child.terminate()
            wait_until("it is not ready", lambda replica=replica: replica.ops("/readyz") is None, 30, every=0.02)
            self.balancer.leave_out(replica.port)
            code = child.wait(30)
            expect(code == 0, f"{replica.name} ended with {code}")
            replica.start()
            self.balancer.leave_out()

    def failed_open(self):
        """Reviews that the API server got no answer to, so far."""
        text = self.plane.kubectl("get", "--raw", "/metrics")[0]
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith("apiserver_admission_webhook_fail_open_count{"))

    def metric(self, name):
        return sum(replica.metric(name) for replica in self.replicas)

    def decisions(self):
        return [line for replica in self.replicas for line in replica.decisions()]

    def reasons(self, since=0):
        """How often each reason was given, by namespace, in the log lines from `since` on."""
        found = collections.defaultdict(collections.Counter)
        for line in self.decisions()[since:]:
            if "reason" in line:
                found[line.get("namespace")][line["reason"]] += 1
        return found
