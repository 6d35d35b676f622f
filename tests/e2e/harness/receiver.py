# SPDX-License-Identifier: Apache-2.0
"""The other side of what module stepping asks: webhooks, a provider of metrics, an exporter that Prometheus scrapes.

One small server, plain or with TLS. It records every request, and answers as the scenario says, path by path."""

import http.server
import json
import ssl
import threading
import time
import urllib.parse

from .slipway import make_certificate


class Answer:
    """What a path answers: a status, or a function of the payload that returns one; a body; nothing at all (`hangs`)."""

    def __init__(self, status=200, body=b"", hangs=False):
        self.status, self.body = status, body
        self.is_over = threading.Event() if hangs else None


class Receiver:
    def __init__(self, folder=None):
        """With a folder: HTTPS, with a certificate of an authority that nobody knows."""
        self._answers, self._lock = {}, threading.Lock()
        self._requests = []  # (path, method, headers, payload: the body, or of a GET its query)
        self.gauges = {}  # (name, labels as a text): value, for /metrics
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer._handle(self, b"")

            def do_POST(self):
                outer._handle(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if folder:
            make_certificate(folder)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.base = "%s://127.0.0.1:%d" % ("https" if folder else "http", self.server.server_port)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, path):
        return "%s/%s" % (self.base, path)

    def answer(self, path, status=200, body=b"", hangs=False):
        """From now on; what is not told answers 200. Whoever still hangs there is cut off."""
        with self._lock:
            before, self._answers[path] = self._answers.get(path), Answer(status, body, hangs)
        if before and before.is_over:
            before.is_over.set()

    def requests(self, path=None):
        """(path, method, headers, payload) of each, oldest first."""
        with self._lock:
            return [request for request in self._requests if path in (None, request[0])]

    def payloads(self, path):
        return [payload for _, _, _, payload in self.requests(path)]

    def _handle(self, handler, raw):
        path, _, query = handler.path.lstrip("/").partition("?")
        try:
            payload = json.loads(raw) if raw else dict(urllib.parse.parse_qsl(query))
        except ValueError:
            payload = raw
        with self._lock:
            self._requests.append((path, handler.command, dict(handler.headers), payload))
            # A provider is asked below its address: the longest path that was told counts.
            told = max((at for at in self._answers if path == at or path.startswith(at + "/")), key=len, default=None)
            answer = self._answers.get(told, Answer())
        if answer.is_over:
            answer.is_over.wait(120)
            handler.close_connection = True
            return
        status = answer.status(payload) if callable(answer.status) else answer.status
        body = self._exposition() if path == "metrics" else answer.body
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", "text/plain" if path == "metrics" else "application/json")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except OSError:
            handler.close_connection = True  # who asked has had enough of it

    def _exposition(self):
        with self._lock:
            return "".join("%s{%s} %s\n" % (name, labels, value) for (name, labels), value in self.gauges.items()).encode()

    def set(self, name, value, **labels):
        with self._lock:
            self.gauges[(name, ",".join('%s="%s"' % entry for entry in sorted(labels.items())))] = value

    def close(self):
        for answer in self._answers.values():
            if answer.is_over:
                answer.is_over.set()
        self.server.shutdown()
        self.server.server_close()


def vector(value):
    """As Prometheus answers an instant query."""
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {}, "value": [time.time(), value]}]}}).encode()


EMPTY = json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}).encode()
