# SPDX-License-Identifier: Apache-2.0
"""Retreats in place, many at once: Deployments in the middle of a rollout that fails, and one slipway that brings them back.

The rule and a model of the paused Deployment's controller are written a second time here, in the plainest way: they say which
sizes slipway should come by. Sizes are lists, the oldest ReplicaSet first. The controller is
https://github.com/kubernetes/kubernetes/blob/v1.20.2/pkg/controller/deployment/sync.go (scale).
"""

import collections
import dataclasses
import math
import time

from .pod_counts import PodCounts, is_ready
from .scene import deployment
from .stepping import SETTINGS, STEPPED, hook
from .wait import in_parallel, until

DESIRED, MOST = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
REPLICASETS = "/apis/apps/v1/namespaces/%s/replicasets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/%s/deployments"
WORKERS = 16
WAVE = 50  # so many at once: each list of ReplicaSets costs the API server what there is in the namespace
MOST_BITES = 11


def scaled(value, replicas, up):
    if isinstance(value, str):
        return int((math.ceil if up else math.floor)(int(value.rstrip("%")) * replicas / 100))
    return value


@dataclasses.dataclass
class Case:
    replicas: int
    surge: object
    unavailable: object
    sizes: list  # the oldest first
    target: int = 0  # which of them is that of the last promoted template
    template: int = -1  # and of the one in spec.template
    failing: frozenset = frozenset()  # those whose Pods are never ready
    scale_to: int = None  # what the Deployment is scaled to after the first bite
    crash: bool = False  # a Pod of the target fails once meanwhile

    def __post_init__(self):
        self.template %= len(self.sizes)

    def limits(self, replicas=None):
        """Surge and unavailable as numbers, and the bite."""
        replicas = self.replicas if replicas is None else replicas
        surge, unavailable = scaled(self.surge, replicas, True), scaled(self.unavailable, replicas, False)
        unavailable = min(unavailable or (0 if surge else 1), replicas)
        return surge, unavailable, max(1, surge + unavailable)

    def floor(self, replicas=None):
        replicas = self.replicas if replicas is None else replicas
        return replicas - self.limits(replicas)[1]

    def available(self, sizes):
        return [0 if at in self.failing else size for at, size in enumerate(sizes)]


# ---- the controller ----

def settle(sizes, available, case):
    """What the controller makes of these sizes: (sizes, of each the lowest number available on the way)."""
    surge, _, _ = case.limits()
    sizes, available = list(sizes), [min(pair) for pair in zip(available, sizes)]
    while True:
        before = list(sizes)
        active = [at for at, size in enumerate(sizes) if size]
        missing = case.replicas + surge - sum(sizes)
        if len(active) <= 1:
            sizes[active[0] if active else case.template] = case.replicas
        elif sizes[case.template] == available[case.template] == case.replicas:
            sizes = [size if at == case.template else 0 for at, size in enumerate(sizes)]
        elif missing > 0:
            sizes[max(active, key=lambda at: (sizes[at], at))] += missing
        elif missing < 0:
            largest = max(active, key=lambda at: (sizes[at], -at))
            sizes[largest] = max(0, sizes[largest] + missing)
        available = [min(pair) for pair in zip(available, sizes)]
        if sizes == before:
            return sizes, available


def is_settled(sizes, replicas, surge):
    return sum(sizes) == replicas + (surge if sum(map(bool, sizes)) > 1 else 0)


# ---- the rule ----

def propose(sizes, case):
    """The bite that the specification names: (which, its new size)."""
    _, _, bite = case.limits()
    target = sizes[case.target]
    new = [at for at, size in enumerate(sizes) if size and at != case.target]
    largest = max(new, key=lambda at: (sizes[at], at))
    if target + bite < sizes[largest]:
        return case.target, target + bite
    at = largest if sizes[largest] >= target else max(new)
    size = sizes[at] - min(sizes[at], bite)
    return at, size if size < target else target - 1


def bitten(sizes, at, size):
    return [size if other == at else value for other, value in enumerate(sizes)]


def judge(sizes, case, at, size):
    """What it costs, the less the better: (Pods below the floor, Pods more of the failed template, what is left to do); or None where
    that must not be done."""
    written = bitten(sizes, at, size)
    after, left = settle(written, sizes, case)
    available = case.available(sizes)
    shortfall = max(0, min(case.floor(), sum(available)) - sum(map(min, left, available)))
    is_taken_for_complete = any(state[case.template] == case.replicas and sum(state) > case.replicas for state in (written, after))
    is_loss = after[case.target] < sizes[case.target] and sum(after) != after[case.target] or after[case.target] < 1
    if is_taken_for_complete or is_loss or to_do(after, case) >= to_do(sizes, case):
        return None
    return (shortfall, max(0, after[case.template] - sizes[case.template]), *to_do(after, case))


