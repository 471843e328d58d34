# SPDX-License-Identifier: Apache-2.0
"""What users apply: kustomize's and the chart's output, for each way of installing that we offer."""

import copy
import os
import re
import subprocess
import tempfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MANIFESTS = os.path.join(ROOT, "manifests")
CHART = os.path.join(MANIFESTS, "chart")

_spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname"}

# A way of installing: (kustomize base, its components, the chart's values for the same).
WAYS = {
    "default": ("default", [], {}),
    "cert-manager": ("base", ["cert-manager"], {"certificate": {"source": "cert-manager"}}),
    "ha": ("default", ["ha"], {"replicas": 3, "priorityClassName": "system-cluster-critical", "topologySpreadConstraints": [
        {**_spread, "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["pod-template-hash"]},
        {**_spread, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}]}),
    "network-policy": ("default", ["network-policy"], {"networkPolicy": {"enabled": True}}),
    "prometheus-operator": ("default", ["prometheus-operator"], {"monitoring": {"enabled": True}}),
    "audit-only": ("default", ["audit-only"], {"mode": "audit"}),
    "openshift": ("default", ["openshift"], {"openshift": True}),
    "events": ("default", ["events"], {"events": True}),
}
# The probe is no way of installing; the chart has it as its test.
PROBE = os.path.join(MANIFESTS, "probe")
WAYS["together"] = (
    "base", ["cert-manager", "network-policy", "prometheus-operator", "openshift", "events"],
    {k: v for way in ("cert-manager", "network-policy", "prometheus-operator", "openshift", "events") for k, v in WAYS[way][2].items()})


def run(*command, stdin=None):
    done = subprocess.run(command, capture_output=True, text=True, input=stdin)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def kustomize(kubectl, way):
    """kustomize's output for a way, as text."""
    base, components, _ = WAYS[way]
    with tempfile.TemporaryDirectory(prefix="rayhook-kustomize-") as folder:
        def path(*parts):  # kustomize takes no absolute ones
            return os.path.relpath(os.path.join(MANIFESTS, *parts), os.path.realpath(folder))
        with open(os.path.join(folder, "kustomization.yaml"), "w") as out:
            yaml.safe_dump({"resources": [path(base)], "components": [path("components", c) for c in components]}, out)
        return run(kubectl, "kustomize", folder)


def chart(helm, way):
    """The chart's output for a way, as text."""
    return run(helm, "template", "rayhook", CHART, "--namespace", "rayhook-system", "--kube-version", "1.34.0", "--values", "-",
               "--skip-tests", stdin=yaml.safe_dump(WAYS[way][2]))


def probes(kubectl, helm):
    """The probe, by kustomize and by the chart, as texts."""
    return run(kubectl, "kustomize", PROBE), run(helm, "template", "rayhook", CHART, "--kube-version", "1.34.0", "--show-only", "templates/tests/probe.yaml")


_CHART_LABELS = ("app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart")


def normalised(objects):
    """By kind, namespace and name, without what kustomize and Helm must do differently: the Namespace, Helm's own labels, the
    hash in the ConfigMap's name, comments in the configuration, the revision in the Job's name."""
    found = {}
    for document in copy.deepcopy(objects):
        metadata = document["metadata"]
        if metadata["name"] == "rayhook-system":
            continue
        for label in _CHART_LABELS:
            metadata.get("labels", {}).pop(label, None)
        if any(name.startswith("helm.sh/hook") for name in metadata.get("annotations", {})):
            del metadata["annotations"]
        metadata["name"] = re.sub(r"^rayhook-certs-install-\d+$", "rayhook-certs-install", metadata["name"])
        metadata["name"] = re.sub(r"^(rayhook-config)-[0-9a-z]{10}$", r"\1", metadata["name"])
        if metadata["name"] == "rayhook-config":
            document["data"] = {name: yaml.safe_load(text) for name, text in document["data"].items()}
        if document["kind"] == "Deployment":
            for volume in document["spec"]["template"]["spec"]["volumes"]:
                if "configMap" in volume:
                    volume["configMap"]["name"] = re.sub(r"-[0-9a-z]{10}$", "", volume["configMap"]["name"])
        found[document["kind"], metadata.get("namespace", ""), metadata["name"]] = document
    return found
