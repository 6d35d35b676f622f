# SPDX-License-Identifier: Apache-2.0
"""slipway's kinds as an API server has them, without slipway: what it fills in, what it refuses, what kubectl shows."""

import pytest
import yaml

from harness.cluster import TOP, api

PATH = "/apis/slipway.dev/v1alpha1/namespaces/%s/steppedrollouts"
PLACES = {"SteppedRollout": PATH, "Deployment": "/apis/apps/v1/namespaces/%s/deployments", "StatefulSet": "/apis/apps/v1/namespaces/%s/statefulsets",
          "DaemonSet": "/apis/apps/v1/namespaces/%s/daemonsets"}
METRIC = {"name": "errors", "thresholdRange": {"max": 0.01}}
HOOK = {"name": "gate", "url": "http://gate/"}


@pytest.fixture
def namespace(cluster, namespace_name):
    cluster.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_name}})
    yield namespace_name
    cluster.api.remove("/api/v1/namespaces/" + namespace_name)


def stepped(**spec):
    return {"apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": "web"},
            "spec": dict({"targetRef": {"kind": "Deployment", "name": "web"}}, **spec)}


def test_defaults_of_a_stepped_rollout(cluster, namespace):
    made = cluster.api.post(PATH % namespace, stepped())["spec"]
    assert made == {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "progressDeadlineSeconds": 600,
                    "analysis": {"interval": "1m", "iterations": 1, "threshold": 1}, "onFailure": "Retreat",
                    "skipAnalysis": False, "suspend": False, "deadMan": False}
    analysis = {"pods": {}, "metrics": [dict(METRIC, query="up", provider={"type": "prometheus", "address": "http://prometheus"})], "webhooks": [HOOK]}
    changed = cluster.api.patch(PATH % namespace + "/web", {"spec": {"analysis": analysis}})["spec"]["analysis"]
    assert changed["pods"] == {"maxRestarts": 0, "maxUnready": "0s"}
    assert changed["webhooks"] == [dict(HOOK, type="rollout", timeout="10s", retries=0, muteAlert=False, disableTLS=False)]
    assert changed["metrics"][0]["interval"] == "1m" and changed["metrics"][0]["provider"]["insecureSkipVerify"] is False


