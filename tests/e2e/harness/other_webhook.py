# SPDX-License-Identifier: Apache-2.0
"""A second mutating webhook, of somebody else: changes the Pod template after ours has answered."""

import base64
import http.server
import json
import ssl
import threading

from .slipway import make_certificate


class OtherWebhook:
    """Sets an annotation of the Pod template (named by `counter`) to a new value at each review, and unpauses if told to."""

    def __init__(self, folder, unpauses=False):
        self.ca_pem = make_certificate(folder)
        self.reviews = 0
        self.unpauses = unpauses
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                data = json.dumps(outer.answer(review)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "https://127.0.0.1:%d/mutate" % self.server.server_port

    def answer(self, review):
        request = review["request"]
        self.reviews += 1
        image = request["object"]["spec"]["template"]["spec"]["containers"][0]["image"]
        changed = image if image.startswith("mirror/") else "mirror/" + image
        patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": changed}]
        if self.unpauses:
            patch.append({"op": "add", "path": "/spec/paused", "value": False})
        return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview",
                "response": {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch",
                             "patch": base64.b64encode(json.dumps(patch).encode()).decode()}}

    def close(self):
        self.server.shutdown()
        self.server.server_close()
