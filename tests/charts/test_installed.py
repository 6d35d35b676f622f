# SPDX-License-Identifier: Apache-2.0
"""The charts and the plain manifests on the real control plane."""

import base64
import json
import re
import subprocess

import pytest
import yaml

from chart import PROMETHEUS, TOP, render
from conftest import FOLDER
from harness.cluster import api
from harness.scene import Scene
from harness.shared import locked
from harness.slipway import BUILD, free_port
from harness.wait import until
from played import CONFIGURATIONS, NAMESPACE, Installed

SECRET = "/api/v1/namespaces/%s/secrets/slipway-webhook" % NAMESPACE


@pytest.fixture
def alone(cluster):
    """There is one slipway in a cluster."""
    with locked(FOLDER.with_name("alone")):
        yield cluster


@pytest.fixture
def installed(alone, tmp_path):
    found = Installed(alone, tmp_path)
    yield found
    found.close()


@pytest.fixture
def scene(installed, namespace_name, tmp_path):
    """With slipway, from the chart."""
    installed.install({"log": {"level": "debug", "format": "json"}})
    found = Scene(installed.cluster, namespace_name, tmp_path)
    found.processes += installed.replicas
    installed.connect()
    until(found.is_asked, "the webhook is asked")
    yield found
    found.close()


def nothing_of_ours(scene, name):
    annotations = scene.get(name)["metadata"].get("annotations") or {}
    return not [key for key in annotations if key.startswith("slipway.dev/")]


def look_at_metrics(scene, replica):
    """With the chart's ClusterRole, and without."""
    for account in "reader", "stranger":
        scene.api.post("/api/v1/namespaces/%s/serviceaccounts" % scene.namespace, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}})
    scene.cluster.kubectl("create", "clusterrolebinding", scene.namespace, "--clusterrole=slipway-metrics-reader", "--serviceaccount=%s:reader" % scene.namespace)
    try:
        tokens = [scene.cluster.token(scene.namespace, account) for account in ("reader", "stranger")]
        assert [replica.ask_for_metrics(token)[0] for token in (*tokens, None)] == [200, 403, 401]
    finally:
        scene.cluster.kubectl("delete", "clusterrolebinding", scene.namespace)


def secret(scene):
    return scene.api.get(SECRET).get("data")


