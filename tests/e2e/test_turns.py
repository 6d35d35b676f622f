# SPDX-License-Identifier: Apache-2.0
"""Who rolls when: the ordinary course of things."""

import itertools
import time

from harness import observer as look
from harness.promise import promised
from harness.scene import time_of
from harness.wait import stays, until, until_quiet


def test_three_changed_at_once_roll_one_after_the_other(scene):
    scene.slipway()
    scene.group("a", "b", "c", replicas=3)
    scene.update("a", "b", "c")
    scene.until_runs("a", "b", "c")
    scene.until_ready()
    assert scene.observer.turns()[-3:] == ["a", "b", "c"], "the order of names is the order of turns"
    for name in "abc":
        state = scene.state_of(name)
        assert state["hasPendingChanges"] is False and state["lastRolloutStarted"] <= state["lastRolloutFinished"]
    status = scene.status()
    assert not status.get("activeDeployment") and not status.get("activeDeployments") and status.get("pending", 0) == 0
    assert status["deployments"] == ["%s/%s" % (scene.namespace, name) for name in "abc"] and status["selected"] == 3
    for reason in ("DeploymentActivated", "DeploymentUnpaused", "ActiveDeploymentReady", "ActiveDeploymentCleared"):
        scene.until_event(reason, "web")
    scene.until_event("RolloutHeld", "b")
    scene.until_event("RolloutReleased", "b")


def test_the_annotation_order_goes_before_the_name(scene):
    scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.annotate("c", order="-1")
    scene.annotate("a", order="5")
    # Whose turn ended in the second in which another began to wait goes behind that one.
    time.sleep(1)
    # All three are to be in line before the first is chosen.
    scene.suspend()
    scene.update("a", "b", "c")
    until(lambda: scene.status().get("pending") == 3, "all three wait")
    assert [scene.state_of(name).get("position") for name in "cba"] == [1, 2, 3]
    scene.patch_coordination(suspend=False)
    scene.until_runs("a", "b", "c")
    assert scene.observer.turns()[-3:] == ["c", "b", "a"]


def test_a_created_deployment_is_held_until_its_turn(scene):
    scene.slipway()
    scene.stall_pods()
    scene.coordinate()
    until(lambda: scene.status().get("observedGeneration"), "the coordination is seen")
    scene.create("a", replicas=1)
    until(lambda: scene.status().get("activeDeployment"), "a is active")
    scene.create("b", replicas=1)
    assert scene.is_held("b"), "paused by the very create"
    scene.let_pods_go()
    scene.until_runs("a", "b", version="1")
    scene.until_ready()


def test_at_rest_all_are_held_and_unpaused_in_their_turn_only(scene):
    """The assertions of the reference's own end-to-end context, with Pods that take 3 s."""
    scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.settle_coordination(minReadySeconds=10)
    scene.cluster.pods_take(scene.namespace, start="3s")
    assert all(scene.is_paused(name) for name in "abc")
    scene.update("a", "b")
    end, seen = time.monotonic() + 30, set()
    while time.monotonic() < end and "True" not in seen:
        seen.add(scene.condition("Progressing").get("status"))
        time.sleep(2)
    assert "True" in seen, "Progressing is True within 30 s for who polls every 2 s"

    def both_run():
        unpaused = [name for name, d in scene.observer.deployments().items() if not look.is_paused(d)]
        promised(len(unpaused) <= 1, "at most one is unpaused: %s" % unpaused)
        return scene.runs("a", "2") and scene.runs("b", "2")
    until(both_run, "a and b run", 90)
    scene.until_ready(timeout_s=60)
    first, second = scene.observer.turns()[-2:]
    assert scene.gap(first, second) >= 10, "the wait of 10 s"
    for name in (first, second):
        assert scene.state_of(name)["lastRolloutStarted"] and scene.state_of(name)["lastRolloutFinished"]
    scene.patch_coordination(minReadySeconds=0)
    assert look.is_paused(scene.create("d", replicas=1)), "paused by the very create"
    until(lambda: scene.runs("d", "1") and scene.is_held("d"), "and at rest, with a Pod start of 3 s")


def test_min_ready_seconds_count_from_the_completion_of_an_ordinary_update(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2)
    scene.settle_coordination(minReadySeconds=4)
    scene.update("a", "b")
    scene.until_runs("a", "b")
    assert 4 <= scene.gap("a", "b") < 60


def test_scaling_during_the_wait_does_not_begin_it_again(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2)
    scene.settle_coordination(minReadySeconds=4)
    scene.update("a", "b")
    until(lambda: scene.runs("a", "2"), "a is complete")
    sizes, turns = itertools.cycle((3, 4, 3, 2)), scene.observer.turns().count("b")

    def rolls_while_a_is_scaled():
        scene.scale("a", next(sizes))
        return scene.observer.turns().count("b") > turns

    # Were the wait begun again each time, it would never be over.
    until(rolls_while_a_is_scaled, lambda: "b rolls while a is scaled on and on: %s" % scene.status(), 30, every_s=1)
    scene.until_runs("b")


def test_two_may_roll_where_the_coordination_says_so(scene):
    scene.slipway()
    scene.group("a", "b", "c", "d", replicas=1, spec={"maxActive": 2})
    scene.stall_pods()
    scene.update("a", "b", "c", "d")
    until(lambda: len(scene.status().get("activeDeployments") or []) == 2, "two are active")
    scene.let_pods_go()
    scene.until_runs("a", "b", "c", "d")
    scene.until_ready()


