# SPDX-License-Identifier: Apache-2.0
"""Many groups, and one large one. What a real control plane takes minutes to roll once, slipway-sim does with ten times as many."""

import json
import time

from harness.observer import is_complete
from harness.scene import COORDINATION_PATH, DEPLOYMENT_PATH, deployment
from harness.slipway import resident_kib
from harness.wait import in_parallel, until

SIZES = {"sim": {"groups": 500, "of": 20, "in one": 5000}, "real": {"groups": 500, "of": 2, "in one": 5000}}
FAST = "client: {qps: 1000, burst: 1000}\n"


def names_of(number, count):
    return ["g%03d-%02d" % (number, member) for member in range(count)]


def make(scene, name, **options):
    scene.api.post(DEPLOYMENT_PATH % scene.namespace, deployment(name, replicas=1, **options))


def ready_count(scene):
    """Coordinations that have said so of themselves."""
    found = scene.api.get(COORDINATION_PATH % scene.namespace)["items"]
    return sum(1 for item in found for c in item.get("status", {}).get("conditions") or [] if c["type"] == "Ready" and c["status"] == "True")


def test_many_groups_of_which_one_is_slow(scene):
    """Nobody waits for a group that is not theirs."""
    size = SIZES[scene.cluster.kind]
    groups = range(size["groups"])
    slipway = scene.slipway(settings=FAST)
    scene.cluster.pods_take(scene.namespace, start="50ms", stop="0ms")
    in_parallel(lambda name: make(scene, name, labels={"group": name.partition("-")[0]}),
                [name for number in groups for name in names_of(number, size["of"])])
    until(lambda: all(is_complete(found) for found in scene.api.get(DEPLOYMENT_PATH % scene.namespace)["items"]), "all run", 120, 2)
    in_parallel(lambda number: scene.coordinate("g%03d" % number, {"matchLabels": {"group": "g%03d" % number}}), groups)
    until(lambda: ready_count(scene) == len(groups), lambda: "all groups are ready: %d" % ready_count(scene), 300, 1)

    slow, *behind = names_of(0, size["of"])
    scene.cluster.kubelets("PUT", "/settings/slow-" + scene.namespace, {"namespace": scene.namespace, "selector": "name=" + slow, "start": "1h"})
    scene.update(slow)
    scene.until_rolling(slow)
    scene.update(*behind)
    begin = time.monotonic()
    others = [name for number in groups[1:100:10] for name in names_of(number, size["of"])]
    in_parallel(lambda name: scene.update(name), others)
    scene.until_runs(*others, timeout_s=40 + len(others))
    print("%d Deployments of 10 other groups rolled within %.1f s" % (len(others), time.monotonic() - begin))
    assert all(scene.is_held(name) for name in behind), "the slow group still waits for its own"
    print("resident: %d KiB" % resident_kib(slipway.process))
    scene.cluster.kubelets("DELETE", "/settings/slow-" + scene.namespace)


def test_thousands_in_one_coordination(scene):
    """The status stays below what etcd takes, and the turn moves on."""
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="0ms", stop="0ms")
    scene.coordinate(suspend=True)
    count = SIZES[scene.cluster.kind]["in one"]
    in_parallel(lambda number: make(scene, "d%04d" % number), range(count))
    until(lambda: scene.status().get("selected") == count, lambda: "all are selected: %s" % scene.status().get("selected"), 120, 1)
    until(lambda: scene.status().get("pending") == count, lambda: "all wait: %s" % scene.status().get("pending"), 120, 1)
    status = scene.status()
    assert status["truncated"] is True and len(status["deployments"]) == 500 and len(status["deploymentStates"]) == 500
    print("status: %d bytes" % len(json.dumps(status)))
    begin = time.monotonic()
    scene.patch_coordination(suspend=False)
    until(lambda: scene.status().get("pending", count) <= count - 10, lambda: "ten had their turn: %s" % scene.status().get("pending"), 120, 0.5)
    print("ten first rollouts in a row within %.1f s" % (time.monotonic() - begin))