def test_it_is_installed_works_is_upgraded_and_leaves_nothing_behind(installed, scene):
    first, second = installed.replicas
    until(lambda: first.is_leading or second.is_leading, "one leads")
    # Three roll one after another, under exactly the permissions of the chart: the observer fails if two do at once.
    scene.group("a", "b", "c", replicas=1)
    scene.update("a", "b", "c")
    scene.until_runs("a", "b", "c")
    scene.until_ready()
    assert scene.observer.turns()[-3:] == ["a", "b", "c"]
    for replica in installed.replicas:
        until(lambda replica=replica: "all permissions are there" in replica.log(), "it has asked for its permissions")
        # A server without lists as streams calls the parameter forbidden.
        said = [line for line in replica.log().splitlines() if "resourceVersionMatch" not in line]
        assert not [line for line in said if "permissions are missing" in line or "orbidden" in line], replica.log_tail()

    look_at_metrics(scene, first)

    # An upgrade takes nothing out of the Secret, and what slipway reads again by itself needs no new Pod.
    made = secret(scene)
    assert set(made) == {"ca.crt", "ca.key", "tls.crt", "tls.key"} and all(made.values())
    for replica in installed.replicas:
        replica.secrets += [line for key in ("ca.key", "tls.key") for line in base64.b64decode(made[key]).decode().splitlines()[1:-1]]
    bundle = scene.api.get(CONFIGURATIONS + "/slipway")["webhooks"][0]["clientConfig"]["caBundle"]
    installed.upgrade({"log": {"level": "debug", "format": "json"}, "modules": {"coordination": {"config": {"atRest": "Running"}}}})
    assert secret(scene) == made
    assert scene.api.get(CONFIGURATIONS + "/slipway")["webhooks"][0]["clientConfig"]["caBundle"] == bundle
    assert {pod["metadata"]["name"] for pod in installed.pods({"app.kubernetes.io/component": "operator"})} == {first.name, second.name}
    for replica in installed.replicas:
        replica.remount()
    until(lambda: not any(map(scene.is_paused, "abc")), "they run at rest, as the new configuration says")
    installed.upgrade({"log": {"level": "debug", "format": "json"}})
    for replica in installed.replicas:
        replica.remount()
    until(lambda: all(map(scene.is_held, "abc")), "and are paused again")
    installed.connect()
    until(scene.is_asked, "the webhook is asked again")

    # In the middle of a rollout it is uninstalled. One of them a person has paused.
    scene.create("mine", replicas=1, paused=True)
    until(lambda: "paused" in scene.state_of("mine").get("message", ""), "the pause of a person is seen")
    scene.roll_and_stall("a", "b", "c", version="3")
    scene.until_held("b", "c")
    uninstalling = installed.begin_uninstall()
    pod = installed.job_pod()
    job = installed.begin_job(pod)
    until(lambda: installed.end_those_without_pod() or not any(replica.is_running for replica in installed.replicas), "slipway is stopped")
    until(lambda: "its Pods are gone" in installed.said.read_text(), "the Job knows", 90)
    until(lambda: nothing_of_ours(scene, "a"), lambda: "a is let go of: %s\n%s\n%s" % (
        scene.observer.describe("a"), job.poll(), installed.said.read_text()))
    assert scene.is_paused("b") and scene.is_paused("c"), "they wait for a, which still rolls"
    assert job.poll() is None and uninstalling.poll() is None
    scene.let_pods_go()
    assert job.wait(240) == 0, installed.said.read_text()
    said = installed.said.read_text()
    scene.until_runs("a", "b", "c", version="3")
    assert scene.observer.turns()[-3:] == ["a", "b", "c"], "one after another"
    installed.end_job(pod, 0)
    output, _ = uninstalling.communicate(timeout=240)
    assert uninstalling.returncode == 0, output

    # Nothing is paused but by the person, and the Job has said so.
    assert all(nothing_of_ours(scene, name) for name in ("a", "b", "c", "mine"))
    assert not any(map(scene.is_paused, "abc")) and scene.is_paused("mine")
    lines = {line.split()[1]: line for line in said.splitlines() if line.startswith(scene.namespace)}
    assert re.search(r" complete after \d+ s$", lines["a"]) and re.search(r"resumed, complete after \d+ s$", lines["b"]), said
    assert "left paused by whoever paused it" in lines["mine"], said
    assert "done: 2 resumed" in said and "left: 1 paused by people, 0 rolling; resumed together when the time was over: 0" in said
    scene.update("a", "b", version="4")
    assert not scene.is_paused("a") and not scene.is_paused("b"), "nobody is asked any more"

    # Nothing is left in the cluster but the log, the Lease and the kinds.
    left = scene.cluster.kubectl("get", "clusterrole,clusterrolebinding,mutatingwebhookconfiguration,deployment,role,rolebinding,secret,configmap,service,"
                                 "poddisruptionbudget,serviceaccount", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=slipway", "-o", "name")
    assert left == "", left
    installed.helm("uninstall", "slipway-crds")
    assert scene.coordination()["metadata"]["name"] == "web", "the objects of people outlive the chart of their kind"
    scene.observer.excuse_all()


STEPPED = "/apis/slipway.dev/v1alpha1/namespaces/%s/steppedrollouts"


def test_with_stepping_its_permissions_suffice_and_what_stands_at_a_step_is_let_go(installed, namespace_name, tmp_path):
    installed.install({"log": {"level": "debug", "format": "json"}, "modules": {"stepping": {"enabled": True}}, "replicaCount": 1})
    scene = Scene(installed.cluster, namespace_name, tmp_path)
    scene.processes += installed.replicas
    try:
        installed.connect()
        until(scene.is_asked, "the webhook is asked")
        (replica,) = installed.replicas
        until(lambda: "all permissions are there" in replica.log(), lambda: "it has asked for its permissions: " + replica.log_tail())
        scene.create("web", replicas=3, labels={"app": "alone"})
        path = STEPPED % scene.namespace
        stepped = {"apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": "web"},
                   "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "steps": [2, 1]}}

        def is_refused():
            try:
                scene.api.post(path + "?dryRun=All", stepped)
            except api.ApiError as error:
                return "spec.steps[1]" in str(error)
            return False
        until(is_refused, "the validating webhook names the field")
        stepped["spec"] = {"targetRef": {"kind": "Deployment", "name": "web"}, "steps": [1], "analysis": {"interval": "1s", "iterations": 1000, "pods": {}}}
        scene.api.post(path, stepped)

        def is_at(phase, activity):
            status = scene.api.get(path + "/web").get("status") or {}
            return (status.get("phase"), status.get("activity") or "") == (phase, activity)
        until(lambda: is_at("Initialized", ""), lambda: "it is seen: %s" % scene.api.get(path + "/web"))
        scene.update("web")
        until(lambda: is_at("Progressing", "Analysing"), lambda: "it stands at the first step: %s" % scene.api.get(path + "/web"), 60)
        assert scene.is_paused("web") and scene.get("web")["status"]["updatedReplicas"] == 1
        assert scene.api.get(path + "/web")["metadata"]["finalizers"]
        assert "is forbidden: User" not in replica.log(), replica.log_tail()
        # It is uninstalled meanwhile.
        uninstalling = installed.begin_uninstall()
        pod = installed.job_pod()
        job = installed.begin_job(pod)
        until(lambda: installed.end_those_without_pod() or not replica.is_running, "slipway is stopped")
        assert job.wait(120) == 0, installed.said.read_text()
        installed.end_job(pod, 0)
        output, _ = uninstalling.communicate(timeout=240)
        assert uninstalling.returncode == 0, output
        scene.until_runs("web")
        assert nothing_of_ours(scene, "web") and not scene.api.get(path + "/web")["metadata"].get("finalizers")
        left = scene.cluster.kubectl("get", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "-l", "app.kubernetes.io/name=slipway", "-o", "name")
        assert left == "", left
    finally:
        scene.close()


def apply(cluster, text, *options, how="apply"):
    return cluster.kubectl(how, "-f", "-", *options, stdin=text)


def for_server(cluster, text):
    """policy/v1 is there from 1.21 on."""
    minor = int(re.sub(r"\D", "", json.loads(cluster.kubectl("get", "--raw", "/version"))["minor"]))
    return text if minor >= 21 else text.replace("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n")


def test_the_plain_manifests_are_applied_changed_by_nobody_and_deleted(alone):
    text = for_server(alone, (TOP / "manifests" / "install.yaml").read_text())
    try:
        assert "created" in apply(alone, text, "--validate=true")
        alone.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        alone.api.patch(SECRET, {"data": {"tls.crt": "eA=="}})
        again = apply(alone, text, "--validate=true")
        assert "created" not in again and alone.api.get(SECRET)["data"] == {"tls.crt": "eA=="}, "slipway's certificates stay"
        apply(alone, (TOP / "manifests" / "uninstall.yaml").read_text(), "--validate=true", "--dry-run=server")
    finally:
        apply(alone, text, "--ignore-not-found", how="delete")
    built = alone.kubectl("kustomize", str(TOP / "manifests" / "kustomize"))
    assert {(found["kind"], found["metadata"]["name"]) for found in yaml.safe_load_all(built)} == \
        {(found["kind"], found["metadata"]["name"]) for found in yaml.safe_load_all(text) if found}


def others_kind(group, version, kind, plural):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%s.%s" % (plural, group)},
            "spec": {"group": group, "names": {"kind": kind, "plural": plural}, "scope": "Namespaced", "versions": [
                {"name": version, "served": True, "storage": True,
                 "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def test_what_is_rendered_is_what_the_api_server_takes(alone):
    """Of what belongs to others only names and places: their kinds stand in here without their rules."""
    kinds = [others_kind("cert-manager.io", "v1", "Certificate", "certificates"), others_kind("cert-manager.io", "v1", "Issuer", "issuers"),
             others_kind("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
             others_kind("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules")]
    names = ["crd/" + kind["metadata"]["name"] for kind in kinds]
    try:
        alone.apply({"apiVersion": "v1", "kind": "List", "items": kinds})
        alone.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
        for values in [
                {},
                {"webhook": {"certManager": {"enabled": True}, "failurePolicy": "Fail", "objectSelector": {"matchLabels": {"a": "b"}}}},
                {"webhook": {"caBundle": "LS0tLS1CRUdJTg==", "namespaceSelector": {"matchLabels": {"a": "b"}}}, "imagePullSecrets": [{"name": "a"}],
                 "envFrom": [{"configMapRef": {"name": "a"}}], "service": {"type": "NodePort"}, "minAvailable": "50%"},
                {"networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {}}]}, "priorityClassName": "system-cluster-critical",
                 "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
                 "modules": {"coordination": {"config": {"atRest": "Running"}}}, "extraArgs": ["--log-level", "debug"], "fullnameOverride": "x" * 60},
                {"webhook": {"enabled": False}, "replicaCount": 1, "leaderElection": {"enabled": False}, "metrics": {"secure": False}},
                {"modules": {"stepping": {"enabled": True, "secrets": {"enabled": True, "namespaces": ["default"]}}},
                 "networkPolicy": {"enabled": True, "providers": [{"to": [{"namespaceSelector": {}}], "ports": [{"port": 9090}]}]}},
        ]:
            objects = render(values, options=("--api-versions", PROMETHEUS))
            text = for_server(alone, yaml.safe_dump_all(objects))
            said = apply(alone, text, "--validate=true", "--dry-run=server")
            assert said.count("(server dry run)") == len(objects), said
    finally:
        alone.kubectl("delete", "--ignore-not-found", *names)


def test_its_pods_may_run_where_pods_are_restricted(alone, namespace_name):
    """From 1.23 on the API server itself looks at that; before, only the label is there."""
    level = "pod-security.kubernetes.io/enforce"
    alone.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_name, "labels": {level: "restricted"}}})
    path = "/api/v1/namespaces/%s/pods?dryRun=All" % namespace_name
    try:
        for kind in "Deployment", "Job":
            template = render().one(kind)["spec"]["template"]
            made = alone.api.post(path, {"apiVersion": "v1", "kind": "Pod", "metadata": dict(template["metadata"], name="tried"), "spec": template["spec"]})
            assert made["metadata"]["name"] == "tried"
    finally:
        alone.api.remove("/api/v1/namespaces/" + namespace_name)


def missing_permissions(text):
    """{(verb, resource.group)} of the words in the message."""
    found = set()
    for part in text.split("; "):
        part = part.partition(" in namespace ")[0]
        verbs, _, resource = part.rpartition(" ")
        found |= {(verb, resource) for verb in verbs.split(", ")}
    return found


def test_the_permissions_are_those_that_slipway_asks_for_and_no_others(alone, namespace_name, tmp_path):
    """Under an account that may do nothing it names all."""
    kinds = "---\n".join(path.read_text() for path in (TOP / "manifests" / "crds").glob("*.yaml"))
    rendered = render()
    (tmp_path / "modules.d").mkdir()
    (tmp_path / "slipway.yaml").write_text(rendered.one("ConfigMap")["data"]["slipway.yaml"])
    alone.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_name}})
    alone.api.post("/api/v1/namespaces/%s/serviceaccounts" % namespace_name, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}})
    (tmp_path / "kubeconfig").write_text(alone.kubeconfig(NAMESPACE, token=alone.token(namespace_name, "nobody")))
    argv = [str(BUILD / "slipway"), "--config", str(tmp_path / "slipway.yaml"), "--kubeconfig", str(tmp_path / "kubeconfig")]
    for flag in "--webhook-bind-address", "--health-probe-bind-address", "--metrics-bind-address":
        argv += [flag, "127.0.0.1:%d" % free_port()]
    log = tmp_path / "log"
    try:
        apply(alone, kinds)
        with open(log, "w") as to:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.STDOUT)
        try:
            until(lambda: "permissions are missing" in log.read_text() or process.poll() is not None, lambda: log.read_text())
        finally:
            process.terminate()
            assert process.wait(90) == 0, log.read_text()
    finally:
        alone.api.remove("/api/v1/namespaces/" + namespace_name)
        apply(alone, kinds, "--ignore-not-found", how="delete")
    line = next(line for line in log.read_text().splitlines() if "permissions are missing" in line)
    asked = missing_permissions(json.loads(line)["missing"])
    given = {(verb, "%s%s" % (resource, "." + group if group else "")) for (_, group, resource, _), verbs in rendered.rules().items() for verb in verbs}
    assert asked == given
