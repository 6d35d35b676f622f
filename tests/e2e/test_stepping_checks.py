# SPDX-License-Identifier: Apache-2.0
"""What is asked at each step: of Prometheus, of webhooks; what they are told, and what becomes of answers that nobody should give."""

import base64
import re

import pytest

from harness.receiver import EMPTY, Receiver, vector
from harness.stepping import KINDS, hook
from harness.wait import until

of_each_kind = pytest.mark.parametrize("kind", KINDS)
CONFIRMATIONS = ("confirm-rollout", "confirm-step", "confirm-traffic-increase", "confirm-promotion")
TYPES = (*CONFIRMATIONS, "pre-rollout", "rollout", "post-rollout", "rollback", "event")
PHASES = {"confirm-rollout": {"Progressing", "Waiting"}, "pre-rollout": {"Progressing", "Waiting"}, "rollout": {"Progressing"},
          "confirm-step": {"Progressing", "Waiting"}, "confirm-traffic-increase": {"Progressing", "Waiting"},
          "confirm-promotion": {"Progressing", "Waiting", "WaitingPromotion"}, "post-rollout": {"Succeeded"},
          "rollback": {"Progressing", "Waiting", "WaitingPromotion"}}


def metric(receiver, path="provider", **more):
    return dict({"name": "errors", "thresholdRange": {"max": 0.5}, "query": "up", "provider": {"type": "prometheus", "address": receiver.url(path)}}, **more)


def is_asked_again(receiver, path):
    asked = len(receiver.requests(path))
    until(lambda: len(receiver.requests(path)) >= asked + 2, "%s is asked again and again" % path)


@of_each_kind
def test_every_webhook_is_told_what_flagger_tells_and_every_confirmation_is_waited_for(stages, receiver, kind):
    """All types in one rollout: one confirmation after the other is refused, asked for again, and given. Payloads field by field."""
    stage = stages(kind)
    for path in (*CONFIRMATIONS, "rollback"):
        receiver.answer(path, 403, b"not before nine")
    answers = iter([503, 200])
    receiver.answer("rollout", lambda _: next(answers, 200))  # `retries`: asked again within the round
    receiver.answer("post-rollout", 500)  # which changes nothing
    stage.step(steps=[1], analysis={"webhooks": [hook(type_, receiver, type_, metadata={"team": "red", "number": "7"}, **({"retries": 1} if type_ == "rollout" else {}))
                                                 for type_ in TYPES]})
    stage.update()

    def waits(path, phase, updated):
        """At the gate of that path, which is the only one that is closed; then it is opened."""
        stage.until_phase(phase)
        is_asked_again(receiver, path)
        status = stage.status()
        assert stage.is_held() and status.get("failedChecks", 0) == 0 and status["phase"] == phase, stage.describe()
        assert "not before nine" in status["message"] and path in status["message"], status["message"]
        assert updated <= stage.versions()["2"] <= (updated + stage.slack if updated else 0), stage.versions()
        receiver.answer(path, 200)

    waits("confirm-rollout", "Waiting", 0)
    stage.until_stopped(1)
    # The two names of one question are asked together: neither alone is enough.
    stage.until_phase("Waiting", step=1)
    receiver.answer("confirm-traffic-increase", 200)
    is_asked_again(receiver, "confirm-traffic-increase")
    until(lambda: "confirm-traffic-increase" not in stage.status()["message"], lambda: "that one has agreed: " + stage.describe())
    receiver.answer("confirm-traffic-increase", 403, b"not before nine")
    receiver.answer("confirm-step", 200)
    until(lambda: "confirm-step" not in stage.status()["message"], lambda: "the other one has: " + stage.describe())
    waits("confirm-traffic-increase", "Waiting", 1)
    waits("confirm-promotion", "WaitingPromotion", 1)
    stage.until_succeeded()

    status = stage.status()
    assert status["failedChecks"] == 0 and status["phase"] == "Succeeded"
    until(lambda: all(receiver.requests(path) for path in TYPES), lambda: "all are called: %s" % [path for path, *_ in receiver.requests()])
    stage.until_said("Synced", "post-rollout: ")
    for path in TYPES[:-1]:
        for _, method, headers, payload in receiver.requests(path):
            assert method == "POST" and headers["Content-Type"] == "application/json"
            assert set(payload) == {"name", "namespace", "phase", "checksum", "metadata"}, payload
            assert (payload["name"], payload["namespace"], payload["checksum"]) == ("web", stage.scene.namespace, status["lastPromotedHash"])
            assert payload["phase"] in PHASES[path] and payload["metadata"] == {"team": "red", "number": "7"}, (path, payload)
    for payload in receiver.payloads("event"):
        assert (payload["name"], payload["namespace"]) == ("web", stage.scene.namespace)
        about = payload["metadata"]
        assert about["team"] == "red" and about["eventMessage"] and about["eventType"] in ("Normal", "Warning"), payload
        assert re.fullmatch(r"[0-9]{13}", about["timestamp"]), "milliseconds, as Flagger: %s" % about
    # Questions come in their order, each when the one before has been answered.
    order = [path for path, *_ in receiver.requests() if path not in ("event", "rollback")]
    first, last = {path: order.index(path) for path in order}, {path: len(order) - 1 - order[::-1].index(path) for path in order}
    for before, after in (("confirm-rollout", "pre-rollout"), ("pre-rollout", "rollout"), ("rollout", "confirm-step"), ("rollout", "confirm-traffic-increase"),
                          ("confirm-traffic-increase", "confirm-promotion"), ("confirm-promotion", "post-rollout")):
        assert last[before] < first[after], (before, after, order)


