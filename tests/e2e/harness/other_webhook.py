# SPDX-License-Identifier: Apache-2.0
"""Webhooks of somebody else: one that changes the Pod template after ours has answered, and one that refuses."""

import base64
import http.server
import json
import ssl
import threading

from .cluster import api
from .slipway import make_certificate
from .wait import until


class Reviewer:
    """Answers reviews as answer() says."""

    def __init__(self, folder):
        self.ca_pem = make_certificate(folder)
        self.reviews = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.reviews += 1
                data = json.dumps({"apiVersion": review["apiVersion"], "kind": "AdmissionReview",
                                   "response": dict({"uid": review["request"]["uid"], "allowed": True}, **outer.answer(review["request"]))}).encode()
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

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class OtherWebhook(Reviewer):
    """Sets an annotation of the Pod template (named by `counter`) to a new value at each review, and unpauses if told to."""

    def __init__(self, folder, unpauses=False):
        self.unpauses = unpauses
        super().__init__(folder)

    def answer(self, request):
        image = request["object"]["spec"]["template"]["spec"]["containers"][0]["image"]
        changed = image if image.startswith("mirror/") else "mirror/" + image
        patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": changed}]
        if self.unpauses:
            patch.append({"op": "add", "path": "/spec/paused", "value": False})
        return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}


class Refusal(Reviewer):
    """A policy of somebody else in the scene's namespace: whatever `is_refused` says of an object of that plural is refused with
    those words, as long as the block lasts. It begins when the API server asks."""

    def __init__(self, scene, plural, is_refused, words):
        self.scene, self.plural, self.is_refused, self.words = scene, plural, is_refused, words
        self.path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        self.name, self.refused = "refusal-" + scene.namespace, 0
        super().__init__(scene.folder / "refusal")

    def answer(self, request):
        if not self.is_refused(request["object"]):
            return {}
        self.refused += not request.get("dryRun")
        return {"allowed": False, "status": {"code": 403, "message": self.words}}

    def __enter__(self):
        self.scene.api.put_in_place(self.path, {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": self.name},
            "webhooks": [{"name": "refusal.slipway.test", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
                          "clientConfig": {"url": self.url, "caBundle": base64.b64encode(self.ca_pem).decode()},
                          "namespaceSelector": {"matchLabels": {"slipway.test/namespace": self.scene.namespace}},
                          "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": [self.plural], "operations": ["UPDATE"]}]}]})
        until(self._is_asked, "the policy is asked")
        return self

    def _is_asked(self):
        collection = "/apis/apps/v1/namespaces/%s/%s" % (self.scene.namespace, self.plural)
        try:
            for item in self.scene.api.get(collection)["items"]:
                self.scene.api.patch("%s/%s?dryRun=All" % (collection, item["metadata"]["name"]), {"metadata": {"labels": {"probe": str(self.reviews)}}})
        except api.ApiError:
            pass
        return self.reviews

    def __exit__(self, *_):
        self.scene.api.remove(self.path + "/" + self.name)
        self.close()
