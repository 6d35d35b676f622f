# SPDX-License-Identifier: Apache-2.0
"""Judges a namespace by what Kubernetes says of it, in the order in which the API server stored it: were there ever
more Deployments of one group rolling than may? Pure: the observer reads, this decides.

It does not believe what slipway writes down about turns. A Deployment begins to roll when its status says so, or when a
ReplicaSet of another template than the one that ran gets its first Pods, whichever is stored first: a rollout that is
paused before the Deployment's status tells of it has happened all the same. One that is not observed (paused or not)
still does what it did.
"""

HELD_BY = "slipway.dev/held-by"
TEMPLATE_HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
TOO_LONG_S = 30.0  # for more than may to roll on, whoever began it


def annotation(obj, key):
    return (obj["metadata"].get("annotations") or {}).get(key)


def want(deployment):
    return deployment["spec"].get("replicas", 1)


def number(deployment, key):
    return deployment.get("status", {}).get(key) or 0


def condition(obj, kind):
    for entry in obj.get("status", {}).get("conditions") or []:
        if entry["type"] == kind:
            return entry
    return {}


def is_observed(deployment):
    return number(deployment, "observedGeneration") >= deployment["metadata"]["generation"]


def is_paused(deployment):
    return bool(deployment["spec"].get("paused"))


def is_complete(deployment):
    return is_observed(deployment) and (number(deployment, "updatedReplicas") == number(deployment, "replicas")
                                        == number(deployment, "availableReplicas") == want(deployment))


def is_rolling(deployment):
    """The Deployment controller, as far as it has observed, makes Pods of a new template, or waits for them."""
    if is_paused(deployment) or not is_observed(deployment) or deployment["metadata"].get("deletionTimestamp"):
        return False
    if number(deployment, "replicas") > number(deployment, "updatedReplicas"):
        return True
    if want(deployment) == 0 or is_complete(deployment):
        return False
    progressing = condition(deployment, "Progressing")
    if not progressing:
        return number(deployment, "updatedReplicas") < want(deployment)
    if deployment["spec"].get("strategy", {}).get("type") == "Recreate" and number(deployment, "replicas") == 0:
        return True
    return progressing["status"] != "Unknown" and progressing["reason"] != "NewReplicaSetAvailable"


class Completions:
    """Which rollouts are over. Where its Pods are lost or scaled a Deployment can look as during a rollout: resumed at no Pods
    and then scaled up, it reports progress. It is none while its revision is the one that was complete."""

    def __init__(self):
        self._revisions = {}  # uid

    def is_rolling(self, deployment):
        uid, revision = deployment["metadata"]["uid"], annotation(deployment, REVISION)
        if is_complete(deployment):
            self._revisions[uid] = revision
        if not is_rolling(deployment):
            return False
        is_scaled = revision is not None and self._revisions.get(uid) == revision
        return not (is_scaled and number(deployment, "replicas") == number(deployment, "updatedReplicas") > 0)