def to_do(sizes, case):
    others = [size for at, size in enumerate(sizes) if at != case.target]
    return sum(others), -sum(size * size for size in others)


def choose(sizes, case):
    """The bite that the specification names if what comes of it is good; or the best one."""
    _, _, bite = case.limits()
    first = propose(sizes, case)
    worth = judge(sizes, case, *first)
    if worth and worth[:2] == (0, 0):
        return first
    found = [(case.target, sizes[case.target] + more) for more in range(1, bite + 1)]
    for at, size in enumerate(sizes):
        if at != case.target and size:
            found += [(at, size - less) for less in range(1, min(bite, size) + 1)]
            found += [(at, sizes[case.target] - 1)] if sizes[case.target] <= size else []
            found += [(at, 0)]
    best = min(((judge(sizes, case, *one), number, one) for number, one in enumerate(found) if judge(sizes, case, *one)), default=None)
    if worth and (best is None or worth[0] <= best[0][0] and worth[1] <= best[0][1]):
        return first
    return best and best[2]


def is_over(sizes, case):
    return sum(sizes) == sizes[case.target] == case.replicas


def expected(case):
    """(path, the lowest number available on it) of one that nobody scales."""
    path, lowest = [case.sizes], sum(case.available(case.sizes))
    while not is_over(path[-1], case):
        after, left = settle(bitten(path[-1], *choose(path[-1], case)), case.available(path[-1]), case)
        path, lowest = path + [after], min(lowest, sum(left))
    return path, lowest


def is_certain(path, case):
    """Where the controller fills up another one than the target, slipway does not wait for those Pods: what comes next depends on
    whether they are ready already, and the floor alone is promised."""
    return not any(after[at] > before[at] for before, after in zip(path, path[1:]) for at in range(len(case.sizes)) if at != case.target)


# ---- on a cluster ----