def test_https_is_verified_unless_it_says_otherwise(stages, scene, tmp_path):
    secure = Receiver(tmp_path / "secure")
    try:
        stage = stages()
        stage.step(analysis={"threshold": 100, "webhooks": [hook("check", secure)]})
        stage.update()
        message = stage.until_check("check", False)["message"]
        assert "certificate" in message.lower() or "tls" in message.lower(), message
        assert not secure.requests("check")
        stage.change(analysis={"interval": "1s", "webhooks": [hook("check", secure, disableTLS=True)]})
        stage.until_succeeded()
        assert secure.requests("check")
    finally:
        secure.close()


# path: (how it answers, what is said of it)
BAD = {
    "hangs": ({"hangs": True}, "no answer within 10 s"),
    "garbage": ({"body": b"<html>\x00\xffWelcome to the Wifi</html>"}, "not an answer of Prometheus"),
    "nan": ({"body": vector("NaN")}, "the query yields NaN, which is no value"),
    "infinite": ({"body": vector("+Inf")}, "the query yields an infinite value"),
    "empty": ({"body": EMPTY}, "the query yields no value"),
    "ten-mebibytes": ({"body": b'{"status":"success","data":{"resultType":"vector","result":[' + b" " * (10 << 20) + b"]}}"}, "answer longer than 1048576 bytes"),
    "error-500": ({"status": 500, "body": b"no disk"}, "HTTP 500: no disk"),
}


@of_each_kind
def test_answers_that_no_provider_should_give_are_failed_checks(stages, receiver, kind):
    """All of them in one round: each says what is wrong with it and with nothing else. Who hangs delays nobody: the others are
    asked at once, and what they said is of that time."""
    stage = stages(kind)
    for path, (how, _) in BAD.items():
        receiver.answer(path, **how)
    receiver.answer("good", body=vector("0.25"))
    stage.step(steps=[1], analysis={"threshold": 100, "metrics": [metric(receiver, path, name=path) for path in ("hangs", "good", *list(BAD)[1:])],
                                    "webhooks": [hook("other", receiver)]})
    stage.update()
    stage.until_stopped(1)
    # The request that hangs is under way, and all others have come.
    until(lambda: receiver.requests("other") and all(receiver.requests(path + "/api/v1/query") for path in (*BAD, "good")),
          lambda: "all are asked at once: %s" % [path for path, *_ in receiver.requests()])
    assert not stage.status().get("checks"), "the round is under way: " + stage.describe()
    checks = {path: stage.until_check(path, False, timeout_s=30) for path in BAD}
    for path, (_, said) in BAD.items():
        assert said in checks[path]["message"], (path, checks[path])
        assert [other for other in BAD if BAD[other][1] in checks[path]["message"]] == [path], checks[path]
    assert len(checks["garbage"]["message"]) < 300 and "\x00" not in checks["garbage"]["message"]
    good, other = stage.until_check("good", True), stage.until_check("other", True)
    assert good["value"] == "0.25" and max(good["at"], other["at"]) < checks["hangs"]["at"], (good, other, checks["hangs"])
    assert stage.is_held() and stage.status()["currentStep"] == 1 and stage.status()["failedChecks"] >= 1, "it is not passed"
    for path in BAD:
        stage.until_said("CheckFailed", path + ": ")
        receiver.answer(path, body=vector("0.5"))
    stage.until_succeeded()
    assert stage.slipway.is_running


