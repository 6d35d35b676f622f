# SPDX-License-Identifier: Apache-2.0
"""The little of a Kubernetes API client that these tools need: a request, and a watch.

HTTPS with the authority verified, a connection kept for each thread. It knows nothing of kinds;
a path goes in and decoded JSON comes out.
"""

import http.client
import json
import re
import ssl
import threading
import urllib.parse

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

# Errors after which the same request may simply be tried on a new connection.
BROKEN = (OSError, http.client.HTTPException)


class ApiError(Exception):
    """The API server answered, and the answer is no."""

    def __init__(self, status, body, what):
        self.status = status
        self.reason = body.get("reason", "") if isinstance(body, dict) else ""
        self.message = body.get("message", "") if isinstance(body, dict) else str(body)
        super().__init__("%s: %d %s: %s" % (what, status, self.reason, self.message))


class Client:
    def __init__(self, server, ca_file, token, timeout_s=30.0):
        parts = urllib.parse.urlsplit(server)
        self._host = parts.hostname
        self._port = parts.port
        self._token = token
        self._timeout_s = timeout_s
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._local = threading.local()

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body):
        return self.request("POST", path, body)

    def patch(self, path, body, content_type=MERGE):
        return self.request("PATCH", path, body, content_type)

    def delete(self, path, body=None):
        return self.request("DELETE", path, body)

    def put_in_place(self, path, body):
        """Creates the object in that collection, or gives the one that is there these fields (a merge patch)."""
        try:
            return self.post(path, body)
        except ApiError as error:
            if error.status != 409:
                raise
        return self.patch(path + "/" + body["metadata"]["name"], body)

    def remove(self, path):
        """Deletes it, unless it is gone already."""
        try:
            self.delete(path)
        except ApiError as error:
            if error.status != 404:
                raise

    def request(self, method, path, body=None, content_type="application/json"):
        """The decoded answer; ApiError where it is not a success; OSError where there is none."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + self._token, "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        kept = getattr(self._local, "connection", None)
        try:
            status, raw = self._exchange(kept or self._connect(), method, path, data, headers)
        except BROKEN:
            if kept is None:
                raise
            # The server may have closed a kept connection just when we used it.
            status, raw = self._exchange(self._connect(), method, path, data, headers)
        try:
            value = json.loads(raw) if raw else {}
        except ValueError:
            value = raw.decode(errors="replace")
        if status >= 400:
            raise ApiError(status, value, "%s %s" % (method, path))
        return value

    @property
    def warnings(self):
        """What the answer to this thread's last request warned of."""
        return self._local.warnings

    def watch(self, path, resource_version, timeout_s=300):
        """Yields (type, object) until the stream ends; the end is not an error."""
        query = urllib.parse.urlencode({
            "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_s),
            "resourceVersion": resource_version})
        connection = self._connect(timeout_s + 30, keep=False)
        try:
            connection.request("GET", path + "?" + query, headers={
                "Authorization": "Bearer " + self._token, "Accept": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raw = answer.read()
                try:
                    value = json.loads(raw)
                except ValueError:
                    value = raw.decode(errors="replace")
                raise ApiError(answer.status, value, "watch " + path)
            while True:
                line = answer.readline()
                if not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()

    def _connect(self, timeout_s=None, keep=True):
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=timeout_s or self._timeout_s, context=self._tls)
        if keep:
            self._local.connection = connection
        return connection

    def _exchange(self, connection, method, path, data, headers):
        try:
            connection.request(method, path, body=data, headers=headers)
            answer = connection.getresponse()
            # 299 - "TEXT": https://www.rfc-editor.org/rfc/rfc7234#section-5.5
            self._local.warnings = [re.sub(r'^\d+ \S+ "(.*)"$', r"\1", text).replace('\\"', '"')
                                    for text in answer.headers.get_all("Warning", [])]
            return answer.status, answer.read()
        except BaseException:
            connection.close()
            self._local.connection = None
            raise
