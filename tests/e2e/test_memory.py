# SPDX-License-Identifier: Apache-2.0
"""Memory over a long time: a process as it is installed, not a sanitized one. ./tools/test memory runs it.

What a cluster does in days happens in a minute or two: rollouts one after the other, kinds listed again because their
versions were compacted away, connections cut, and objects with names that were never seen before.
"""

import os

import pytest

from harness.observer import is_complete
from harness.scene import DEPLOYMENT_PATH
from harness.slipway import resident_kib
from harness.wait import in_parallel, until

GROUPS = ["g%d" % number for number in range(4)]
NAMES = {group: ["%s-%s" % (group, side) for side in "abc"] for group in GROUPS}
ROUNDS = 18
CUT = (3, 10)  # every connection, at the end of that round
FORGET = (7, 13)  # besides, the versions that slipway knows: all is to be listed again

pytestmark = pytest.mark.skipif(os.environ.get("SLIPWAY_E2E_CLUSTER") != "sim", reason="only on slipway-sim: a real control plane would take an hour")


def come_and_go(scene, number):
    """A coordination, a Deployment and a label that nobody has seen before and nobody will again."""
    name = "guest-%d" % number
    scene.coordinate(name, {"matchLabels": {"group": name}})
    scene.create(name, labels={"group": name, "guest": name})
    until(lambda: scene.status(name).get("selected") == 1, "%s is selected" % name)
    scene.delete(name)
    scene.delete_coordination(name)


def all_run(scene, version):
    found = scene.api.get(DEPLOYMENT_PATH % scene.namespace)["items"]
    return all(is_complete(item) and item["spec"]["template"]["metadata"]["annotations"]["version"] == version
               for item in found if not item["metadata"]["name"].startswith("guest-"))


def trouble(scene, proxy, number):
    """Few: each time slipway waits twice as long before it tries again, as any client should."""
    if number in FORGET:
        scene.cluster.compact()
    if number in FORGET + CUT:
        proxy.cut_now()


def test_rollouts_relists_and_reconnects_leave_memory_flat(scene):
    slipway, proxy = scene.slipway_behind_proxy(settings="client: {qps: 1000, burst: 1000}\n")
    scene.cluster.pods_take(scene.namespace, start="10ms", stop="0ms")
    for group in GROUPS:
        scene.coordinate(group, {"matchLabels": {"group": group}})
    until(lambda: all(scene.status(group).get("observedGeneration") for group in GROUPS), "all coordinations are seen")
    names = sum(NAMES.values(), [])
    in_parallel(lambda name: scene.create(name, replicas=1, labels={"group": name.partition("-")[0]}), names)
    scene.until_runs(*names, version="1")
    resident = []
    for number in range(ROUNDS):
        version = "r%d" % number
        in_parallel(lambda name, version=version: scene.update_in_the_end(name, version=version), names)
        trouble(scene, proxy, number)
        come_and_go(scene, number)
        until(lambda version=version: all_run(scene, version), "all run " + version, 120, 0.2)
        resident.append(resident_kib(slipway.process))
    third = ROUNDS // 3
    before, after = max(resident[third:2 * third]), max(resident[2 * third:])
    lists = slipway.metric("slipway_lists_total")
    print("resident: %s KiB; %d lists" % (" ".join(map(str, resident)), lists))
    assert lists > 2, "what was compacted away is listed again"
    # A page here or there is the allocator's; 72 rollouts of which each kept a KiB or two would be found.
    assert after <= before + 96, "it grows: %s KiB" % resident
