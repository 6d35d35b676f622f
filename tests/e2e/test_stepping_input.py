# SPDX-License-Identifier: Apache-2.0
"""SteppedRollouts that nobody can obey: Ready=False with the field named, and nothing is touched. Admission says the same where
it is asked."""

import json

import pytest

from harness.cluster import api
from harness.stepping import KINDS, PLURALS, STEPPED, hook, workload
from harness.wait import stays, until, until_quiet

METRIC = {"name": "errors", "thresholdRange": {"max": 1}, "query": "up", "provider": {"type": "prometheus", "address": "http://127.0.0.1:1"}}
HOOK = {"name": "gate", "type": "rollout", "url": "http://127.0.0.1:1/"}


ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}


def analysis(**more):
    return {"analysis": dict({"interval": "1s"}, **more)}


WRONG = {
    "more than all": ({"steps": ["50%", "150%"]}, "spec.steps[1]"),
    "steps that do not rise": ({"steps": [2, 1]}, "spec.steps[1]"),
    "a step twice": ({"steps": ["50%", "50%"]}, "spec.steps[1]"),
    "steps and their size": ({"steps": [1], "stepSize": 1}, "stepSize"),
    "a size above all": ({"stepSize": "101%"}, "spec.stepSize"),
    "an unknown provider": (analysis(metrics=[dict(METRIC, provider={"type": "oracle", "address": "http://x"})]), "provider.type"),
    "an address that is none": (analysis(metrics=[dict(METRIC, provider={"type": "prometheus", "address": "over there"})]), "provider.address"),
    "a query with an unknown word": (analysis(metrics=[dict(METRIC, query="rate({{ nonsense }})")]), "query"),
    "a variable that is not given": (analysis(metrics=[dict(METRIC, query="rate({{ variables.x }})")]), "query"),
    "a placeholder without an end": (analysis(metrics=[dict(METRIC, query="rate({{ name")]), "query"),
    "neither query nor template": (analysis(metrics=[{"name": "errors", "thresholdRange": {"max": 1}}]), "spec.analysis.metrics[0]"),
    "a range upside down": (analysis(metrics=[dict(METRIC, thresholdRange={"min": 2, "max": 1})]), "thresholdRange"),
    "a URL that is none": (analysis(webhooks=[dict(HOOK, url="gate")]), "spec.analysis.webhooks[0].url"),
    "a URL of another kind": (analysis(webhooks=[dict(HOOK, url="ftp://gate/")]), "spec.analysis.webhooks[0].url"),
    "a target of another kind": ({"targetRef": {"kind": "ReplicaSet", "name": "web"}}, "spec.targetRef.kind"),
    "a target of another group": ({"targetRef": {"apiVersion": "batch/v1", "kind": "Deployment", "name": "web"}}, "spec.targetRef.apiVersion"),
}


def test_each_wrong_field_is_named_and_nothing_is_touched(stages):
    """All at once, each for a target of its own, of one kind or the other: first as admission says it, then as the status does
    where nobody was asked."""
    stage = stages()
    stage.pods_take("200ms")
    scene = stage.scene
    targets = {what: Target(scene, KINDS[number % len(KINDS)], "x-" + what.replace(" ", "-").lower()) for number, what in enumerate(WRONG)}
    said = {what: refusal(scene, target.stepped(WRONG[what][0])) for what, target in targets.items()}
    assert not {what: text for what, text in said.items() if WRONG[what][1] not in text}, said
    stage.no_admission()
    for what, target in targets.items():
        target.create()
        # The API server goes on asking for a second or so.
        until(lambda what=what, target=target: refusal(scene, target.stepped(WRONG[what][0])) == "", "%s is taken" % what)
    for what, target in targets.items():
        until(lambda target=target: target.ready(stage).get("status") == "False", lambda what=what, target=target: "%s: %s" % (what, stage.status(target.name)))
        assert target.ready(stage)["reason"] == "InvalidSpec" and WRONG[what][1] in target.ready(stage)["message"], "%s: %s" % (what, target.ready(stage))
        assert stage.status(target.name)["phase"] == "Initializing"
    scene.until_event("InvalidSpec")
    roll_as_if_nobody_were_there(targets.values())


