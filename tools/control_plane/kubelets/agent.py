# SPDX-License-Identifier: Apache-2.0
"""Watches Nodes and Pods, and does on the API server what a scheduler and kubelets would do.

Two watches fill two tables; workers take keys from one queue, look at the tables, and write:

  a Node that is not Ready          is made Ready, with room, and loses the taint not-ready
  a Pod without a Node              is bound to one, or told that none fits
  a Pod with a Node                 gets the status that status.plan says
  a Pod that is being deleted       is removed after `stop`, at the latest after its grace period
  a Pod whose Node is gone          is removed at once

Nothing is remembered that the API server does not know, save how a Pod came where it is; a new
agent continues where an old one ended. Leases are not renewed: nobody runs who would miss them.
"""

import contextlib
import threading
import time
import traceback
import urllib.parse

from .. import api
from . import placing, settings, status
from .queue import Queue

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
WORKERS = 6
ZONES = ("a", "b", "c")


class Agent:
    def __init__(self, client, log, defaults):
        self._client = client
        self._log = log
        self._lock = threading.RLock()
        self._queue = Queue()
        self._nodes = {}
        self._pods = {}
        self._records = {}          # by uid
        self._placed = {}           # (namespace, name) -> Node chosen, binding not yet seen
        self._counts = {}           # Pods by name of their Node
        self._unplaced = set()      # those that no Node takes
        self._rules = {}            # by name; a dict keeps the order in which they were told
        self._defaults = dict(settings.DEFAULTS, **defaults)
        self._next_ip = 0
        self._synced = {"nodes": threading.Event(), "pods": threading.Event()}
        self._asked_nodes = 0

    # -- life -------------------------------------------------------------------------------

    def start(self, nodes):
        self._asked_nodes = nodes
        for target in [self._watch_nodes, self._watch_pods] + [self._work] * WORKERS:
            threading.Thread(target=target, daemon=True).start()
        threading.Thread(target=self.make_nodes, args=(nodes,), daemon=True).start()

    def is_ready(self):
        """Whether the Nodes that were asked for are Ready and Pods are being watched."""
        with self._lock:
            ready = [node for node in self._nodes.values() if _is_ready(node)]
        return (all(event.is_set() for event in self._synced.values())
                and len(ready) >= self._asked_nodes)

    def make_nodes(self, count):
        """Makes node-1 to node-COUNT where they are not there; tries until it can."""
        for number in range(1, count + 1):
            self._insist(self._make_node, number)

    def _make_node(self, number):
        name = "node-%d" % number
        try:
            self._client.post("/api/v1/nodes", {
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {
                    "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/region": "region",
                    "topology.kubernetes.io/zone": ZONES[(number - 1) % len(ZONES)]}}})
        except api.ApiError as error:
            if error.status != 409:
                raise

    def _insist(self, function, *arguments):
        wait_s = 0.1
        while True:
            try:
                return function(*arguments)
            except api.BROKEN + (api.ApiError,) as error:
                self._log("trying again in %.1f s: %s" % (wait_s, error))
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, 2.0)

    # -- watching ---------------------------------------------------------------------------

    def _watch_nodes(self):
        self._follow("/api/v1/nodes", "nodes", self._on_node, self._replace_nodes)

    def _watch_pods(self):
        self._follow("/api/v1/pods", "pods", self._on_pod, self._replace_pods)

    def _follow(self, path, what, on_event, replace):
        """Lists, then watches; a watch that ends is resumed, one that is too old listed anew."""
        version = None
        wait_s = 0.1
        while True:
            try:
                if version is None:
                    answer = self._client.get(path)
                    version = answer["metadata"]["resourceVersion"]
                    replace(answer.get("items") or [])
                    self._synced[what].set()
                for kind, value in self._client.watch(path, version):
                    wait_s = 0.1
                    if kind == "ERROR":
                        if value.get("code") != 410:
                            self._log("watch of %s: %s" % (what, value.get("message")))
                        version = None
                        break
                    version = value["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        on_event(kind, value)
                continue
            except api.ApiError as error:
                self._log("watch of %s: %s" % (what, error))
                version = None
            except api.BROKEN + (ValueError,) as error:
                self._log("watch of %s is cut: %r" % (what, error))
            except Exception:  # one odd object must not end the watch
                self._log("watch of %s: unexpected:\n%s" % (what, traceback.format_exc()))
                version = None
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, 2.0)

    def _replace_nodes(self, items):
        with self._lock:
            gone = set(self._nodes) - {item["metadata"]["name"] for item in items}
        for item in items:
            self._on_node("ADDED", item)
        for name in gone:
            self._on_node("DELETED", {"metadata": {"name": name}})

    def _on_node(self, kind, node):
        name = node["metadata"]["name"]
        with self._lock:
            if kind == "DELETED":
                self._nodes.pop(name, None)
                pods = [key for key, pod in self._pods.items() if _node_of(pod) == name]
            else:
                before = self._nodes.get(name)
                self._nodes[name] = node
                pods = []
                if before is None or _room_for(before) != _room_for(node):
                    pods = [key for key, pod in self._pods.items()
                            if _node_of(pod) in (None, name)]
        self._queue.add(("node", name))
        for key in pods:
            self._queue.add(("pod",) + key)

    def _replace_pods(self, items):
        with self._lock:
            seen = {_key(item): item["metadata"]["uid"] for item in items}
            gone = [pod for key, pod in self._pods.items()
                    if seen.get(key) != pod["metadata"]["uid"]]
        for pod in gone:
            self._on_pod("DELETED", pod)
        for item in items:
            self._on_pod("ADDED", item)

    def _on_pod(self, kind, pod):
        key = _key(pod)
        pod["metadata"].pop("managedFields", None)
        freed = ()
        with self._lock:
            before = self._pods.pop(key, None)
            if before:
                self._count(before, -1)
                if kind == "DELETED" or not _is_same(before, pod):
                    self._records.pop(before["metadata"]["uid"], None)
            if kind == "DELETED":
                freed = self._unplaced
                self._unplaced = set()
            else:
                self._pods[key] = pod
                self._count(pod, 1)
            if kind == "DELETED" or _node_of(pod) or (before and not _is_same(before, pod)):
                self._placed.pop(key, None)
        self._queue.add(("pod",) + key)
        for other in freed:
            self._queue.add(("pod",) + other)

    def _count(self, pod, change):
        name = _node_of(pod)
        if name:
            self._counts[name] = self._counts.get(name, 0) + change

    # -- working ----------------------------------------------------------------------------

    def _work(self):
        while True:
            key = self._queue.get()
            try:
                if key[0] == "node":
                    self._look_at_node(key[1])
                else:
                    self._look_at_pod(key, key[1:])
            except api.ApiError as error:
                # Gone or changed: the watch brings what is true now.
                if error.status not in (404, 409):
                    self._log("%s: %s" % ("/".join(key), error))
                    self._queue.add_after(key, 0.5)
            except api.BROKEN as error:
                self._log("%s: %r" % ("/".join(key), error))
                self._queue.add_after(key, 0.5)
            except Exception:  # one odd object must not end a worker
                self._log("%s: unexpected:\n%s" % ("/".join(key), traceback.format_exc()))
                self._queue.add_after(key, 5.0)
            finally:
                self._queue.done(key)

    def _look_at_node(self, name):
        with self._lock:
            node = self._nodes.get(name)
        if node is None:
            return
        path = "/api/v1/nodes/" + name
        if not _is_ready(node):
            self._client.patch(path + "/status", {"status": _node_status(name)}, api.STRATEGIC)
        taints = node["spec"].get("taints") or []
        rest = [taint for taint in taints if taint["key"] != NOT_READY_TAINT]
        if len(rest) != len(taints):
            self._client.patch(path, {
                "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
                "spec": {"taints": rest or None}})

    def _look_at_pod(self, queue_key, key):
        with self._lock:
            pod = self._pods.get(key)
        if pod is None:
            return
        if _node_of(pod) is None:
            if not pod["metadata"].get("deletionTimestamp"):
                self._bind(key, pod)
            return
        with self._lock:
            node = self._nodes.get(_node_of(pod))
        if node is None:
            if self._synced["nodes"].is_set():
                self._remove(pod)
            return
        now = time.time()
        record = self._record(pod, now)
        wanted, mistake = self._settings(pod)
        if pod["metadata"].get("deletionTimestamp"):
            self._end(queue_key, pod, record, wanted, now)
            return
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return
        with self._lock:
            report, wake_s = status.plan(pod, record, wanted, mistake, _node_ip(node), now)
        if wake_s is not None:
            self._queue.add_after(queue_key, wake_s - now)
        if status.differs(pod, report):
            self._client.patch(_path(pod) + "/status", {
                "metadata": {"uid": pod["metadata"]["uid"]}, "status": report}, api.STRATEGIC)

    def _record(self, pod, now):
        with self._lock:
            record = self._records.get(pod["metadata"]["uid"])
            if record is None:
                self._next_ip += 1
                high, low = divmod(self._next_ip % 65_000, 250)
                record = status.Record(pod, "10.1.%d.%d" % (high, low + 1), now)
                current = self._pods.get(_key(pod))
                if current and _is_same(current, pod):
                    self._records[pod["metadata"]["uid"]] = record
            return record

    def _settings(self, pod):
        with self._lock:
            return settings.resolve(pod, self._rules.values(), self._defaults)

    def _bind(self, key, pod):
        if pod["spec"].get("schedulerName") != "default-scheduler":
            return
        with self._lock:
            if key in self._placed:
                return
            counts = dict(self._counts)
            for name in self._placed.values():
                counts[name] = counts.get(name, 0) + 1
            ready = {name: node for name, node in self._nodes.items() if _is_ready(node)}
            chosen = placing.choose(pod, ready, counts)
            if chosen:
                self._placed[key] = chosen
            else:
                self._unplaced.add(key)
        if not chosen:
            self._tell_unplaced(pod, len(ready))
            return
        try:
            self._client.post(_path(pod) + "/binding", {
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": key[1], "namespace": key[0], "uid": pod["metadata"]["uid"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": chosen}})
        except BaseException:
            # It may be bound all the same; to say so once more does no harm.
            with self._lock:
                self._placed.pop(key, None)
            raise

    def _tell_unplaced(self, pod, nodes):
        message = "none of %d Nodes takes it" % nodes
        for one in (pod.get("status") or {}).get("conditions") or []:
            if one["type"] == "PodScheduled" and one.get("message") == message:
                return
        self._client.patch(_path(pod) + "/status", {
            "metadata": {"uid": pod["metadata"]["uid"]},
            "status": {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": message, "lastTransitionTime": status.format_time(time.time())}]}},
            api.STRATEGIC)

    def _end(self, queue_key, pod, record, wanted, now):
        if record.is_ended:
            return
        if record.deleted_s is None:
            record.deleted_s = now
        grace_s = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        stop_s = grace_s if wanted["stop"] == "grace" else min(wanted["stop"], grace_s)
        due = record.deleted_s + stop_s
        if due > now:
            self._queue.add_after(queue_key, due - now)
            return
        self._remove(pod)
        record.is_ended = True

    def _remove(self, pod):
        self._client.delete(_path(pod), {
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]}})

    # -- what is told live ------------------------------------------------------------------

    def set_rule(self, rule):
        with self._lock:
            # Told again means told last.
            self._rules.pop(rule.name, None)
            self._rules[rule.name] = rule
        self._look_at_all()

    def remove_rules(self, name=None):
        """How many were removed; all without a name."""
        with self._lock:
            names = list(self._rules) if name is None else [name] if name in self._rules else []
            for one in names:
                del self._rules[one]
        self._look_at_all()
        return len(names)

    def rules(self):
        with self._lock:
            return [rule.to_json() for rule in self._rules.values()]

    def defaults(self):
        return dict(self._defaults)

    def set_defaults(self, changed):
        with self._lock:
            self._defaults.update(changed)
        self._look_at_all()

    def _look_at_all(self):
        with self._lock:
            keys = list(self._pods)
        for key in keys:
            self._queue.add(("pod",) + key)

    def find_pods(self, namespace=None, pod=None, selector=None, node=None):
        chosen = settings.Selector(selector) if selector else None
        with self._lock:
            return [one for key, one in self._pods.items()
                    if namespace in (None, key[0]) and pod in (None, key[1])
                    and node in (None, _node_of(one))
                    and (chosen is None
                         or chosen.matches(one["metadata"].get("labels") or {}))]

    def crash(self, pods, down_s):
        """Ends the containers of these Pods; they run again, and are ready after `down_s`."""
        crashed = []
        now = time.time()
        for pod in pods:
            with self._lock:
                record = self._records.get(pod["metadata"]["uid"])
                if record is None or not record.has_run():
                    continue
                record.crash(now, down_s)
            crashed.append("/".join(_key(pod)))
            self._queue.add(("pod",) + _key(pod))
        return crashed

    def cordon(self, name, value):
        self._client.patch("/api/v1/nodes/" + urllib.parse.quote(name),
                           {"spec": {"unschedulable": value or None}})

    def drain(self, name):
        """Cordons the Node and deletes its Pods, those of DaemonSets excepted."""
        self.cordon(name, True)
        deleted = []
        for pod in self.find_pods(node=name):
            owners = pod["metadata"].get("ownerReferences") or []
            if any(owner["kind"] == "DaemonSet" for owner in owners):
                continue
            with contextlib.suppress(api.ApiError):
                self._client.delete(_path(pod), {
                    "apiVersion": "v1", "kind": "DeleteOptions",
                    "preconditions": {"uid": pod["metadata"]["uid"]}})
                deleted.append("/".join(_key(pod)))
        return deleted

    def describe_pods(self):
        result = []
        for pod in self.find_pods():
            wanted, mistake = self._settings(pod)
            meta = pod["metadata"]
            conditions = (pod.get("status") or {}).get("conditions") or []
            row = {"namespace": meta["namespace"], "name": meta["name"], "node": _node_of(pod),
                   "phase": (pod.get("status") or {}).get("phase"),
                   "ready": any(one["type"] == "Ready" and one["status"] == "True"
                                for one in conditions),
                   "deleting": "deletionTimestamp" in meta, "settings": wanted}
            if mistake:
                row["mistake"] = mistake
            result.append(row)
        return result


