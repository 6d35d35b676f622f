# SPDX-License-Identifier: Apache-2.0
"""Each value has the effect that its name promises, and a key that there is not is refused."""

import json
import re
import subprocess

import pytest
import yaml

from chart import CHARTS, KUBERNETES, PROMETHEUS, TOP, helm, refusal, render
from harness.slipway import BUILD

WITH_PROMETHEUS = ("--api-versions", PROMETHEUS)

# The values of kube-deployment-coordinator's chart, all of them, each other than its default, and what must follow from them:
# (value, what to look at, what it is then).
REFERENCE = [
    ({"image": {"repository": "example.org/slipway"}}, lambda r: r.container["image"].partition(":")[0], "example.org/slipway"),
    ({"image": {"tag": "9"}}, lambda r: r.container["image"].partition(":")[2], "9"),
    ({"image": {"tag": None}}, lambda r: r.container["image"].partition(":")[2], "0.1.0"),
    ({"image": {"pullPolicy": "Always"}}, lambda r: r.container["imagePullPolicy"], "Always"),
    ({"imagePullSecrets": [{"name": "regcred"}]}, lambda r: r.pod["imagePullSecrets"], [{"name": "regcred"}]),
    ({"imagePullSecrets": {}}, lambda r: "imagePullSecrets" in r.pod, False),
    ({"nameOverride": "kdc"}, lambda r: (r.deployment["metadata"]["name"], r.one("ServiceAccount")["metadata"]["name"]), ("kdc", "kdc")),
    ({"fullnameOverride": "whole"}, lambda r: r.deployment["metadata"]["name"], "whole"),
    ({"extraArgs": ["--log-level=debug"]}, lambda r: r.container["args"][-1], "--log-level=debug"),
    ({"envFrom": [{"secretRef": {"name": "env"}}]}, lambda r: r.container["envFrom"], [{"secretRef": {"name": "env"}}]),
    ({"metricsPort": 8712}, lambda r: (r.settings["metrics"]["bindAddress"], ports(r)["metrics"],
                                       r.one("Service", "slipway-metrics")["spec"]["ports"][0]["port"]), (":8712", 8712, 8712)),
    ({"healthPort": 8713}, lambda r: (r.settings["healthProbe"]["bindAddress"], ports(r)["health"]), (":8713", 8713)),
    ({"replicaCount": 3}, lambda r: r.deployment["spec"]["replicas"], 3),
    ({"minAvailable": 2, "replicaCount": 3}, lambda r: r.one("PodDisruptionBudget")["spec"]["minAvailable"], 2),
    ({"enablePodDisruptionBudget": False}, lambda r: r.of("PodDisruptionBudget"), []),
    ({"service": {"type": "NodePort"}}, lambda r: {service["spec"]["type"] for service in r.of("Service")}, {"NodePort"}),
    ({"serviceAccount": {"create": False, "name": "theirs"}}, lambda r: (r.of("ServiceAccount"), r.pod["serviceAccountName"], subjects(r)),
     ([], "theirs", {"theirs"})),
    ({"serviceAccount": {"annotations": {"a": "b"}}}, lambda r: r.one("ServiceAccount")["metadata"]["annotations"], {"a": "b"}),
    ({"serviceAccount": {"name": "ours"}}, lambda r: (r.one("ServiceAccount")["metadata"]["name"], subjects(r)), ("ours", {"ours"})),
    ({"podAnnotations": {"a": "b"}}, lambda r: r.deployment["spec"]["template"]["metadata"]["annotations"]["a"], "b"),
    ({"podSecurityContext": {"fsGroup": 7}}, lambda r: r.pod["securityContext"]["fsGroup"], 7),
    ({"securityContext": {"runAsUser": 7}}, lambda r: r.container["securityContext"]["runAsUser"], 7),
    ({"resources": {"limits": {"cpu": "1"}}}, lambda r: r.container["resources"]["limits"]["cpu"], "1"),
    ({"nodeSelector": {"a": "b"}}, lambda r: r.pod["nodeSelector"], {"a": "b"}),
    ({"tolerations": [{"key": "a", "effect": "NoSchedule"}]}, lambda r: r.pod["tolerations"], [{"key": "a", "effect": "NoSchedule"}]),
    ({"affinity": {"podAffinity": {}}}, lambda r: r.pod["affinity"], {"podAffinity": {}}),
    ({"enableServiceMonitor": False}, lambda r: r.of("ServiceMonitor"), []),
    ({"leaderElection": {"enabled": False}, "replicaCount": 1}, lambda r: r.settings["leaderElection"]["enabled"], False),
    ({"leaderElection": {"enabled": True, "id": "kdc"}}, lambda r: (r.settings["leaderElection"]["id"], (True, "coordination.k8s.io", "leases", "kdc") in r.rules()),
     ("kdc", True)),
    ({"livenessProbe": {"failureThreshold": 7}}, lambda r: r.container["livenessProbe"]["failureThreshold"], 7),
    ({"readinessProbe": {"httpGet": {"path": "/else"}}}, lambda r: r.container["readinessProbe"]["httpGet"], {"path": "/else", "port": "health"}),
    ({"webhook": {"enabled": False}}, lambda r: (r.of("MutatingWebhookConfiguration"), r.settings["webhook"], "webhook" in ports(r), r.of("Secret")),
     ([], {"bindAddress": "0"}, False, [])),
    ({"webhook": {"name": "theirs"}}, lambda r: (r.configuration["metadata"]["name"], r.settings["webhook"]["configurationName"]), ("theirs", "theirs")),
    ({"webhook": {"webhookName": "kube-deployment-coordinator.containerinfra.nl"}}, lambda r: r.webhook["name"], "kube-deployment-coordinator.containerinfra.nl"),
    ({"webhook": {"serviceName": "webhook-service"}}, lambda r: (r.webhook["clientConfig"]["service"]["name"], r.settings["webhook"]["serviceName"],
                                                                len([s for s in r.of("Service") if s["metadata"]["name"] == "webhook-service"])),
     ("webhook-service", "webhook-service", 1)),
    ({"webhook": {"path": "/else"}}, lambda r: r.webhook["clientConfig"]["service"]["path"], "/else"),
    ({"webhook": {"operations": ["UPDATE"]}}, lambda r: r.webhook["rules"][0]["operations"], ["UPDATE"]),
    ({"webhook": {"admissionReviewVersions": ["v1", "v1beta1"]}}, lambda r: r.webhook["admissionReviewVersions"], ["v1", "v1beta1"]),
    ({"webhook": {"sideEffects": "NoneOnDryRun"}}, lambda r: r.webhook["sideEffects"], "NoneOnDryRun"),
    ({"webhook": {"failurePolicy": "Fail"}}, lambda r: r.webhook["failurePolicy"], "Fail"),
    ({"webhook": {"caBundle": "Q0E="}}, lambda r: (r.webhook["clientConfig"]["caBundle"], r.settings["webhook"]["certificates"], secret_volume(r), r.of("Secret")),
     ("Q0E=", "files", "slipway-webhook", [])),
    ({"webhook": {"certManager": {"enabled": True}}},
     lambda r: (r.one("Certificate")["spec"]["issuerRef"], r.one("Issuer")["spec"], secret_volume(r),
                r.configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], r.of("Secret"), r.settings["webhook"]["certificates"]),
     ({"kind": "Issuer", "name": "selfsigned-issuer"}, {"selfSigned": {}}, "webhook-server-cert", "kube-system/webhook-serving-cert", [], "files")),
    ({"webhook": {"certManager": {"enabled": True, "createIssuer": False, "issuerName": "theirs"}}},
     lambda r: (r.of("Issuer"), r.one("Certificate")["spec"]["issuerRef"]["name"]), ([], "theirs")),
    ({"webhook": {"certManager": {"enabled": True, "issuerRef": {"kind": "ClusterIssuer", "name": "acme"}}}},
     lambda r: r.one("Certificate")["spec"]["issuerRef"], {"kind": "ClusterIssuer", "name": "acme"}),
    ({"webhook": {"certManager": {"enabled": True, "certificateName": "c", "secretName": "s", "dnsNames": ["more.example.org"]}}},
     lambda r: (r.one("Certificate")["metadata"]["name"], r.one("Certificate")["spec"]["secretName"], secret_volume(r), r.one("Certificate")["spec"]["dnsNames"]),
     ("c", "s", "s", ["slipway-webhook.kube-system.svc", "slipway-webhook.kube-system.svc.cluster.local", "more.example.org"])),
    ({"webhook": {"annotations": {"a": "b"}}}, lambda r: r.configuration["metadata"]["annotations"], {"a": "b"}),
    ({"webhook": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}, lambda r: r.webhook["namespaceSelector"], {"matchLabels": {"a": "b"}}),
    ({"webhook": {"objectSelector": {"matchLabels": {"a": "b"}}}}, lambda r: r.webhook["objectSelector"], {"matchLabels": {"a": "b"}}),
]

