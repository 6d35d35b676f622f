# SPDX-License-Identifier: Apache-2.0
"""Coordinations that come, change and go; and what slipway finds when it starts."""

import json
import os
import re
import subprocess

from harness import observer as look
from harness.promise import promised
from harness.scene import COORDINATION_PATH, time_of
from harness.slipway import BUILD
from harness.wait import until, until_quiet


def nothing_of_ours(scene, name):
    return not scene.is_paused(name) and not any(scene.annotation(name, key) for key in ("held-by", "released-by", "coordinated-by"))


def test_a_deleted_coordination_lets_what_waits_roll_one_at_a_time(scene):
    scene.slipway()
    scene.group("a", "b", "c", "d", replicas=1)
    scene.cluster.pods_take(scene.namespace, start="2s")
    scene.suspend()
    scene.update("a", "b", "c")
    until(lambda: scene.status().get("pending") == 3, "three wait")
    scene.delete_coordination()
    until(lambda: nothing_of_ours(scene, "d"), "what has nothing to roll is free at once", 45)

    def all_run():
        rolling = {name: scene.observer.describe(name) for name, d in scene.observer.deployments().items() if name in "abc" and look.is_rolling(d)}
        promised(len(rolling) <= 1, "one at a time: %s" % rolling)
        return all(scene.runs(name, "2") for name in "abc")

    until(all_run, "a, b and c run", 90)
    until(lambda: all(nothing_of_ours(scene, name) for name in "abcd"), "nothing of ours is left")


def test_a_coordination_deleted_while_nobody_looked(scene):
    slipway = scene.slipway(failure_policy="Ignore")
    scene.cluster.pods_take(scene.namespace, start="1s")
    scene.group("a", "b", replicas=1)
    scene.suspend()
    scene.update("a", "b")
    until(lambda: scene.status().get("pending") == 2, "both wait")
    slipway.kill()
    scene.delete_coordination()
    slipway.start()
    # Missing in two lists at least 30 s apart.
    scene.until_runs("a", "b", timeout_s=90)
    until(lambda: all(nothing_of_ours(scene, name) for name in "ab"), "nothing of ours is left", 60)


def test_who_is_no_longer_selected_is_let_go(scene):
    scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.patch("c", {"metadata": {"labels": {"app": "other"}}})
    until(lambda: nothing_of_ours(scene, "c"), "c is let go", 60)
    assert scene.status()["selected"] == 2
    scene.api.patch(COORDINATION_PATH % scene.namespace + "/web", {"spec": {"labelSelector": {"matchLabels": {"app": "nobody"}}}})
    until(lambda: nothing_of_ours(scene, "a") and nothing_of_ours(scene, "b"), "a and b are let go", 60)
    scene.update("a", "b", "c")
    scene.until_runs("a", "b", "c")


def test_who_is_relabelled_while_active_leaves_the_turn(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2)
    before = sum(event["count"] for event in scene.events("web") if event["reason"] == "ActiveDeploymentCleared")
    scene.roll_and_stall("a", "b")
    scene.patch("a", {"metadata": {"labels": {"app": "other"}}})
    until(lambda: sum(event["count"] for event in scene.events("web") if event["reason"] == "ActiveDeploymentCleared") > before,
          "a has left the turn")
    scene.let_pods_go()
    scene.until_runs("a", "b", timeout_s=90)
    scene.until_ready()
    until(lambda: nothing_of_ours(scene, "a"), "a is let go", 60)


def test_an_invalid_or_absent_selector_selects_nothing_and_is_reported(scene):
    scene.slipway()
    scene.create("a", replicas=1)
    scene.until_runs("a", version="1")
    scene.coordinate("broken", {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]})
    scene.until_condition("Degraded", "True", "InvalidSelector", name="broken")
    scene.api.post(COORDINATION_PATH % scene.namespace, {
        "apiVersion": "apps.containerinfra.nl/v1", "kind": "DeploymentCoordination", "metadata": {"name": "absent"}, "spec": {}})
    scene.until_condition("Degraded", "True", "InvalidSelector", name="absent")
    assert not scene.is_paused("a")
    scene.update("a")
    scene.until_runs("a")