def test_suspend_lets_who_is_active_finish_and_starts_nobody(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.roll_and_stall("a", "b")
    scene.suspend()
    scene.let_pods_go()
    scene.until_runs("a")
    scene.until_condition("Progressing", "False", "Suspended")
    stays(lambda: not scene.runs("b", "2") and scene.is_held("b"), "b waits", 1.5)
    scene.patch_coordination(suspend=False)
    scene.until_runs("b")


def test_a_first_rollout_has_its_turn(scene):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="1s")
    scene.coordinate()
    for name in "abc":
        scene.create(name, replicas=2)
    scene.until_runs("a", "b", "c", version="1")
    scene.until_ready()


def test_recreate_with_a_grace_period_keeps_its_turn_through_the_gap(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2, strategy={"type": "Recreate"}, grace_s=3)
    scene.cluster.pods_take(scene.namespace, start="1s", stop="3s")
    scene.observer.catch_up("pods")
    old = {name: [pod for pod in scene.observer.pods() if pod.startswith(name + "-")] for name in "ab"}
    assert len(old["a"]) == len(old["b"]) == 2
    scene.update("a", "b")
    scene.until_runs("a", "b")
    scene.until_ready()
    scene.observer.catch_up(*scene.observer.KINDS)
    for name in "ab":
        made = scene.newest_replicaset(name)
        for pod in old[name]:
            ending = scene.observer.ending("pods", pod)
            assert ending["deletionGracePeriodSeconds"] == 3
            # deletionTimestamp is the end of the grace; a gap of less than 3 s would lie before it.
            assert time_of(made["metadata"]["creationTimestamp"]) >= time_of(ending["deletionTimestamp"])
            assert scene.observer.gone("pods", pod) < scene.observer.born("replicasets", made["metadata"]["name"])
    # The other one began with the end of its old Pods: when the first had new Pods and was complete, not in its gap.
    first, second = scene.observer.turns()[-2:]
    begins = [scene.observer.ending("pods", pod) for pod in old[second]]
    for what in [scene.observer.gone("pods", pod) for pod in old[first]] + [
            scene.observer.born("replicasets", scene.newest_replicaset(first)["metadata"]["name"])]:
        promised(all(what < int(begin["resourceVersion"]) for begin in begins), "%s stopped its Pods in the gap of %s" % (second, first))
    complete = time_of(scene.observer.completions[first])
    promised(all(time_of(begin["deletionTimestamp"]) - 3 >= complete for begin in begins), "%s began before %s was complete" % (second, first))


def test_the_tail_of_an_update_with_max_unavailable_is_still_a_turn(scene):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="2s")
    scene.group("a", "b", replicas=4, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 4}})
    scene.update("a", "b")
    scene.until_runs("a", "b", timeout_s=90)
    scene.until_ready()


def test_two_busy_members_do_not_starve_a_third(scene):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="500ms")
    scene.group("a", "b", "c", replicas=1)
    before = len(scene.observer.turns())
    scene.update("a", "b", "c")
    for version in range(3, 12):
        if scene.runs("c", "2"):
            break
        for name in "ab":
            scene.update(name, version=str(version))
        time.sleep(1)
    scene.until_runs("c", timeout_s=20)
    turns = scene.observer.turns()[before:]
    ahead = turns[:turns.index("c")]
    # Who gets another template after completion, but before it was taken back, begins twice in one turn.
    assert ahead.count("a") <= 2 and ahead.count("b") <= 2, turns


def test_scaled_to_zero_it_takes_a_new_template_and_needs_no_turn(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.scale("a", 0)
    until(lambda: not scene.is_paused("a"), "nothing could roll, so it is not held")
    scene.update("a")
    until(lambda: look.is_complete(scene.get("a")), "complete at once")
    assert not scene.status().get("activeDeployment")
    scene.scale("a", 2)
    scene.until_runs("a")
    versions = {pod["metadata"]["annotations"]["version"] for name, pod in scene.observer.pods().items() if name.startswith("a-")
                and not pod["metadata"].get("deletionTimestamp")}
    assert versions == {"2"}, "it never brought up Pods of the old template"
    scene.until_held("a")


def test_progress_that_only_the_status_shows_moves_the_turn_on(scene):
    """Nothing but status changes comes between the release of one and that of the next; they are told of, and not asked for."""
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=3)
    releases, began = slipway.metric("slipway_releases_total"), time.monotonic()
    scene.update("a", "b")
    scene.until_runs("a", "b")
    scene.until_ready()
    assert slipway.metric("slipway_releases_total") >= releases + 2
    assert not [request for request in proxy.requests if request.began > began and request.method == "GET" and not request.is_watch]


def test_nothing_is_written_when_nothing_happens(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.update("a")
    scene.until_runs("a")
    scene.until_ready()

    def versions():
        return [found["metadata"]["resourceVersion"] for found in (scene.get("a"), scene.get("b"), scene.coordination())]

    before = until_quiet(versions, "what came late is over", for_s=3)
    time.sleep(11)  # longer than the 10 s in which some poll
    assert versions() == before
