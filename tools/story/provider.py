# SPDX-License-Identifier: Apache-2.0
"""A provider of metrics that knows one number: an HTTP server that answers instant queries as Prometheus does.

https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries
"""

import http.server
import json
import threading
import time
import urllib.parse


class Provider:
    """value: called for each query, with its text; None: no value. All queries are in `asked`."""

    def __init__(self, value):
        provider, self.asked = self, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, form):
                path, _, query = self.path.partition("?")
                asked = (urllib.parse.parse_qs(form or query).get("query") or [""])[0]
                if path != "/api/v1/query" or not asked:
                    self.send_error(404)
                    return
                provider.asked.append(asked)
                number = value(asked)
                result = [] if number is None else [{"metric": {}, "value": [time.time(), str(number)]}]
                body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.answer("")

            def do_POST(self):
                self.answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