@pytest.fixture
def metric_templates(cluster):
    """The kind of Flagger's, as little of it as is needed; it stays for the others."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    cluster.apply({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "metrictemplates.flagger.app"},
                   "spec": {"group": "flagger.app", "scope": "Namespaced", "names": {"kind": "MetricTemplate", "listKind": "MetricTemplateList", "plural": "metrictemplates",
                                                                                     "singular": "metrictemplate"},
                            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}})
    cluster.kubectl("wait", "--for=condition=Established", "crd/metrictemplates.flagger.app", "--timeout=30s")


def may_read_secrets(stage):
    stage.scene._put_role("roles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "secrets"},
                                    "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]})
    stage.scene._put_role("rolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "secrets"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "secrets"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": "slipway"}]})


def test_metrics_of_all_sorts(stages, receiver, measures, metric_templates):
    """Of Prometheus itself, out of its range; by a MetricTemplate of Flagger's as it is; with a query that is filled in and
    escaped; with credentials from a Secret, which is missing at first."""
    stage = stages()
    may_read_secrets(stage)
    namespace = stage.scene.namespace
    measures.are(stage.scene, 7)
    for path in ("filled", "secret"):
        receiver.answer(path, body=vector("0"))
    stage.api.post("/apis/flagger.app/v1beta1/namespaces/%s/metrictemplates" % namespace, {
        "apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate", "metadata": {"name": "errors"},
        "spec": {"provider": {"type": "prometheus", "address": measures.address},
                 "query": 'max(app_errors{ns="{{ namespace }}"}) * {{ variables.factor }} + 0 * count(up{job!="{{ target }}-{{ interval }}"})'}})
    stage.step(steps=[1], analysis={"threshold": 100, "metrics": [
        measures.metric(),
        {"name": "template", "thresholdRange": {"min": 1, "max": 10}, "templateRef": {"name": "errors"}, "templateVariables": {"factor": "2"}},
        metric(receiver, "filled", name="filled", interval="30s", templateVariables={"x": "a+b&c"},
               query='f{a="{{ name }}",b="{{namespace}}",c="{{ target }}",d="{{ variables.x }}"}[{{ interval }}]'),
        metric(receiver, "secret", name="secret", provider={"type": "prometheus", "address": receiver.url("secret"), "secretRef": {"name": "login"}})]})
    stage.update()
    stage.until_stopped(1)
    check = stage.until_check("errors", False)
    assert check["value"] == "7" and "0.5" in check["range"] and check["type"] == "metric"
    stage.until_reason("CheckFailed")
    until(lambda: any("7" in text and "0.5" in text for text in stage.said("CheckFailed")), lambda: "value and range are told: %s" % stage.said("CheckFailed"))
    assert stage.until_check("template", False)["value"] == "14"
    assert "login" in stage.until_check("secret", False)["message"], "it says which Secret is missing"
    assert not receiver.requests("secret/api/v1/query"), "and nobody is asked without it"
    assert stage.until_check("filled", True)["value"] == "0"
    assert receiver.payloads("filled/api/v1/query")[0]["query"] == 'f{a="web",b="%s",c="web",d="a+b&c"}[30s]' % namespace
    stage.api.post("/api/v1/namespaces/%s/secrets" % namespace, {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in (("username", "somebody"), ("password", "swordfish-7"))}})
    stage.until_check("secret", True)
    # 1 is too much for the one, and enough for the other, which doubles it.
    measures.are(stage.scene, 1)
    assert stage.until_check("template", True)["value"] == "2" and stage.until_check("errors", False)["value"] == "1"
    stage.change(analysis={"metrics": [dict(measures.metric(), thresholdRange={"max": 1})] + stage.stepped()["spec"]["analysis"]["metrics"][1:]})
    stage.until_succeeded()
    assert stage.until_check("errors", True)["value"] == "1"
    login = base64.b64encode(b"somebody:swordfish-7").decode()
    said = {headers.get("Authorization") for _, _, headers, _ in receiver.requests("secret/api/v1/query")}
    assert said == {"Basic " + login}, said
    stage.slipway.check_secrets(["swordfish-7", login])