class Target:
    """One of some kind, with a SteppedRollout of its name."""

    def __init__(self, scene, kind, name, **how):
        self.api, self.namespace, self.kind, self.name, self.how = scene.api, scene.namespace, kind, name, how
        self.path = "/apis/apps/v1/namespaces/%s/%s" % (scene.namespace, PLURALS[kind])

    def create(self):
        self.api.post(self.path, workload(self.kind, self.name, 2, **self.how))

    def stepped(self, spec):
        named = {"targetRef": {"kind": self.kind}} | spec
        return {"apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": self.name},
                "spec": dict(named, targetRef=dict(named["targetRef"], name=self.name))}

    def step(self, spec=None):
        self.api.post(STEPPED % self.namespace, self.stepped(analysis() if spec is None else spec))

    def get(self):
        return self.api.get(self.path + "/" + self.name)

    def ready(self, stage):
        return stage.condition(name=self.name)

    def until_ready(self, stage, status, *words):
        until(lambda: self.ready(stage).get("status") == status and all(word in json.dumps(self.ready(stage)) for word in words),
              lambda: "%s %s is Ready=%s with %s: %s" % (self.kind, self.name, status, words, stage.status(self.name)))

    def is_complete(self):
        found = self.get()
        spec, status = found["spec"], found.get("status", {})
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return False
        if self.kind == "DaemonSet":
            return 0 < status["desiredNumberScheduled"] == status.get("numberReady", 0) == status.get("updatedNumberScheduled", 0)
        return spec["replicas"] == status.get("readyReplicas", 0) == status.get("updatedReplicas", 0) == status["replicas"]

    def until_complete(self):
        until(self.is_complete, lambda: "%s %s is complete: %s" % (self.kind, self.name, self.get()), 60, 0.1)

    def update(self):
        self.api.patch(self.path + "/" + self.name, {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})

    def until_has_rolled_as_if_nobody_were_there(self):
        if self.how == ON_DELETE:
            until(lambda: self.get()["status"].get("observedGeneration") == self.get()["metadata"]["generation"], "its controller has seen it")
        else:
            self.until_complete()
        def ours():
            return [key for key in self.get()["metadata"].get("annotations") or {} if key.startswith("slipway.dev/")]
        until(lambda: not ours(), lambda: "nothing of ours is on %s %s: %s" % (self.kind, self.name, ours()), 2)


def roll_as_if_nobody_were_there(targets):
    for target in targets:
        target.until_complete()
    for target in targets:
        target.update()
    for target in targets:
        target.until_has_rolled_as_if_nobody_were_there()


def refusal(scene, stepped):
    try:
        scene.api.post(STEPPED % scene.namespace, stepped)
    except api.ApiError as error:
        return error.message
    return ""


STEPLESS = (("Deployment", {"strategy": {"type": "Recreate"}}), ("Deployment", {"surge": "100%", "unavailable": 0}), ("Deployment", {"surge": 0, "unavailable": "100%"}),
            ("StatefulSet", ON_DELETE), ("DaemonSet", ON_DELETE))


def test_a_target_that_is_missing_is_waited_for_and_one_that_has_no_steps_says_so(stages):
    """Missing, of each kind. Without steps: Recreate, a batch of all, and sets of which each Pod is its owner's business."""
    stage = stages()
    stage.pods_take("200ms")
    missing = [Target(stage.scene, kind, "later-" + kind.lower()) for kind in KINDS]
    stepless = [Target(stage.scene, kind, "stepless-%d" % number, **how) for number, (kind, how) in enumerate(STEPLESS)]
    for target in missing:
        target.step()
        assert any("there is no %s %s" % (target.kind, target.name) in text for text in stage.api.warnings), stage.api.warnings
    for target in stepless:
        target.create()
        target.step()
    for target in missing:
        target.until_ready(stage, "False", "TargetNotFound", "spec.targetRef: there is no %s %s" % (target.kind, target.name))
        target.create()
    for target in stepless:
        target.until_ready(stage, "False", "InvalidSpec", "spec.targetRef: ")
    for target in missing:
        target.until_ready(stage, "True")
        until(lambda target=target: stage.status(target.name)["phase"] == "Initialized", lambda target=target: "now it is there: %s" % stage.status(target.name))
    roll_as_if_nobody_were_there(stepless)
    for target in stepless:
        assert target.ready(stage)["reason"] == "InvalidSpec"
    until_quiet(lambda: [(target.get()["metadata"]["resourceVersion"], stage.stepped(target.name)["metadata"]["resourceVersion"]) for target in stepless],
                "nothing is written at rest", for_s=1.5)


def test_a_spec_that_becomes_wrong_in_the_middle_lets_go_and_one_that_is_mended_goes_on(stages, receiver):
    stage = stages()
    receiver.answer("next", 403)
    stage.step(analysis={"webhooks": [hook("next", receiver, "confirm-step")]})
    with pytest.raises(api.ApiError) as refused:
        stage.change(steps=[3, 1])
    assert "spec.steps[1]" in refused.value.message
    stage.update()
    stage.until_stopped(1)
    stage.steps = [1, 3]
    stage.change(steps=stage.steps)
    stays(lambda: stage.status()["currentStep"] == 1, "the stops are others, and it stands", 1)
    receiver.answer("next", 200)
    stage.until_succeeded()
