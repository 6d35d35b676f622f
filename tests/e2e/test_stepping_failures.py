# SPDX-License-Identifier: Apache-2.0
"""Rollouts that fail: by what, what becomes of their Pods, and of the template when it is applied again."""

import pytest

from harness.cluster import api
from harness.other_webhook import Refusal
from harness.stepping import KINDS, PLURALS, READY, hook
from harness.wait import stays, until

of_each_kind = pytest.mark.parametrize("kind", KINDS)
ON_AND_ON = 1000  # rounds: they are made until one fails


# What makes it fail, once it may begin; returns what is said of it.

def by_question(stage, receiver, measures):
    """Before the first Pod."""
    receiver.answer("before", 500)
    stage.update(stage.version)
    return "failed: pre-rollout: before: HTTP 500"


def by_metric(stage, receiver, measures):
    measures.are(stage.scene, 7)
    stage.update(stage.version)
    return "failed: step 1: errors: 7 is more than 0.5"


def by_webhook(stage, receiver, measures):
    receiver.answer("check", 500)
    stage.update(stage.version)
    return "failed: step 1: check: HTTP 500"


def by_restarts(stage, receiver, measures):
    """A Pod that has been ready for rounds."""
    stage.update(stage.version)
    stage.until_stopped(1)
    stage.until_check("pods/maxRestarts", True)
    new = [name for name, pod in stage.counts.pods("web").items() if pod["metadata"]["annotations"]["version"] == stage.version]
    stage.scene.cluster.crash(stage.scene.namespace, new[0], down="100ms")
    return "failed: step 1: pods/maxRestarts: "


def by_deadline(stage, receiver, measures):
    stage.change(progressDeadlineSeconds=3)
    stage.update(stage.version, **{READY: "false"})
    return "failed: progress deadline exceeded: "


@of_each_kind
def test_it_fails_by_each_cause_and_goes_back(stages, receiver, measures, kind):
    """One bad template after the other. In place, the template as it is in git; a DaemonSet cannot, so its template is put back.
    The same template is held when it comes again, and whoever applies it is warned; another one is not."""
    stage = stages(kind)
    is_back = kind == "DaemonSet"
    measures.are(stage.scene, 0)
    stage.step(analysis={"iterations": ON_AND_ON, "metrics": [measures.metric()], "pods": {},
                         "webhooks": [hook("check", receiver), hook("before", receiver, "pre-rollout")]})
    for number, cause in enumerate((by_question, by_metric, by_webhook, by_restarts, by_deadline), 2):
        stage.version = str(number)
        stage.counts.begin("web")
        before = stage.status().get("failedHash")
        said = cause(stage, receiver, measures)
        stage.until_failed(before=before)
        if cause is by_question:
            assert stage.versions()[stage.version] == 0
        failed = stage.status()
        assert failed["failedHash"] and failed["failedHash"] != failed["lastPromotedHash"] and failed["failedChecks"] <= 1
        bad = {READY: "false"} if cause is by_deadline else {}
        if bad:
            stage.change(progressDeadlineSeconds=600)  # which a way back has as well
        until(lambda: stage.status().get("activity") in (("RolledBack",) if is_back else ("Retreated",)), lambda: "it is over: " + stage.describe())
        stage.until_back()
        stage.until_said("Synced", said)
        assert stage.condition("Promoted")["status"] == "False" and stage.template_version() == ("1" if is_back else stage.version)
        if cause in (by_metric, by_webhook):
            stage.until_said("CheckFailed", "errors: value 7" if cause is by_metric else "check: ")
            if kind != "StatefulSet":  # which has no surge: the Pod that is replaced is missing meanwhile
                assert stage.counts.lowest("web") >= stage.replicas() - (1 if is_back else 0)
        if cause is by_metric or is_back:
            stay_in_quarantine(stage, failed["failedHash"], bad, is_back)
        else:
            stage.apply_again(stage.version, **bad)
            stays(lambda: stage.is_held() and stage.versions()[stage.version] == 0, lambda: "held: %s %s" % (stage.versions(), stage.describe()), 1)
        for path in ("before", "check"):
            receiver.answer(path, 200)
        measures.are(stage.scene, 0)
    stage.until_reason("RolledBack" if is_back else "Retreated")
    # Another one, which is good.
    stage.change(analysis={"iterations": 1})
    stage.update("9", **{READY: None})
    stage.until_succeeded("9")
    assert stage.condition("Promoted")["status"] == "True"


