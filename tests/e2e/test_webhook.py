# SPDX-License-Identifier: Apache-2.0
"""What happens around admission: nobody reached, not ready yet, another webhook after ours."""

import base64
import collections
import http.client
import json
import os
import signal
import ssl
import time

import pytest

from harness import observer as look
from harness.cluster import api
from harness.other_webhook import OtherWebhook
from harness.scene import DEPLOYMENT_PATH, deployment
from harness.slipway import make_certificate
from harness.storm import Storm
from harness.wait import in_parallel, until, until_quiet


def test_a_template_that_slips_past_the_webhook_is_paused_at_once(scene):
    slipway = scene.slipway()
    scene.group("a", "b", "c", replicas=2, spec={"atRest": "Running"})
    until(lambda: not any(scene.is_paused(name) for name in "abc"), "at rest they run")
    scene.roll_and_stall("a")
    scene.no_webhook()
    until(lambda: not scene.is_asked(), "the API server asks %s no more" % slipway.name)
    scene.observer.excuse("b", "c")
    scene.update("b", "c")
    scene.until_held("b", "c")
    scene.let_pods_go()
    scene.until_runs("a", "b", "c", timeout_s=120)
    scene.until_ready()


def count_events(scene, reason):
    """name of an object: how often it happened to it"""
    counts = collections.Counter()
    for event in scene.events():
        if event["reason"] == reason:
            counts[event["involvedObject"]["name"]] += event["count"]
    return counts


def test_many_that_slip_past_at_once_leave_one_rolling(scene):
    slipway, proxy = scene.slipway_behind_proxy(webhook=False)
    names = ["m%02d" % number for number in range(20)]
    scene.observer.excuse(*names)  # their first rollouts, which nobody held at admission either
    scene.group(*names, replicas=1, spec={"atRest": "Running", "availabilityGuard": "Off"})
    until(lambda: not any(scene.is_paused(name) for name in names), "at rest they run", 30)
    until_quiet(lambda: len(proxy.writes), "what belongs to the beginning is written")
    before, holds = count_events(scene, "RolloutHeld"), slipway.metric("slipway_holds_total")
    scene.stall_pods()
    scene.observer.excuse(*names)
    began = time.monotonic()
    in_parallel(scene.update, names)
    changed = time.monotonic()
    until(lambda: sum(look.is_paused(d) for d in scene.observer.deployments().values()) == 19, "nineteen are held")
    # That the excused do not roll on beside each other is what the observer sees to; here, that each is paused once, by the first word.

    def pauses():
        return [write for write in proxy.handover_writes(began) if write.method == "PATCH" and "/deployments/" in write.path
                and b'"paused":true' in write.payload.replace(b" ", b"") and write.status == 200]
    until(lambda: len(pauses()) >= 19, lambda: "nineteen pauses are answered: %s" % pauses())
    assert len(pauses()) == len({write.name for write in pauses()}) == 19
    print("the last of nineteen was paused %.3f s after the last change" % (max(write.ended for write in pauses()) - changed))
    # And it is told: by the status, by the numbers, and by an Event on each that waits now.
    until(lambda: scene.status().get("pending") == 19, lambda: "19 wait: %s" % scene.status().get("pending"))
    scene.until_condition("Progressing", "True", "DeploymentRollingOut")
    assert scene.condition("Progressing")["message"].endswith("is rolling out, 19 waiting")
    assert slipway.metric("slipway_waiting_deployments") == 19
    assert slipway.metric("slipway_holds_total") >= holds + 19, "it counts also what came too late and was sent again"
    waiting = [name for name, d in scene.observer.deployments().items() if look.is_paused(d)]
    until(lambda: all(count_events(scene, "RolloutHeld")[name] == before[name] + 1 for name in waiting),
          lambda: "each of the 19 has one Event more that says that it waits: %s, before %s; not written: %s" % (
              count_events(scene, "RolloutHeld"), before, {why: slipway.metric("slipway_events_dropped_total", 'why="%s"' % why) for why in ("rate", "queue", "error")}))
    scene.let_pods_go()
    scene.until_runs(*names, timeout_s=90)
    scene.until_ready()


