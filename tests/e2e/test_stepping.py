# SPDX-License-Identifier: Apache-2.0
"""One rollout in steps, of each of the three kinds: the ordinary course, and what people and other things do to it meanwhile."""

import pytest

from harness.stepping import KINDS, PLURALS, SETTINGS, STEPPED, hook, workload
from harness.wait import stays, until, until_quiet

of_each_kind = pytest.mark.parametrize("kind", KINDS)


def gate(receiver):
    """Nobody goes on to the next step until the scenario says so."""
    receiver.answer("next", 403)
    return {"webhooks": [hook("next", receiver, "confirm-step")]}


@of_each_kind
def test_an_update_advances_in_steps_and_is_promoted(stages, receiver, kind):
    """Held at each stop until somebody lets it go on. One in the middle of which a newer template comes begins at the first step."""
    stage = stages(kind)
    stage.step(analysis=dict(gate(receiver), pods={}))
    assert stage.is_untouched() and stage.status()["lastPromotedHash"]
    stage.update()
    for number, stop in enumerate(stage.stops()[:2], 1):
        stage.until_stopped(number)
        until(lambda number=number: len(receiver.requests("next")) >= number, "it is asked")
        pods = stage.counts.pods("web").keys()
        stays(lambda pods=pods: stage.counts.pods("web").keys() == pods, "nothing moves", 1.5)
        status = stage.status()
        assert (status["step"], status["updated"]) == ("%d/3" % number, "%d/%d" % (status["updatedReplicas"], stage.replicas()))
        assert stop <= status["updatedReplicas"] <= stop + stage.slack
        # A step that was overshot is not skipped by overshooting alone where there is room: it is asked once for each stop.
        receiver.answer("next", lambda _, number=number: 200 if stage.status().get("currentStep") == number else 403)
    stage.until_succeeded()
    status = stage.status()
    assert status["lastPromotedHash"] == status["lastAppliedHash"] and not status.get("failedHash")
    assert stage.condition("Promoted")["status"] == "True" and stage.condition("Ready")["status"] == "True"
    stage.until_reason("Synced", "StepReached", "StepPassed", "Promoted")
    stage.until_reason("Promoted", kind=kind)
    versions = lambda: (stage.get()["metadata"]["resourceVersion"], stage.stepped()["metadata"]["resourceVersion"])  # noqa: E731
    until_quiet(versions, "nothing is written at rest", for_s=2.5)

    stage.update("3")
    stage.until_passes(receiver, "next", 1)
    stage.until_stopped(2)
    third = stage.status()["lastAppliedHash"]
    receiver.answer("next", 403)
    stage.update("4")
    stage.until_stopped(1)
    assert stage.status()["lastAppliedHash"] not in (third, status["lastPromotedHash"]) and stage.status()["lastPromotedHash"] == status["lastPromotedHash"]
    receiver.answer("next", 200)
    stage.until_succeeded("4")


@of_each_kind
def test_scaling_in_the_middle_moves_the_stops(stages, receiver, kind):
    """Of a DaemonSet: Nodes come and go. What is added to a set counts as updated."""
    stage = stages(kind, nodes=4)
    stage.step(steps=["25%", "50%"], analysis=gate(receiver))
    stage.update()
    stage.until_stopped(1)
    assert stage.status()["stop"] == 1
    stage.slack += 0 if kind == "Deployment" else 4
    stage.scale(8)
    if kind == "DaemonSet":
        until(lambda: stage.versions(ready=True) == {"1": 3, "2": 5}, lambda: "each new Node has the newest template: %s" % stage.versions())
        until(lambda: stage.status().get("replicas") == 8 and stage.status()["currentStep"] == 2 and stage.status()["stop"] == 4,
              lambda: "it is past a quarter of eight, and past a half: " + stage.describe())
    else:
        until(lambda: stage.status().get("replicas") == 8 and stage.status().get("stop") == 2, lambda: "a quarter of eight: " + stage.describe())
        until(lambda: sum(stage.versions(ready=True).values()) >= 8 and stage.versions()["2"] <= (2 + stage.slack if kind == "Deployment" else 5),
              lambda: "eight, and no more updated than there may be: %s" % stage.versions())
        receiver.answer("next", lambda _: 200 if stage.status().get("currentStep") == 1 else 403)
    until(lambda: stage.status().get("currentStep") == 2 and stage.status()["activity"] == "Analysing" and stage.status()["stop"] >= 4 and stage.is_held(),
          lambda: "the next stop is half of eight: " + stage.describe())
    stays(lambda: stage.status()["phase"] != "Promoting" and stage.versions()["2"] < 8, "and there it stands", 1)
    stage.scale(4)
    until(lambda: stage.status().get("replicas") == 4 and stage.status()["stop"] == 2, lambda: "it has seen that it is smaller: " + stage.describe())
    receiver.answer("next", 200)
    stage.until_succeeded()
    assert sum(stage.versions().values()) == 4


