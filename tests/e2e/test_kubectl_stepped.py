# SPDX-License-Identifier: Apache-2.0
"""kubectl slipway on SteppedRollouts: what it shows of each phase, and what a person says to one.

No slipway runs here: the test writes the statuses that the module would, and obeys the annotations in its place.
"""

import re
import signal
import subprocess
import threading

import pytest

from harness.kubectl_slipway import DONE, FAILED, NOT_FOUND, PROGRAM, SANITIZERS, USAGE, environment, facts, run
from harness.wait import until

PATH = "/apis/slipway.dev/v1alpha1/namespaces/%s/steppedrollouts"
ERRORS = {"name": "error-rate", "type": "metric", "value": "0.52", "range": "<= 0.01", "passed": False, "at": "2021-01-01T00:00:00Z"}
GATE = {"name": "gate", "type": "rollout", "passed": True, "at": "2021-01-01T00:00:00Z"}
ANALYSING = {"phase": "Progressing", "activity": "Analysing", "step": "2/4", "updated": "3/10", "currentStep": 2, "steps": 4, "stop": 3, "updatedReplicas": 3,
             "replicas": 10, "iterations": 1, "failedChecks": 1, "checks": [ERRORS, GATE], "stepStartedAt": "2021-01-01T00:00:00Z",
             "observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "stepping its target"}]}


def not_ready(reason, message):
    return [{"type": "Ready", "status": "False", "reason": reason, "message": message}]


class Stepped:
    """One SteppedRollout, and what slipway would write on it."""

    def __init__(self, scene, name="web", kind="Deployment", target="web", **spec):
        self.scene, self.name = scene, name
        self.path = PATH % scene.namespace + "/" + name
        scene.api.post(PATH % scene.namespace, {"apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": name},
                                                "spec": dict({"targetRef": {"kind": kind, "name": target}, "analysis": {"iterations": 2, "threshold": 3}}, **spec)})

    def is_at(self, **status):
        self.scene.api.patch(self.path + "/status", {"status": dict(ANALYSING, **status)})
        return self

    def annotations(self):
        return self.scene.api.get(self.path)["metadata"].get("annotations") or {}

    def obey(self, key, **status):
        """As soon as the annotation is there. Returns a function that waits for it and gives the value that it had."""
        seen = []

        def watch():
            until(lambda: key in self.annotations(), "%s is set" % key, 30)
            seen.append(self.annotations()[key])
            self.is_at(**status)
            self.scene.api.patch(self.path, {"metadata": {"annotations": {key: None}}})
        thread = threading.Thread(target=watch)
        thread.start()

        def value():
            thread.join(60)
            return seen[0]
        return value


@pytest.fixture
def web(scene):
    return Stepped(scene).is_at()


def why(scene, *words):
    found = facts(scene, "why", *words)
    return found["reason"], "\n".join([found["message"], *found["details"], found.get("advice", "")])


def test_status_shows_phase_step_progress_and_each_check(scene, web):
    Stepped(scene, "db", "StatefulSet", "db").is_at(phase="Succeeded", activity=None, checks=[])
    lines = run(scene, "status").splitlines()
    assert lines[0].split() == ["ROLLOUT", "TARGET", "PHASE", "STEP", "UPDATED", "TIME", "NOTE"], "no coordinations, no table of theirs"
    assert re.fullmatch(r"db +statefulset/db +Succeeded +2/4 +\S+ 3/10 +-", lines[1]), lines
    assert re.fullmatch(r"web +deployment/web +Progressing +2/4 +███░░░░░░░ 3/10 +\S+ +1 of 2 rounds have passed", lines[2]), lines
    assert [line.strip() for line in lines[3:]] == ["✗ error-rate 0.52 (<= 0.01)", "✓ gate", "failed rounds: 1 of 3"]
    web.is_at(message="holds at 3 of 10 Pods; round 2 of 2 in 20 s")
    assert "holds at 3 of 10 Pods; round 2 of 2 in 20 s" in run(scene, "status", "web") and "db" not in run(scene, "status", "sr/web")
    one = facts(scene, "status", "web")
    assert one["items"] == [] and [one["rollouts"][0][key] for key in ("state", "step", "steps", "updated", "replicas", "failedRounds")] == \
        ["Progressing", 2, 4, 3, 10, 1]
    assert one["rollouts"][0]["checks"][0] == ERRORS and one["rollouts"][0]["target"] == {"kind": "Deployment", "name": "web"}
    scene.coordinate("shop")
    assert "shop" in run(scene, "status").split("\n\n")[0] and "Progressing" in run(scene, "status").split("\n\n")[1]
    assert re.search(r"^%s +web +deployment/web" % scene.namespace, run(scene, "status", "-A", namespace=False), re.M)
    assert "nor a SteppedRollout of that name" in run(scene, "status", "x", status=NOT_FOUND)
    assert "there is no SteppedRollout shop in" in run(scene, "status", "steppedrollout/shop", status=NOT_FOUND)