# What kube-deployment-coordinator's chart does not have.
OURS = [
    ({"topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
     lambda r: [(found["maxSkew"], found["topologyKey"], found["labelSelector"]["matchLabels"] == r.deployment["spec"]["selector"]["matchLabels"])
                for found in r.pod["topologySpreadConstraints"]], [(2, "zone", True)]),
    ({"priorityClassName": "system-cluster-critical"}, lambda r: r.pod["priorityClassName"], "system-cluster-critical"),
    ({"leaderElection": {"leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "1s"}}, lambda r: r.settings["leaderElection"],
     {"enabled": True, "id": "slipway", "leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "1s"}),
    ({"serviceMonitor": {"labels": {"a": "b"}, "interval": "5s"}},
     lambda r: (r.one("ServiceMonitor")["metadata"]["labels"]["a"], r.one("ServiceMonitor")["spec"]["endpoints"][0]["interval"]), ("b", "5s")),
    ({"metrics": {"secure": False}}, lambda r: (r.settings["metrics"]["secure"], "scheme" in r.one("ServiceMonitor")["spec"]["endpoints"][0],
                                                (False, "authentication.k8s.io", "tokenreviews", "") in r.rules(), len(r.of("ClusterRole"))), (False, False, False, 2)),
    ({"metrics": {"secretName": "m"}}, lambda r: (r.settings["metrics"]["certDir"], [v["secret"]["secretName"] for v in r.pod["volumes"] if v["name"] == "metrics-tls"],
                                                  [m["mountPath"] for m in r.container["volumeMounts"] if m["name"] == "metrics-tls"],
                                                  r.one("ServiceMonitor")["spec"]["endpoints"][0]["tlsConfig"]["insecureSkipVerify"]),
     ("/run/slipway/metrics-tls", ["m"], ["/run/slipway/metrics-tls"], False)),
    ({"metrics": {"secure": True}}, lambda r: (r.one("ServiceMonitor")["spec"]["endpoints"][0]["scheme"],
                                               "bearerTokenFile" in r.one("ServiceMonitor")["spec"]["endpoints"][0]), ("https", True)),
    ({"networkPolicy": {"enabled": True}}, lambda r: sorted(port["port"] for rule in r.one("NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]),
     [7712, 7713, 9443]),
    ({"networkPolicy": {"enabled": True, "metricsFrom": [{"podSelector": {}}]}},
     lambda r: [rule.get("from") for rule in r.one("NetworkPolicy")["spec"]["ingress"]], [None, [{"podSelector": {}}]]),
    ({"watchNamespace": "shop"}, lambda r: (r.settings["namespace"], r.webhook["namespaceSelector"]), ("shop", {"matchLabels": {"kubernetes.io/metadata.name": "shop"}})),
    ({"log": {"level": "debug", "format": "console"}}, lambda r: r.settings["log"], {"level": "debug", "format": "console"}),
    ({"client": {"qps": 7}}, lambda r: r.settings["client"], {"qps": 7, "burst": 100}),
    ({"stopDelay": "9s"}, lambda r: r.settings["stopDelay"], "9s"),
    ({"modules": {"coordination": {"config": {"atRest": "Running"}}}}, lambda r: yaml.safe_load(r.one("ConfigMap")["data"]["modules.d.coordination.yaml"]),
     {"atRest": "Running"}),
    ({"modules": {"events": {"enabled": False}}}, lambda r: (r.settings["modules"], (False, "", "events", "") in r.rules()), (["coordination", "pausing"], False)),
    ({"uninstall": {"release": False}}, lambda r: (r.of("Job"), len(r.of("ClusterRole"))), ([], 2)),
    ({"uninstall": {"timeLimit": "30m"}}, lambda r: r.one("Job")["spec"]["template"]["spec"]["containers"][0]["args"][-1], "--time-limit=30m"),
    ({"webhook": {"timeoutSeconds": 9}}, lambda r: r.webhook["timeoutSeconds"], 9),
    ({"webhook": {"secretName": "s"}}, lambda r: (r.one("Secret")["metadata"]["name"], r.settings["webhook"]["secretName"], (True, "", "secrets", "s") in r.rules()),
     ("s", "s", True)),
    ({"webhook": {"certificates": "files"}}, lambda r: (r.settings["webhook"]["certificates"], secret_volume(r), "caBundle" in r.webhook["clientConfig"]),
     ("files", "slipway-webhook", False)),
]

# Of the module stepping.
OURS += [
    ({"modules": {"stepping": {"enabled": True}}},
     lambda r: (r.settings["modules"], (False, "", "secrets", "") in r.rules(), [found["name"] for found in r.configuration["webhooks"]]),
     (["coordination", "events", "pausing", "stepping"], False,
      ["deployments.slipway.dev", "statefulsets.slipway.dev", "daemonsets.slipway.dev"])),
    ({"modules": {"stepping": {"enabled": True, "config": {"metricTemplates": False, "maxConcurrentRounds": 7}}}},
     lambda r: (yaml.safe_load(r.one("ConfigMap")["data"]["modules.d.stepping.yaml"]), (False, "flagger.app", "metrictemplates", "") in r.rules()),
     ({"metricTemplates": False, "maxConcurrentRounds": 7}, False)),
    ({"modules": {"stepping": {"enabled": True, "secrets": {"enabled": True}}}}, lambda r: r.rules()[False, "", "secrets", ""], {"get"}),
    ({"modules": {"stepping": {"enabled": True, "secrets": {"enabled": True, "namespaces": ["a", "b"]}}}},
     lambda r: ((False, "", "secrets", "") in r.rules(), {role["metadata"]["namespace"] for role in r.of("Role") if role["metadata"]["name"] == "slipway-secrets"},
                r.rules()[True, "", "secrets", ""], len([b for b in r.of("RoleBinding") if b["metadata"]["name"] == "slipway-secrets"])),
     (False, {"a", "b"}, {"get"}, 2)),
    ({"modules": {"stepping": {"enabled": True}}, "networkPolicy": {"enabled": True}}, lambda r: r.one("NetworkPolicy")["spec"]["egress"][-1], {}),
    ({"modules": {"stepping": {"enabled": True}}, "networkPolicy": {"enabled": True, "providers": [{"to": [{"podSelector": {}}], "ports": [{"port": 9090}]}]}},
     lambda r: r.one("NetworkPolicy")["spec"]["egress"][2:], [{"to": [{"podSelector": {}}], "ports": [{"port": 9090}]}]),
]


def ports(rendered):
    return {port["name"]: port["containerPort"] for port in rendered.container["ports"]}


def subjects(rendered):
    return {subject["name"] for binding in rendered.of("ClusterRoleBinding") + rendered.of("RoleBinding") for subject in binding["subjects"]}


def secret_volume(rendered):
    return next((volume["secret"]["secretName"] for volume in rendered.pod["volumes"] if "secret" in volume), None)


def name_of(value):
    return json.dumps(value)[:60] if isinstance(value, dict) else ""


@pytest.mark.parametrize("values, look, wanted", REFERENCE + OURS, ids=name_of)
def test_a_value_has_its_effect(values, look, wanted):
    assert look(render(values, options=WITH_PROMETHEUS)) == wanted


def test_all_value_names_of_the_schema_are_tried_and_have_a_default():
    """So that none is forgotten when it is added."""
    schema = json.loads((CHARTS / "slipway" / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHARTS / "slipway" / "values.yaml").read_text())
    tried = set()

    def collect(values, path=()):
        for key, value in values.items():
            tried.add(path + (key,))
            if isinstance(value, dict):
                collect(value, path + (key,))

    for values, _, _ in REFERENCE + OURS:
        collect(values)

    def check(properties, value, path=()):
        assert path == () and "global" in properties or set(properties) - {"global"} == set(value) or path[-1:] == ("config",), path
        for key, found in properties.items():
            if key == "global" or path + (key,) in FREE:
                continue
            if "properties" in found and key not in ("resources", "affinity", "namespaceSelector", "objectSelector", "issuerRef", "config"):
                check(found["properties"], value[key], path + (key,))
            else:
                assert path + (key,) in tried, "nobody tries %s" % ".".join(path + (key,))

    check(schema["properties"], defaults)


# Tried with all of the chart in another test.
FREE = {("prometheusRule",), ("modules", "pausing"), ("modules", "events", "config"), ("modules", "coordination", "enabled"),
        ("webhook", "certManager", "createIssuer"), ("client", "burst")}


@pytest.mark.parametrize("values, words", [
    ({"replicaCout": 2}, ["replicaCout"]),
    ({"image": {"respository": "x"}}, ["image", "respository"]),
    ({"serviceAccount": {"annotation": {}}}, ["serviceAccount", "annotation"]),
    ({"modules": {"stepping": {"secret": {}}}}, ["stepping", "secret"]),
    ({"modules": {"stepping": {"config": {"interval": "1m"}}}}, ["stepping", "interval"]),
    ({"modules": {"stepping": {"secrets": {"namespaces": [""]}}}}, ["stepping", "namespaces"]),
    ({"modules": {"stepping": {"enabled": True}, "pausing": {"enabled": False}}}, ["modules.stepping.enabled", "set modules.pausing.enabled"]),
    ({"leaderElection": {"enable": True}}, ["leaderElection", "enable"]),
    ({"webhook": {"failurepolicy": "Fail"}}, ["webhook", "failurepolicy"]),
    ({"webhook": {"certManager": {"issuer": "x"}}}, ["certManager", "issuer"]),
    ({"webhook": {"certManager": {"issuerRef": {"nam": "x"}}}}, ["issuerRef", "nam"]),
    ({"webhook": {"namespaceSelector": {"matchLabel": {}}}}, ["namespaceSelector", "matchLabel"]),
    ({"modules": {"coordinaton": {"enabled": True}}}, ["modules", "coordinaton"]),
    ({"modules": {"coordination": {"enable": True}}}, ["coordination", "enable"]),
    ({"modules": {"coordination": {"config": {"atrest": "Running"}}}}, ["config", "atrest"]),
    ({"modules": {"events": {"config": {"x": 1}}}}, ["events", "config"]),
    ({"metrics": {"secured": True}}, ["metrics", "secured"]),
    ({"networkPolicy": {"enable": True}}, ["networkPolicy", "enable"]),
    ({"prometheusRule": {"label": {}}}, ["prometheusRule", "label"]),
    ({"serviceMonitor": {"label": {}}}, ["serviceMonitor", "label"]),
    ({"uninstall": {"timelimit": "1m"}}, ["uninstall", "timelimit"]),
    ({"service": {"typ": "x"}}, ["service", "typ"]),
    ({"resources": {"limit": {}}}, ["resources", "limit"]),
    ({"affinity": {"nodeaffinity": {}}}, ["affinity", "nodeaffinity"]),
    ({"log": {"levl": "info"}}, ["log", "levl"]),
    ({"client": {"qsp": 1}}, ["client", "qsp"]),
    # Values that cannot be.
    ({"replicaCount": "two"}, ["replicaCount"]),
    ({"metricsPort": 80}, ["metricsPort"]),
    ({"webhook": {"failurePolicy": "Maybe"}}, ["failurePolicy"]),
    ({"uninstall": {"timeLimit": "soon"}}, ["timeLimit"]),
    ({"log": {"level": "loud"}}, ["level"]),
    ({"modules": {"coordination": {"config": {"atRest": "Sometimes"}}}}, ["atRest"]),
], ids=name_of)
def test_what_is_misspelt_or_impossible_is_refused_by_its_name(values, words):
    said = refusal(values)
    for word in words:
        assert word in said, said


def test_kube_deployment_coordinators_own_values_work_unchanged():
    """All that its chart's values.yaml has, at once, each with its default."""
    both = render({
        "image": {"repository": "ghcr.io/containerinfra/slipway", "pullPolicy": "IfNotPresent", "tag": None}, "imagePullSecrets": {}, "nameOverride": "",
        "fullnameOverride": "", "extraArgs": [], "envFrom": [], "metricsPort": 7712, "healthPort": 7713, "replicaCount": 1, "minAvailable": 1,
        "enablePodDisruptionBudget": False, "service": {"type": "ClusterIP"}, "serviceAccount": {"create": True, "annotations": {}, "name": ""},
        "podAnnotations": {}, "podSecurityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": True, "runAsGroup": 65532,
                                                     "runAsUser": 65532, "fsGroup": 65532},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}, "runAsUser": 65532},
        "resources": {}, "nodeSelector": {}, "tolerations": [], "affinity": {}, "enableServiceMonitor": True, "leaderElection": {"enabled": False},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "initialDelaySeconds": 10, "periodSeconds": 10, "timeoutSeconds": 10,
                          "failureThreshold": 3},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "initialDelaySeconds": 10, "periodSeconds": 10, "timeoutSeconds": 10,
                           "failureThreshold": 3},
        "webhook": {"enabled": True, "name": "", "webhookName": "kube-deployment-coordinator.containerinfra.nl", "serviceName": "webhook-service",
                    "path": "/mutate-apps-v1-deployment", "operations": ["CREATE", "UPDATE"], "admissionReviewVersions": ["v1"], "sideEffects": "None",
                    "failurePolicy": "Ignore", "caBundle": "",
                    "certManager": {"enabled": False, "createIssuer": True, "issuerName": "selfsigned-issuer", "certificateName": "webhook-serving-cert",
                                    "secretName": "webhook-server-cert"},
                    "annotations": {}, "namespaceSelector": {}, "objectSelector": {}},
    })
    assert both.settings["leaderElection"]["enabled"] is False and both.deployment["spec"]["replicas"] == 1
    assert both.settings["webhook"]["certificates"] == "self"
    # The values of its README's HelmRelease.
    readme = render({"enableServiceMonitor": False, "replicaCount": 1, "nodeSelector": {"kubernetes.io/os": "linux"},
                     "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                         {"weight": 1, "preference": {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}}]}},
                     "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]})
    assert readme.pod["tolerations"] and readme.pod["affinity"] and not readme.of("PodDisruptionBudget")


def test_several_replicas_elect_a_leader_whatever_is_said():
    rendered = render({"leaderElection": {"enabled": False}, "replicaCount": 2})
    assert rendered.settings["leaderElection"]["enabled"] is True
    assert rendered.rules()[(True, "coordination.k8s.io", "leases", "slipway")] == {"get", "update", "watch"}


def test_permissions_are_those_of_what_is_enabled():
    everything = render().rules()
    assert everything == {
        (False, "apps", "deployments", ""): {"get", "list", "watch", "patch"},
        (False, "apps.containerinfra.nl", "deploymentcoordinations", ""): {"get", "list", "watch"},
        (False, "apps.containerinfra.nl", "deploymentcoordinations/status", ""): {"patch"},
        (False, "", "events", ""): {"create", "patch"},
        (False, "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "slipway"): {"get", "list", "watch", "patch"},
        (False, "authentication.k8s.io", "tokenreviews", ""): {"create"},
        (False, "authorization.k8s.io", "subjectaccessreviews", ""): {"create"},
        (True, "coordination.k8s.io", "leases", ""): {"create"},
        (True, "coordination.k8s.io", "leases", "slipway"): {"get", "update", "watch"},
        (True, "", "secrets", "slipway-webhook"): {"list", "watch", "patch"},
    }
    least = render({"replicaCount": 1, "leaderElection": {"enabled": False}, "webhook": {"enabled": False}, "metrics": {"secure": False},
                    "modules": {"coordination": {"enabled": False}, "events": {"enabled": False}}, "uninstall": {"release": False}})
    assert least.rules() == {(False, "apps", "deployments", ""): {"list", "watch", "patch"}}
    assert not least.of("Role"), "an empty one"
    # Of one namespace: nothing of what it watches anywhere else, nor while it is uninstalled.
    one = render({"watchNamespace": "shop"})
    assert {key[1:3] for key in one.rules() if not key[0]} == {("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
                                                              ("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")}
    assert {verb for role in one.of("Role") if role["metadata"]["namespace"] == "shop" for rule in role["rules"] for verb in rule["verbs"]} == \
        {"get", "list", "watch", "patch", "create"}  # that of the Job before the uninstallation as well
    assert not [rule for role in one.of("ClusterRole") for rule in role["rules"] if "apps" in rule.get("apiGroups", [])]
    assert (True, "", "secrets", "slipway-webhook") not in render({"webhook": {"certManager": {"enabled": True}}}).rules()


def test_stepping_has_permissions_and_webhooks_of_its_own_and_only_then():
    without, stepping = render(), render({"modules": {"stepping": {"enabled": True}}})
    more = {key: verbs for key, verbs in stepping.rules().items() if without.rules().get(key) != verbs}
    assert more == {
        (False, "slipway.dev", "steppedrollouts", ""): {"get", "list", "watch", "patch"},
        (False, "slipway.dev", "steppedrollouts/status", ""): {"patch"},
        (False, "apps", "statefulsets", ""): {"get", "list", "watch", "patch"},
        (False, "apps", "daemonsets", ""): {"get", "list", "watch", "patch"},
        (False, "apps", "controllerrevisions", ""): {"get", "list"},
        (False, "apps", "replicasets", ""): {"get", "list"},
        (False, "apps", "replicasets/scale", ""): {"patch"},
        (False, "", "pods", ""): {"get", "list", "delete"},
        (False, "flagger.app", "metrictemplates", ""): {"get", "list", "watch"},
        (False, "admissionregistration.k8s.io", "validatingwebhookconfigurations", "slipway"): {"get", "list", "watch", "patch"},
    }
    assert set(without.rules()) <= set(stepping.rules())
    assert not without.of("ValidatingWebhookConfiguration") and len(without.configuration["webhooks"]) == 1
    # Its permission to see Deployments is its own.
    alone = render({"modules": {"stepping": {"enabled": True}, "coordination": {"enabled": False}}})
    assert alone.rules()[False, "apps", "deployments", ""] == {"get", "list", "watch", "patch"}
    one = render({"watchNamespace": "shop", "modules": {"stepping": {"enabled": True, "secrets": {"enabled": True}}}})
    assert not [key for key in one.rules() if not key[0] and key[1] in ("apps", "slipway.dev", "flagger.app", "")]
    assert one.rules()[True, "", "secrets", ""] == {"get"} and one.rules()[True, "", "pods", ""] == {"get", "list", "delete"}


def test_the_entries_of_stepping_are_like_that_of_deployments():
    values = {"failurePolicy": "Fail", "caBundle": "Q0E=", "objectSelector": {"matchLabels": {"a": "b"}}, "annotations": {"c": "d"}}
    rendered = render({"webhook": values, "modules": {"stepping": {"enabled": True}}})
    validating = rendered.one("ValidatingWebhookConfiguration")
    assert validating["metadata"]["name"] == rendered.configuration["metadata"]["name"] == rendered.settings["webhook"]["configurationName"]
    assert validating["metadata"]["annotations"] == rendered.configuration["metadata"]["annotations"] == {"c": "d"}
    entries = rendered.configuration["webhooks"] + validating["webhooks"]
    assert {entry["name"]: (entry["clientConfig"]["service"]["path"], entry["rules"][0]["apiGroups"] + entry["rules"][0]["apiVersions"] + entry["rules"][0]["resources"],
                            entry.get("reinvocationPolicy"), entry.get("objectSelector")) for entry in entries} == {
        "deployments.slipway.dev": ("/mutate-apps-v1-deployment", ["apps", "v1", "deployments"], "IfNeeded", {"matchLabels": {"a": "b"}}),
        "statefulsets.slipway.dev": ("/mutate-apps-v1-statefulset", ["apps", "v1", "statefulsets"], "IfNeeded", {"matchLabels": {"a": "b"}}),
        "daemonsets.slipway.dev": ("/mutate-apps-v1-daemonset", ["apps", "v1", "daemonsets"], "IfNeeded", {"matchLabels": {"a": "b"}}),
        # Whatever label selects workloads, SteppedRollouts have labels of their own.
        "steppedrollouts.slipway.dev": ("/validate-slipway-dev-v1alpha1-steppedrollout", ["slipway.dev", "v1alpha1", "steppedrollouts"], None, None),
    }
    for entry in entries:
        assert (entry["failurePolicy"], entry["clientConfig"]["caBundle"], entry["rules"][0]["operations"], entry["namespaceSelector"]) == \
            ("Fail", "Q0E=", ["CREATE", "UPDATE"], entries[0]["namespaceSelector"])
    issued = render({"webhook": {"certManager": {"enabled": True}}, "modules": {"stepping": {"enabled": True}}})
    assert issued.one("ValidatingWebhookConfiguration")["metadata"]["annotations"] == issued.configuration["metadata"]["annotations"] != {}
    assert not render({"webhook": {"enabled": False}, "modules": {"stepping": {"enabled": True}}}).of("ValidatingWebhookConfiguration")


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_pods_meet_the_restricted_pod_security_standard(kind):
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    pod = render().one(kind)["spec"]["template"]["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert all(set(volume) - {"name"} <= {"configMap", "secret", "emptyDir", "projected"} for volume in pod["volumes"])
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False and context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True and not context.get("privileged")
        assert all(mount["readOnly"] for mount in container["volumeMounts"])
        assert not any("hostPort" in port for port in container.get("ports") or [])


def test_what_a_cluster_does_not_know_is_not_made():
    assert not {"ServiceMonitor", "PrometheusRule"} & {found["kind"] for found in render()}
    assert render(options=("--api-versions", PROMETHEUS)).one("ServiceMonitor")
    old = helm("template", "slipway", CHARTS / "slipway", "--kube-version", "1.20.2").stdout
    assert "policy/v1beta1" in old and "policy/v1beta1" not in helm("template", "slipway", CHARTS / "slipway", "--kube-version", KUBERNETES).stdout


def test_alerts_are_those_of_the_rules_file():
    rules = yaml.safe_load((TOP / "manifests" / "prometheus" / "alerts.yaml").read_text())
    made = render({"prometheusRule": {"labels": {"a": "b"}}}, options=WITH_PROMETHEUS).one("PrometheusRule")
    assert made["spec"]["groups"] == rules["groups"] and rules["groups"] and made["metadata"]["labels"]["a"] == "b"
    assert not render({"prometheusRule": {"enabled": False}}, options=WITH_PROMETHEUS).of("PrometheusRule")


def test_a_change_that_is_read_again_starts_no_new_pods_and_another_does():
    def template(values):
        return render(values).deployment["spec"]["template"]
    assert template({}) == template({"log": {"level": "debug"}, "client": {"qps": 9}, "modules": {"coordination": {"config": {"atRest": "Running"}}}})
    for values in {"metricsPort": 8712}, {"leaderElection": {"id": "x"}}, {"modules": {"events": {"enabled": False}}}, {"modules": {"stepping": {"enabled": True}}}:
        assert template({}) != template(values), values


@pytest.mark.parametrize("values", [values for values, _, _ in REFERENCE + OURS], ids=name_of)
def test_slipway_takes_what_is_rendered(values, tmp_path):
    """Its configuration files, and its arguments."""
    rendered = render(values)
    (tmp_path / "modules.d").mkdir()
    data = rendered.one("ConfigMap")["data"]
    for item in next(volume for volume in rendered.pod["volumes"] if volume["name"] == "config")["configMap"]["items"]:
        (tmp_path / item["path"]).write_text(data[item["key"]])
    for kind in "Deployment", "Job":
        for found in rendered.of(kind):
            args = [arg.replace("/etc/slipway/", "%s/" % tmp_path) for arg in found["spec"]["template"]["spec"]["containers"][0]["args"]]
            done = subprocess.run([str(BUILD / "slipway"), *args, *(["--check-config"] if kind == "Deployment" else ["--kubeconfig=/nowhere"])],
                                  capture_output=True, text=True, timeout=60)
            assert (done.returncode, ": good; modules:" in done.stdout) == ((0, True) if kind == "Deployment" else (1, False)), done
            assert kind == "Deployment" or "/nowhere" in done.stderr, done


def test_the_chart_of_kinds_keeps_them():
    made = render(chart="slipway-crds")
    assert [found["metadata"]["annotations"]["helm.sh/resource-policy"] for found in made] == ["keep"] * len(made) and made
    names = {yaml.safe_load(path.read_text())["metadata"]["name"] for path in (TOP / "manifests" / "crds").glob("*.yaml")}
    assert {found["metadata"]["name"] for found in made} == names


def test_lint_finds_nothing():
    for chart in "slipway", "slipway-crds":
        said = helm("lint", "--strict", "--kube-version", KUBERNETES, CHARTS / chart).stdout
        assert "0 chart(s) failed" in said and "WARNING" not in said, said


def test_versions_are_those_of_slipway():
    version = re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text())[1]
    for chart in "slipway", "slipway-crds":
        found = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())
        assert found["version"] == found["appVersion"] == version


def test_what_is_made_from_the_charts_is_current():
    done = subprocess.run([TOP / "tools" / "manifests", "--check"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