def _key(pod):
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _path(pod):
    return "/api/v1/namespaces/%s/pods/%s" % _key(pod)


def _node_of(pod):
    return pod["spec"].get("nodeName") or None


def _is_same(pod, other):
    return pod["metadata"]["uid"] == other["metadata"]["uid"]


def _is_ready(node):
    return any(one["type"] == "Ready" and one["status"] == "True"
               for one in (node.get("status") or {}).get("conditions") or [])


def _room_for(node):
    """All of a Node that decides whether Pods go there."""
    return (node["metadata"].get("labels"), node["spec"].get("unschedulable"),
            node["spec"].get("taints"), _is_ready(node))


def _node_ip(node):
    for address in (node.get("status") or {}).get("addresses") or []:
        if address["type"] == "InternalIP":
            return address["address"]
    return "10.0.0.1"


def _node_status(name):
    number = int(name.rpartition("-")[2]) if name.rpartition("-")[2].isdigit() else 250
    room = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "10000"}
    now = status.format_time(time.time())
    return {
        "capacity": room, "allocatable": room,
        "addresses": [
            {"type": "InternalIP", "address": "10.0.%d.%d" % divmod(number % 65_000, 250)},
            {"type": "Hostname", "address": name}],
        "nodeInfo": {
            "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "played",
            "osImage": "played", "containerRuntimeVersion": "played://1", "architecture": "amd64",
            "kubeletVersion": "v0.0.0-played", "kubeProxyVersion": "v0.0.0-played",
            "operatingSystem": "linux"},
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady",
            "message": "played by tools/kubelets", "lastHeartbeatTime": now,
            "lastTransitionTime": now}]}