class Retreat:
    """One Deployment, and what becomes of its ReplicaSets: of each version one."""

    def __init__(self, scene, counts, name, case):
        self.scene, self.counts, self.name, self.case = scene, counts, name, case
        self.replicas = case.replicas  # as it is scaled by now
        self.sizes = [0] * len(case.sizes)  # by the watch
        self.path = None  # where the controller came to rest: the sizes at the beginning, and after each bite
        self.was_lost = False  # scaling has emptied the target, or made the template's own complete: nothing to go back to
        self.end = self.lowest = None  # the activity in which it ended, and the fewest that were available
        self.is_disturbed = not case.crash and case.scale_to is None  # or has been already

    def _template(self, number):
        annotations = {"version": str(number), "kubelets.slipway.dev/ready": str(number not in self.case.failing).lower()}
        return {"metadata": {"labels": {"name": self.name}, "annotations": annotations},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "app:1"}]}}

    def _set(self, number):
        return "%s-%d" % (self.name, number)

    def _strategy(self):
        return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": self.case.surge, "maxUnavailable": self.case.unavailable}}

    def _patch(self, **spec):
        return self.scene.patch(self.name, {"spec": spec})

    def status(self):
        return (self.scene.observer.get("stepped", self.name) or {}).get("status") or {}

    @property
    def activity(self):
        return self.status().get("activity", "")

    # ---- how it comes to stand where it fails ----

    def make_sets(self):
        """Without Pods, the oldest first; the Deployment that comes later adopts them."""
        most = self.case.replicas + self.case.limits()[0]
        for number in range(len(self.case.sizes)):
            template, labels = self._template(number), {"name": self.name, "pod-template-hash": "h%d" % number}
            template["metadata"]["labels"] = labels
            self.scene.api.post(REPLICASETS % self.scene.namespace, {
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"name": self._set(number), "labels": labels, "annotations": {
                    "deployment.kubernetes.io/revision": str(number + 1), DESIRED: str(self.case.replicas), MOST: str(most)}},
                "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}})

    def promote(self, receiver):
        """Its target is complete, and a SteppedRollout takes note of that."""
        made = deployment(self.name, self.case.replicas, strategy=self._strategy())
        made["spec"]["template"] = self._template(self.case.target)
        self.scene.api.post(DEPLOYMENTS % self.scene.namespace, made)
        self.scene.api.post(STEPPED % self.scene.namespace, {
            "apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": self.name},
            "spec": {"targetRef": {"kind": "Deployment", "name": self.name}, "steps": [1],
                     "analysis": {"interval": "1s", "webhooks": [hook("fails", receiver, "pre-rollout")]}}})

    def pause(self):
        """With Recreate the controller of a paused one leaves alone what others scale, as long as two have Pods."""
        self._patch(paused=True, strategy={"type": "Recreate", "rollingUpdate": None}, template=self._template(self.case.template))

    def scale_sets(self):
        for number in sorted(range(len(self.case.sizes)), key=lambda number: number == self.case.target):
            self.scene.api.patch(REPLICASETS % self.scene.namespace + "/%s/scale" % self._set(number), {"spec": {"replicas": self.case.sizes[number]}})

    def is_known(self, sizes):
        """To the controllers; those that fail only have their Pods."""
        for number, size in enumerate(sizes):
            found = self.scene.observer.get("replicasets", self._set(number)) or {}
            status = found.get("status", {})
            counted = "replicas" if number in self.case.failing else "availableReplicas"
            if status.get("observedGeneration", 0) < found.get("metadata", {}).get("generation", 1) or found["spec"]["replicas"] != size:
                return False
            if not size == status.get(counted, 0) == status["replicas"]:
                return False
        return True

    def is_observed(self):
        found = self.scene.observer.get("deployments", self.name)
        return found["spec"].get("paused") and found["status"].get("observedGeneration", 0) >= found["metadata"]["generation"]

    def stands(self):
        return self.is_known(self.case.sizes) and self.counts.available(self.name) == sum(self.case.available(self.case.sizes))

    def go_on(self):
        """A person resumes the Deployment: slipway holds it before the controller hears of that, asks, and has it fail."""
        self.begin, self.path = sum(self.case.available(self.case.sizes)), [list(self.case.sizes)]
        self.counts.begin(self.name)
        held = self._patch(paused=False, strategy=self._strategy())
        assert held["spec"].get("paused"), "%s is not held: %s" % (self.name, held)

    # ---- what comes of it ----

    def note(self, number, size):
        """On the thread that watches: each version of a ReplicaSet."""
        self.sizes[number] = size
        if self.path is None:
            return
        if self.sizes != self.path[-1] and is_settled(self.sizes, self.replicas, self.case.limits(self.replicas)[0]):
            self.path.append(list(self.sizes))
        self.was_lost |= self.sizes[self.case.target] == 0 or self.sizes[self.case.template] == self.replicas

    def _pods_of_target(self):
        """Those that are ready."""
        return sorted(name for name, pod in self.counts.pods(self.name).items()
                      if is_ready(pod) and pod["metadata"]["labels"]["pod-template-hash"] == "h%d" % self.case.target)

    def disturb(self):
        """In the middle: after the first bite."""
        if self.is_disturbed or len(self.path) < 2:
            return
        self.is_disturbed = True
        if self.case.crash:
            self.scene.cluster.crash(self.scene.namespace, self._pods_of_target()[0], down="300ms")
        else:
            self.replicas = self.case.scale_to
            self.scene.scale(self.name, self.replicas)

    def is_whole(self):
        """All Pods are of the target, ready, and as many as are wanted."""
        pods = [pod for pod in self.counts.pods(self.name).values() if not pod["metadata"].get("deletionTimestamp")]
        return len(pods) == len(self._pods_of_target()) == self.replicas

    def has_ended(self):
        return self.is_disturbed and (self.activity == "Held" or self.activity in ("Retreated", "RolledBack") and self.is_whole())

    def remove(self):
        """The Deployment, and then what has nothing to hold any more."""
        self.scene.delete(self.name)
        self.scene.api.delete(STEPPED % self.scene.namespace + "/" + self.name)

    def is_gone(self):
        return not self.scene.observer.get("stepped", self.name) and not self.counts.pods(self.name)

    @property
    def floor(self):
        """What must be available all the while: one less where a tie is crossed with a bite of one."""
        return min(self.begin, self.case.floor(), self.case.floor(self.replicas))

    def line(self):
        case = self.case
        more = ["failing %s" % sorted(case.failing)] * bool(case.failing) + ["a Pod fails"] * case.crash + ["scaled to %s" % case.scale_to] * bool(case.scale_to)
        return "%s  %d, %s, %s  target %d, template %d%s  %s  lowest %d (floor %d)  %s" % (
            self.name, case.replicas, case.surge, case.unavailable, case.target, case.template, "".join(", " + text for text in more),
            " ".join(str(tuple(sizes)) for sizes in self.path).replace(" ", "").replace(")(", ") ("), self.counts.lowest(self.name), self.floor, self.activity)

    def problems(self):
        case, lowest, crashed = self.case, self.counts.lowest(self.name), int(self.case.crash)
        template = self.scene.observer.get("deployments", self.name)["spec"]
        is_back = template["template"]["metadata"]["annotations"]["version"] == str(case.target)
        if self.activity == "RolledBack":
            if not self.was_lost or case.scale_to is None:
                yield "rolled back, and there was something to go back to"
            if not is_back or template.get("paused"):
                yield "the template is not put back and let go"
        elif self.activity != "Retreated" or is_back or not template.get("paused"):
            yield "not retreated, the template held as it is"
        if lowest < self.floor - 1 - crashed:
            yield "too few were available"
        if len(self.path) - 1 > MOST_BITES:
            yield "too many bites"
        if case.scale_to is None and is_certain(expected(case)[0], case):
            path, most = expected(case)
            if self.path != path:
                yield "expected %s" % path
            if lowest < most - crashed:
                yield "%d should have been available" % most


