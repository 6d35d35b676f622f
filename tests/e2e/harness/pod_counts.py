# SPDX-License-Identifier: Apache-2.0
"""Counts the Pods of each workload of a namespace at every event of their watch: how many are available, and of which
template they are. A number that was there only between two events of others is seen as well."""

import threading

from .cluster import api

HASHES = ("pod-template-hash", "controller-revision-hash")


def is_ready(pod):
    """And nobody has told it to end: as controllers count."""
    return not pod["metadata"].get("deletionTimestamp") and any(
        entry["type"] == "Ready" and entry["status"] == "True" for entry in pod.get("status", {}).get("conditions") or [])


def hash_of(pod):
    labels = pod["metadata"].get("labels") or {}
    return next((labels[key] for key in HASHES if key in labels), None)


class PodCounts:
    """A workload is what Pods carry in their label `name`. `judge` is called with the workload's name and its Pods after each
    change, on the thread that watches; what it returns is a violation, or nothing."""

    def __init__(self, cluster, namespace, judge=None):
        self._api, self._path, self._judge = cluster.api, "/api/v1/namespaces/%s/pods" % namespace, judge
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._pods, self._lowest = {}, {}
        self.violations = []
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self):
        while not self._stop.is_set():
            try:
                found = self._api.get(self._path)
                there = {item["metadata"]["name"] for item in found["items"]}
                with self._lock:
                    gone = [(workload, pod) for workload, pods in self._pods.items() for name, pod in pods.items() if name not in there]
                for what, item in [("DELETED", pod) for _, pod in gone] + [("MODIFIED", item) for item in found["items"]]:
                    self._take(what, item)
                for what, item in self._api.watch(self._path, found["metadata"]["resourceVersion"]):
                    if self._stop.is_set():
                        return
                    if what == "ERROR":
                        break
                    if what != "BOOKMARK":
                        self._take(what, item)
            except (api.ApiError, *api.BROKEN):
                if self._stop.wait(0.2):
                    return

    def _take(self, what, pod):
        workload = (pod["metadata"].get("labels") or {}).get("name")
        if workload is None:
            return
        with self._lock:
            pods = self._pods.setdefault(workload, {})
            if what == "DELETED":
                pods.pop(pod["metadata"]["name"], None)
            else:
                pods[pod["metadata"]["name"]] = pod
            if workload in self._lowest:
                self._lowest[workload] = min(self._lowest[workload], sum(map(is_ready, pods.values())))
            problem = self._judge(workload, dict(pods)) if self._judge else None
            if problem and problem not in self.violations:
                self.violations.append(problem)

    def pods(self, workload):
        with self._lock:
            return dict(self._pods.get(workload, {}))

    def available(self, workload):
        return sum(map(is_ready, self.pods(workload).values()))

    def begin(self, workload):
        """From now on the lowest number of available Pods is kept."""
        with self._lock:
            self._lowest[workload] = sum(map(is_ready, self._pods.get(workload, {}).values()))

    def lowest(self, workload):
        with self._lock:
            return self._lowest[workload]

    def stop(self):
        self._stop.set()
