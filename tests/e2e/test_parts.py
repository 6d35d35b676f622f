# SPDX-License-Identifier: Apache-2.0
"""Parts of the control plane that are missing for a while, or have forgotten, and a slipway for all namespaces: on a cluster
of their own."""

import signal

from harness import observer as look
from harness.scene import Scene
from harness.wait import stays, until

CRD = "deploymentcoordinations.apps.containerinfra.nl"


def nothing_of_ours(scene, name):
    return not scene.is_paused(name) and not any(scene.annotation(name, key) for key in ("held-by", "released-by", "coordinated-by"))


def until_said(slipway, text):
    until(lambda: text in slipway.log(), lambda: "%s says %r\n%s" % (slipway.name, text, slipway.log_tail()))


def test_a_kind_that_is_missing_at_the_start_or_removed_meanwhile_and_comes_again(own_scene):
    """It is said, and waited for; the process is ready all the while, and forsakes nobody whom it held."""
    scene = own_scene
    running = scene.slipway("running")
    scene.group("a", "b", replicas=1)
    scene.suspend()
    scene.update("b")
    until(lambda: scene.status().get("pending") == 1, "b waits")
    scene.cluster.kubectl("delete", "crd", CRD)
    until_said(running, "kind is not served, waiting for it")
    scene.until_runs("b")
    until(lambda: nothing_of_ours(scene, "a") and nothing_of_ours(scene, "b"), "they are let go")
    late = scene.slipway("late", webhook=False)
    until_said(late, "kind is not served, waiting for it")
    scene.update("a")
    scene.until_runs("a")
    assert not scene.is_paused("a"), "nobody coordinates it"
    for slipway in (running, late):
        assert slipway.get(slipway.health_port, "/readyz")[0] == 200
        assert slipway.log().count("kind is not served") == 1, "it is said once"
    scene.cluster.install()
    scene.coordinate()
    for slipway in (running, late):  # a kind that is missing is asked for every 30 s
        until(lambda slipway=slipway: slipway.metric("slipway_coordinations") == 1, slipway.name + " has found it", 60)
    scene.until_held("a", "b")
    late.stop()
    scene.update("a", "b", version="3")
    scene.until_runs("a", "b", version="3")
    scene.until_ready()


def test_a_watch_whose_version_etcd_has_compacted_away(own_scene):
    """A 410 of the API server's own."""
    scene = own_scene
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", "d", replicas=1)
    scene.roll_and_stall("a", "b")
    frozen = proxy.freeze()
    scene.update("c")
    scene.delete("d")
    until(lambda: not scene.observer.get("deployments", "d"), "d is gone")
    scene.cluster.compact()
    assert "listing anew" not in slipway.log()
    proxy.cut_now(watch=True)
    frozen.thaw()
    until(lambda: any('"status":410' in line and "listing anew" in line for line in slipway.log().splitlines()),
          lambda: "it hears that its version is gone\n" + slipway.log_tail())
    scene.let_pods_go()
    scene.until_runs("a", "b", "c")
    scene.until_ready()
    assert sorted(scene.observer.turns()[-3:]) == ["a", "b", "c"] and scene.status()["selected"] == 3


def test_a_controller_manager_that_stands_still_during_a_hand_over(own_scene):
    """What it has not observed is not known: nobody is released on top of it, not by a successor either."""
    scene = own_scene
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", replicas=1)
    part = "kube-controller-manager"

    def stop_behind_take_back(write):
        if write.name == "a" and b'"slipway.dev/released-by":null' in write.payload.replace(b" ", b"") and write.status == 200:
            scene.cluster.signal(part, signal.SIGSTOP)

    gate = proxy.gate(after=stop_behind_take_back, method="PATCH")
    try:
        scene.update("a", "b", "c")
        until(lambda: scene.annotation("b", "released-by"), "b is released")
        gate.remove()
        assert not look.is_observed(scene.get("b")), "nobody sees to it"
        scene.update("a", version="3")
        slipway.kill()
        slipway.start()
        stays(lambda: scene.annotation("b", "released-by") and scene.is_held("a") and scene.is_held("c"), "b alone has the right", 2)
    finally:
        scene.cluster.signal(part, signal.SIGCONT)
    scene.until_runs("b", "c")
    scene.until_runs("a", version="3")
    scene.until_ready()
    assert sorted(scene.observer.turns()[-4:]) == ["a", "a", "b", "c"]


def test_a_slipway_for_all_namespaces_keeps_groups_of_the_same_names_apart(own_scene, tmp_path):
    """As it is installed: without --namespace. A coordination and Deployments of the same names stand in two of them."""
    scene, other = own_scene, Scene(own_scene.cluster, own_scene.namespace + "-other", tmp_path / "other")
    slipway = scene.slipway(everywhere=True)
    try:
        other.webhook_of(slipway)
        for each in (scene, other):
            each.group("a", "b", replicas=1)
        for each in (scene, other):
            each.roll_and_stall("a", "b")
        for each in (scene, other):
            assert look.is_rolling(each.get("a")) and each.is_held("b"), "each namespace has its own turn"
        other.delete_coordination()
        until(lambda: other.api.get("/apis/apps.containerinfra.nl/v1/deploymentcoordinations")["items"][0]["metadata"]["namespace"] == scene.namespace,
              "the other's coordination is gone")
        other.let_pods_go()
        other.until_runs("a", "b")
        until(lambda: nothing_of_ours(other, "a") and nothing_of_ours(other, "b"), "what nobody coordinates any more is free")
        assert look.is_rolling(scene.get("a")) and scene.is_held("b"), "those of the same names are none of its business"
        scene.let_pods_go()
        scene.until_runs("a", "b")
        scene.until_ready()
    finally:
        other.close()
