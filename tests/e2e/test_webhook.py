# SPDX-License-Identifier: Apache-2.0
"""What happens around admission: nobody reached, not ready yet, another webhook after ours."""

import time

import pytest

from harness import observer as look
from harness.cluster import api
from harness.other_webhook import OtherWebhook
from harness.scene import DEPLOYMENT_PATH
from harness.wait import in_parallel, until


def test_a_template_that_slips_past_the_webhook_is_paused_at_once(scene):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="4s")
    scene.group("a", "b", "c", replicas=2, spec={"atRest": "Running"})
    until(lambda: not any(scene.is_paused(name) for name in "abc"), "at rest they run")
    scene.update("a")
    scene.until_rolling("a")
    scene.no_webhook()
    time.sleep(1.5)  # the API server notices a removed webhook configuration about a second later
    scene.observer.excuse("b", "c")
    begin = time.monotonic()
    scene.update("b", "c")
    scene.until_held("b", "c", timeout_s=5)
    assert time.monotonic() - begin < 5
    scene.until_runs("a", "b", "c", timeout_s=120)
    scene.until_ready()


def test_many_that_slip_past_at_once_leave_one_rolling(scene):
    scene.slipway(webhook=False)
    names = ["m%02d" % number for number in range(20)]
    scene.observer.excuse(*names)  # their first rollouts, which nobody held at admission either
    scene.group(*names, replicas=1, spec={"atRest": "Running", "availabilityGuard": "Off"})
    until(lambda: not any(scene.is_paused(name) for name in names), "at rest they run", 30)
    scene.cluster.pods_take(scene.namespace, start="20s")
    scene.observer.excuse(*names)
    in_parallel(scene.update, names)
    until(lambda: sum(look.is_paused(d) for d in scene.observer.deployments().values()) == 19, "nineteen are held", 15)
    scene.cluster.pods_take(scene.namespace, start="100ms")
    scene.until_runs(*names, timeout_s=90)
    scene.until_ready()


def test_reviews_fail_until_the_caches_are_synced_and_failure_policy_decides(scene):
    slipway = scene.slipway()
    scene.group("a", replicas=1)
    slipway.stop()
    with pytest.raises(api.ApiError) as refused:
        scene.update("a")
    assert refused.value.status == 500 and "deployments.slipway.dev" in refused.value.message
    slipway.start()
    scene.update("a")
    scene.until_runs("a")


@pytest.mark.parametrize("unpauses", [False, True])
def test_a_webhook_that_changes_the_template_after_ours_does_not_get_past(scene, tmp_path, unpauses):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="2s")
    scene.group("a", "b", replicas=1, spec={"atRest": "Running"})
    other = OtherWebhook(tmp_path / "other", unpauses)
    name = "zz-other-" + scene.namespace
    try:
        scene.cluster.register_webhook(name, scene.namespace, other.url, other.ca_pem, reinvocation="Never")
        until(lambda: scene.annotate("a", order="0") or other.reviews, "the other webhook is asked", 20)
        # Its change is a new template for whoever is written to: also by a label edit.
        scene.patch("a", {"metadata": {"labels": {"touched": "yes"}}})
        scene.patch("b", {"metadata": {"labels": {"touched": "yes"}}})
        scene.update("a", "b")
        scene.until_runs("a", "b")
        scene.until_ready()
    finally:
        scene.cluster.unregister_webhook(name)
        other.close()


def test_dry_run_gets_the_same_answer_and_leaves_nothing_behind(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1, spec={"atRest": "Running"})
    until(lambda: not scene.is_paused("a"), "at rest it runs")
    version = scene.get("a")["metadata"]["resourceVersion"]
    answer = scene.api.patch(DEPLOYMENT_PATH % scene.namespace + "/a?dryRun=All",
                             {"spec": {"template": {"metadata": {"annotations": {"version": "9"}}}}})
    assert look.is_paused(answer) and look.annotation(answer, look.HELD_BY) == "coordination/web"
    time.sleep(1)
    assert scene.get("a")["metadata"]["resourceVersion"] == version and not scene.status().get("pending")


def test_the_webhook_and_the_probes_answer_what_they_should(scene):
    slipway = scene.slipway()
    assert slipway.get(slipway.health_port, "/healthz")[0] == 200
    status, text = slipway.get(slipway.health_port, "/readyz?verbose")
    assert status == 200 and "ok" in text
    status, text = slipway.get(slipway.metrics_port, "/metrics")
    assert status == 200
    for name in ("rest_client_requests_total", "workqueue_depth", "process_resident_memory_bytes"):
        assert name in text, name
