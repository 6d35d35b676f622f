# SPDX-License-Identifier: Apache-2.0
"""The leader keeps the webhook configuration in the cluster as it should be, whoever changes it and however often."""

import base64
import itertools
import os
import ssl
import time

import pytest

from harness.cluster import api, only_real
from harness.configuration import OTHER, OURS, RBAC, Configuration
from harness.slipway import make_certificate
from harness.storm import Storm
from harness.wait import until, until_quiet


@pytest.fixture
def configuration(scene):
    made = Configuration(scene)
    yield made
    made.forbid()


@pytest.fixture
def kept(scene, configuration):
    """One that is right, and the slipway that has made it so: it came without a CA."""
    configuration.permit()
    slipway = scene.slipway(webhook=False, settings=configuration.settings)
    configuration.make(slipway)
    until(lambda: is_right(slipway), "it is up to date")
    return slipway


def is_right(slipway):
    return slipway.metric("slipway_webhook_configuration_up_to_date") == 1


def patches(slipway):
    return slipway.metric("slipway_webhook_configuration_patches_total")


def by_name(webhooks):
    return {webhook["name"]: webhook for webhook in webhooks}


def garbled_ca(webhooks):
    by_name(webhooks)[OURS]["clientConfig"]["caBundle"] = base64.b64encode(b"garbled").decode()


def no_ca(webhooks):
    by_name(webhooks)[OURS]["clientConfig"].pop("caBundle")


def other_rules(webhooks):
    by_name(webhooks)[OURS]["rules"] = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["daemonsets"], "operations": ["DELETE"]}]


def fewer_operations(webhooks):
    by_name(webhooks)[OURS]["rules"][0]["operations"] = ["CREATE"]


def other_path(webhooks):
    client = by_name(webhooks)[OURS]["clientConfig"]
    client["url"] = client["url"].replace("/mutate-apps-v1-deployment", "/mutate")


def never_again(webhooks):
    by_name(webhooks)[OURS]["reinvocationPolicy"] = "Never"


def all_at_once_and_shifted(webhooks):
    for change in (garbled_ca, other_rules, other_path, never_again):
        change(webhooks)
    webhooks.reverse()


# One after the other they count as a fight, and each is mended later; what else may be wrong the unit tests know.
CHANGES = [garbled_ca, no_ca, fewer_operations, all_at_once_and_shifted]


def test_what_somebody_changed_is_mended_and_nothing_else_is_touched(scene, configuration, kept):
    good = by_name(configuration.webhooks)
    assert base64.b64decode(good[OURS]["clientConfig"]["caBundle"]) == kept.ca_pem
    assert good["other.example.org"]["clientConfig"] == OTHER["clientConfig"]
    for change in CHANGES:
        before = patches(kept)
        changed = configuration.change(change)
        order = [webhook["name"] for webhook in changed["webhooks"]]
        until(lambda: by_name(configuration.webhooks) == good, lambda: "%s is mended: %s" % (change.__name__, configuration.ours))
        assert [webhook["name"] for webhook in configuration.webhooks] == order
        assert patches(kept) == before + 1, "one patch mends all of it"
    until(lambda: is_right(kept), "and it says so")
    scene.until_asked(kept)
    # What is the operator's own stays as the operator wants it.

    def tune(webhooks):
        ours = by_name(webhooks)[OURS]
        ours.update({"failurePolicy": "Ignore", "timeoutSeconds": 11, "objectSelector": {}, "matchPolicy": "Exact"})
        by_name(webhooks)["other.example.org"].update({"reinvocationPolicy": "IfNeeded", "timeoutSeconds": 2})
    before = patches(kept)
    tuned = configuration.change(tune)
    until_quiet(lambda: configuration.read()["metadata"]["resourceVersion"], "nobody writes")
    assert configuration.webhooks == tuned["webhooks"] and patches(kept) == before and is_right(kept)


def test_the_configuration_may_come_late_go_and_come_again(scene, configuration):
    configuration.permit()
    slipway = scene.slipway(webhook=False, settings=configuration.settings)  # is ready without
    absent = "webhook configuration is not there"
    until(lambda: slipway.log().count(absent) == 1, "it says that it is not there")
    assert not is_right(slipway)
    with pytest.raises(api.ApiError) as missing:
        configuration.read()
    assert missing.value.status == 404, "nobody makes it"
    for number in (1, 2):
        configuration.make(slipway)
        until(lambda: is_right(slipway), "it is taken up")
        scene.until_asked(slipway)
        configuration.delete()
        until(lambda: not is_right(slipway), "that it has gone is seen")
        until(lambda: slipway.log().count(absent) == number + 1, "and said")
    assert slipway.get(slipway.health_port, "/readyz")[0] == 200
    # One that knows nothing of us is not given what its author left out.
    configuration.make(slipway)
    configuration.change(lambda webhooks: webhooks.pop())
    until(lambda: slipway.log().count("lacks entries of ours") == 1, "it says what is missing")
    before = patches(slipway)
    configuration.change(lambda webhooks: webhooks[0].update({"timeoutSeconds": 3}))
    until_quiet(lambda: configuration.read()["metadata"]["resourceVersion"], "nobody writes")
    assert [webhook["name"] for webhook in configuration.webhooks] == ["other.example.org"]
    assert patches(slipway) == before and not is_right(slipway) and slipway.log().count("lacks entries of ours") == 1