def test_an_empty_selector_selects_the_whole_namespace(scene):
    scene.slipway()
    scene.coordinate("all", {})
    scene.create("a", replicas=1, labels={"app": "one"})
    scene.create("b", replicas=1, labels={"app": "two"})
    scene.until_runs("a", "b", version="1")
    scene.until_ready("all")
    assert scene.status("all")["selected"] == 2


def test_several_rolling_at_first_sight(scene):
    """They were changed before slipway came: one becomes the active one, the others are paused at once."""
    for name in "abc":
        scene.create(name, replicas=2)
    scene.until_runs("a", "b", "c", version="1")
    scene.coordinate()
    scene.observer.excuse("a", "b", "c")
    scene.stall_pods()
    scene.update("a", "b", "c")
    for name in "abc":
        scene.until_rolling(name)
    scene.slipway()
    until(lambda: sum(scene.is_held(name) for name in "abc") >= 2, "two are held")
    scene.let_pods_go()
    scene.until_runs("a", "b", "c", timeout_s=90)
    scene.until_ready()
    held = [event for event in scene.events("web") if event["reason"] == "DeploymentPaused"]
    assert sum("Deployments" in event["message"] for event in held) == 1, "one event that names the number"
    assert len(held) <= 4, "and one for the end of each turn"


def leave_as_the_reference(scene):
    """Its status has no observedGeneration, and its pauses bear no mark. b has something to roll."""
    for name, version in (("a", "1"), ("b", "1"), ("mine", "1")):
        scene.create(name, replicas=1, version=version)
    scene.until_runs("a", "b", "mine", version="1")
    for name in ("a", "b", "mine"):
        scene.patch(name, {"spec": {"paused": True}})
    scene.update("b")
    scene.coordinate()
    scene.api.patch(COORDINATION_PATH % scene.namespace + "/web/status", {"status": {
        # Its activeDeployment is "" at rest; an API server as old as 1.20 refuses to store that.
        "deployments": ["%s/a" % scene.namespace, "%s/b" % scene.namespace],
        "deploymentStates": [{"name": "%s/%s" % (scene.namespace, name), "hasPendingChanges": name == "b", "generation": 2} for name in "ab"],
        "conditions": []}})


def test_taking_over_from_the_reference(scene):
    leave_as_the_reference(scene)
    scene.slipway()
    scene.until_runs("b")
    assert scene.is_held("a")
    assert scene.is_paused("mine") and not scene.is_held("mine"), "what the reference did not list is a person's pause"
    scene.until_ready()


def test_a_take_over_that_is_refused_is_told_and_goes_on_when_it_may_also_after_a_restart(scene):
    leave_as_the_reference(scene)
    slipway, proxy = scene.slipway_behind_proxy(start=False, webhook=False)
    refused = proxy.answer(403, message="said by the proxy", path="/deployments/a[?]", method="PATCH")
    slipway.start()
    scene.until_condition("Degraded", "True", "TakeOverFailed")
    assert scene.condition("Degraded")["message"].endswith(": a: said by the proxy")
    scene.until_condition("Ready", "False", "Error")
    scene.until_event("PauseFailed", "web")
    assert "observedGeneration" not in scene.status() and scene.is_paused("b"), "it is not ours yet"
    slipway.kill()
    slipway.start()
    hits = len(refused.hits)
    refused.until_hit(hits + 1)
    refused.remove()
    scene.webhook_of(slipway)
    scene.until_runs("b")
    assert scene.is_held("a")
    scene.until_condition("Degraded", "False", "NoErrors")
    scene.until_ready()


def release_all(scene, slipway):
    run = subprocess.run([str(BUILD / "slipway"), "release-all", "--kubeconfig", str(slipway.folder / "kubeconfig"), "--namespace", scene.namespace],
                         text=True, capture_output=True, timeout=60, env=os.environ)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_release_all_frees_everything_where_the_chart_is_removed_and_the_coordination_stays(scene):
    slipway = scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.create("mine", replicas=1, paused=True)
    until(lambda: "paused" in scene.state_of("mine").get("message", ""), "the pause of a person is seen")
    scene.roll_and_stall("a", "b")
    slipway.stop()
    scene.no_webhook()
    assert scene.is_held("b") and scene.annotation("a", "released-by")
    scene.observer.excuse_all()
    said = release_all(scene, slipway)
    assert " 0 failed" in said, said
    assert [line.split()[1] for line in said.splitlines() if line.startswith(scene.namespace)] == ["a", "b", "c", "mine"], said
    assert all(nothing_of_ours(scene, name) for name in "abc")
    assert scene.is_paused("mine") and not scene.annotation("mine", "held-by"), "a person's pause is left alone"
    scene.let_pods_go()
    scene.until_runs("a", "b")
    assert scene.coordination()["spec"]["labelSelector"] == {"matchLabels": {"app": "web"}}, "nobody deleted it"
    assert all(nothing_of_ours(scene, name) for name in "abc"), "and nobody holds them again"
    assert release_all(scene, slipway) == "slipway holds nothing here\n"


