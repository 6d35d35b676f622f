# SPDX-License-Identifier: Apache-2.0
"""An API server's side of one connection to the webhook of a process, in as small steps as a scenario wants."""

import http.client
import json
import socket
import ssl
import uuid

from .scene import deployment

PATH = "/mutate-apps-v1-deployment"


def create_review(namespace, name="a"):
    made = deployment(name, replicas=1)
    made["metadata"]["namespace"] = namespace
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
        "uid": str(uuid.uuid4()), "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "name": name, "namespace": namespace,
        "operation": "CREATE", "userInfo": {"username": "a person"}, "object": made, "oldObject": None, "dryRun": False, "options": {}}}


class Refused(Exception):
    """There was no connection: nobody listens, or it was closed before TLS stood."""


class Reviewer:
    def __init__(self, process, namespace, timeout_s=60):
        context = ssl.create_default_context(cadata=process.ca_pem.decode())
        self.namespace = namespace
        try:
            plain = socket.create_connection(("127.0.0.1", process.webhook_port), timeout_s)
            self.socket = context.wrap_socket(plain, server_hostname="127.0.0.1")
        except OSError as error:
            raise Refused(error) from error

    def begin(self):
        """Sends the head and half of a review; returns the other half."""
        self._review = create_review(self.namespace)
        body = json.dumps(self._review).encode()
        self.socket.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
            PATH.encode(), len(body), body[:len(body) // 2]))
        return body[len(body) // 2:]

    def end(self, rest):
        """Sends the other half; returns whether the server closes behind its answer, which must be a good one."""
        self.socket.sendall(rest)
        answer = http.client.HTTPResponse(self.socket, method="POST")
        answer.begin()
        text = answer.read()
        assert answer.status == 200, (answer.status, text[:200])
        response = json.loads(text)["response"]
        assert response["uid"] == self._review["request"]["uid"] and response["allowed"] is True, text
        return answer.will_close

    def ask(self):
        return self.end(self.begin())

    def close(self):
        self.socket.close()


def ask_once(process, namespace):
    """Over a connection of its own."""
    reviewer = Reviewer(process, namespace)
    try:
        reviewer.ask()
    finally:
        reviewer.close()