@pytest.mark.parametrize("status, reason, words", [
    ({}, "Analysing", ["web stands at step 2 of 4", "stops at 3 of 10 Pods; updated: 3", "1 of 2 rounds have passed",
                       "failed: error-rate 0.52 (<= 0.01)", "passed: gate", "failed rounds: 1 of 3", "kubectl slipway promote web"]),
    ({"activity": "Advancing", "checks": [], "failedChecks": 0}, "Advancing", ["web rolls to step 2 of 4"]),
    ({"activity": "Questions", "message": "pre-rollout: HTTP 500"}, "Asking", ["before the first Pod of web", "pre-rollout: HTTP 500"]),
    ({"phase": "Waiting"}, "WaitsForConfirmation", ["before its next step (confirm-step)", "updated: 3"]),
    ({"phase": "Waiting", "activity": "Questions", "checks": [dict(GATE, type="confirm-rollout", passed=False, message="HTTP 403")]}, "WaitsForConfirmation",
     ["before its first Pod (confirm-rollout)", "failed: gate: HTTP 403", "kubectl slipway abort web"]),
    ({"phase": "WaitingPromotion"}, "WaitsForConfirmation", ["before its last step (confirm-promotion)"]),
    ({"phase": "Promoting", "activity": "Promoting"}, "Promoting", ["rolls to the end"]),
    ({"phase": "Failed", "activity": "Retreating"}, "Retreating", ["failed at step 2/4", "the template stays as it is", "kubectl slipway retry web"]),
    ({"phase": "Failed", "activity": "Retreated"}, "StepFailed", ["the failed template is held"]),
    ({"phase": "Failed", "activity": "RolledBack"}, "StepFailed", ["the last promoted template was put back"]),
    ({"phase": "Failed", "activity": None}, "StepFailed", ["it is held where it stands"]),
    ({"phase": "Failed", "activity": "Retreated", "conditions": not_ready("FailedTemplate", "deleted, but")}, "StepFailed", ["failed at step 2/4"]),
    ({"phase": "Failed", "activity": "Retreated", "conditions": not_ready("TargetNotFound", "there is no Deployment web")}, "TargetNotFound", ["no Deployment web"]),
    ({"phase": "Held", "message": "coordination/shop holds it: position 2 of 3"}, "HeldByOther", ["not by its SteppedRollout", "coordination/shop holds it"]),
    ({"phase": "Succeeded"}, "Stepped", ["web has nothing to roll"]),
    ({"phase": "Initializing"}, "StepBegins", ["never seen complete"]),
    ({"phase": "Initializing", "conditions": not_ready("InvalidSpec", "spec.steps[1]: 5% is not more than the step before it (10%)")}, "InvalidSpec",
     ["web is not stepped", "spec.steps[1]: 5%"]),
    ({"observedGeneration": 0}, "Unseen", ["has not looked at the SteppedRollout of web", "module stepping"]),
], ids=lambda value: value if isinstance(value, str) else "")
def test_why_explains_each_state(scene, web, status, reason, words):
    web.is_at(**status)
    found, said = why(scene, "web")
    assert found == reason and all(word in said for word in words), said
    assert why(scene, "steppedrollout.slipway.dev/web")[0] == reason


