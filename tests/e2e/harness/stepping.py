# SPDX-License-Identifier: Apache-2.0
"""A stage for module stepping: one target of one of the three kinds, its SteppedRollout, a slipway that steps it, and an
observer that counts its Pods at each event."""

import base64
import collections
import json
import math
import time

from .cluster import api
from .nodes import Nodes
from .pod_counts import PodCounts, is_ready
from .promise import BROKEN
from . import promise
from .scene import deployment
from .wait import until

KINDS = ("Deployment", "StatefulSet", "DaemonSet")
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}
STEPPED = "/apis/slipway.dev/v1alpha1/namespaces/%s/steppedrollouts"
ADMISSION = "admissionregistration.k8s.io/v1"
SETTINGS = "modules: [coordination, pausing, events, stepping]\n"
OURS = ("held-by", "released-by", "saved")  # what nobody finds on a target at rest
# A Deployment goes on by itself until it is paused: while it may, its Pods take longer than a busy machine needs for that.
SLOW, QUICK = "3s", "200ms"
READY = "kubelets.slipway.dev/ready"  # "false": Pods of the template do not become ready


def workload(kind, name, replicas, version="1", pod_annotations=None, surge=1, unavailable=0, **spec):
    """Any of the three; `replicas` is not for DaemonSets."""
    made = deployment(name, replicas, version=version, pod_annotations=pod_annotations,
                      strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
    if kind != "Deployment":
        made["kind"] = kind
        made["spec"] = {key: made["spec"][key] for key in ("selector", "template", *(["replicas"] if kind == "StatefulSet" else []))}
        if kind == "StatefulSet":
            made["spec"]["serviceName"] = name
    made["spec"].update(spec)
    return made


def hook(path, receiver, kind="rollout", **more):
    return dict({"name": path, "type": kind, "url": receiver.url(path), "timeout": "2s"}, **more)


class Measures:
    """What a scenario measures: a number of its own, which it sets, and which Prometheus knows a second later."""

    def __init__(self, exporter, prometheus):
        self.exporter, self.prometheus = exporter, prometheus
        self.address = "http://127.0.0.1:%d" % prometheus.port

    def are(self, scene, value):
        """Returns when a query gives that."""
        self.exporter.set("app_errors", value, ns=scene.namespace)
        until(lambda: [text for _, text in self.prometheus.query('app_errors{ns="%s"}' % scene.namespace)] == [str(value)], "Prometheus knows of %s" % value)

    def metric(self, **more):
        return dict({"name": "errors", "thresholdRange": {"max": 0.5}, "query": 'max(app_errors{ns="{{ namespace }}"})',
                     "provider": {"type": "prometheus", "address": self.address}}, **more)


class Stage:
    """`web` of that kind with 4 Pods (a DaemonSet: one on each Node, 3, or on as many of its own), at version 1 and at rest; its
    SteppedRollout stops at one Pod and at half of them and is called `web`, too."""

    def __init__(self, scene, kind="Deployment", replicas=4, slipway=None, nodes=0, **how):
        self.scene, self.kind, self.api = scene, kind, scene.api
        self.version, self.most, self.slack, self.steps = "1", {}, 0, []
        self.path = "/apis/apps/v1/namespaces/%s/%s/web" % (scene.namespace, PLURALS[kind])
        self.stepped_path = STEPPED % scene.namespace + "/web"
        self.is_bound = True  # the promise of stops is watched
        self.min_ready_s = 0  # its author's minReadySeconds
        how = dict({"surge": 1, "unavailable": 0}, **how)
        if kind == "Deployment":
            self.slack = how["surge"] + how["unavailable"]
        self.nodes = Nodes(scene, nodes) if nodes and kind == "DaemonSet" else None
        self.pods_take(QUICK)
        self.slipway = slipway or scene.slipway(settings=SETTINGS)
        self.route(self.slipway)
        self.counts = PodCounts(scene.cluster, scene.namespace, self._judge)
        promise.watch(self._alarm)
        scene.observer.is_held_by_other = self._is_there
        made = workload(kind, "web", replicas, **how)
        made["spec"]["template"]["spec"].update(self.nodes.pod_spec() if self.nodes else {})
        self.api.post(self.path.rpartition("/")[0], made)
        until(lambda: self.is_complete("1"), lambda: "version 1 runs: %s" % self.get().get("status"), 60)
        self.pods_take(SLOW)

    def pods_take(self, start):
        """From now on, and those that are on their way too; only Deployments need what is slow."""
        self.scene.let_pods_go(start=start if self.kind == "Deployment" else QUICK, stop="100ms")

    # ---- slipway ----

    def route(self, process):
        """The API server asks it about StatefulSets, DaemonSets and SteppedRollouts, too."""
        base = process.webhook_url.rpartition("/")[0]

        def entry(name, path, groups, version, plural):
            return {"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "matchPolicy": "Equivalent", "failurePolicy": "Fail",
                    "timeoutSeconds": 5, "clientConfig": {"url": base + path, "caBundle": base64.b64encode(process.ca_pem).decode()},
                    "namespaceSelector": {"matchLabels": {"slipway.test/namespace": self.scene.namespace}},
                    "rules": [{"apiGroups": [groups], "apiVersions": [version], "resources": [plural], "operations": ["CREATE", "UPDATE"], "scope": "Namespaced"}]}
        mutating = [dict(entry(plural + ".slipway.dev", "/mutate-apps-v1-" + plural[:-1], "apps", "v1", plural), reinvocationPolicy="IfNeeded")
                    for plural in ("statefulsets", "daemonsets")]
        validating = [entry("steppedrollouts.slipway.dev", "/validate-slipway-dev-v1alpha1-steppedrollout", "slipway.dev", "v1alpha1", "steppedrollouts")]
        for kind, webhooks in (("Mutating", mutating), ("Validating", validating)):
            self.api.put_in_place("/apis/%s/%swebhookconfigurations" % (ADMISSION, kind.lower()), {
                "apiVersion": ADMISSION, "kind": kind + "WebhookConfiguration", "metadata": {"name": "stepping-" + self.scene.namespace}, "webhooks": webhooks})
        self.until_admission_is_asked()

    def until_admission_is_asked(self):
        """Until then a SteppedRollout that nobody may have is taken."""
        wrong = {"apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": "probe"},
                 "spec": {"targetRef": {"kind": "Job", "name": "probe"}}}

        def is_asked():
            try:
                self.api.post(STEPPED % self.scene.namespace + "?dryRun=All", wrong)
            except api.ApiError as error:
                return error.status < 500
            return False
        until(is_asked, "the validating webhook is asked")

    def no_admission(self):
        for kind in ("mutating", "validating"):
            self.api.remove("/apis/%s/%swebhookconfigurations/stepping-%s" % (ADMISSION, kind, self.scene.namespace))

    def close(self):
        promise.unwatch(self._alarm)
        self.no_admission()
        self.let_go()
        self.counts.stop()
        if self.nodes:
            self.nodes.scale(0)

    def _is_there(self, holder):
        module, _, name = holder.partition("/")
        return module == "stepping" and bool(self.status(name))

    def let_go(self):
        """No finalizer keeps the namespace, whoever runs no more."""
        for item in self.api.get(STEPPED % self.scene.namespace)["items"]:
            if item["metadata"].get("finalizers"):
                self.api.patch(STEPPED % self.scene.namespace + "/" + item["metadata"]["name"], {"metadata": {"finalizers": None}})

    # ---- the promise ----

    def _judge(self, workload_name, pods):
        """More Pods of the newest version than the stop and one batch."""
        if workload_name != "web" or not self.is_bound or self.version == "1":
            return None
        version = self.version
        updated = sum(pod["metadata"]["annotations"]["version"] == version and not pod["metadata"].get("deletionTimestamp") for pod in pods.values())
        if updated <= self.most.get(version, 0) + self.slack or updated == 0:
            return None
        # The status is written before the target is let go: whoever reads now sees a stop that is not older.
        status = self.status()
        self.most[version] = max(self.most.get(version, 0), status.get("stop") or 0)
        if updated <= self.most[version] + self.slack or not self.is_bound or self.version != version:
            return None
        return "%s %s: %d Pods of version %s with a stop of %d and a batch of %d: %s" % (
            self.scene.namespace, self.kind, updated, version, self.most[version], self.slack, status)

    def _alarm(self):
        return "\n".join(BROKEN + text for text in self.counts.violations)

    # ---- the target ----

    def get(self):
        return self.api.get(self.path)

    def patch(self, spec, **metadata):
        return self.api.patch(self.path, {"spec": spec, "metadata": metadata})

    def update(self, version="2", **pod_annotations):
        self.version = version
        self.pods_take(SLOW)
        return self.patch({"template": {"metadata": {"annotations": dict(pod_annotations, version=version)}}})

    def apply_again(self, version="2", **pod_annotations):
        """As GitOps would: the template, and something that is none of it, so that it is written anew. Returns what it is warned of."""
        self.patch({"template": {"metadata": {"annotations": dict(pod_annotations, version=version)}}}, labels={"applied": str(time.monotonic_ns())})
        return "; ".join(self.api.warnings)

    def template_version(self):
        return self.get()["spec"]["template"]["metadata"]["annotations"]["version"]

    def scale(self, replicas):
        if self.nodes:
            self.nodes.scale(replicas)
            return
        self.api.patch(self.path + "/scale", {"spec": {"replicas": replicas}})

    def replicas(self):
        found = self.get()
        return found["status"].get("desiredNumberScheduled", 0) if self.kind == "DaemonSet" else found["spec"]["replicas"]

    def versions(self, ready=False):
        """How many Pods there are of each version."""
        return collections.Counter(pod["metadata"]["annotations"]["version"] for pod in self.counts.pods("web").values()
                                   if not pod["metadata"].get("deletionTimestamp") and (not ready or is_ready(pod)))

    def is_complete(self, version):
        replicas = self.replicas()
        return 0 < replicas == self.versions(ready=True)[version] == sum(self.versions().values())

    def until_runs(self, version, timeout_s=15):
        until(lambda: self.is_complete(version), lambda: "all Pods are of version %s: %s, %s" % (version, dict(self.versions()), self.describe()), timeout_s, 0.1)

    def annotations(self):
        return self.get()["metadata"].get("annotations") or {}

    def is_untouched(self):
        """As its author wrote it: nothing of ours but the mark, and the strategy is the author's."""
        found = self.get()
        annotations, spec = self.annotations(), found["spec"]
        if any("slipway.dev/" + key in annotations for key in OURS) or spec.get("paused"):
            return False
        strategy = spec.get("updateStrategy", {})
        if self.kind == "Deployment":
            return spec.get("minReadySeconds", 0) == self.min_ready_s
        return strategy["type"] == "RollingUpdate" and (strategy.get("rollingUpdate") or {}).get("partition", 0) == 0

    def is_held(self):
        """Nothing more will be updated by its controller."""
        spec = self.get()["spec"]
        if self.kind == "Deployment":
            return bool(spec.get("paused"))
        strategy = spec["updateStrategy"]
        return strategy["type"] == "OnDelete" if self.kind == "DaemonSet" else (strategy.get("rollingUpdate") or {}).get("partition", 0) > 0

    def hold_is_back_to(self, versions):
        return dict(self.versions(ready=True)) == versions

    # ---- the SteppedRollout ----

    def stops(self):
        """Of these steps, with that many replicas."""
        replicas = self.replicas()
        return [math.ceil(int(step.rstrip("%")) * replicas / 100) if isinstance(step, str) else step for step in self.steps] + [replicas]

    def step(self, name="web", wait=True, **spec):
        """Makes the SteppedRollout, and waits until it has seen the target."""
        self.steps = spec.setdefault("steps", [1, 2])
        analysis = dict({"interval": "1s"}, **spec.pop("analysis", {}))
        made = self.api.post(STEPPED % self.scene.namespace, {
            "apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": name},
            "spec": dict({"targetRef": {"kind": self.kind, "name": "web"}, "analysis": analysis}, **spec)})
        if wait:
            self.until_phase("Initialized")
        return made

    def stepped(self, name="web"):
        return self.api.get(STEPPED % self.scene.namespace + "/" + name)

    def change(self, name="web", **spec):
        return self.api.patch(STEPPED % self.scene.namespace + "/" + name, {"spec": spec})

    def say(self, key, value="true"):
        """An annotation as kubectl slipway sets it; returns when it has been obeyed."""
        self.pods_take(SLOW)
        self.api.patch(self.stepped_path, {"metadata": {"annotations": {"slipway.dev/" + key: value}}})
        until(lambda: "slipway.dev/" + key not in (self.stepped()["metadata"].get("annotations") or {}), lambda: "%s is obeyed: %s" % (key, self.describe()))

    def status(self, name="web"):
        try:
            return self.stepped(name).get("status") or {}
        except (api.ApiError, *api.BROKEN) as error:
            if not isinstance(error, api.ApiError) or error.status != 404:
                raise
            return {}

    def condition(self, kind="Ready", name="web"):
        return next((entry for entry in self.status(name).get("conditions") or [] if entry["type"] == kind), {})

    def describe(self):
        status = self.status()
        return json.dumps({key: value for key, value in status.items() if key != "checks"}) + json.dumps(status.get("checks"))

    def until_phase(self, *phases, step=None, activity=None, timeout_s=15):
        def met():
            status = self.status()
            return (status.get("phase") in phases and (step is None or status.get("currentStep") == step)
                    and (activity is None or status.get("activity") == activity))
        until(met, lambda: "%s step %s %s: %s" % (phases, step, activity, self.describe()), timeout_s, 0.1)

    def until_stopped(self, step, timeout_s=15):
        """At the stop of that step, with its Pods ready, and held there. Whatever lets it go on from there comes later."""
        stop = self.stops()[step - 1]

        def is_there():
            return self.status().get("currentStep") == step and self.status().get("activity") == "Analysing" and self.is_held()
        until(is_there, lambda: "at step %d: %s, %s" % (step, dict(self.versions()), self.describe()), timeout_s)
        self.pods_take(QUICK)
        until(lambda: is_there() and stop <= self.versions(ready=True)[self.version] <= stop + self.slack,
              lambda: "stopped at step %d: %s, %s" % (step, dict(self.versions()), self.describe()), timeout_s, 0.1)
        self.pods_take(SLOW)

    def until_passes(self, receiver, path, *steps):
        """The confirmation of that path, which was refused, is given at each of these stops, one after the other."""
        for step in steps:
            self.until_stopped(step)
            receiver.answer(path, lambda _, step=step: 200 if self.status().get("currentStep") == step else 403)

    def until_succeeded(self, version="2"):
        self.until_phase("Promoting", "Succeeded", timeout_s=30)
        self.pods_take(QUICK)  # there is no stop any more
        self.until_phase("Succeeded", timeout_s=20)
        self.until_runs(version)
        until(self.is_untouched, lambda: "what was saved is put back: %s %s" % (self.annotations(), self.get()["spec"]))

    def until_failed(self, *activities, before=None):
        """Another template than the one that has failed `before`. Whatever becomes of its Pods after that they become quickly."""
        until(lambda: self.status().get("phase") == "Failed" and self.status().get("failedHash") != before, lambda: "failed: " + self.describe(), 15, 0.1)
        self.pods_take(QUICK)
        if activities:
            until(lambda: self.status().get("activity") in activities, lambda: "%s: %s" % (activities, self.describe()), 30, 0.1)

    def until_back(self, version="1"):
        """All its Pods are of the version that was promoted."""
        until(lambda: dict(self.versions(ready=True)) == {version: self.replicas()},
              lambda: "all are of version %s: %s %s" % (version, dict(self.versions()), self.describe()), 30, 0.1)

    def until_check(self, name, passed, timeout_s=15):
        """The last result of that check, once it is so."""
        def found():
            return next((check for check in self.status().get("checks") or [] if check["name"] == name and check.get("passed", False) == passed), None)
        return until(found, lambda: "check %s passed=%s: %s" % (name, passed, self.describe()), timeout_s, 0.1)

    def said(self, reason, name="web"):
        """The messages of its Events of that reason."""
        return [event["message"] for event in self.scene.events(name) if event["reason"] == reason and event["involvedObject"]["kind"] == "SteppedRollout"]

    def until_said(self, reason, words):
        until(lambda: any(words in text for text in self.said(reason)), lambda: "an Event %s says %r: %s" % (reason, words, self.said(reason)), 15, 0.2)

    def reasons(self, name="web", kind="SteppedRollout"):
        return [event["reason"] for event in self.scene.events(name) if event["involvedObject"]["kind"] == kind]

    def until_reason(self, *reasons, kind="SteppedRollout"):
        until(lambda: set(reasons) <= set(self.reasons(kind=kind)), lambda: "events %s; there are %s" % (reasons, sorted(set(self.reasons(kind=kind)))), 15, 0.2)
