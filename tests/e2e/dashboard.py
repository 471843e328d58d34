# SPDX-License-Identifier: Apache-2.0
"""What KubeRay's operator asks of a Ray cluster before it makes a RayService's own Services. There is no Ray here, so an
HTTP proxy answers for any head: Serve takes each configuration, and its applications run."""

import http.server
import json
import threading

ANSWER = {"applications": {"app": {"name": "app", "status": "RUNNING", "deployments": {}, "route_prefix": "/"}}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b"success" if self.path.endswith("healthz") else json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = answer  # noqa: N815

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # the operator did not wait for its answer, and asks again


class Dashboard:
    def __init__(self):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