def test_release_all_frees_everything_at_once(scene):
    slipway = scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.create("mine", replicas=1, paused=True, labels={"app": "other"})
    scene.suspend()
    scene.update("a", "b")
    until(lambda: scene.status().get("pending") == 2, "two wait")
    slipway.stop()
    scene.no_webhook()
    scene.delete_coordination()
    scene.observer.excuse_all()
    said = release_all(scene, slipway)
    assert [line.split()[1] for line in said.splitlines() if line.startswith(scene.namespace)] == ["a", "b", "c"], said
    assert all(nothing_of_ours(scene, name) for name in "abc")
    assert scene.is_paused("mine"), "a person's pause is left alone"
    scene.until_runs("a", "b")


def test_the_status_of_a_coordination_tells_the_queue(scene):
    scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.stall_pods()
    scene.update("a", "b", "c")
    until(lambda: (scene.state_of("b").get("position"), scene.state_of("c").get("position")) == (1, 2), "the queue is b, c")
    assert scene.state_of("a").get("position") == 0 and scene.status()["pending"] == 2
    shown = scene.cluster.kubectl("get", "deploymentcoordinations", "-n", scene.namespace)
    assert all(word in shown for word in ("ACTIVE", "READY", "PROGRESSING", "PENDING", "AGE")), shown
    scene.until_event("RolloutHeld", "c")
    described = scene.cluster.kubectl("describe", "deployment", "c", "-n", scene.namespace)
    assert "RolloutHeld" in described, described
    scene.let_pods_go()
    scene.until_runs("a", "b", "c")
    scene.until_ready()


def test_events_are_found_as_people_look_for_them(scene):
    slipway = scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.settle_coordination(minReadySeconds=2)
    scene.update("a", "b")
    scene.until_runs("a", "b")
    scene.until_ready()
    until_quiet(lambda: slipway.metric("slipway_events_written_total"), "all Events are written")
    shown = scene.cluster.kubectl("get", "events", "-n", scene.namespace, "--field-selector", "involvedObject.name=web",
                                  "--sort-by=.lastTimestamp", "-o", "json")
    items = json.loads(shown)["items"]
    assert items and all(item["lastTimestamp"] and item["involvedObject"]["kind"] == "DeploymentCoordination" for item in items)
    assert len(items) < 60, "few events"
    times = [time_of(item["lastTimestamp"]) for item in items]
    assert times == sorted(times)
    # Times are of whole seconds, and in what follows 2 s lie between one and the next.
    order = [(item["reason"], name) for item in items for name in "ab" if re.search(r"\b%s/%s\b" % (scene.namespace, name), item["message"])]
    steps = [order.index(step) for step in (("DeploymentActivated", "a"), ("ActiveDeploymentReady", "a"), ("ActiveDeploymentReady", "b"))]
    assert steps == sorted(steps), order
    assert order.index(("DeploymentActivated", "b")) > steps[0] and order.index(("DeploymentActivated", "b")) < steps[2], order
    assert order.index(("ActiveDeploymentCleared", "b")) > steps[1], order


def test_a_namespace_that_is_deleted_while_its_members_wait(scene):
    """What is written into it is refused from then on; the namespace goes, and slipway goes on."""
    slipway = scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.roll_and_stall("a", "b", "c")
    scene.cluster.kubectl("delete", "namespace", scene.namespace, "--wait=false")
    until(lambda: not scene.observer.deployments(), "its Deployments are gone", 60)
    until(lambda: slipway.metric("slipway_coordinations") == 0, "its coordination is forgotten")
    assert slipway.get(slipway.health_port, "/readyz")[0] == 200