def test_who_sets_it_back_each_time_at_once_starts_no_storm(scene, configuration, kept):
    began, before = time.monotonic(), patches(kept)
    bad = base64.b64encode(b"garbled").decode()
    contended = "somebody changes it back again and again"

    def fight():
        if configuration.ours["clientConfig"]["caBundle"] != bad:
            configuration.change(garbled_ca)
        return patches(kept) - before >= 5
    until(fight, "it is mended again and again", 120, 0.01)
    count, took_s = patches(kept) - before, time.monotonic() - began
    # The first may come at once; that which made it right before counts, so from there on it is 2, 4, 8 and then 15 s at least.
    least_s = sum(itertools.islice(itertools.chain((2, 4, 8), itertools.repeat(15)), int(count) - 1))
    print("%d patches in %.1f s, at least %d" % (count, took_s, least_s))
    assert took_s >= least_s
    assert kept.log().count(contended) == 1
    # It is over: the last word is ours.
    until(lambda: configuration.ours["clientConfig"]["caBundle"] != bad, "it is mended in the end", 40)
    scene.until_asked(kept)


@only_real("the simulator permits everything")
def test_a_missing_permission_is_named_once_and_holds_up_nothing(scene, configuration):
    slipway = scene.slipway(webhook=False, settings=configuration.settings)
    until(lambda: "permissions are missing" in slipway.log(), "it says what is missing")
    line = next(line for line in slipway.log().splitlines() if "permissions are missing" in line)
    assert "list, watch, get, patch mutatingwebhookconfigurations.admissionregistration.k8s.io" in line
    configuration.make(slipway, slipway.ca_pem)
    scene.until_asked(slipway)
    scene.group("a", "b", replicas=1)  # it leads and hands on
    assert not is_right(slipway), "it cannot know"
    configuration.change(garbled_ca)
    configuration.permit()
    until(lambda: is_right(slipway), "with the permission it is mended", 180)
    scene.until_asked(slipway)


@only_real("the simulator permits everything")
def test_that_patching_is_not_allowed_is_said_once(scene, configuration, kept):
    def role(verbs):
        return scene.api.patch("/apis/%s/clusterroles/%s" % (RBAC, configuration.role), {"rules": [
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["mutatingwebhookconfigurations"], "resourceNames": [configuration.name], "verbs": verbs}]})
    role(["get", "list", "watch"])
    words = "our role needs the verb patch on it"

    def is_refused():
        configuration.change(garbled_ca)
        return words in kept.log()
    until(is_refused, "the API server refuses, as soon as it has heard of the new role")
    refused = 'code="403"'
    before = kept.metric("rest_client_requests_total", refused)
    until(lambda: kept.metric("rest_client_requests_total", refused) >= before + 2, "it tries again", 60)
    assert kept.log().count(words) == 1
    role(["get", "list", "watch", "patch"])
    until(lambda: is_right(kept), "it is mended when it may be", 120)


def test_only_the_leader_writes_and_its_successor_goes_on(scene, configuration):
    configuration.permit()
    one = scene.slipway("one", webhook=False, settings=configuration.settings, leader_elect=True)
    one.until_leading()
    two = scene.slipway("two", webhook=False, settings=configuration.settings, leader_elect=True)
    # The same certificate, as from one Secret.
    for name in ("ca.crt", "tls.key", "tls.crt"):
        (two.folder / "certs" / (name + ".new")).write_bytes((one.folder / "certs" / name).read_bytes())
        os.replace(two.folder / "certs" / (name + ".new"), two.folder / "certs" / name)
    configuration.make(one)
    until(lambda: is_right(one) and is_right(two), "both see that it is right")
    configuration.change(garbled_ca)
    until(lambda: base64.b64decode(configuration.ours["clientConfig"]["caBundle"]) == one.ca_pem, "the leader mends it")
    assert patches(one) == 2 and patches(two) == 0
    one.kill()
    configuration.change(other_rules)
    two.until_leading()
    until(lambda: is_right(two), "its successor mends it")
    assert patches(two) == 1


def test_cert_manager_is_left_alone(scene, configuration):
    configuration.permit()
    slipway = scene.slipway(webhook=False, settings=configuration.settings)
    configuration.make(slipway, b"by cert-manager", {"cert-manager.io/inject-ca-from": "kube-system/slipway"})
    until(lambda: is_right(slipway), "it is right as it is")
    configuration.change(other_rules)
    until(lambda: configuration.ours["rules"][0]["resources"] == ["deployments"], "the rest is kept")
    assert base64.b64decode(configuration.ours["clientConfig"]["caBundle"]) == b"by cert-manager"


def test_a_new_authority_costs_no_review(scene, configuration, kept, tmp_path):
    """In the order that the API server needs: both are trusted, the certificate is switched, the old one is dropped."""
    new_pem = make_certificate(tmp_path / "new")
    scene.group("a", replicas=1)

    def trust(pem):
        (tmp_path / "ca.crt").write_bytes(pem)
        os.replace(tmp_path / "ca.crt", kept.folder / "certs" / "ca.crt")
        until(lambda: base64.b64decode(configuration.ours["clientConfig"]["caBundle"]) == pem, "caBundle is that of the file")

    def served():
        return ssl.get_server_certificate(("127.0.0.1", kept.webhook_port), timeout=30)

    old = served()
    scene.until_asked(kept)
    with Storm(scene) as storm:
        storm.until_more()
        trust(kept.ca_pem + new_pem)
        storm.until_more(200)  # the API server takes a moment to hear of it
        for name in ("tls.key", "tls.crt"):
            os.replace(tmp_path / "new" / name, kept.folder / "certs" / name)
        until(lambda: served() != old, "new connections get the new certificate")
        storm.until_more()
        trust(new_pem)
        storm.until_more(200)
    assert not storm.failed, storm.failed[:3]
