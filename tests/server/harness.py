# SPDX-License-Identifier: Apache-2.0
"""What the server tests drive the real program with: certificates, the process, a plain TLS client,
and a scripted API server (a real one cannot be made to misbehave)."""

import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

PROGRAM = None  # path of rayhook; server_test.py sets it
SLOW = float(os.environ.get("RAYHOOK_TEST_PATIENCE", "1"))  # sanitizers and busy machines
PATIENCE = 20 * SLOW


class Pki:
    """A CA and leaves of it, made with the openssl program into a folder of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="rayhook-server-test-")
        self.ca = self.path("ca.crt")
        self.openssl("req", "-x509", *self.key("ca.key"), "-out", self.ca, "-days", "2", "-subj", "/CN=test CA")
        self.cert, self.cert_key = self.leaf("server", "DNS:localhost,IP:127.0.0.1")

    def path(self, name):
        return os.path.join(self.folder, name)

    def key(self, name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.path(name)]

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def leaf(self, name, names, days="1", usage="serverAuth"):
        """Makes NAME.crt and NAME.key; returns both paths. `names` empty: no subjectAltName."""
        request, cert, extensions = self.path(name + ".csr"), self.path(name + ".crt"), self.path(name + ".ext")
        self.openssl("req", "-new", *self.key(name + ".key"), "-out", request, "-subj", "/CN=" + name)
        with open(extensions, "w") as file:
            file.write(f"extendedKeyUsage={usage}\n" + (f"subjectAltName={names}\n" if names else ""))
        self.openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.path("ca.key"), "-CAcreateserial",
                     "-days", days, "-extfile", extensions, "-out", cert)
        return cert, self.path(name + ".key")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Rayhook:
    """A running `rayhook serve`; its log lines, parsed, gather in `lines`."""

    def __init__(self, program, pki, *flags, lookup="none", cert=None, key=None):
        self.pki, self.lines, self.raw, self.told, self.code = pki, [], [], False, None
        self.changed = threading.Condition()
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--tls-cert",
             cert or pki.cert, "--tls-key", key or pki.cert_key, "--lookup", lookup, *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.readers = [threading.Thread(target=self.read, daemon=True)]
        self.readers[0].start()
        try:
            self.port = int(self.wait_for(msg="listening")["address"].rpartition(":")[2])
            self.ops = int(self.wait_for(msg="ops listening")["address"].rpartition(":")[2])
        except AssertionError:
            self.process.kill()
            raise AssertionError(self.process.stderr.read().decode() or "rayhook said nothing")

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.raw.append(line)
                self.lines.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)
            self.changed.notify_all()

    def find(self, **members):
        return [line for line in self.lines if line and all(line.get(k) == v for k, v in members.items())]

    def wait_for(self, **members):
        """The first log line with these members; waits for it."""
        with self.changed:
            found = self.changed.wait_for(lambda: self.find(**members) or None in self.lines, PATIENCE)
            assert found and self.find(**members), f"no log line with {members}"
            return self.find(**members)[0]

    def get(self, path):
        """Status and body of a path of the plain port."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ops}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        """The sum of the samples whose name and labels begin with `name`."""
        return sum(float(line.rpartition(" ")[2]) for line in self.get("/metrics")[1].splitlines() if line.startswith(name))

    def wait_metric(self, name, least):
        end = time.monotonic() + PATIENCE
        while self.metric(name) < least:
            assert time.monotonic() < end, f"{name} stays at {self.metric(name)}"
            time.sleep(0.02)

    def connect(self, **options):
        return Client(self, **options)

    def connect_plain(self):
        """The TCP connection alone."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def terminate(self):
        """SIGTERM, once: a second one would end it at once."""
        if not self.told:
            self.told = True
            self.process.terminate()

    def stop(self):
        """SIGTERM, unless it was sent already, and the exit code."""
        if self.code is not None:
            return self.code
        self.terminate()
        try:
            self.code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.code = "killed: it did not stop"
        self.readers[0].join(PATIENCE)
        self.process.stdout.close()
        self.errors = self.process.stderr.read().decode()
        self.process.stderr.close()
        if self.errors:
            print(self.errors, file=sys.stderr)  # a sanitizer's, say
        return self.code


