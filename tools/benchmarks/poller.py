# SPDX-License-Identifier: Apache-2.0
"""The baseline of the hand-over: what a coordinator does that looks every 10 s, as kube-deployment-coordinator does. Of each
group it lets one Deployment roll, and looks at the next opportunity whether that is complete."""

import threading
import time

from benchmarks.stand import COORDINATIONS, DEPLOYMENTS
from benchmarks.traces import is_complete

EVERY_S = 10.0


class Poller(threading.Thread):
    def __init__(self, client, namespace):
        super().__init__(daemon=True)
        self.client, self.path = client, DEPLOYMENTS % namespace
        self.coordinations = COORDINATIONS % namespace
        self.active = {}
        self.is_done = threading.Event()
        self.error = None

    def run(self):
        due = time.monotonic()
        try:
            while not self.is_done.wait(max(0.0, due - time.monotonic())):
                due += EVERY_S
                for group in self.client.get(self.coordinations)["items"]:
                    self.reconcile(group["metadata"]["name"])
        except Exception as error:  # noqa: BLE001: told by stop()
            self.error = error

    def reconcile(self, group):
        """By name: the first that waits gets its turn when nobody has it; what was complete is paused again."""
        items = self.client.get(self.path + "?labelSelector=group%3D" + group)["items"]
        by_name = {item["metadata"]["name"]: item for item in items}
        active = self.active.get(group)
        if active and not is_complete(by_name[active]):
            return
        if active:
            self.client.patch(self.path + "/" + active, {"spec": {"paused": True}})
        waiting = sorted(name for name, item in by_name.items() if name != active and item["spec"].get("paused") and
                         (item.get("status", {}).get("updatedReplicas") or 0) < item["spec"]["replicas"])
        self.active[group] = waiting[0] if waiting else None
        if waiting:
            self.client.patch(self.path + "/" + waiting[0], {"spec": {"paused": False}})

    def stop(self):
        self.is_done.set()
        self.join()
        if self.error:
            raise self.error