@pytest.mark.parametrize("spec, field", [
    ({"targetRef": {"kind": "Deployment"}}, "spec.targetRef.name"),
    ({"targetRef": {"name": "web"}}, "spec.targetRef.kind"),
    ({"steps": []}, "spec.steps"),
    ({"steps": [0]}, "spec.steps"),
    ({"steps": [1, "half"]}, "spec.steps"),
    ({"steps": [1, 2.5]}, "spec.steps"),
    ({"stepSize": 0}, "spec.stepSize"),
    ({"stepSize": "-1%"}, "spec.stepSize"),
    ({"progressDeadlineSeconds": 0}, "spec.progressDeadlineSeconds"),
    ({"onFailure": "Pray"}, "spec.onFailure"),
    ({"deadMan": "yes"}, "spec.deadMan"),
    ({"analysis": {"interval": "1 minute"}}, "spec.analysis.interval"),
    ({"analysis": {"iterations": 0}}, "spec.analysis.iterations"),
    ({"analysis": {"threshold": 0}}, "spec.analysis.threshold"),
    ({"analysis": {"metrics": [{"name": "errors"}]}}, "thresholdRange"),
    ({"analysis": {"metrics": [dict(METRIC, thresholdRange={"maximum": 1})]}}, "thresholdRange"),
    ({"analysis": {"metrics": [dict(METRIC, thresholdRange={"max": "1%"})]}}, "thresholdRange.max"),
    ({"analysis": {"metrics": [METRIC, METRIC]}}, "spec.analysis.metrics[1]"),
    ({"analysis": {"metrics": [dict(METRIC, templateRef={"namespace": "flagger"})]}}, "templateRef.name"),
    ({"analysis": {"pods": {"maxRestarts": -1}}}, "spec.analysis.pods.maxRestarts"),
    ({"analysis": {"pods": {"maxUnready": "long"}}}, "spec.analysis.pods.maxUnready"),
    ({"analysis": {"webhooks": [{"name": "gate"}]}}, "url"),
    ({"analysis": {"webhooks": [dict(HOOK, type="confirm")]}}, "type"),
    ({"analysis": {"webhooks": [dict(HOOK, timeout="soon")]}}, "timeout"),
    ({"analysis": {"webhooks": [dict(HOOK, retries=-1)]}}, "retries"),
    ({"analysis": {"webhooks": [dict(HOOK, metadata={"n": 1})]}}, "metadata"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_no_stepped_rollout_can_be_is_refused_with_its_field(cluster, namespace, spec, field):
    with pytest.raises(api.ApiError) as refused:
        cluster.api.post(PATH % namespace, stepped(**spec))
    assert refused.value.status == 422 and field in str(refused.value), refused.value


@pytest.mark.parametrize("spec", [
    {"targetRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "web"}},
    {"steps": ["150%", 1]},
    {"steps": [1], "stepSize": "10%"},
    {"analysis": {"metrics": [dict(METRIC, provider={"type": "oracle", "address": "somewhere"}, query="{{ x }}", templateRef={"name": "x"})]}},
    {"analysis": {"webhooks": [dict(HOOK, url="gate")]}},
    {"analysis": {"pods": {"maxUnready": 30}}},
], ids=str)
def test_what_needs_a_good_word_is_left_to_the_module(cluster, namespace, spec):
    assert cluster.api.post(PATH % namespace, stepped(**spec))["spec"]["suspend"] is False


def test_kubectl_shows_where_it_stands(cluster, namespace):
    cluster.api.post(PATH % namespace, stepped())
    cluster.api.patch(PATH % namespace + "/web/status", {"status": {
        "phase": "Progressing", "step": "2/5", "updated": "3/10", "failedChecks": 1,
        "checks": [{"name": "errors", "type": "metric", "value": "0.52", "range": "<= 0.01", "passed": False, "at": "2021-01-01T00:00:00Z"}]}})
    # Which also makes kubectl ask anew: it remembers for hours what a server at this port has had.
    assert "sr " in cluster.kubectl("api-resources", "--api-group=slipway.dev")
    lines = [line.split() for line in cluster.kubectl("get", "sr", "-n", namespace).splitlines()]
    assert lines[0] == ["NAME", "TARGET", "PHASE", "STEP", "UPDATED", "FAILED", "AGE"]
    assert lines[1][:6] == ["web", "web", "Progressing", "2/5", "3/10", "1"]
    assert "steppedrollout.slipway.dev/web" in cluster.kubectl("get", "slipway", "-n", namespace, "-o", "name")
    found = cluster.api.get(PATH % namespace + "/web")
    assert found["status"]["checks"][0]["value"] == "0.52" and found["metadata"]["generation"] == 1, "a status is no new generation"


@pytest.mark.parametrize("sample", sorted((TOP / "manifests" / "samples").glob("*.yaml")), ids=lambda path: path.stem)
def test_samples_are_taken_as_they_are(cluster, namespace, sample):
    """And nothing of them is dropped: a name that is not one of the kind's would be."""
    documents = [found for found in yaml.safe_load_all(sample.read_text()) if found["kind"] != "Namespace"]
    assert documents
    for document in documents:
        path = PLACES.get(document["kind"], "/apis/apps.containerinfra.nl/v1/namespaces/%s/deploymentcoordinations") % namespace
        document["metadata"]["namespace"] = namespace
        made = cluster.api.post(path + "?dryRun=All", document)
        assert not missing(document, made), made


def missing(wanted, got):
    """What of `wanted` is not in `got`."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        return [key + "." + str(found) for key, value in wanted.items() for found in (missing(value, got[key]) if key in got else [""])]
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        return [found for one, other in zip(wanted, got) for found in missing(one, other)]
    return [] if wanted == got else ["%r is %r" % (wanted, got)]
