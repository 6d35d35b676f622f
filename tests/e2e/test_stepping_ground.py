# SPDX-License-Identifier: Apache-2.0
"""What module stepping relies on and what is written down nowhere, or only in part: looked at without slipway, on every
control plane that we meet and on the simulator. Retreats are in test_stepping_retreat.py."""

import pytest

from harness.scene import deployment
from harness.wait import until, until_quiet

RAISED = {"minReadySeconds": 86400, "progressDeadlineSeconds": 87000}
LOWERED = {"minReadySeconds": 0, "progressDeadlineSeconds": 600}
NEVER = 2147483647


def workload(kind, name, replicas, version="1", **spec):
    """A StatefulSet or DaemonSet as scene.deployment() makes Deployments."""
    manifest = deployment(name, replicas, version=version)
    manifest["kind"] = kind
    manifest["spec"] = dict({"selector": manifest["spec"]["selector"], "template": manifest["spec"]["template"]}, **spec)
    if kind == "StatefulSet":
        manifest["spec"].update(replicas=replicas, serviceName=name)
    return manifest


def path(scene, plural, name=""):
    return "/apis/apps/v1/namespaces/%s/%s/%s" % (scene.namespace, plural, name)


def template(version):
    return {"template": {"metadata": {"annotations": {"version": version}}}}


def sizes(scene, name):
    """(new, old) Pods that are told to be."""
    newest = scene.newest_replicaset(name)
    return newest["spec"]["replicas"], sum(one["spec"]["replicas"] for one in scene.observer.replicasets().values()) - newest["spec"]["replicas"]


@pytest.mark.parametrize("surge, unavailable", [(1, 0), (0, 1), (2, 1)])
def test_a_raise_of_min_ready_seconds_lets_at_most_one_batch_through_at_each_release(scene, surge, unavailable):
    """What deadMan is. The new Pods that were available before are not, once their ReplicaSet has noticed: from the second release
    on it is a race whether the controller takes an old Pod away, and a release may move nothing."""
    scene.let_pods_go(start="100ms")
    scene.create("a", replicas=6, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
    scene.until_runs("a", version="1")
    scene.patch("a", {"spec": dict(paused=True, **template("2"))})
    seen = [0]
    while seen[-1] < 4:
        assert len(seen) < 20, "it comes on: %s" % seen
        scene.patch("a", {"spec": dict(RAISED, paused=False)})
        new, _ = until_quiet(lambda: sizes(scene, "a"), "one batch", for_s=1)
        seen.append(new)
        scene.patch("a", {"spec": dict(LOWERED, paused=True)})
        until(lambda: scene.get("a")["status"].get("availableReplicas") == scene.get("a")["status"]["replicas"], "what is there is available")
        assert sizes(scene, "a")[0] >= new, "nothing goes back"
    assert all(0 <= later - before <= surge + unavailable for before, later in zip(seen, seen[1:])), seen


def test_a_partition_beyond_all_ordinals_holds_a_stateful_set_also_where_it_grows(scene):
    scene.let_pods_go(start="100ms")
    strategy = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": NEVER}}}
    scene.api.post(path(scene, "statefulsets"), workload("StatefulSet", "a", 3, **strategy))

    def get():
        return scene.api.get(path(scene, "statefulsets", "a"))

    def until_ready(count):
        until(lambda: get()["status"].get("readyReplicas") == count and get()["status"]["observedGeneration"] == get()["metadata"]["generation"],
              lambda: "%d Pods: %s" % (count, get()["status"]))

    def versions():
        return [scene.observer.get("pods", "a-%d" % number)["metadata"]["annotations"]["version"] for number in range(get()["spec"]["replicas"])]

    until_ready(3)
    scene.api.patch(path(scene, "statefulsets", "a"), {"spec": template("2")})
    scene.api.patch(path(scene, "statefulsets", "a/scale"), {"spec": {"replicas": 5}})
    until_ready(5)
    assert get()["status"].get("updatedReplicas", 0) == 0 and get()["status"]["updateRevision"] != get()["status"]["currentRevision"]
    assert versions() == ["1"] * 5
    for partition in (4, 3):
        scene.api.patch(path(scene, "statefulsets", "a"), {"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}})
        until(lambda partition=partition: get()["status"].get("updatedReplicas") == 5 - partition, lambda: "%d updated: %s" % (5 - partition, get()["status"]))
        until_ready(5)
        assert versions() == ["1"] * partition + ["2"] * (5 - partition)
    # The way back: held, and the updated ones deleted from the highest on.
    scene.api.patch(path(scene, "statefulsets", "a"), {"spec": {"updateStrategy": {"rollingUpdate": {"partition": NEVER}}}})
    for number in (4, 3):
        uid = scene.observer.get("pods", "a-%d" % number)["metadata"]["uid"]
        scene.api.delete("/api/v1/namespaces/%s/pods/a-%d" % (scene.namespace, number), {"preconditions": {"uid": uid}})
        until(lambda number=number, uid=uid: (scene.observer.get("pods", "a-%d" % number) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid, "it comes again")
        until_ready(5)
    assert versions() == ["1"] * 5 and get()["status"].get("updatedReplicas", 0) == 0


def test_a_daemon_set_on_delete_counts_what_is_updated(scene):
    scene.let_pods_go(start="100ms")
    scene.api.post(path(scene, "daemonsets"), workload("DaemonSet", "a", 0, updateStrategy={"type": "OnDelete"}))

    def get():
        return scene.api.get(path(scene, "daemonsets", "a"))

    def numbers():
        status = get()["status"]
        return status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0), status.get("desiredNumberScheduled", 0), status.get("observedGeneration", 0)

    until(lambda: 0 < numbers()[2] == numbers()[1] == numbers()[0], lambda: "complete: %s" % (numbers(),))
    nodes = numbers()[2]
    generation = scene.api.patch(path(scene, "daemonsets", "a"), {"spec": template("2")})["metadata"]["generation"]
    until(lambda: numbers() == (0, nodes, nodes, generation), lambda: "none is updated: %s" % (numbers(),))
    for count in range(1, nodes + 1):
        scene.observer.catch_up("pods")
        old = sorted(name for name, pod in scene.observer.pods().items() if pod["metadata"]["annotations"]["version"] == "1")
        scene.api.delete("/api/v1/namespaces/%s/pods/%s" % (scene.namespace, old[0]))
        until(lambda count=count: numbers() == (count, nodes, nodes, generation), lambda: "%d updated: %s" % (count, numbers()))