def stay_in_quarantine(stage, failed_hash, bad, is_back):
    """The same one again, as GitOps would apply it, after the promoted one was there."""
    version = stage.version
    if not is_back:
        stage.apply_again("1")
        until(lambda: stage.status()["phase"] == "Initialized" and stage.is_untouched(), lambda: "the promoted one is back: " + stage.describe())
    before = len(stage.said("Synced"))
    warnings = stage.apply_again(version, **bad)
    assert "this template has failed" in warnings and "kubectl slipway retry web" in warnings, warnings
    until(lambda: stage.status()["phase"] == "Failed" and stage.status()["activity"] == "Held", lambda: "held in quarantine: " + stage.describe())
    assert "failed before" in stage.status()["message"] and stage.status()["failedHash"] == failed_hash
    until(lambda: any("applied again" in text for text in stage.said("Synced")), lambda: "an Event says it: %s, %d before" % (stage.said("Synced"), before))
    stays(lambda: stage.is_held() and stage.versions()[version] == 0, lambda: "held in quarantine: %s %s" % (stage.versions(), stage.describe()), 1.5)


@of_each_kind
def test_hold_leaves_it_where_it_is_and_rollback_puts_the_template_back(stages, receiver, kind):
    """While a rollback is under way the same template is refused: a hold would freeze it half-way. One that does not come to its
    end, or that somebody refuses, is said to have failed."""
    stage = stages(kind, surge=0, unavailable=1)
    receiver.answer("check", 500)
    stage.step(onFailure="Hold", analysis={"webhooks": [hook("check", receiver)]})
    stage.update()
    stage.until_failed("Held")
    versions = dict(stage.versions(ready=True))
    assert versions["2"] >= 1
    stays(lambda: dict(stage.versions()) == versions and stage.is_held(), "it stays where it is", 2)
    receiver.answer("check", 200)
    stage.say("retry")
    stage.until_succeeded()
    stage.change(onFailure="Rollback", analysis={"iterations": ON_AND_ON})

    def fails(version):
        """Where one Pod is new; no other becomes ready from now on."""
        receiver.answer("check", 200)
        stage.update(version)
        stage.until_stopped(1)
        stage.scene.stall_pods()
        receiver.answer("check", 500)

    fails("3")
    stage.until_phase("Failed", activity="RollingBack")
    until(lambda: stage.template_version() == "2", "the template is put back")
    with pytest.raises(api.ApiError) as refused:
        stage.apply_again("3")
    assert "rollback" in refused.value.message and "under way" in refused.value.message, refused.value.message
    stage.pods_take("200ms")
    until(lambda: stage.status().get("activity") == "RolledBack", lambda: "it is rolled back: " + stage.describe())
    stage.until_runs("2")
    until(stage.is_untouched, lambda: "nothing holds: %s" % stage.get())
    stage.until_reason("RolledBack")
    assert stage.status()["phase"] == "Failed" and stage.condition("Promoted")["status"] == "False"

    fails("4")
    stage.change(progressDeadlineSeconds=3)
    stage.until_said("RollbackFailed", "did not become complete within the progress deadline")
    assert stage.status()["phase"] == "Failed" and stage.template_version() == "2"
    stage.change(progressDeadlineSeconds=600)
    stage.pods_take("200ms")
    stage.until_runs("2")

    with Refusal(stage.scene, PLURALS[kind], lambda made: made["spec"]["template"]["metadata"]["annotations"]["version"] == "2", "not on a Friday") as refusal:
        fails("5")
        stage.until_said("RollbackFailed", "could not be put back: ")
        stage.until_said("RollbackFailed", "not on a Friday")
        assert refusal.refused and stage.is_held() and stage.template_version() == "5" and stage.status()["activity"] == "Held"
    stage.say("abort")
    stage.pods_take("200ms")
    until(lambda: stage.status().get("activity") == "RolledBack", lambda: "now it is rolled back: " + stage.describe())
    stage.until_runs("2")