class Retreats:
    """All of these cases by one slipway, wave by wave."""

    def __init__(self, scene, receiver, cases):
        self.scene, self.receiver = scene, receiver
        receiver.answer("fails", 500)
        scene.let_pods_go(start="100ms", stop="100ms")
        self.counts = PodCounts(scene.cluster, scene.namespace)
        self.all = [Retreat(scene, self.counts, "r%03d" % number, case) for number, case in enumerate(cases)]
        self._by_name = {retreat.name: retreat for retreat in self.all}
        self.lines, self._problems, self._begin = [], [], time.monotonic()
        scene.observer.tell = self._note
        scene.observer.also_follow("stepped", STEPPED)
        scene.observer.is_held_by_other = lambda holder: scene.observer.get("stepped", holder.partition("/")[2])
        self.slipway = scene.slipway(settings=SETTINGS + "client: {qps: 400, burst: 800}\n")

    def _note(self, kind, item):
        name, _, number = item["metadata"]["name"].rpartition("-")
        if kind == "replicasets" and name in self._by_name:
            self._by_name[name].note(int(number), item["spec"]["replicas"])

    def _say(self, text):
        print("%5.1f s  %s" % (time.monotonic() - self._begin, text), flush=True)

    def _each(self, wave, work, met, what):
        """That work for each of them; returns when they all have what was to come of it."""
        in_parallel(work, wave, WORKERS)
        missing = list(wave)

        def have_all():
            missing[:] = [retreat for retreat in missing if not met(retreat)]
            return not missing
        until(have_all, lambda: "%s; not: %s" % (what, [(retreat.name, retreat.case, retreat.sizes) for retreat in missing[:5]]), 120, 0.2)
        self._say(what)

    def play(self):
        for first in range(0, len(self.all), WAVE):
            wave = self.all[first:first + WAVE]
            self._say("%d to %d of %d" % (first + 1, first + len(wave), len(self.all)))
            self._each(wave, Retreat.make_sets, lambda retreat: retreat.is_known([0] * len(retreat.sizes)), "ReplicaSets made")
            self._each(wave, lambda retreat: retreat.promote(self.receiver), lambda retreat: retreat.status().get("phase") == "Initialized", "slipway knows what is promoted")
            self._each(wave, Retreat.pause, Retreat.is_observed, "paused")
            self._each(wave, Retreat.scale_sets, Retreat.stands, "they stand in the middle of a rollout")
            in_parallel(Retreat.go_on, wave, WORKERS)
            until(lambda: self._have_ended(wave), lambda: "all have come back; not: %s" % [
                (retreat.line(), retreat.status()) for retreat in wave if not retreat.has_ended()][:5], 200, 0.5)
            self._note_what_came(wave)
            self._each(wave, Retreat.remove, Retreat.is_gone, "gone")
        assert not self._problems, "%d of %d retreats:\n%s" % (len(self._problems), len(self.all), "\n".join(self._problems[:20]))
        return self

    def _have_ended(self, wave):
        for retreat in wave:
            retreat.disturb()
        counted = collections.Counter(retreat.activity or "not yet" for retreat in wave)
        self._say(", ".join("%d %s" % (number, activity) for activity, number in sorted(counted.items())))
        return all(retreat.has_ended() for retreat in wave)

    def _note_what_came(self, wave):
        """Into a file of the scenario, too."""
        for retreat in wave:
            retreat.end, retreat.lowest = retreat.activity, self.counts.lowest(retreat.name)
            self.lines.append(retreat.line())
            self._problems += ["%s: %s" % (retreat.line(), problem) for problem in retreat.problems()]
        (self.scene.folder / "retreats").write_text("\n".join(self.lines) + "\n")
        print("\n".join(self.lines[-len(wave):]), flush=True)

    def close(self):
        """No finalizer keeps the namespace."""
        for item in self.scene.api.get(STEPPED % self.scene.namespace)["items"]:
            self.scene.api.patch(STEPPED % self.scene.namespace + "/" + item["metadata"]["name"], {"metadata": {"finalizers": None}})
        self.counts.stop()
