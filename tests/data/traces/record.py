#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the stories of this folder on a real control plane and records how the workloads' states follow each other.

    tools/control-plane up --dir D
    tests/data/traces/record.py --dir D [STORY...]

stories.json holds the stories: steps, and the default setting of the kubelets. STORY.json beside it is what was seen: for
each workload the distinct states in their order. The simulated cluster plays the same stories (tests/unit/sim/test_traces.c),
which says there what has to agree. Names that hold a hash are written by their order of appearance.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parents[2] / "tools"))

from control_plane import api, kubelets  # noqa: E402,F401
from control_plane.instance import Instance, default_dir  # noqa: E402

APPS = ("deployments", "replicasets", "statefulsets", "daemonsets")
QUIET_S = 3.5       # longer than any time within a story: nothing more will happen by itself
LIMIT_S = 120.0
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "currentReplicas",
          "desiredNumberScheduled", "currentNumberScheduled", "numberMisscheduled", "numberReady",
          "updatedNumberScheduled", "numberAvailable", "numberUnavailable")


class Names:
    """Numbers for names with a hash: the first ReplicaSet that appears is 1."""

    def __init__(self):
        self._numbers = {}

    def number(self, name):
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def known(self, text):
        return re.sub(r'ReplicaSet "[^"]*"|replica set "[^"]*"', "ReplicaSet", text)


def state_of(thing, names):
    """What is compared of an object: a flat dict."""
    meta, spec, status = thing["metadata"], thing["spec"], thing.get("status") or {}
    notes = meta.get("annotations") or {}
    state = {"generation": meta.get("generation", 0), "observedGeneration": status.get("observedGeneration", 0),
             "wanted": spec.get("replicas", 0)}
    for name in COUNTS:
        if status.get(name):
            state[name] = status[name]
    for note in ("revision", "revision-history", "desired-replicas", "max-replicas"):
        if "deployment.kubernetes.io/" + note in notes:
            state[note] = notes["deployment.kubernetes.io/" + note]
    for name in ("currentRevision", "updateRevision"):
        if status.get(name):
            state[name] = names.number(status[name])
    for one in status.get("conditions") or []:
        state[one["type"]] = "%s %s: %s" % (one["status"], one.get("reason"), names.known(one.get("message", "")))
    return state


class Play:
    def __init__(self, client, tell, name, story):
        self.client, self.tell, self.name, self.story = client, tell, name, story
        self.namespace = "trace-" + name.replace("_", "-")
        self.lock = threading.Condition()
        self.names = Names()
        self.seen = {}      # "deployments/web" -> states
        self.now = {}
        self.changed_s = time.monotonic()
        self.is_over = False

    def path(self, key):
        plural, _, name = key.partition("/")
        root = "/apis/apps/v1" if plural in APPS else "/api/v1"
        return "%s/namespaces/%s/%s%s" % (root, self.namespace, plural, "/" + name if name else "")

    def follow(self, plural):
        version = self.client.get(self.path(plural))["metadata"]["resourceVersion"]
        ready = threading.Event()

        def run():
            ready.set()
            for kind, thing in self.client.watch(self.path(plural), version):
                if self.is_over:
                    return
                if kind in ("ADDED", "MODIFIED", "DELETED"):
                    self.take(plural, kind, thing)
        threading.Thread(target=run, daemon=True).start()
        ready.wait()

    def take(self, plural, kind, thing):
        with self.lock:
            self.changed_s = time.monotonic()
            if plural != "pods":
                name = thing["metadata"]["name"]
                key = "%s/%s" % (plural, self.names.number(name) if plural == "replicasets" else name)
                state = {"gone": 1} if kind == "DELETED" else state_of(thing, self.names)
                states = self.seen.setdefault(key, [])
                if not states or states[-1] != state:
                    states.append(state)
                self.now[key] = state
            self.lock.notify_all()

    def wait(self, is_true, what):
        end_s = time.monotonic() + LIMIT_S
        with self.lock:
            while not is_true():
                if not self.lock.wait(0.1) and time.monotonic() > end_s:
                    raise SystemExit("%s: never happened: %s; there is %s" % (self.name, what, self.now))

    def step(self, step):
        if "make" in step:
            thing = step["make"]
            self.client.post(self.path(step["in"]), thing)
        elif "patch" in step:
            self.client.patch(self.path(step["patch"]), step["body"])
        elif "delete" in step:
            self.client.delete(self.path(step["delete"]))
        elif "until" in step:
            self.wait(lambda: holds(self.now.get(step["until"], {}), step["is"]), step)
        elif "settle" in step:
            self.wait(lambda: time.monotonic() - self.changed_s > QUIET_S, step)
        else:
            raise SystemExit("%s: what is %s?" % (self.name, step))

    def run(self):
        self.client.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.tell("PUT", "/settings/" + self.name, dict(self.story["kubelets"], namespace=self.namespace))
        for plural in APPS + ("pods",):
            self.follow(plural)
        for step in self.story["steps"]:
            self.changed_s = time.monotonic()
            self.step(step)
        self.is_over = True
        (HERE / (self.name + ".json")).write_text(text_of(self.seen))
        self.client.delete("/api/v1/namespaces/" + self.namespace)
        self.tell("DELETE", "/settings/" + self.name, None)


def holds(state, wanted):
    return all(str(state.get(key, 0)).startswith(str(value)) for key, value in wanted.items())


def text_of(seen):
    """A line for each state, so that a change of one is seen."""
    parts = []
    for key in sorted(seen):
        lines = ",\n".join("    " + json.dumps(state, sort_keys=True) for state in seen[key])
        parts.append('  "%s": [\n%s\n  ]' % (key, lines))
    return "{\n%s\n}\n" % ",\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=default_dir())
    parser.add_argument("stories", nargs="*")
    args = parser.parse_args()
    plane = Instance(args.dir)
    if not plane.load():
        raise SystemExit("no control plane in %s" % args.dir)
    stories = json.loads((HERE / "stories.json").read_text())

    def tell(method, path, body):
        import urllib.request
        request = urllib.request.Request(plane.kubelets_url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.open(request, timeout=30).read()

    client = plane.client()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = {name: pool.submit(Play(client, tell, name, stories[name]).run) for name in args.stories or stories}
        for name, run in runs.items():
            run.result()
            print(name, flush=True)


if __name__ == "__main__":
    main()