@of_each_kind
def test_a_person_holds_it_and_promotes_it_by_a_step_or_to_the_end(stages, receiver, kind):
    stage = stages(kind)
    receiver.answer("check", 500)
    stage.step(analysis={"threshold": 100, "webhooks": [hook("check", receiver)]})
    stage.patch({}, annotations={"slipway.dev/hold": "lunch"})
    stage.update()
    stage.until_phase("Held")
    assert "user" in stage.status()["message"] or "hold" in stage.status()["message"], stage.describe()
    stays(lambda: stage.versions()["2"] == 0, "nothing moves", 1.5)
    stage.patch({}, annotations={"slipway.dev/hold": None})
    stage.until_stopped(1)
    stage.until_check("check", False)
    stage.say("promote", "step")
    stage.until_stopped(2)
    stage.say("promote", "full")
    stage.until_succeeded()
    assert receiver.requests("check")


@of_each_kind
def test_abort_takes_it_back_and_retry_begins_it_anew(stages, receiver, kind):
    """Deleted afterwards, while its template is held as failed, it stays until somebody says release."""
    stage = stages(kind)
    stage.step(analysis=gate(receiver))
    stage.update()
    stage.until_stopped(1)
    stage.say("abort")
    stage.until_failed()
    stage.until_back()
    # A DaemonSet has no retreat: its template was put back.
    is_back = kind == "DaemonSet"
    assert stage.template_version() == ("1" if is_back else "2") and (is_back or stage.is_held())
    stage.say("retry")
    if is_back:
        stage.update()
    stage.until_stopped(1)
    stage.say("abort")
    stage.until_failed("Retreated", "RolledBack")
    stage.until_back()
    stage.api.delete(stage.stepped_path)
    if is_back:
        until(lambda: stage.status() == {} and stage.is_untouched(), lambda: "nothing keeps it: %s" % stage.get())
        return
    stays(lambda: stage.is_held() and stage.versions()["2"] == 0 and stage.status() != {}, "what is known to be bad does not roll", 2)
    until(lambda: "release" in stage.condition()["message"], lambda: "it names the way out: %s" % stage.condition())
    stage.is_bound = False
    stage.api.patch(stage.stepped_path, {"metadata": {"annotations": {"slipway.dev/abort": "release"}}})
    stage.until_runs("2")
    until(lambda: stage.status() == {} and stage.is_untouched(), lambda: "it is gone: %s" % stage.get())


@of_each_kind
def test_suspended_it_lets_templates_pass_and_deleted_half_way_it_rolls_on(stages, receiver, kind):
    stage = stages(kind)
    stage.step(analysis=gate(receiver))
    generation = stage.change(suspend=True)["metadata"]["generation"]
    until(lambda: stage.status().get("observedGeneration") == generation, "it is seen")
    promoted = stage.status()["lastPromotedHash"]
    stage.is_bound = False
    stage.update()
    stage.pods_take("200ms")
    stage.until_runs("2")
    assert not receiver.requests("next") and stage.is_untouched()
    until(lambda: stage.status()["lastPromotedHash"] != promoted, lambda: "what ran meanwhile is what is promoted: " + stage.describe())
    generation = stage.change(suspend=False)["metadata"]["generation"]
    until(lambda: stage.status().get("observedGeneration") == generation and stage.status()["phase"] in ("Initialized", "Succeeded")
          and stage.condition()["status"] == "True", lambda: "it is at rest: " + stage.describe())
    stage.is_bound = True
    stage.update("3")
    stage.until_stopped(1)
    stage.is_bound = False
    stage.api.delete(stage.stepped_path)
    stage.pods_take("200ms")
    stage.until_runs("3")
    until(stage.is_untouched, lambda: "nothing of ours is left: %s" % stage.get())
    until(lambda: stage.status() == {}, "and it is gone")