@pytest.mark.parametrize("kind", ("Deployment", "StatefulSet"))
def test_a_retreat_that_is_stuck_ends_where_it_is(stages, receiver, kind):
    """Pods that come back do not become ready."""
    stage = stages(kind, surge=0, unavailable=1)
    stage.step(steps=[2], analysis={"iterations": ON_AND_ON, "webhooks": [hook("check", receiver)]})
    stage.update()
    stage.until_stopped(1)
    stage.scene.stall_pods()
    stage.change(progressDeadlineSeconds=3)
    receiver.answer("check", 500)
    stage.until_said("RetreatStuck", "not done within the progress deadline")
    until(lambda: stage.status()["activity"] == "Held", stage.describe)
    assert stage.status()["phase"] == "Failed" and "within the progress deadline" in stage.status()["message"], stage.describe()
    versions = dict(stage.versions())
    assert stage.is_held() and versions["2"] >= 1 and stage.template_version() == "2"
    stage.change(progressDeadlineSeconds=600)
    stage.pods_take("200ms")
    until(lambda: sum(stage.versions(ready=True).values()) == 4, lambda: "its Pods are well again: %s" % stage.versions())
    stays(lambda: stage.is_held() and dict(stage.versions()) == versions, lambda: "it is held where it is: %s" % stage.versions(), 1)
    stage.say("abort")
    stage.until_failed("Retreated")
    stage.until_back()


def test_threshold_says_how_many_rounds_may_fail_and_a_rollback_webhook_fails_it_at_once(stages, receiver):
    stage = stages()
    answers = iter([500, 500])
    receiver.answer("check", lambda _: next(answers, 200))
    receiver.answer("back", 403)
    stage.step(analysis={"threshold": 3, "iterations": 2, "webhooks": [hook("check", receiver), hook("back", receiver, "rollback")]})
    stage.update()
    stage.until_succeeded()
    assert len(receiver.requests("check")) == 2 + 2 * 2, "two that failed, and two that passed at each of two stops"
    stage.change(analysis={"threshold": 100, "iterations": ON_AND_ON})
    stage.update("3")
    stage.until_stopped(1)
    stage.until_check("check", True)
    assert receiver.requests("back"), "it is asked"
    receiver.answer("back", 200)
    stage.until_failed()
    stage.until_said("Synced", "failed: rollback webhook back asks for a rollback")
    stage.until_back("2")


def test_a_long_retreat_never_takes_more_than_the_strategy_allows(stages, receiver):
    """From 6 or more new ones of 10 back, one or two at a time. Killed in the middle of it, the next one ends it; nobody asks its
    webhooks then."""
    stage = stages(replicas=10, surge=1, unavailable=1)
    receiver.answer("check", lambda _: 500 if stage.status().get("currentStep") == 2 else 200)
    receiver.answer("next", 403)
    stage.step(steps=[2, 6], analysis={"webhooks": [hook("check", receiver), hook("next", receiver, "confirm-step")]})
    stage.update()
    stage.until_passes(receiver, "next", 1)
    until(lambda: stage.status().get("currentStep") == 2 and stage.is_held(), lambda: "the second step: " + stage.describe())
    stage.counts.begin("web")
    stage.scene.no_webhook()
    stage.no_admission()
    for _ in range(2):
        stage.until_failed("Retreating", "Retreated")
        stage.slipway.kill()
        stage.slipway.start()
    stage.until_phase("Failed", activity="Retreated", timeout_s=60)
    stage.until_back()
    assert stage.counts.lowest("web") >= 9
    assert stage.get()["spec"]["paused"] is True and stage.template_version() == "2"


def test_a_second_template_that_fails_in_mid_rollout_goes_back_to_the_last_promoted_one(stages, receiver):
    """Three ReplicaSets: the promoted one, that which was under way, and that which failed."""
    stage = stages(replicas=8, surge=2, unavailable=1)
    receiver.answer("next", 403)
    stage.step(steps=[3, 6], analysis={"webhooks": [hook("next", receiver, "confirm-step"), hook("check", receiver)]})
    stage.update("2")
    stage.until_stopped(1)
    receiver.answer("check", lambda payload: 500 if stage.versions(ready=True)["3"] else 200)
    stage.update("3")
    stage.until_failed()
    stage.until_back()
