# SPDX-License-Identifier: Apache-2.0
"""The HTTP endpoint through which a test tells the agent things, and asks what it does.

JSON in and out, on 127.0.0.1. What a request cannot mean is answered with 400 and a sentence.

  GET    /healthz            200 when the Nodes are Ready and Pods are watched, else 503
  GET    /pods               each Pod with its Node, phase, and the settings in force
  GET    /settings           {"defaults": {...}, "rules": [...]}
  PATCH  /settings           changes defaults, such as {"start": "2s"}
  PUT    /settings/NAME      a rule: {"namespace", "pod", "selector", and settings}
  DELETE /settings/NAME      forgets one rule; without /NAME all
  POST   /crash              {"namespace", "pod", "selector", "node", "down": "1s"}
  POST   /nodes              {"count": 5}: makes node-1 to node-5 where they are not there
  POST   /nodes/NAME/drain   cordons it, deletes its Pods; also /cordon and /uncordon
"""

import http.server
import json
import threading
import urllib.parse

from .. import api
from . import settings
from .settings import Mistake

LIMIT_BYTES = 1 << 20


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    # A port that another process listens on must be an error.
    allow_reuse_port = False

    def __init__(self, port, agent):
        super().__init__(("127.0.0.1", port), _Handler)
        self.agent = agent

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "slipway-kubelets"

    def handle_any(self):
        parts = [urllib.parse.unquote(part)
                 for part in urllib.parse.urlsplit(self.path).path.split("/") if part]
        try:
            status, answer = self._answer(parts, self._body())
        except Mistake as mistake:
            status, answer = 400, {"error": str(mistake)}
        except api.ApiError as error:
            status, answer = 502, {"error": str(error)}
        except api.BROKEN as error:
            status, answer = 502, {"error": "the API server does not answer: %r" % error}
        if isinstance(answer, str):
            data, kind = answer.encode(), "text/plain; charset=utf-8"
        else:
            data, kind = (json.dumps(answer, indent=2) + "\n").encode(), "application/json"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = handle_any

    def _body(self):
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > LIMIT_BYTES:
            self.close_connection = True
            raise Mistake("a body of at most %d bytes is read" % LIMIT_BYTES)
        raw = self.rfile.read(int(length))
        if not raw:
            return {}
        try:
            value = json.loads(raw)
        except ValueError as error:
            raise Mistake("the body is not JSON: %s" % error) from None
        if not isinstance(value, dict):
            raise Mistake("the body is not a JSON object")
        return value

    def _answer(self, parts, body):
        agent = self.server.agent
        what = (self.command, len(parts), parts[0] if parts else "")
        if what == ("GET", 0, ""):
            return 200, __doc__
        if what == ("GET", 1, "healthz"):
            return (200, "ok\n") if agent.is_ready() else (503, "not yet\n")
        if what == ("GET", 1, "pods"):
            return 200, {"pods": agent.describe_pods()}
        if what == ("GET", 1, "settings"):
            return 200, {"defaults": agent.defaults(), "rules": agent.rules()}
        if what == ("PATCH", 1, "settings"):
            agent.set_defaults(settings.parse(body))
            return 200, {"defaults": agent.defaults()}
        if what == ("PUT", 2, "settings"):
            agent.set_rule(settings.Rule(parts[1], body))
            return 200, {"rules": agent.rules()}
        if what == ("DELETE", 1, "settings"):
            return 200, {"removed": agent.remove_rules()}
        if what == ("DELETE", 2, "settings"):
            if not agent.remove_rules(parts[1]):
                return 404, {"error": 'there is no rule "%s"' % parts[1]}
            return 200, {"removed": 1}
        if what == ("POST", 1, "crash"):
            return self._crash(agent, body)
        if what == ("POST", 1, "nodes"):
            return self._make_nodes(agent, body)
        if what == ("POST", 3, "nodes"):
            return self._change_node(agent, parts[1], parts[2])
        return 404, {"error": "nothing at %s %s; GET / tells what there is"
                              % (self.command, self.path)}

    @staticmethod
    def _crash(agent, body):
        body = dict(body)
        down_s = settings.duration(body.pop("down", "1s"))
        unknown = set(body) - {"namespace", "pod", "selector", "node"}
        if unknown or not body:
            raise Mistake("say which Pods: namespace, pod, selector, node%s"
                          % ("" if not unknown else "; not " + ", ".join(sorted(unknown))))
        crashed = agent.crash(agent.find_pods(**body), down_s)
        if not crashed:
            return 404, {"error": "no running Pod is meant by %s" % json.dumps(body)}
        return 200, {"crashed": crashed}

    @staticmethod
    def _make_nodes(agent, body):
        count = body.get("count")
        if not isinstance(count, int) or not 0 < count <= 1000:
            raise Mistake("count is a number from 1 to 1000")
        agent.make_nodes(count)
        return 200, {"count": count}

    @staticmethod
    def _change_node(agent, name, verb):
        if verb == "drain":
            return 200, {"deleted": agent.drain(name)}
        if verb in ("cordon", "uncordon"):
            agent.cordon(name, verb == "cordon")
            return 200, {}
        return 404, {"error": "a Node can be told drain, cordon, uncordon; not %s" % verb}

    def log_message(self, format, *args):
        """Silent: what matters is in the agent's log."""
