# SPDX-License-Identifier: Apache-2.0
"""Generated Services and the names of their variables."""

NAMESPACE = "team-a"
ADDRESS = "10.96.0.77"  # stands in Service and variables until the name takes its place

HEADS = ["service-ray-cluster", "ray-head", "example-cluster-ray-head", "root--db0j1-head-svc", "demo-head",
         "a-service-host", "ray-service-head", "head", "x-port-head", "kuberay-head-svc", "h2-o-head"]
OTHERS = ["postgres", "web--front", "liferay", "scray", "redis-cache", "metrics-svc"]
GCS_PORTS = [("gcs-server", 6380), ("gcs", 6379), ("redis-primary", 6379), ("redis", 6379)]
MORE_PORTS = [("client", 10001), ("dashboard", 8265), ("serve", 8000), ("object-manager-port", 8076), ("a--b", 8077),
              ("worker-port-1", 10002), ("6379-port", 6399), ("metrics", 8080), ("http", 80), ("x", 7), ("host", 5000)]


def mangle(name):
    return name.upper().replace("-", "_")


def port_entry(rng, name, number, protocol=None):
    port = {"port": number}
    if name:
        port["name"] = name
    if protocol or rng.random() < 0.7:
        port["protocol"] = protocol or "TCP"
    if rng.random() < 0.8:
        port["targetPort"] = number
    return port


def head_service(rng, name):
    """A Service in the shapes that public manifests give a Ray head."""
    if rng.random() < 0.1:  # one port only may go without a name
        ports = [port_entry(rng, None, rng.choice([6379, 6380]))]
    else:
        gcs, number = rng.choice(GCS_PORTS)
        ports = [port_entry(rng, gcs, number)]
        for more, number in rng.sample(MORE_PORTS, rng.randrange(0, 6)):
            ports.append(port_entry(rng, more, number, "UDP" if rng.random() < 0.1 else None))
        if rng.random() < 0.2:
            ports.append(port_entry(rng, "dns-udp", 53, "UDP"))
        rng.shuffle(ports)
    spec = {"ports": ports, "selector": {rng.choice(["component", "app"]): "ray-head"}}
    if rng.random() < 0.5:
        spec.update({"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"})
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def other_service(rng, name):
    ports = [port_entry(rng, *rng.choice([("http", 80), ("postgres", 5432), ("admin", 9000)]))]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"ports": ports, "selector": {"app": name}}}


def services(rng):
    """One to three Services whose variables have different names."""
    names = rng.sample(HEADS, rng.choice([1, 1, 1, 2]))
    found = [head_service(rng, name) for name in names]
    found += [other_service(rng, name) for name in rng.sample(OTHERS, rng.choice([0, 0, 1]))]
    rng.shuffle(found)
    return found


def is_docker_link(name, service):
    rest = name.removeprefix(mangle(service["metadata"]["name"]))
    return rest != name and (rest == "_PORT" or rest.startswith("_PORT_"))


def converted_by(rayhook, service):
    """What the CREATE of this Service comes to: the converted Service, or None where it is left."""
    from support import patched
    after = patched(rayhook.review(service), service)
    return after if after["spec"].get("clusterIP") == "None" else None


def stored(service):
    """What a client reads of it later (None stays None)."""
    if service is None:
        return None
    metadata = dict(service["metadata"], uid="7d2f3c1e-0000-4000-8000-000000000007", resourceVersion="77",
                    creationTimestamp="2026-01-01T00:00:00Z")
    spec = dict(service["spec"], clusterIPs=["None"], ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack", type="ClusterIP")
    return dict(service, metadata=metadata, spec=spec, status={"loadBalancer": {}})


def variables(oracle, service, host=None):
    """What kubelet gives pods beside this Service; with `host` in place of the address."""
    with_address = dict(service, spec=dict(service["spec"], clusterIP=ADDRESS))
    env = oracle("envvars", services=[with_address])["env"]
    return {name: value.replace(ADDRESS, host) if host else value for name, value in env.items()}