def test_why_finds_what_is_stepped_by_its_target(scene, web):
    Stepped(scene, "db-steps", "StatefulSet", "db").is_at()
    assert why(scene, "statefulset/db")[1].startswith("db stands at step 2 of 4 and is analysed")
    assert "stepped by SteppedRollout db-steps" in why(scene, "sts/db")[1] and "stepped by" not in why(scene, "web")[1]
    assert why(scene, "sts/db")[0] == why(scene, "db-steps")[0] == "Analysing"
    assert "has the DaemonSet db for its target" in run(scene, "why", "ds/db", status=NOT_FOUND)
    assert "this command is for a Deployment, StatefulSet" in run(scene, "why", "job/db", status=USAGE)
    # The Deployment itself is there: the answer is the same, with who holds it.
    scene.create("web", replicas=1)
    found = facts(scene, "why", "web")
    assert (found["reason"], found["paused"], found["rollout"]["step"]) == ("Analysing", False, 2)
    scene.api.patch("/apis/apps/v1/namespaces/%s/deployments/web" % scene.namespace, {"metadata": {"annotations": {"slipway.dev/hold": "lunch"}}})
    assert why(scene, "web")[0] == "HeldByPerson"
    scene.api.patch(web.path, {"metadata": {"annotations": {"slipway.dev/abort": "true"}}})
    assert 'slipway.dev/abort: "true" is set, and not obeyed yet' in why(scene, "sr/web")[1]


def test_of_several_on_one_target_the_oldest_answers(scene, web):
    Stepped(scene, "aaa").is_at(phase="Initializing", conditions=not_ready("Conflict", "web steps it already"))
    scene.create("web", replicas=1)
    ages = [scene.api.get(PATH % scene.namespace + "/" + name)["metadata"]["creationTimestamp"] for name in ("web", "aaa")]
    assert why(scene, "web")[0] == ("Analysing" if ages[0] < ages[1] else "Conflict"), "of the same second the first by name"
    assert why(scene, "sr/aaa")[0] == "Conflict" and "Conflict" in run(scene, "status", "aaa")


@pytest.mark.parametrize("command, key, value, status, said", [
    (["promote"], "promote", "step", {"step": "3/4"}, "promoted: now Progressing, step 3/4"),
    (["promote", "--full"], "promote", "full", {"phase": "Promoting", "step": "4/4"}, "promoted to the end: now Promoting, step 4/4"),
    (["abort"], "abort", "true", {"phase": "Failed"}, "aborted: now Failed, step 2/4"),
])
def test_what_a_person_says_is_waited_for(scene, web, command, key, value, status, said):
    obeyed = web.obey("slipway.dev/" + key, **status)
    assert run(scene, *command, "web").strip() == "steppedrollout.slipway.dev/web " + said
    assert obeyed() == value and web.annotations() == {}


def test_what_has_failed_can_be_promoted_or_taken_back_by_hand(scene, web):
    web.is_at(phase="Failed", activity="Held", failedHash="0" * 32)
    obeyed = web.obey("slipway.dev/abort", phase="Failed", activity="Retreating")
    assert "web aborted: now Failed" in run(scene, "abort", "web") and obeyed() == "true"
    obeyed = web.obey("slipway.dev/promote", phase="Promoting", activity="Promoting")
    assert "web promoted to the end: now Promoting" in run(scene, "promote", "web", "--full") and obeyed() == "full"


def test_retry_is_for_what_has_failed(scene, web):
    assert "no template of it has failed" in run(scene, "retry", "web", status=FAILED) and web.annotations() == {}
    web.is_at(phase="Failed", activity="Retreated", failedHash="0" * 32)
    obeyed = web.obey("slipway.dev/retry", phase="Progressing", step="1/4", failedHash=None)
    assert "web tried again: now Progressing, step 1/4" in run(scene, "retry", "sr/web") and obeyed() == "true"


@pytest.mark.parametrize("command, status, words", [
    (["promote"], {"phase": "Succeeded"}, "nothing is under way, it is Succeeded"),
    (["abort"], {"phase": "Initialized"}, "nothing is under way, it is Initialized"),
    (["promote"], {"phase": "Failed", "activity": "RolledBack"}, "its template was rolled back"),
    (["promote"], {"phase": "Promoting", "activity": "Promoting"}, "it is being promoted already"),
    (["promote"], {"activity": "Advancing"}, "it advances already, to step 2/4"),
    (["abort"], {"phase": "Failed", "activity": "Retreated"}, "its rollout has failed already"),
    (["promote"], {"phase": "Failed", "activity": "Held", "conditions": not_ready("Conflict", "older")}, "it cannot be obeyed: Conflict: older"),
    (["promote"], {"phase": "Initializing", "conditions": not_ready("InvalidSpec", "spec.steps: x")}, "it cannot be obeyed: InvalidSpec: spec.steps: x"),
])
def test_what_would_not_be_obeyed_is_refused_and_nothing_is_written(scene, web, command, status, words):
    web.is_at(**status)
    assert words in run(scene, *command, "web", status=FAILED) and web.annotations() == {}