@of_each_kind
def test_killed_at_every_step_it_goes_on_where_it_was(stages, receiver, kind):
    """No step is passed twice or without its check; the bound holds all the while. It is killed while it waits, while it stands,
    and while it advances: a Deployment is given deadMan for that."""
    stage = stages(kind)
    is_dead_man = kind == "Deployment"
    receiver.answer("check", 200)
    analysis = gate(receiver)
    analysis["webhooks"] += [hook("check", receiver), hook("begin", receiver, "confirm-rollout")]
    receiver.answer("begin", 403)
    stage.step(deadMan=is_dead_man, analysis=dict(analysis, iterations=2))

    def again(stops_by_itself=is_dead_man):
        stage.slipway.kill()
        if stops_by_itself:
            until_quiet(lambda: dict(stage.versions(ready=True)), "it stops by itself", for_s=1.5)
        stage.slipway.start()
    stage.update()
    stage.pods_take("200ms")  # who stops it is not slipway
    stage.until_phase("Waiting")
    again()
    stays(lambda: stage.status()["phase"] == "Waiting" and stage.versions()["2"] == 0, stage.describe, 1)
    receiver.answer("begin", 200)
    for number in (1, 2):
        until(lambda number=number: stage.status().get("currentStep") == number, lambda: "it advances: " + stage.describe(), every_s=0.01)
        again()
        until(lambda number=number: stage.status().get("currentStep") == number and stage.status()["activity"] == "Analysing" and stage.is_held(),
              lambda: "it stands: " + stage.describe())
        again()
        stays(lambda number=number: stage.status()["currentStep"] == number, "it stands", 1)
        until(lambda: stage.status().get("iterations", 0) >= 2, lambda: "it is analysed: " + stage.describe())
        receiver.answer("next", lambda _, number=number: 200 if stage.status().get("currentStep") == number else 403)
    stage.until_phase("Promoting", "Succeeded")
    again(stops_by_itself=False)
    stage.until_succeeded()
    assert len(receiver.requests("check")) >= 4


def test_what_rolled_on_while_nobody_was_there_is_analysed_afterwards(scene, stages, receiver):
    """Killed while it stands, a Deployment stands on; killed while it advances it goes on by itself: the checks of the steps that
    were missed are made all the same."""
    slipway, proxy = scene.slipway_behind_proxy(settings=SETTINGS)
    stage = stages(slipway=slipway)
    stage.step(analysis={"webhooks": [hook("check", receiver), *gate(receiver)["webhooks"]]})
    stage.update()
    stage.until_stopped(1)
    versions = dict(stage.versions())
    stage.slipway.kill()
    stage.slipway.start()
    asked = len(receiver.requests("next"))
    until(lambda: len(receiver.requests("next")) > asked, "it goes on asking")
    assert stage.is_held() and stage.status()["currentStep"] == 1 and dict(stage.versions()) == versions
    frozen = proxy.freeze(path="/deployments")  # or it might be held before it is killed
    stage.is_bound = False
    receiver.answer("next", 200)
    until(lambda: stage.status()["currentStep"] == 2 and not stage.is_held(), "it is let go", every_s=0.01)
    stage.slipway.kill()
    frozen.thaw()
    stage.pods_take("200ms")
    stage.until_runs("2")
    asked = len(receiver.requests("check"))
    assert stage.status()["phase"] != "Succeeded"
    stage.slipway.start()
    stage.until_succeeded()
    assert len(receiver.requests("check")) > asked
    stage.until_reason("StepMissed")


@pytest.mark.parametrize("kind, theirs", [("StatefulSet", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
                                          ("DaemonSet", {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}})])
def test_a_manifest_that_names_the_strategy_does_not_let_it_go(stages, receiver, kind, theirs):
    """Admission answers with ours and a warning, and what the manifest says is what comes back at the end."""
    stage = stages(kind)
    stage.step(analysis=gate(receiver))
    stage.update()
    stage.until_stopped(1)
    stage.patch({"updateStrategy": theirs})
    assert any("updateStrategy is that of SteppedRollout web" in text for text in stage.api.warnings), stage.api.warnings
    assert stage.is_held(), stage.get()["spec"]["updateStrategy"]
    pods = stage.counts.pods("web").keys()
    stays(lambda: stage.counts.pods("web").keys() == pods, "nothing moves", 1.5)
    receiver.answer("next", 200)
    stage.until_succeeded()
    found = stage.get()["spec"]["updateStrategy"]
    assert found["type"] == theirs["type"] and {key: found["rollingUpdate"][key] for key in theirs["rollingUpdate"]} == theirs["rollingUpdate"]