def wait_until(condition, what="it"):
    """Asks again and again, for as long as the patience lasts."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about"
        time.sleep(0.02)


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """A TLS connection, byte by byte where a test wants it."""

    def __init__(self, rayhook, alpn=("http/1.1",), low=None, high=None, cert=None, key=None, plain=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(rayhook.pki.ca)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if low:
            context.minimum_version = low
        if high:
            context.maximum_version = high
            context.set_ciphers("DEFAULT:@SECLEVEL=0")
        if cert:
            context.load_cert_chain(cert, key)
        plain = plain or rayhook.connect_plain()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket = context.wrap_socket(plain, server_hostname="localhost")
        except BaseException:
            plain.close()
            raise
        self.held = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def read(self):
        """More bytes, b"" at the end, however it comes."""
        try:
            return self.socket.recv(65536)
        except (ssl.SSLEOFError, ConnectionError):
            return b""

    def answer(self):
        while b"\r\n\r\n" not in self.held:
            more = self.read()
            if not more:
                raise EOFError(self.held)
            self.held += more
        head, _, rest = self.held.partition(b"\r\n\r\n")
        status, *fields = head.decode().split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        length = int(fields.get("content-length", 0))
        while len(rest) < length:
            more = self.read()
            if not more:
                raise EOFError(rest)
            rest += more
        self.held = rest[length:]
        return Answer(int(status.split()[1]), fields, rest[:length])

    def post(self, body, path="/mutate?timeout=10s", **fields):
        """Sends a review (a dict, or bytes) and returns the answer."""
        self.send(request(body, path, **fields))
        return self.answer()

    def ended(self):
        """True if the server has ended the connection without another byte."""
        return not self.held and self.read() == b""


def request(body, path="/mutate?timeout=10s", **fields):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": len(data),
              **{name.replace("_", "-"): value for name, value in fields.items()}}
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return head.encode() + b"\r\n" + data


def review(kind, metadata, spec, uid="u-1", namespace="team-a", dry_run=False, user="alice"):
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": uid, "kind": {"group": "", "version": "v1", "kind": kind}, "namespace": namespace, "operation": "CREATE",
        "userInfo": {"username": user}, "dryRun": dry_run,
        "object": {"apiVersion": "v1", "kind": kind, "metadata": {"namespace": namespace, **metadata}, "spec": spec}}}


GCS_PORT = {"name": "gcs-server", "port": 6379, "targetPort": 6379}


def service(name="ray-head", ports=(GCS_PORT,), **more):
    return review("Service", {"name": name}, {
        "type": "ClusterIP", "selector": {"app": "ray-head"}, "ports": list(ports)}, **more)


def worker(name="ray-head", **more):
    """A pod that refers to the Service `name`."""
    prefix = name.upper().replace("-", "_")
    script = f"ray start --address=${prefix}_SERVICE_HOST:${prefix}_SERVICE_PORT_GCS_SERVER"
    return review("Pod", {"generateName": "worker-"}, {"containers": [
        {"name": "ray", "image": "ray", "command": ["/bin/sh", "-c", script]}]}, **more)


def reader(name="ray-head", **more):
    """A pod that refers to the Service `name`, but not for a Ray address: it is never held for it."""
    prefix = name.upper().replace("-", "_")
    script = f"wget http://${prefix}_SERVICE_HOST:${prefix}_SERVICE_PORT_GCS_SERVER"
    return review("Pod", {"generateName": "reader-"}, {"containers": [
        {"name": "ray", "image": "ray", "command": ["/bin/sh", "-c", script]}]}, **more)


def plain_pod(**more):
    return review("Pod", {"name": "plain"}, {"containers": [{"name": "c", "image": "i"}]}, **more)


class ApiServer:
    """A TLS server in place of an API server, which cannot be made to misbehave.

    `script(path, headers)` answers single GETs and lists of pods: it returns (status, body), or (status,
    body, header fields), or bytes that are sent as they are, or None: then nothing is ever sent. They are
    noted in `requests`.

    Lists and watches of all Services are noted in `watches`, and answered from `services`, which `put` and
    `delete` change as a watch is told; `list_script(path, headers)` and `watch_script(path, headers)`, where
    set, answer in its place as `script` does, unless they return `DEFAULT`."""

    DEFAULT = object()

    def __init__(self, pki, cert=None, key=None):
        self.requests, self.watches, self.script, self.stalled = [], [], None, threading.Event()
        self.list_script = self.watch_script = lambda path, headers: self.DEFAULT
        self.connections = 0
        self.services, self.events, self.version, self.changed = {}, [], 100, threading.Condition()
        self.round = 0  # of watches: see end_watches
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                outer.connections += 1
                self.request.settimeout(PATIENCE)
                self.request = context.wrap_socket(self.request, server_side=True)
                super().setup()

            def finish(self):
                super().finish()
                self.request.close()

            def do_GET(self):
                if not self.path.startswith("/api/v1/services?"):
                    outer.requests.append((self.path, dict(self.headers)))
                    return self.give(outer.script(self.path, self.headers))
                outer.watches.append((self.path, dict(self.headers)))
                outer.connections -= 1  # counted are those of the single requests
                is_watch = "watch=1" in self.path
                answer = (outer.watch_script if is_watch else outer.list_script)(self.path, self.headers)
                if answer is not outer.DEFAULT:
                    return self.give(answer)
                return self.watch() if is_watch else self.give((200, outer.service_list()))

            def give(self, answer):
                if answer is None:
                    outer.stalled.wait(PATIENCE)
                    self.close_connection = True
                elif isinstance(answer, bytes):
                    self.wfile.write(answer)
                    self.close_connection = True
                else:
                    status, body, fields = (*answer, {})[:3]
                    body = body if isinstance(body, bytes) else json.dumps(body).encode()
                    fields = {"Content-Type": "application/json", "Content-Length": len(body), **fields}
                    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
                    self.wfile.write(b"HTTP/1.1 %d x\r\n%s\r\n" % (status, head.encode()) + body)

            def watch(self):
                """The events after the asked version, for as long as the test lasts."""
                since = int(re.search(r"resourceVersion=(\d+)", self.path)[1])
                mine = outer.round
                self.wfile.write(WATCH_HEAD)
                while mine == outer.round:
                    with outer.changed:
                        outer.changed.wait_for(lambda: mine != outer.round or outer.version > since, PATIENCE)
                        lines = [line for version, line in outer.events if version > since]
                        since = outer.version
                    for line in lines:
                        self.wfile.write(chunk(line))
                self.wfile.write(chunk(b""))
                self.close_connection = True

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert or pki.cert, key or pki.cert_key)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def paths(self):
        return [path for path, _ in self.requests]

    def service_list(self):
        with self.changed:
            return {"kind": "ServiceList", "apiVersion": "v1", "metadata": {"resourceVersion": str(self.version)},
                    "items": list(self.services.values())}

    def put(self, service, kind=None):
        """A Service is made, or written anew."""
        with self.changed:
            key = service["metadata"]["namespace"], service["metadata"]["name"]
            self.note(kind or ("MODIFIED" if key in self.services else "ADDED"), service)
            self.services[key] = service

    def delete(self, namespace, name):
        with self.changed:
            self.note("DELETED", self.services.pop((namespace, name)))

    def note(self, kind, service):
        self.version += 1
        service = {**service, "metadata": {**service["metadata"], "resourceVersion": str(self.version)}}
        self.events.append((self.version, watch_line(kind, service)))
        self.changed.notify_all()

    def end_watches(self):
        """All watches end in good order; new ones may be asked for."""
        with self.changed:
            self.round += 1
            self.changed.notify_all()

    def close(self):
        self.stalled.set()
        self.end_watches()
        self.server.shutdown()
        self.server.server_close()


WATCH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def watch_line(kind, thing):
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


NOT_FOUND = (404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})


def stored_service(name, converted, namespace="team-a"):
    metadata = {"name": name, "namespace": namespace, "uid": "1"}
    if converted:
        metadata["annotations"] = {"rayhook/converted": "true"}
    return 200, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
        "type": "ClusterIP", "clusterIP": "None" if converted else "10.0.0.7", "selector": {"app": "ray-head"},
        "ports": [{"name": "gcs-server", "port": 6379, "targetPort": 6379, "protocol": "TCP"}]}}


class ClusterTest(unittest.TestCase):
    """`serve --lookup cluster` beside a scripted API server."""

    @classmethod
    def setUpClass(cls):
        cls.pki = Pki()
        cls.addClassCleanup(cls.pki.close)
        cls.client_cert, cls.client_key = cls.pki.leaf("rayhook", "DNS:rayhook", usage="clientAuth")

    def setUp(self):
        self.api = ApiServer(self.pki)
        self.addCleanup(self.api.close)

    def kubeconfig(self, user=None, **cluster):
        path = self.pki.path(f"kubeconfig-{self.id()}")
        text = {"apiVersion": "v1", "kind": "Config", "current-context": "test",
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                "clusters": [{"name": "test", "cluster": {
                    "server": self.api.url, "certificate-authority": self.pki.ca, **cluster}}],
                "users": [{"name": "test", "user": user or {"token": "secret-token"}}]}
        with open(path, "w") as file:
            json.dump(text, file)
        return path

    def serve(self, script, *flags, kubeconfig=None, ready=True, threads=1):
        self.api.script = script
        rayhook = Rayhook(PROGRAM, self.pki, "--threads", str(threads), "--kubeconfig", kubeconfig or self.kubeconfig(),
                          *flags, lookup="cluster")
        self.addCleanup(rayhook.stop)
        if ready:
            rayhook.wait_metric("rayhook_ready ", 1)
        self.client = rayhook.connect()
        self.addCleanup(self.client.close)
        return rayhook

    def reason(self, review=None, path="/mutate?timeout=10s", allowed=True):
        """Posts a review and gives the reason of the answer."""
        answer = self.client.post(review or reader(), path=path)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json["response"]["allowed"], allowed)
        return answer.json["response"]["auditAnnotations"]["reason"]
