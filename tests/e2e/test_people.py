# SPDX-License-Identifier: Apache-2.0
"""People and their tools who write to what is held, released or at rest."""

import copy
import datetime
import json
import threading
import time

import pytest

from harness import observer as look
from harness.cluster import api
from harness.scene import DEPLOYMENT_PATH
from harness.wait import stays, until, until_quiet

MARKS = ("held-by", "released-by", "coordinated-by", "fence")


def replace(scene, name, change):
    """PUT, as `kubectl replace` sends it, of a changed copy."""
    def attempt():
        found = scene.get(name)
        change(found)
        try:
            return scene.api.request("PUT", DEPLOYMENT_PATH % scene.namespace + "/" + name, found)
        except api.ApiError as error:
            if error.status == 409:
                return None
            raise
    return until(attempt, "the replace of %s goes through" % name)


def test_kubectl_says_at_once_who_holds_and_why(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.roll_and_stall("a")
    patch = json.dumps({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})
    run = scene.cluster.kubectl("patch", "deployment", "b", "-n", scene.namespace, "-p", patch, check=False)
    assert run.returncode == 0
    assert "Warning: held by coordination/web" in run.stderr and len(run.stderr.strip()) <= 140, run.stderr
    scene.let_pods_go()
    scene.until_runs("a", "b")


def test_resuming_a_held_one_by_hand_is_undone_in_the_same_write(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.roll_and_stall("a", "b")
    scene.until_held("b")
    run = scene.cluster.kubectl("rollout", "resume", "deployment/b", "-n", scene.namespace, check=False)
    assert scene.is_held("b"), run.stderr
    scene.let_pods_go()
    scene.until_runs("a", "b")


def test_one_that_a_person_paused_stays_paused_and_blocks_nobody(scene):
    scene.slipway()
    scene.create("a", replicas=1, paused=True)
    scene.create("b", replicas=1)
    scene.create("c", replicas=1)
    scene.until_runs("b", "c", version="1")
    scene.coordinate()
    scene.until_condition("Ready", "True")
    assert scene.is_paused("a") and not scene.is_held("a")
    scene.update("a", "b", "c")
    scene.until_runs("b", "c")
    stays(lambda: scene.is_paused("a") and not scene.is_held("a"), "a is the person's", 2)
    assert "paused" in scene.state_of("a").get("message", "")
    scene.cluster.kubectl("rollout", "resume", "deployment/a", "-n", scene.namespace)
    scene.until_runs("a")
    scene.until_ready()


def test_one_that_a_person_pauses_at_rest_after_it_was_selected_is_theirs_until_they_resume_it(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1, spec={"atRest": "Running"})
    until(lambda: not scene.is_paused("a") and not scene.is_paused("b"), "at rest they run")
    scene.cluster.kubectl("rollout", "pause", "deployment/a", "-n", scene.namespace)
    scene.update("a", "b")
    scene.until_runs("b")
    stays(lambda: scene.is_paused("a") and not scene.is_held("a"), "a is the person's", 1)
    assert "paused" in scene.state_of("a").get("message", "") and scene.status().get("pending", 0) == 0
    scene.cluster.kubectl("rollout", "resume", "deployment/a", "-n", scene.namespace)
    scene.until_runs("a")
    scene.until_ready()


def test_the_pause_of_the_active_one_in_mid_rollout_keeps_its_place(scene):
    scene.slipway()
    scene.group("a", "b", replicas=3)
    scene.roll_and_stall("a", "b")
    scene.patch("a", {"spec": {"paused": True}})
    scene.until_condition("Degraded", "True", "PausedByUser")
    scene.let_pods_go()
    stays(lambda: scene.is_held("b") and scene.status()["activeDeployment"].endswith("/a"), "b waits for a", 2)
    assert not scene.annotation("a", "held-by")
    scene.patch("a", {"spec": {"paused": False}})
    scene.until_runs("a", "b")
    scene.until_ready()


def test_the_pause_of_the_active_one_during_the_wait_does_not_keep_the_turn(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.settle_coordination(minReadySeconds=300)
    scene.update("a", "b")
    until(lambda: scene.runs("a", "2"), "a is complete")
    scene.patch("a", {"spec": {"paused": True}})
    scene.patch_coordination(minReadySeconds=1)
    scene.until_runs("b")
    assert scene.is_paused("a") and not scene.annotation("a", "held-by"), "the pause is still the person's"
    scene.patch("a", {"spec": {"paused": False}})
    scene.until_ready()


def test_a_forged_right_to_roll_is_worth_nothing(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.stall_pods()
    copied = scene.get("b")
    scene.update("a")
    scene.until_rolling("a")

    def forge(found):
        found["metadata"]["annotations"]["slipway.dev/released-by"] = "coordination/web"
        found["metadata"]["annotations"].pop("slipway.dev/held-by", None)
        found["metadata"]["annotations"].pop("slipway.dev/coordinated-by", None)
        found["spec"]["paused"] = False
        found["spec"]["template"]["metadata"]["annotations"]["version"] = "2"

    replace(scene, "b", forge)
    assert scene.is_held("b") and not scene.annotation("b", "released-by")
    assert scene.annotation("b", "coordinated-by") == look.annotation(copied, "slipway.dev/coordinated-by")
    scene.let_pods_go()
    scene.until_runs("a", "b")


def test_the_right_of_the_active_one_survives_a_replace_from_an_old_copy(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2)
    scene.stall_pods()
    old = scene.get("a")
    scene.update("a", "b")
    scene.until_rolling("a")

    def put_old_annotations(found):
        found["metadata"]["annotations"] = copy.deepcopy(old["metadata"]["annotations"])

    replace(scene, "a", put_old_annotations)
    assert scene.annotation("a", "released-by") == "coordination/web"
    scene.let_pods_go()
    scene.until_runs("a", "b")
    scene.until_ready()


def test_an_older_copy_of_the_active_one_from_when_it_was_held_does_not_pause_it(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2)
    scene.stall_pods()
    old = scene.get("a")
    assert old["spec"]["paused"] and look.annotation(old, look.HELD_BY)
    scene.update("a", "b")
    scene.until_rolling("a")

    def put_old(found):
        found["metadata"]["annotations"] = copy.deepcopy(old["metadata"]["annotations"])
        found["spec"]["paused"] = True

    replace(scene, "a", put_old)
    assert not scene.is_paused("a") and scene.annotation("a", "released-by") == "coordination/web"
    scene.let_pods_go()
    scene.until_runs("a", "b")
    scene.until_ready()


def test_gitops_that_sets_paused_false_all_the_time_starts_no_war(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)
    scene.roll_and_stall("a", "b")
    until(lambda: scene.state_of("b").get("hasPendingChanges"), "b waits")
    until_quiet(lambda: len(proxy.writes), "what the beginning of the turn brought is written")
    scene.observer.catch_up()
    seen, written = scene.observer.versions["b"], len(proxy.writes)
    reviews = slipway.metric("slipway_reviews_held_total")
    for _ in range(20):
        scene.patch("b", {"spec": {"paused": False}})
    # Each apply is told of it, once.
    for _ in range(2):
        run = scene.cluster.kubectl("patch", "deployment", "b", "-n", scene.namespace, "--type=merge", "-p", '{"spec":{"paused":false}}', check=False)
        warnings = [line for line in run.stderr.splitlines() if line.startswith("Warning: ")]
        assert run.returncode == 0 and len(warnings) == 1 and warnings[0].startswith("Warning: held by coordination/web"), run.stderr
    assert scene.is_held("b") and slipway.metric("slipway_reviews_held_total") == reviews + 22
    scene.observer.catch_up()
    assert scene.observer.versions["b"] - seen <= 2, "what is put back changes nothing; each of two field managers is stored once"
    assert until_quiet(lambda: len(proxy.writes), "nothing is written") == written, [str(write) for write in proxy.writes[written:]]
    scene.let_pods_go()
    scene.until_runs("a", "b")


@pytest.mark.parametrize("at_rest", ["Paused", "Running"])
def test_a_writer_that_applies_a_new_template_to_the_finished_one_all_the_time(scene, at_rest):
    """Every 5 ms while the turn changes hands; nobody else may be disturbed by it. (From the moment its right has ended: before,
    a new template would be part of its turn.)"""
    scene.slipway()
    scene.group("a", "b", "c", replicas=1, spec={"atRest": at_rest})
    stop, count = threading.Event(), [2]

    def write():
        while not stop.wait(0.005):
            count[0] += 1
            scene.update("a", version=str(count[0]))

    scene.roll_and_stall("a", "b", "c")
    scene.let_pods_go(start="1500ms")
    until(lambda: not scene.annotation("a", "released-by"), "the turn of a is over", every_s=0.01)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        # Who is written so often is hardly ever observed, and nobody is activated beside one that is not.
        stays(lambda: not scene.annotation("a", "released-by") or scene.runs("c", "2"), "a gets no right ahead of the others", 4)
        until(lambda: count[0] > 20, "it wrote often")
    finally:
        stop.set()
        writer.join()
    scene.until_runs("b", "c")
    scene.until_runs("a", version=str(count[0]))
    scene.until_ready()


def test_restart_and_undo_work_at_rest_where_it_is_running(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1, spec={"atRest": "Running"})
    until(lambda: not scene.is_paused("a") and not scene.is_paused("b"), "at rest they are unpaused")
    turns = len(scene.observer.turns())
    for name in "ab":
        scene.cluster.kubectl("rollout", "restart", "deployment/" + name, "-n", scene.namespace)
    until(lambda: len(scene.observer.turns()) >= turns + 2, "both rolled")
    scene.until_ready()
    until(lambda: not scene.is_paused("a") and not scene.is_paused("b"), "unpaused again")
    scene.cluster.kubectl("rollout", "undo", "deployment/a", "-n", scene.namespace)
    until(lambda: len(scene.observer.turns()) >= turns + 3, "a rolled back")
    scene.until_ready()
    run = scene.cluster.kubectl("rollout", "status", "deployment/a", "-n", scene.namespace, "--timeout=20s", check=False)
    assert run.returncode == 0, run.stderr


def test_hold_ignore_and_skip(scene):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="1s")
    scene.group("a", "b", "c", replicas=1)
    scene.annotate("a", hold="waiting for the database")
    until(lambda: "user" in (scene.annotation("a", "held-by") or "").split(","), "a is held by user")
    scene.update("a", "b", "c")
    scene.until_runs("b", "c")
    assert scene.is_held("a") and not scene.runs("a", "2"), "out of line, and in nobody's way"
    scene.patch("a", {"metadata": {"annotations": {"slipway.dev/hold": None}}})
    scene.until_runs("a")
    scene.until_ready()
    scene.annotate("b", ignore="true")
    until(lambda: not scene.is_paused("b") and not scene.annotation("b", "coordinated-by"), "b is let go")
    assert scene.status().get("selected") == 2
    scene.suspend()
    scene.update("a", "c", version="3")
    until(lambda: scene.state_of("a").get("pendingSince") and scene.state_of("c").get("pendingSince"), "both wait")
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
    scene.annotate("a", skip=now.strftime("%Y-%m-%dT%H:%M:%SZ"))
    until(lambda: scene.state_of("c").get("position") == 1, "c goes first")
    turns = len(scene.observer.turns())
    scene.patch_coordination(suspend=False)
    scene.until_runs("a", "c", version="3")
    assert scene.observer.turns()[turns:] == ["c", "a"]


def test_a_template_that_is_put_back_while_held_needs_no_turn(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    scene.roll_and_stall("a", "b")
    until(lambda: scene.state_of("b").get("hasPendingChanges"), "b waits")
    turns = scene.observer.turns().count("b")
    scene.update("b", version="1")
    scene.let_pods_go()
    scene.until_runs("a")
    scene.until_ready()
    assert scene.observer.turns().count("b") == turns and scene.runs("b", "1")


def test_back_to_what_it_was_two_templates_ago_is_a_rollout_like_any_other(scene):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="500ms")
    scene.group("a", "b", replicas=1)
    turns = len(scene.observer.turns())
    for version in ("2", "3", "1"):
        scene.update("a", "b", version=version)
        scene.until_runs("a", "b", version=version)
    scene.until_ready()
    assert sorted(scene.observer.turns()[turns:]) == ["a"] * 3 + ["b"] * 3


def test_a_newer_template_for_the_active_one_goes_on_in_the_same_turn(scene):
    scene.slipway()
    scene.group("a", "b", replicas=2)
    turns = len(scene.observer.turns())
    scene.roll_and_stall("a", "b")
    scene.update("a", version="3")
    scene.let_pods_go()
    scene.until_runs("a", version="3")
    scene.until_runs("b", version="2")
    scene.until_ready()
    rolled = scene.observer.turns()[turns:]
    assert rolled[-1] == "b" and rolled.count("b") == 1, rolled


def test_recreated_under_the_name_of_the_active_one(scene):
    scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.roll_and_stall("a", "b", "c")
    scene.api.delete(DEPLOYMENT_PATH % scene.namespace + "/a", {"propagationPolicy": "Background"})
    until(lambda: not scene.observer.get("deployments", "a"), "a is gone")
    made = scene.create("a", replicas=1, version="2")
    assert look.is_paused(made) and look.annotation(made, look.HELD_BY), "a new object has no right"
    scene.let_pods_go()
    scene.until_runs("a", "b", "c")
    scene.until_ready()


def test_a_copied_revision_annotation_does_not_hide_a_new_one(scene):
    """Such a Deployment looks as if it had been rolled out before; held, it would never start."""
    scene.slipway()
    scene.group("a", replicas=1)
    scene.create("b", replicas=1, annotations={"deployment.kubernetes.io/revision": "7"})
    scene.until_runs("b", version="1", timeout_s=40)
    scene.until_ready()


def test_a_backup_of_a_held_one_comes_back_held_not_paused_by_a_person(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    backup = scene.get("b")
    scene.delete("b")
    until(lambda: not scene.observer.get("deployments", "b"), "b is gone", 40)
    for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"):
        backup["metadata"].pop(key, None)
    backup.pop("status", None)
    scene.api.post(DEPLOYMENT_PATH % scene.namespace, backup)
    scene.until_runs("b", version="1")
    scene.until_ready()


def test_two_coordinations_that_overlap_share_their_members(scene):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="1s")
    scene.coordinate("left", {"matchExpressions": [{"key": "side", "operator": "In", "values": ["left", "both"]}]})
    scene.coordinate("right", {"matchExpressions": [{"key": "side", "operator": "In", "values": ["right", "both"]}]})
    for name, side in (("a", "left"), ("b", "both"), ("c", "right")):
        scene.create(name, replicas=1, labels={"side": side})
    scene.until_runs("a", "b", "c", version="1")
    scene.update("a", "b", "c")
    scene.until_runs("a", "b", "c")
    for name in ("left", "right"):
        scene.until_ready(name)
        scene.until_event("Overlap", name)
        assert scene.condition("Degraded", name)["status"] == "False"


def test_two_active_ones_that_are_relabelled_into_each_others_group(scene):
    scene.slipway()
    for side in ("left", "right"):
        scene.coordinate(side, {"matchLabels": {side: "yes"}})
    scene.create("a", replicas=2, labels={"left": "yes"})
    scene.create("b", replicas=2, labels={"right": "yes"})
    scene.until_runs("a", "b", version="1")
    for side in ("left", "right"):
        scene.until_ready(side)
    scene.roll_and_stall("a", "b")
    scene.until_rolling("b")
    # They roll already; one of them is stopped.
    scene.observer.excuse("a", "b")
    scene.patch("a", {"metadata": {"labels": {"right": "yes"}}})
    scene.patch("b", {"metadata": {"labels": {"left": "yes"}}})
    until(lambda: scene.is_held("a") or scene.is_held("b"), "one of them is held")
    scene.let_pods_go()
    scene.until_runs("a", "b")
    for side in ("left", "right"):
        scene.until_ready(side)