def test_nobody_obeys(scene, web):
    Stepped(scene, "new")
    assert "slipway has not looked at it yet" in run(scene, "promote", "new", status=FAILED)
    said = run(scene, "promote", "web", "--timeout", "500ms", status=FAILED)
    assert "has not obeyed within" in said and "slipway.dev/promote stays set" in said and web.annotations() == {"slipway.dev/promote": "step"}
    assert "annotated: slipway.dev/abort is set" in run(scene, "abort", "web", "--timeout=0")
    assert "(server dry run)" in run(scene, "promote", "web", "--full", "--dry-run") and web.annotations()["slipway.dev/promote"] == "step"
    assert "there is no SteppedRollout x" in run(scene, "retry", "x", status=NOT_FOUND)
    assert "a duration is wanted" in run(scene, "retry", "web", "--timeout", "soon", status=USAGE)
    assert "--full means nothing to abort" in run(scene, "abort", "web", "--full", status=USAGE)
    scene.api.patch(web.path, {"spec": {"suspend": True}})
    web.is_at(observedGeneration=2)
    assert "it is suspended" in run(scene, "promote", "web", status=FAILED)


def test_one_that_is_gone_has_been_released(scene, web):
    """As a SteppedRollout that waits for its deletion."""
    web.is_at(phase="Failed", activity="Retreated")
    assert "web released: once it is deleted, its target rolls as it is" in run(scene, "abort", "web", "--release")
    assert web.annotations() == {"slipway.dev/abort": "release"}
    scene.api.patch(web.path, {"metadata": {"annotations": {"slipway.dev/abort": None}}})
    scene.api.patch(web.path, {"metadata": {"finalizers": ["slipway.dev/stepping"]}})
    scene.api.delete(web.path)

    def obey():
        until(lambda: web.annotations().get("slipway.dev/abort") == "release", "it may go", 30)
        scene.api.patch(web.path, {"metadata": {"finalizers": None}})
    thread = threading.Thread(target=obey)
    thread.start()
    assert "web released: it is gone" in run(scene, "abort", "web", "--release")
    thread.join(60)


def test_completion_and_help(scene, web):
    def offered(*words):
        return run(scene, "__complete", *words[:-1], "-n", scene.namespace, words[-1], namespace=False).splitlines()[:-1]
    Stepped(scene, "worker", target="worker")
    scene.coordinate("warehouse")
    assert offered("promote", "w") == ["web", "worker"] and offered("promote", "web", "w") == ["worker"]
    assert offered("status", "w") == ["warehouse", "web", "worker"]
    assert offered("why", "st") == ["steppedrollout/web", "steppedrollout/worker"]
    assert "--full\tto the end, without further steps and checks" in offered("promote", "--f")
    assert {word.split("\t")[0] for word in offered("")} >= {"promote", "abort", "retry"}
    for command in "promote", "abort", "retry":
        assert "Usage\n  kubectl slipway %s STEPPEDROLLOUT..." % command in run(scene, command, "--help", namespace=False)


def test_a_watch_tells_of_steps(scene, web, tmp_path):
    out = tmp_path / "out"
    with open(out, "w") as file:
        process = subprocess.Popen([str(PROGRAM), "status", "-w", "-n", scene.namespace], env=environment(scene), stdout=file, stderr=subprocess.PIPE, text=True)
    try:
        first = "%s/web: Progressing, step 2/4, Deployment web 3/10 updated (1 of 2 rounds have passed)" % scene.namespace
        until(lambda: first in out.read_text(), "it begins with what is there")
        web.is_at(phase="Failed", activity="Retreating", updatedReplicas=2)
        until(lambda: "web: Failed, step 2/4, Deployment web 2/10 updated (its Pods go back to the old revision)" in out.read_text(), out.read_text)
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == DONE and not any(word in said for word in SANITIZERS), said