def test_reviews_fail_while_nobody_answers(scene):
    slipway = scene.slipway()
    scene.group("a", replicas=1)
    slipway.stop()
    with pytest.raises(api.ApiError) as refused:
        scene.update("a")
    assert refused.value.status == 500 and "deployments.slipway.dev" in refused.value.message
    slipway.start()
    scene.update("a")
    scene.until_runs("a")


def ask(slipway, review):
    """(status, JSON or None) of its webhook, as the API server would ask it."""
    context = ssl.create_default_context(cadata=slipway.ca_pem.decode())
    connection = http.client.HTTPSConnection("127.0.0.1", slipway.webhook_port, timeout=30, context=context)
    try:
        connection.request("POST", "/mutate-apps-v1-deployment?timeout=10s", json.dumps(review), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if answer.status == 200 else None
    finally:
        connection.close()


def create_review(scene, name):
    made = deployment(name, replicas=1)
    made["metadata"]["namespace"] = scene.namespace
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
        "uid": "6b3c0f7e-1d2a-4b7e-9c55-0a0d6c1f2e3b", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "name": name, "namespace": scene.namespace,
        "operation": "CREATE", "userInfo": {"username": "a person"}, "object": made, "oldObject": None, "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}}}


def test_reviews_fail_until_the_caches_are_synced_and_failure_policy_decides(scene):
    """The process runs and is asked, but its lists have no end yet: what it said of a Deployment now would be a guess."""
    slipway, proxy = scene.slipway_behind_proxy(settings="client: {watchList: 'off'}\n")  # a stream cannot be held as a whole
    scene.group("a", "b", replicas=1)
    slipway.stop()
    lists = proxy.hold_request(path=r"/(deployments|deploymentcoordinations)\?", watch=False)
    slipway.start(wait=False)
    lists.until_waiting(2)

    def unavailable():
        return slipway.metric("controller_runtime_webhook_requests_total", 'code="503"')

    until(lambda: slipway.get(slipway.health_port, "/healthz")[0] == 200, "it lives")
    assert slipway.get(slipway.health_port, "/readyz")[0] == 500
    assert ask(slipway, create_review(scene, "c"))[0] == 503
    before = unavailable()
    with pytest.raises(api.ApiError) as refused:
        scene.update("a")
    assert refused.value.status == 500 and "deployments.slipway.dev" in refused.value.message
    assert unavailable() > before, "it was asked, and said that it cannot tell yet"
    assert scene.get("a")["spec"]["template"]["metadata"]["annotations"]["version"] == "1"
    scene.cluster.register_webhook("slipway-" + scene.namespace, {"slipway.test/namespace": scene.namespace}, slipway.webhook_url,
                                   slipway.ca_pem, "Ignore")
    # The API server takes a moment to hear of it.
    scene.update_in_the_end("a", "b")
    before = unavailable()
    made = scene.create("c", replicas=1)
    assert unavailable() > before, "it is asked also where nothing depends on the answer"
    assert not look.is_paused(made), "nobody held it"
    scene.observer.excuse("c")
    assert slipway.get(slipway.health_port, "/readyz")[0] == 500
    lists.release()
    slipway.wait_ready()
    scene.until_runs("a", "b")
    scene.until_runs("c", version="1")
    scene.until_ready()
    status, answer = ask(slipway, create_review(scene, "d"))
    assert status == 200 and answer["response"]["allowed"] is True


@pytest.mark.parametrize("unpauses", [False, True])
def test_a_webhook_that_changes_the_template_after_ours_does_not_get_past(scene, tmp_path, unpauses):
    scene.slipway()
    scene.cluster.pods_take(scene.namespace, start="2s")
    scene.group("a", "b", replicas=1, spec={"atRest": "Running"})
    other = OtherWebhook(tmp_path / "other", unpauses)
    name = "zz-other-" + scene.namespace
    try:
        scene.cluster.register_webhook(name, {"slipway.test/namespace": scene.namespace}, other.url, other.ca_pem, reinvocation="Never")
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
    before = scene.get("a")
    answer = scene.api.patch(DEPLOYMENT_PATH % scene.namespace + "/a?dryRun=All",
                             {"spec": {"template": {"metadata": {"annotations": {"version": "9"}}}}})
    assert look.is_paused(answer) and look.annotation(answer, look.HELD_BY) == "coordination/web"
    time.sleep(1)
    after = scene.get("a")
    assert after["spec"] == before["spec"] and after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert not scene.status().get("pending")


def test_the_webhook_and_the_probes_answer_what_they_should(scene):
    slipway = scene.slipway()
    scene.coordinate()
    until(lambda: scene.status().get("observedGeneration"), "the coordination is seen")
    review = create_review(scene, "a")
    status, answer = ask(slipway, review)
    assert status == 200 and (answer["kind"], answer["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    response = answer["response"]
    assert response["uid"] == review["request"]["uid"] and response["allowed"] is True and response["patchType"] == "JSONPatch"
    changes = {change["path"]: change.get("value") for change in json.loads(base64.b64decode(response["patch"]))}
    assert changes["/spec/paused"] is True and changes["/metadata/annotations/slipway.dev~1held-by"] == "coordination/web"
    assert len(response["warnings"]) == 1 and response["warnings"][0].startswith("held by coordination/web")
    review["request"]["object"]["metadata"]["labels"] = {"app": "nobody's"}
    status, answer = ask(slipway, review)
    assert status == 200 and answer["response"]["allowed"] is True and not answer["response"].get("patch")
    assert slipway.get(slipway.health_port, "/healthz")[0] == 200
    status, text = slipway.get(slipway.health_port, "/readyz?verbose")
    assert status == 200 and "ok" in text
    status, text = slipway.get(slipway.metrics_port, "/metrics")
    assert status == 200
    for name in ("rest_client_requests_total", "workqueue_depth", "process_resident_memory_bytes"):
        assert name in text, name


def test_a_new_certificate_costs_no_review(scene, tmp_path):
    """Replaced file by file, as in a folder; those who trust the old one and the new one notice nothing."""
    slipway = scene.slipway()
    scene.group("a", replicas=1)
    ca_pem = make_certificate(tmp_path / "new")
    scene.cluster.register_webhook("slipway-" + scene.namespace, {"slipway.test/namespace": scene.namespace}, slipway.webhook_url, slipway.ca_pem + ca_pem)

    def served():
        return ssl.get_server_certificate(("127.0.0.1", slipway.webhook_port), timeout=30)

    old = served()
    with Storm(scene) as storm:
        storm.until_more()
        for name in ("tls.key", "tls.crt"):
            os.replace(tmp_path / "new" / name, slipway.folder / "certs" / name)
        until(lambda: served() != old, "new connections get the new certificate")
        storm.until_more()
    assert not storm.failed, storm.failed[:3]


def test_who_is_told_to_stop_answers_until_others_are_asked_and_ends_at_once_when_told_again(scene):
    old = scene.slipway("old", settings="stopDelay: 60s\n")
    new = scene.slipway("new", webhook=False)
    scene.group("a", replicas=1)

    def reviews(process):
        return process.metric("controller_runtime_webhook_requests_total")

    with Storm(scene) as storm:
        storm.until_more()
        old.signal(signal.SIGTERM)
        until(lambda: old.get(old.health_port, "/readyz")[0] == 500, "it is not ready any more")
        storm.until_more()
        scene.webhook_of(new)
        until_quiet(lambda: reviews(old), "it is asked no more")
    assert not storm.failed, storm.failed[:3]
    old.signal(signal.SIGTERM)
    old.until_ended(128 + signal.SIGTERM)
    scene.update("a")
    scene.until_runs("a")
