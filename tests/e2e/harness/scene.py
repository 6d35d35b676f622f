# SPDX-License-Identifier: Apache-2.0
"""A scene: one namespace with its slipway processes, its observer, and short words for what scenarios do there."""

import datetime
import json

from . import observer as look
from . import promise
from .cluster import SERVICE_ACCOUNT, api
from .fault_proxy import FaultProxy
from .observer import Observer
from .slipway import Slipway
from .wait import until

COORDINATION_PATH = "/apis/apps.containerinfra.nl/v1/namespaces/%s/deploymentcoordinations"
RBAC = "rbac.authorization.k8s.io/v1"
DEPLOYMENT_PATH = "/apis/apps/v1/namespaces/%s/deployments"


def deployment(name, replicas=2, labels=None, version="1", strategy=None, pod_annotations=None, annotations=None, paused=None,
               deadline_s=None, min_ready_s=None, grace_s=1):
    """A manifest. `version` is in the Pod template: another one is another template. `grace_s` is the longest that its Pods may
    take to stop, whatever pods_take() says."""
    labels = dict({"app": "web"}, **(labels or {}))
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"name": name}},
        "strategy": strategy or {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": {"name": name, "app": labels["app"]}, "annotations": dict({"version": version}, **(pod_annotations or {}))},
            "spec": {"terminationGracePeriodSeconds": grace_s, "containers": [{"name": "main", "image": "app:" + version}]},
        },
    }
    if paused is not None:
        spec["paused"] = paused
    if deadline_s is not None:
        spec["progressDeadlineSeconds"] = deadline_s
    if min_ready_s is not None:
        spec["minReadySeconds"] = min_ready_s
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "labels": labels, "annotations": annotations or {}}, "spec": spec}


def revision_of(found):
    return int(look.annotation(found, look.REVISION) or 0)


