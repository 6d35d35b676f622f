# SPDX-License-Identifier: Apache-2.0
"""Rollouts in steps in a group: who waits for whom, what must not wait for its turn, and what must be there when the turn comes."""

from harness.stepping import hook
from harness.wait import stays, until


def group_of_two(stage, failure_policy="Skip", suspend=True, **spec):
    """web before b, which by its name would be first; nobody rolls until the coordination is let go."""
    scene = stage.scene
    # Its controller has to say so as well: web would roll beside b. And a coordination that is not yet seen holds nobody.
    scene.until_runs("web", version="1")
    scene.coordinate(failurePolicy=failure_policy)
    until(lambda: scene.status().get("observedGeneration"), "the coordination is seen")
    scene.create("b", replicas=1)
    scene.until_runs("b", version="1")
    scene.until_ready()
    stage.step(**spec)
    scene.annotate("web", order="-1")
    if suspend:
        scene.suspend()
    stage.update()
    if suspend:
        stage.until_phase("Held")  # it queues


def test_a_question_holds_up_no_other_and_a_step_keeps_its_turn(stages, receiver):
    stage = stages()
    scene = stage.scene
    receiver.answer("begin", 403)
    receiver.answer("next", 403)
    group_of_two(stage, suspend=False, analysis={"webhooks": [hook("begin", receiver, "confirm-rollout"), hook("next", receiver, "confirm-step")]})
    stage.until_phase("Waiting")
    scene.update("b")
    scene.until_runs("b")
    assert stage.versions()["2"] == 0 and stage.status()["phase"] == "Waiting"
    receiver.answer("begin", 200)
    stage.until_stopped(1)
    assert scene.status()["activeDeployment"].endswith("/web")
    scene.update("b", version="3")
    stays(lambda: scene.is_held("b") and not scene.runs("b", "3"), "b waits for its turn", 2)
    receiver.answer("next", 200)
    stage.until_phase("Promoting", "Succeeded", timeout_s=30)
    stage.pods_take("200ms")
    stage.until_phase("Succeeded")
    stage.until_runs("2")
    scene.until_runs("b", version="3")


def test_one_that_failed_stops_the_group_or_is_put_aside_as_that_says(stages, receiver):
    """The default is Stop: it remains the active one. With Skip it loses its place, and the next goes on."""
    stage = stages()
    scene = stage.scene
    receiver.answer("check", 500)
    group_of_two(stage, "Stop", analysis={"webhooks": [hook("check", receiver)]})
    scene.update("b")
    scene.patch_coordination(suspend=False)
    stage.until_failed("Retreated")
    stage.until_back()
    scene.until_condition("Degraded", "True", "RolloutFailed")
    stays(lambda: scene.is_held("b") and not scene.runs("b", "2"), lambda: "the group has stopped: %s %s" % (scene.observer.describe("b"), scene.status()), 2)
    scene.settle_coordination(failurePolicy="Skip")
    scene.until_runs("b")
    scene.until_condition("Degraded", "True", "RolloutFailed")
    assert stage.is_held() and stage.template_version() == "2" and stage.versions()["2"] == 0


def test_a_rollback_does_not_wait_until_others_are_done(stages, receiver):
    """b, which is next, does not become ready: the bad Pods of web go all the same."""
    stage = stages()
    scene = stage.scene
    receiver.answer("check", 500)
    group_of_two(stage, onFailure="Hold", analysis={"webhooks": [hook("check", receiver)]})
    scene.patch("b", {"spec": {"template": {"metadata": {"annotations": {"version": "2", "kubelets.slipway.dev/ready": "false"}}}}})
    scene.patch_coordination(suspend=False)
    stage.until_failed()
    until(lambda: scene.status().get("activeDeployment", "").endswith("/b"), lambda: "b has the turn: %s" % scene.status())
    stage.change(onFailure="Rollback")
    stage.say("abort")
    stage.until_failed()
    until(lambda: stage.hold_is_back_to({"1": 4}), lambda: "it is back: %s %s %s" % (dict(stage.versions()), stage.describe(), scene.status()))


def test_dead_man_is_there_in_the_write_that_gives_the_turn(stages, receiver):
    stage = stages()
    scene = stage.scene
    receiver.answer("check", 200)
    seen = []
    group_of_two(stage, deadMan=True, analysis={"webhooks": [hook("check", receiver)]})
    stage.pods_take("200ms")  # its own controller stops it
    scene.patch_coordination(suspend=False)

    def has_succeeded():
        found, status = stage.get()["spec"], stage.status()
        if not found.get("paused") and status.get("activity") == "Advancing" and found.get("minReadySeconds", 0) < 86400:
            seen.append((found.get("minReadySeconds"), status.get("step")))
        return status.get("phase") == "Succeeded"
    until(has_succeeded, stage.describe, 40, 0.005)
    assert not seen
