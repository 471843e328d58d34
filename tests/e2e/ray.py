# SPDX-License-Identifier: Apache-2.0
"""Small Ray clusters as users write them, and how a pair of a head Service and its readers ended."""

PORTS = {"client": 10001, "dashboard": 8265, "gcs-server": 6380}


def variable(service, rest):
    return service.upper().replace("-", "_") + "_SERVICE_" + rest


def head_service(name="ray-head", **metadata):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, **metadata},
            "spec": {"selector": {"app": f"{name}-head"},
                     "ports": [{"name": port, "port": number, "targetPort": number} for port, number in PORTS.items()]}}


def reader(service="ray-head", spelling="shell"):
    """The spec of a pod that finds its head by the Service's variables."""
    host, port = variable(service, "HOST"), variable(service, "PORT_GCS_SERVER")
    container = {"name": "ray-worker", "image": "rayproject/ray:2.7.2"}
    if spelling == "shell":
        container |= {"command": ["/bin/bash", "-c", "--"], "args": [f"ray start --address=${host}:${port} --block"]}
    elif spelling == "kubelet":
        container |= {"command": ["ray", "start", "--address", f"$({host}):$({port})", "--block"]}
    elif spelling == "environment":
        container |= {"command": ["python", "train.py"],
                      "env": [{"name": "RAY_ADDRESS", "value": f"ray://$({host}):$({variable(service, 'PORT_CLIENT')})"}]}
    else:  # code that reads them; whether it is for Ray cannot be told
        container |= {"command": ["python", "-c", f"import os; connect(os.environ['{host}'], os.environ['{port}'])"]}
    return {"containers": [container], "restartPolicy": "Always"}


def workload(kind, name, spec, replicas=2, schedule="* * * * *"):
    """An object of that kind whose pods have this spec. Jobs run to their end, so their pods are not restarted."""
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **template["metadata"]}, "spec": spec}
    if kind in ("Job", "CronJob"):
        template["spec"] = {**spec, "restartPolicy": "Never"}
        job = {"template": template, "parallelism": replicas, "completions": replicas}
        if kind == "Job":
            return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}
        return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
                "spec": {"schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job}}}
    own = {"selector": {"matchLabels": {"app": name}}, "template": template}
    if kind != "DaemonSet":
        own["replicas"] = replicas
    if kind == "StatefulSet":
        own |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": own}


def pods_of(kind, replicas=2):
    return 1 if kind in ("Pod", "DaemonSet") else replicas


def headless(service):
    return service["spec"].get("clusterIP") == "None"


def finished(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]


def texts(pod):
    for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
        yield from container.get("command", [])
        yield from container.get("args", [])
        yield from (entry.get("value", "") for entry in container.get("env", []))


def reads(pod, service):
    """Whether anything in the pod's text names the Service's variables."""
    return any(variable(service, "") in text for text in texts(pod))


def cared_for(pod, service):
    """Each container that names the Service's variables has them as env of its own: whatever is left in its text works."""
    for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
        own = {entry["name"] for entry in container.get("env", [])}
        text = " ".join([*container.get("command", []), *container.get("args", []),
                         *(entry.get("value", "") for entry in container.get("env", []))])
        for rest in ("HOST", "PORT", *("PORT_" + port.upper().replace("-", "_") for port in PORTS)):
            if variable(service, rest) in text and variable(service, rest) not in own:
                return False
    return True


def ending(service, pods, name):
    """How a pair ended:
    converted  the Service is headless, and each reader has been cared for
    as before  the Service has its IP, and its readers read its variables
    by name    the Service has its IP, and some readers use its name, which leads there as well
    HALF       the Service is headless, and a reader lacks its variables"""
    readers = [pod for pod in pods if not finished(pod)]
    done = [("rayhook/decision" in pod["metadata"].get("annotations", {})) for pod in readers]
    if headless(service):
        return "converted" if all(cared_for(pod, name) and was for pod, was in zip(readers, done)) else "HALF"
    return "by name" if any(done) else "as before"