def test_of_two_on_one_target_the_oldest_counts(stages):
    """Of each kind, all at once: web, and others beside it."""
    stage = stages()
    scene, namespace = stage.scene, stage.scene.namespace
    others = {"StatefulSet": "set", "DaemonSet": "agent"}
    for kind, name in others.items():
        scene.api.post("/apis/apps/v1/namespaces/%s/%s" % (namespace, PLURALS[kind]), workload(kind, name, 1))
    names = dict(others, Deployment="web")

    def make(name, kind):
        stage.api.post(STEPPED % namespace, {"apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": name},
                                             "spec": {"targetRef": {"kind": kind, "name": names[kind]}, "steps": [1], "analysis": {"interval": "1s"}}})
    for kind, name in names.items():
        make(name, kind)
    for name in names.values():
        until(lambda name=name: stage.status(name).get("phase") == "Initialized", lambda name=name: "%s is seen: %s" % (name, stage.status(name)))
    for kind, name in names.items():  # of the same second the first by name is the older one
        make("zz-" + name, kind)
        assert any("SteppedRollout %s" % name in text for text in stage.api.warnings), "whoever makes it is told: %s" % stage.api.warnings
    for name in names.values():
        other = "zz-" + name
        until(lambda other=other: stage.condition(name=other).get("reason") == "Conflict", lambda other=other: "it says so: %s" % stage.status(other))
        assert stage.condition(name=other)["status"] == "False" and name in stage.condition(name=other)["message"]
        until(lambda other=other: "Conflict" in stage.reasons(other), lambda other=other: "an Event says it, too: %s" % stage.reasons(other))
    stage.update()
    stage.until_succeeded()
    for name in names.values():
        assert stage.condition(name="zz-" + name)["reason"] == "Conflict" and stage.condition(name=name)["status"] == "True"
        stage.api.delete(STEPPED % namespace + "/" + name)
    for name in names.values():
        until(lambda name=name: stage.condition(name="zz-" + name).get("status") == "True", lambda name=name: "now it counts: %s" % stage.status("zz-" + name))


def test_without_analysis_it_passes_all_stops_and_what_is_no_template_is_no_rollout(stages, receiver):
    """With a step size instead of steps."""
    stage = stages()
    receiver.answer("check", 500)
    stage.api.post(STEPPED % stage.scene.namespace, {
        "apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": "web"},
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "stepSize": "50%", "skipAnalysis": True,
                 "analysis": {"interval": "1s", "webhooks": [hook("check", receiver)]}}})
    stage.until_phase("Initialized")
    before = stage.status()["lastAppliedHash"]
    stage.patch({"replicas": 5}, labels={"team": "red"})
    stage.pods_take("200ms")
    stage.until_runs("1")
    stays(lambda: stage.status()["phase"] == "Initialized" and not stage.is_held(), "nothing begins", 1)
    assert stage.status()["lastAppliedHash"] == before
    stage.update()
    stage.until_succeeded()
    assert not receiver.requests("check") and stage.status()["steps"] == 2


# ---- deadMan ----

def test_dead_man_the_bound_holds_where_nobody_hears(scene, stages, receiver):
    """Neither while slipway does not hear of it, nor while there is none. A manifest that names what is raised meanwhile does not
    let it go on: what it says is there at the end."""
    slipway, proxy = scene.slipway_behind_proxy(settings=SETTINGS)
    stage = stages(slipway=slipway, replicas=6)
    receiver.answer("begin", 403)
    stage.step(steps=[3], deadMan=True, analysis={"webhooks": [hook("begin", receiver, "confirm-rollout"), hook("check", receiver)]})
    stage.update()
    stage.pods_take("200ms")  # who stops it is not slipway
    stage.until_phase("Waiting")
    frozen = proxy.freeze(path="/deployments")
    receiver.answer("begin", 200)
    until(lambda: stage.get()["spec"].get("minReadySeconds") == 86400 and not stage.is_held(), lambda: "it is let go, and raised: %s" % stage.get(), every_s=0.01)

    def stops_by_itself():
        until_quiet(lambda: dict(stage.versions(ready=True)), "it stops by itself", for_s=2)
        assert 1 <= stage.versions()["2"] <= stage.slack and stage.get()["spec"]["progressDeadlineSeconds"] > 86400, stage.get()
    stops_by_itself()
    answer = stage.patch({"minReadySeconds": 1, "progressDeadlineSeconds": 300})["spec"]
    assert answer["minReadySeconds"] == 86400 and answer["progressDeadlineSeconds"] > 86400 and not answer.get("paused")
    assert any("minReadySeconds" in text and "SteppedRollout web" in text for text in stage.api.warnings), stage.api.warnings
    stops_by_itself()
    stage.slipway.kill()
    frozen.thaw()
    stops_by_itself()
    stage.slipway.start()
    stage.min_ready_s = 1
    stage.until_succeeded()
    spec = stage.get()["spec"]
    assert (spec["minReadySeconds"], spec["progressDeadlineSeconds"]) == (1, 300) and receiver.requests("check")
