# SPDX-License-Identifier: Apache-2.0
"""Many groups, and one large one, on a real API server."""

import json
import time

from harness.scene import COORDINATION_PATH, DEPLOYMENT_PATH, deployment
from harness.slipway import resident_kib
from harness.wait import in_parallel, until


def test_five_hundred_groups_of_which_one_is_slow(scene):
    """Nobody waits for a group that is not theirs."""
    slipway = scene.slipway()
    groups = 500
    scene.cluster.pods_take(scene.namespace, start="50ms", stop="0ms")

    def coordinate(number):
        group = "g%03d" % number
        scene.post_coordination(group, {"matchLabels": {"group": group}})

    def make(number):
        group = "g%03d" % number
        for side in "ab":
            scene.api.post(DEPLOYMENT_PATH % scene.namespace, deployment("%s-%s" % (group, side), replicas=1, labels={"group": group}))

    def ready():
        found = scene.api.get(COORDINATION_PATH % scene.namespace)["items"]
        return sum(1 for item in found for c in item.get("status", {}).get("conditions") or [] if c["type"] == "Ready" and c["status"] == "True")

    in_parallel(coordinate, range(groups))
    until(lambda: ready() == groups, lambda: "all coordinations are seen: %d" % ready(), 100, 0.5)
    in_parallel(make, range(groups))
    until(lambda: ready() == groups, lambda: "all groups are ready: %d" % ready(), 300, 1)
    scene.cluster.kubelets("PUT", "/settings/slow-" + scene.namespace, {"namespace": scene.namespace, "selector": "name=g000-a", "start": "1h"})
    scene.update("g000-a", "g000-b")
    scene.until_rolling("g000-a")
    begin = time.monotonic()
    some = ["g%03d-%s" % (number, side) for number in range(1, 100, 10) for side in "ab"]
    in_parallel(lambda name: scene.update(name), some)
    scene.until_runs(*some, timeout_s=40)
    print("20 Deployments of 10 other groups rolled within %.1f s" % (time.monotonic() - begin))
    assert scene.is_held("g000-b"), "the slow group still waits for its own"
    print("resident: %d KiB" % resident_kib(slipway.process))
    scene.cluster.kubelets("DELETE", "/settings/slow-" + scene.namespace)


def test_five_thousand_deployments_in_one_coordination(scene):
    """The status stays below what etcd takes, and the turn moves on."""
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="0ms", stop="0ms")
    scene.coordinate(suspend=True)
    count = 5000
    in_parallel(lambda number: scene.api.post(DEPLOYMENT_PATH % scene.namespace, deployment("d%04d" % number, replicas=1)), range(count))
    until(lambda: scene.status().get("selected") == count, lambda: "all are selected: %s" % scene.status().get("selected"), 120, 1)
    until(lambda: scene.status().get("pending") == count, lambda: "all wait: %s" % scene.status().get("pending"), 120, 1)
    status = scene.status()
    assert status["truncated"] is True and len(status["deployments"]) == 500 and len(status["deploymentStates"]) == 500
    print("status: %d bytes" % len(json.dumps(status)))
    begin = time.monotonic()
    scene.patch_coordination(suspend=False)
    until(lambda: scene.status().get("pending", count) <= count - 10, lambda: "ten had their turn: %s" % scene.status().get("pending"), 120, 0.5)
    print("ten first rollouts in a row within %.1f s" % (time.monotonic() - begin))