def time_of(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").timestamp()


class Scene:
    def __init__(self, cluster, namespace, folder):
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        self.api = cluster.api
        self.processes, self.proxies = [], []
        self.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                             "metadata": {"name": namespace, "labels": {"slipway.test/namespace": namespace}}})
        self.observer = Observer(cluster, namespace, lambda: any(process.is_in_charge for process in list(self.processes)))
        promise.watch(self.observer.broken_promises)

    def disarm(self):
        """From now on nobody who waits fails because a promise is broken: close() does."""
        promise.unwatch(self.observer.broken_promises)

    # ---- slipway ----

    def slipway(self, name="slipway", start=True, webhook=True, failure_policy="Fail", **options):
        if options.get("leader_elect"):
            self.let_lead(SERVICE_ACCOUNT, options.get("lease_id") or "slipway")
        process = Slipway(self.cluster, self.namespace, self.folder, name, **options)
        self.processes.append(process)
        if start:
            process.start()
        if webhook:
            self.webhook_of(process, failure_policy)
        return process

    def slipway_behind_proxy(self, name="slipway", **options):
        """The process, and the proxy through which alone it sees the API server."""
        proxy = FaultProxy(self.cluster, self.folder / (name + "-proxy"))
        self.proxies.append(proxy)
        return self.slipway(name, server=proxy.url, ca_file=proxy.ca_file, **options), proxy

    def let_lead(self, account, lease):
        """As manifests/install.yaml lets it in kube-system; in a scenario the Lease is in the scenario's namespace."""
        name = "lead-%s-%s" % (account[1], lease)
        rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
                 {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [lease], "verbs": ["get", "update", "watch"]}]
        self._put_role("roles", {"apiVersion": RBAC, "kind": "Role", "metadata": {"name": name}, "rules": rules})
        self._put_role("rolebindings", {
            "apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": account[0], "name": account[1]}]})

    def _put_role(self, plural, manifest):
        self.api.put_in_place("/apis/%s/namespaces/%s/%s" % (RBAC, self.namespace, plural), manifest)

    def webhook_of(self, process, failure_policy="Fail"):
        """From now on the API server asks this process."""
        self.cluster.register_webhook("slipway-" + self.namespace, {"slipway.test/namespace": self.namespace}, process.webhook_url, process.ca_pem, failure_policy)
        self._webhook_probe = (process, failure_policy)
        self.until_asked(process)

    def no_webhook(self):
        self.cluster.unregister_webhook("slipway-" + self.namespace)

    def until_asked(self, process):
        """The API server takes a second or so to notice a webhook configuration; until then it asks whoever was asked before."""
        def reviews():
            return process.metric("controller_runtime_webhook_requests_total")

        def is_asked():
            before = reviews()
            return self.is_asked() and reviews() > before
        until(is_asked, "the API server asks the webhook of %s" % process.name, 30)

    def is_asked(self):
        """Whether a webhook is: a dry-run create tells."""
        probe = deployment("webhook-probe", labels={"app": "webhook-probe"}, annotations={"slipway.dev/fence": "probe"})
        try:
            answer = self.api.post(DEPLOYMENT_PATH % self.namespace + "?dryRun=All", probe)
        except api.ApiError:
            return False
        return "slipway.dev/fence" not in (answer["metadata"].get("annotations") or {})

    # ---- coordinations ----

    def coordinate(self, name="web", selector=None, **spec):
        selector = {"matchLabels": {"app": "web"}} if selector is None else selector
        return self.api.post(COORDINATION_PATH % self.namespace, {
            "apiVersion": "apps.containerinfra.nl/v1", "kind": "DeploymentCoordination",
            "metadata": {"name": name}, "spec": dict({"labelSelector": selector}, **spec)})

    def coordination(self, name="web"):
        return self.api.get(COORDINATION_PATH % self.namespace + "/" + name)

    def patch_coordination(self, name="web", **spec):
        return self.api.patch(COORDINATION_PATH % self.namespace + "/" + name, {"spec": spec})

    def settle_coordination(self, name="web", **spec):
        """Changes it, and returns when slipway knows."""
        generation = self.patch_coordination(name, **spec)["metadata"]["generation"]
        until(lambda: self.status(name).get("observedGeneration") == generation, "the change of %s is seen" % name)

    def suspend(self, name="web"):
        self.settle_coordination(name, suspend=True)

    def delete_coordination(self, name="web"):
        return self.api.delete(COORDINATION_PATH % self.namespace + "/" + name)

    def status(self, name="web"):
        return self.coordination(name).get("status", {})

    def condition(self, kind, name="web"):
        return look.condition(self.coordination(name), kind)

    def state_of(self, deployment_name, name="web"):
        """Its entry in deploymentStates."""
        for entry in self.status(name).get("deploymentStates") or []:
            if entry["name"].rpartition("/")[2] == deployment_name:
                return entry
        return {}

    def until_condition(self, kind, status, reason=None, name="web", timeout_s=30):
        def met():
            found = self.condition(kind, name)
            return found.get("status") == status and (reason is None or found.get("reason") == reason)
        until(met, lambda: "%s is %s/%s but %s" % (kind, status, reason, json.dumps(self.status(name).get("conditions"))), timeout_s, 0.1)

    def until_ready(self, name="web", timeout_s=60):
        self.until_condition("Ready", "True", "AllDeploymentsReady", name, timeout_s)

    # ---- Pods ----

    def stall_pods(self):
        """From now on no new Pod becomes ready, and no rollout comes to its end, until let_pods_go()."""
        self.cluster.pods_take(self.namespace, start="1h")

    def let_pods_go(self, **settings):
        self.cluster.pods_take(self.namespace, **(settings or {"start": "300ms"}))

    # ---- deployments ----

    def create(self, name, **options):
        manifest = deployment(name, **options)
        return self.api.post(DEPLOYMENT_PATH % self.namespace, manifest)

    def get(self, name):
        return self.api.get(DEPLOYMENT_PATH % self.namespace + "/" + name)

    def patch(self, name, body, content_type=api.MERGE):
        return self.api.patch(DEPLOYMENT_PATH % self.namespace + "/" + name, body, content_type)

    def delete(self, name):
        return self.api.delete(DEPLOYMENT_PATH % self.namespace + "/" + name, {"propagationPolicy": "Foreground"})

    def update(self, *names, version="2"):
        """A new template for each, one request right after the other, as GitOps would."""
        for name in names:
            self.patch(name, {"spec": {"template": {"metadata": {"annotations": {"version": version}}}}})

    def roll_and_stall(self, *names, version="2"):
        """A new template for each; returns while the first one rolls, and goes on rolling until let_pods_go()."""
        self.stall_pods()
        self.update(*names, version=version)
        self.until_rolling(names[0])

    def update_in_the_end(self, *names, version="2", meanwhile=lambda: None):
        """Like update(), where admission may fail for a while. Each is changed once."""
        for name in names:
            def accepted(name=name):
                meanwhile()
                try:
                    self.update(name, version=version)
                except api.ApiError as error:
                    if error.status < 500:
                        raise
                    return False
                return True
            until(accepted, "the update of %s is accepted" % name)

    def scale(self, name, replicas):
        self.api.patch(DEPLOYMENT_PATH % self.namespace + "/" + name + "/scale", {"spec": {"replicas": replicas}})

    def annotate(self, name, **annotations):
        self.patch(name, {"metadata": {"annotations": {key.replace("_", "-") if "/" in key else "slipway.dev/" + key.replace("_", "-"): value
                                                       for key, value in annotations.items()}}})

    def annotation(self, name, key):
        return look.annotation(self.get(name), "slipway.dev/" + key)

    def is_paused(self, name):
        return look.is_paused(self.get(name))

    def is_held(self, name):
        found = self.get(name)
        return look.is_paused(found) and bool(look.annotation(found, look.HELD_BY))

    def runs(self, name, version):
        """Complete, with all Pods of that version."""
        found = self.get(name)
        return look.is_complete(found) and found["spec"]["template"]["metadata"]["annotations"]["version"] == version

    def until_runs(self, *names, version="2", timeout_s=60):
        for name in names:
            until(lambda name=name: self.runs(name, version), lambda name=name: "%s runs version %s: %s" % (name, version, self.observer.describe(name)),
                  timeout_s, 0.1)

    def until_rolling(self, name, timeout_s=30):
        until(lambda: look.is_rolling(self.get(name)), lambda: "%s rolls: %s" % (name, self.observer.describe(name)), timeout_s)

    def until_held(self, *names, timeout_s=30):
        for name in names:
            until(lambda name=name: self.is_held(name), lambda name=name: "%s is held: %s" % (name, self.observer.describe(name)), timeout_s)

    def gap(self, first, second):
        """Seconds between the completion of the first one's rollout and the beginning of the second one's, each the newest: by
        what Kubernetes has written down, in whole seconds and never less than there were."""
        self.observer.catch_up()
        complete = self.observer.completions[first]
        return time_of(self.newest_replicaset(second)["metadata"]["creationTimestamp"]) - time_of(complete)

    def newest_replicaset(self, name):
        made = [replicaset for replicaset in self.api.get("/apis/apps/v1/namespaces/%s/replicasets" % self.namespace)["items"]
                if look.owner(replicaset)[1] == name]
        return max(made, key=revision_of)

    def group(self, *names, coordination="web", **options):
        """Deployments under one coordination, all at version 1 and at rest."""
        self.coordinate(coordination, **options.pop("spec", {}))
        # A coordination that is not yet seen holds nobody: one of the exceptions that the documentation names.
        until(lambda: self.status(coordination).get("observedGeneration"), "the coordination is seen")
        for name in names:
            self.create(name, **options)
        self.until_runs(*names, version="1", timeout_s=30 + 10 * len(names))
        self.until_ready(coordination)

    # ---- events ----

    def events(self, name=None):
        found = self.api.get("/api/v1/namespaces/%s/events" % self.namespace).get("items") or []
        return [event for event in found if name is None or event["involvedObject"]["name"] == name]

    def until_event(self, reason, name=None, timeout_s=15):
        until(lambda: any(event["reason"] == reason for event in self.events(name)),
              lambda: "event %s on %s; there are %s" % (reason, name, sorted({e["reason"] for e in self.events(name)})), timeout_s, 0.2)

    # ---- the end ----

    def until_nothing_forsaken(self, timeout_s):
        """Whoever is still paused by us is held by somebody; where no slipway runs, nobody can see to it."""
        until(lambda: not self.observer.forsaken() or not any(process.is_running for process in self.processes),
              lambda: promise.BROKEN + "nobody holds, and yet is paused by us: " + "; ".join(map(self.observer.describe, self.observer.forsaken())), timeout_s)

    def _overlaps(self):
        """What slipway itself counts of overlaps is nothing, unless the scenario has excused somebody."""
        found = {process.name: process.overlap_s for process in self.processes if process.overlap_s}
        if not found or self.observer.was_excused:
            return []
        return [promise.BROKEN + "slipway_overlap_seconds_total at the end: %s" % found]

    def close(self, patience_s=60):
        """Stops everything; fails if the observer, a log or an exit status says so, or if somebody is forsaken for so long."""
        problems = []
        self.disarm()
        for proxy in self.proxies:
            proxy.calm()
        try:
            self.until_nothing_forsaken(patience_s)
        except AssertionError as error:
            problems.append(str(error))
        for process in self.processes:
            for step in (process.stop, process.check_log):
                try:
                    step()
                except AssertionError as error:
                    problems.append(str(error))
        problems += self._overlaps()
        for proxy in self.proxies:
            proxy.close()
        self.observer.stop()
        self.no_webhook()
        self.api.remove("/api/v1/namespaces/" + self.namespace)
        problems += [self.observer.broken_promises()] if self.observer.violations else []
        assert not problems, "\n\n".join(problems)