def selects(selector, labels):
    """What the API server would: a selector that it would refuse selects nothing, and so does none."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for term in selector.get("matchExpressions") or []:
        key, operator, values = term.get("key"), term.get("operator"), term.get("values") or []
        if (operator in ("In", "NotIn")) != bool(values) or operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return False
        if {"In": labels.get(key) not in values, "NotIn": labels.get(key) in values,
                "Exists": key not in labels, "DoesNotExist": key in labels}[operator]:
            return False
    return True


def owner(obj):
    for reference in obj["metadata"].get("ownerReferences") or []:
        if reference.get("controller"):
            return reference["uid"], reference["name"]
    return None, None


class Member:
    """What is remembered of one Deployment."""

    def __init__(self, deployment):
        self.uid = deployment["metadata"]["uid"]
        self.rolls = False


class Judge:
    """Takes events in the order of their resource versions; `violations` grows."""

    def __init__(self):
        self.deployments, self.coordinations = {}, {}
        self.members = {}
        self.completions = Completions()
        self.sizes = {}  # uid of the owner: {template hash: how many Pods its ReplicaSet shall have}
        self.templates = {}  # uid of the owner: hash of the template that runs
        self.revisions = {}  # uid of the owner: the newest
        self.rolling = set()
        self.excused = {}  # name: the generation that it had when it was excused
        self.excess_since = {}
        self.is_blind = False
        self.violations = []

    def take(self, kind, what, obj, at_s):
        name, is_gone = obj["metadata"]["name"], what == "DELETED"
        if kind == "coordinations":
            self._keep(self.coordinations, name, obj, is_gone)
        elif kind == "deployments":
            self._keep(self.deployments, name, obj, is_gone)
            self._deployment(name, None if is_gone else obj, at_s)
        elif kind == "replicasets":
            self._replicaset(obj, is_gone, at_s)

    @staticmethod
    def _keep(store, name, obj, is_gone):
        if is_gone:
            store.pop(name, None)
        else:
            store[name] = obj

    # ---- who rolls ----

    def _deployment(self, name, deployment, at_s):
        if not deployment:
            self.members.pop(name, None)
            self.rolling.discard(name)
            return
        member = self.members.get(name)
        if not member or member.uid != deployment["metadata"]["uid"]:
            member = self.members[name] = Member(deployment)
            self.rolling.discard(name)
        if not is_observed(deployment):
            return
        if self.completions.is_rolling(deployment):
            self._begins(name, at_s)
        else:
            self._rests(name, deployment)

    def _begins(self, name, at_s):
        if name in self.rolling:
            return
        for group, maximum, others in self._groups_of(name):
            if len(others) + 1 > maximum and name not in self.excused and not self.is_blind:
                self._violation(at_s, "%s: %s roll at once" % (group, " and ".join(sorted([*others, name]))), [*others, name])
        self.rolling.add(name)

    def _rests(self, name, deployment):
        self.rolling.discard(name)
        if deployment["metadata"]["generation"] > self.excused.get(name, deployment["metadata"]["generation"]):
            del self.excused[name]

    def _replicaset(self, replicaset, is_gone, at_s):
        uid, name = owner(replicaset)
        template = (replicaset["metadata"].get("labels") or {}).get(TEMPLATE_HASH)
        revision = int(annotation(replicaset, REVISION) or 0)
        size = 0 if is_gone else want(replicaset)
        sizes = self.sizes.setdefault(uid, {})
        before = sizes.get(template, 0)
        sizes[template] = size
        is_newest = revision > self.revisions.get(uid, 0)
        self.revisions[uid] = max(revision, self.revisions.get(uid, 0))
        if is_newest and not any(sizes.values()):
            self.templates[uid] = template  # a new template while nothing ran: nothing rolls when it is scaled up
        if size <= before or self.templates.get(uid) == template:
            return
        self.templates[uid] = template
        if before == 0 and name in self.members and self.members[name].uid == uid:
            self._begins(name, at_s)

    # ---- in which groups ----

    def _labels(self, name):
        deployment = self.deployments.get(name)
        if not deployment or annotation(deployment, "slipway.dev/ignore") == "true":
            return None
        return deployment["metadata"].get("labels") or {}

    def _rolling_of(self, coordination, but=None):
        selector = coordination.get("spec", {}).get("labelSelector")
        return sorted(name for name in self.rolling if name != but and self._labels(name) is not None
                      and selects(selector, self._labels(name)))

    def _groups_of(self, name):
        """(name, maxActive, the others that roll) of all coordinations that select it."""
        labels = self._labels(name)
        if labels is None or not self.rolling:
            return
        for coordination in self.coordinations.values():
            spec = coordination.get("spec", {})
            if selects(spec.get("labelSelector"), labels):
                yield coordination["metadata"]["name"], spec.get("maxActive") or 1, self._rolling_of(coordination, but=name)

    def look_at_excess(self, at_s):
        """Those who were excused, or came together by a change of labels, must not go on."""
        if len(self.rolling) < 2 and not self.excess_since:
            return
        for key, coordination in self.coordinations.items():
            members = self._rolling_of(coordination)
            if len(members) <= (coordination.get("spec", {}).get("maxActive") or 1) or self.is_blind:
                self.excess_since.pop(key, None)
            elif at_s - self.excess_since.setdefault(key, at_s) > TOO_LONG_S:
                self._violation(at_s, "%s: %s roll on beside each other" % (key, " and ".join(members)), members)
                self.excess_since[key] = at_s

    # ---- words ----

    def _violation(self, at_s, text, names):
        details = ["  " + self.describe(name) for name in names] if len(self.violations) < 3 else []
        self.violations.append("\n".join(["%.3f s: %s" % (at_s, text), *details]))
        print("OBSERVER: " + self.violations[-1], flush=True)

    def describe(self, name):
        return describe(name, self.deployments.get(name))



def describe(name, deployment):
    if not deployment:
        return name + ": gone"
    status = deployment.get("status", {})
    return "%s: paused %s, want %d, generation %d, status %s, annotations %s, Progressing %s, rv %s" % (
        name, is_paused(deployment), want(deployment), deployment["metadata"]["generation"],
        {k: v for k, v in status.items() if k != "conditions"},
        {k: v for k, v in (deployment["metadata"].get("annotations") or {}).items() if "slipway" in k},
        condition(deployment, "Progressing").get("reason"), deployment["metadata"]["resourceVersion"])
