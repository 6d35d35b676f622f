# SPDX-License-Identifier: Apache-2.0
"""Reads Deployments, ReplicaSets and Pods of a namespace all the while, and says when something happened that must
never happen: two of one group roll, or something stays paused that nobody holds.

It does not read what slipway writes down about turns: only what Kubernetes itself says. Each kind comes in a stream of
its own, in the order in which the API server stored it; for the judge (judge.py) the streams become one, in the order
of the resource versions, which are etcd's revisions. None may be overtaken because its stream is slow: so the judge is told
only what is old, or what all streams are known to have passed.
"""

import heapq
import itertools
import sys
import threading
import time

from .cluster import api
from .judge import HELD_BY, REVISION, Completions, Judge, annotation, condition, describe, is_complete, is_observed, is_paused, is_rolling, number, owner, selects, want
from .promise import BROKEN, BrokenPromise
from .wait import PATIENCE, until

LATE_S = 10.0 * PATIENCE  # how long the judge waits for the other streams where nobody asks
FORSAKEN_S = 60.0 * PATIENCE  # what slipway waits for, a kind that is missing in two lists 30 s apart, is shorter


class Observer:
    """Call check() at the end, and at any time; violations are also printed when they happen. `is_led` says whether a slipway
    leads now: while none does, nobody can see to those that are forsaken."""

    KINDS = {
        "deployments": "/apis/apps/v1/namespaces/%s/deployments",
        "replicasets": "/apis/apps/v1/namespaces/%s/replicasets",
        "pods": "/api/v1/namespaces/%s/pods",
        "coordinations": "/apis/apps.containerinfra.nl/v1/namespaces/%s/deploymentcoordinations",
    }
    JUDGED = ("deployments", "replicasets", "coordinations")

    def __init__(self, cluster, namespace, is_led=lambda: False):
        self._api, self._namespace = cluster.api, namespace
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._seen = {kind: {} for kind in self.KINDS}
        self._judge = Judge()
        self._waiting, self._number = [], itertools.count()  # a heap of (version, number, seconds, kind, type, object)
        self._gone = {kind: {} for kind in self.KINDS}  # name: the version in which it was deleted
        self._born = {kind: {} for kind in self.KINDS}  # name: the first version that was seen
        self._ending = {kind: {} for kind in self.KINDS}  # name: its metadata when it was told to end
        self._completions = Completions()
        self._state = {}  # name: "rolls" | "rests"
        self._is_led = is_led
        self.forsaken_s = FORSAKEN_S
        self.is_held_by_other = lambda holder: False  # whether a holder of another module is there
        self.tell = lambda kind, item: None  # called with each version that is stored, on the thread that watches
        self.was_excused = False  # somebody was, at some time: an overlap is to be expected
        self.violations = self._judge.violations
        self.completions = {}  # name of a Deployment: when its newest rollout was complete, as its controller has it
        self.history = []  # (seconds, name, "rolls" | "rests") of Deployments, when that changed
        self.versions = {}  # name of a Deployment or coordination: how many versions were seen
        self._begin = time.monotonic()
        self._listed = {kind: threading.Event() for kind in self.KINDS}
        for kind in self.KINDS:
            self._spawn(self._follow, kind)
        self._spawn(self._judge_late)
        self._spawn(self._look_for_forsaken)
        for kind, event in self._listed.items():
            assert event.wait(30), "the observer cannot list " + kind

    def also_follow(self, kind, path):
        """A kind more, from now on; get() knows of it."""
        with self._lock:
            self.KINDS = dict(self.KINDS, **{kind: path})
            for known in (self._seen, self._gone, self._born, self._ending):
                known[kind] = {}
            self._listed[kind] = threading.Event()
        self._spawn(self._follow, kind)
        assert self._listed[kind].wait(30), "the observer cannot list " + kind

    def _spawn(self, work, *args):
        threading.Thread(target=self._guarded, args=(work, *args), daemon=True).start()

    def _guarded(self, work, *args):
        """An observer that fell asleep would see nothing wrong."""
        try:
            work(*args)
        except Exception as error:  # noqa: BLE001
            with self._lock:
                self.violations.append("the observer failed: %r" % error)
            raise

    # ---- reading ----

    def _follow(self, kind):
        path = self.KINDS[kind] % self._namespace
        while not self._stop.is_set():
            try:
                found = self._api.get(path)
                self._take_list(kind, found)
                self._listed[kind].set()
                for what, item in self._api.watch(path, found["metadata"]["resourceVersion"]):
                    if self._stop.is_set():
                        return
                    if what == "ERROR":
                        break
                    if what != "BOOKMARK":
                        self._take(kind, what, item)
            except (api.ApiError, *api.BROKEN):
                if self._stop.wait(0.2):
                    return

    def _take_list(self, kind, found):
        items = {item["metadata"]["name"]: item for item in found.get("items") or []}
        version = found["metadata"]["resourceVersion"]
        with self._lock:  # of one moment: nobody sees half of it
            for name, item in items.items():
                before = self._seen[kind].get(name)
                if not before or before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                    self._take(kind, "MODIFIED", item)
            for name, item in list(self._seen[kind].items()):
                if name not in items:
                    self._take(kind, "DELETED", dict(item, metadata=dict(item["metadata"], resourceVersion=version)))

    def _take(self, kind, what, item):
        name, now = item["metadata"]["name"], time.monotonic() - self._begin
        with self._lock:
            if what == "DELETED":
                self._seen[kind].pop(name, None)
                self._gone[kind][name] = int(item["metadata"]["resourceVersion"])
            else:
                self._seen[kind][name] = item
                self._born[kind].setdefault(name, int(item["metadata"]["resourceVersion"]))
                self.tell(kind, item)
            if item["metadata"].get("deletionTimestamp"):
                self._ending[kind].setdefault(name, item["metadata"])
            if kind in ("deployments", "coordinations"):
                self.versions[name] = self.versions.get(name, 0) + 1
            if kind == "deployments":
                self._note(name, None if what == "DELETED" else item, now)
            if kind in self.JUDGED:
                heapq.heappush(self._waiting, (int(item["metadata"]["resourceVersion"]), next(self._number), now, kind, what, item))

    def _note(self, name, deployment, now):
        """For the scenarios, at once. One that is not observed still does what it did."""
        before = self._state.get(name, "rests")
        state = before
        if deployment is None:
            state = "rests"
        elif is_observed(deployment):
            state = "rolls" if self._completions.is_rolling(deployment) else "rests"
            progressing = condition(deployment, "Progressing")
            if progressing.get("reason") == "NewReplicaSetAvailable":
                self.completions[name] = progressing["lastUpdateTime"]
        if state != before:
            self.history.append((now, name, state))
        self._state[name] = state

    # ---- judging ----

    def _judge_late(self):
        while not self._stop.wait(0.2):
            seconds = time.monotonic() - self._begin - LATE_S
            with self._lock:
                self._judge_to(max((entry[0] for entry in self._waiting if entry[2] <= seconds), default=0), seconds)

    def _judge_to(self, version, seconds):
        while self._waiting and self._waiting[0][0] <= version:
            _, _, at_s, kind, what, item = heapq.heappop(self._waiting)
            self._judge.take(kind, what, item, at_s)
        self._judge.look_at_excess(seconds)

    def judge_now(self):
        """All that has happened by now."""
        version = min(self._pass(kind) for kind in self.JUDGED)
        with self._lock:
            self._judge_to(version, time.monotonic() - self._begin)

    def _pass(self, kind):
        """Waits until the stream has told of all that there was at some moment from now on; returns the version of that moment."""
        try:
            found = self._api.get(self.KINDS[kind] % self._namespace)
        except api.ApiError as error:
            if error.status == 404:  # the kind is not served just now
                return sys.maxsize
            raise
        moment = int(found["metadata"]["resourceVersion"])
        there = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in found["items"]}

        def is_passed():
            with self._lock:
                seen = {name: int(item["metadata"]["resourceVersion"]) for name, item in self._seen[kind].items()}
                gone = dict(self._gone[kind])
            return (all(max(seen.get(name, 0), gone.get(name, 0)) >= version for name, version in there.items())
                    and all(name in there or version > moment for name, version in seen.items()))
        until(is_passed, "the observer has seen %s %s" % (kind, there), 30, 0.01)
        return moment

    def _look_for_forsaken(self):
        """All the while, and not only at the end."""
        since = {}  # name: when it was first seen to be so
        while not self._stop.wait(min(1.0, self.forsaken_s / 4)):
            names = self.forsaken()
            now = time.monotonic()
            if not names or not self._is_led():
                since.clear()
                continue
            since = {name: since.get(name, now) for name in names}
            for name in [name for name, begun in since.items() if now - begun > self.forsaken_s]:
                self._forsakes(name, now)
                since[name] = now

    def _forsakes(self, name, now):
        text = "%.3f s: nobody holds, and yet is paused by us for %g s, while a slipway leads: %s" % (
            now - self._begin, self.forsaken_s, self.describe(name))
        print("OBSERVER: " + text, flush=True)
        with self._lock:
            self.violations.append(text)

    def describe(self, name):
        return describe(name, self.get("deployments", name))

    # ---- for scenarios ----

    def catch_up(self, *kinds):
        """Waits until the Deployments, or those kinds, have been seen as they are now."""
        for kind in kinds or ("deployments",):
            self._pass(kind)

    def excuse(self, *names):
        """These may roll beside others with their next change of spec, until they rest: the exceptions that the documentation
        names. They need not exist yet. Others may not begin beside them."""
        with self._lock:
            self.was_excused = True
            for name in names:
                found = self._seen["deployments"].get(name)
                self._judge.excused[name] = found["metadata"]["generation"] if found else 0

    def excuse_all(self, is_excused=True):
        with self._lock:
            self.was_excused |= is_excused
            self._judge.is_blind = is_excused

    def get(self, kind, name):
        with self._lock:
            return self._seen[kind].get(name)

    def deployments(self):
        with self._lock:
            return dict(self._seen["deployments"])

    def pods(self):
        with self._lock:
            return dict(self._seen["pods"])

    def replicasets(self):
        with self._lock:
            return dict(self._seen["replicasets"])

    def born(self, kind, name):
        """The version in which it was seen first: etcd's revision, which says what was stored before what."""
        with self._lock:
            return self._born[kind][name]

    def ending(self, kind, name):
        """Its metadata when it was told to end."""
        with self._lock:
            return self._ending[kind][name]

    def gone(self, kind, name):
        """That in which it was deleted."""
        with self._lock:
            return self._gone[kind][name]

    def turns(self):
        """The names in the order in which they began to roll."""
        self.catch_up()
        with self._lock:
            return [name for _, name, state in self.history if state == "rolls"]

    def rolled(self, name):
        return name in self.turns()

    def count_versions(self):
        with self._lock:
            return sum(self.versions.values())

    def forsaken(self):
        """Deployments that are paused by us though nobody holds them: no coordination selects them, or those that do want
        them to run at rest and they are at rest; or the pause is ours but says not whose it is."""
        with self._lock:
            return sorted(name for name, deployment in self._seen["deployments"].items() if self._is_forsaken(deployment))

    def _is_forsaken(self, deployment):
        if not is_paused(deployment) or deployment["metadata"].get("deletionTimestamp"):
            return False
        holders = [holder for holder in (annotation(deployment, HELD_BY) or "").split(",") if holder]
        if not holders:
            return "slipway" in pausers(deployment)
        if "user" in holders and annotation(deployment, "slipway.dev/hold"):
            return False
        if any(self.is_held_by_other(holder) for holder in holders):
            return False
        labels = deployment["metadata"].get("labels") or {}
        selecting = [c["spec"] for c in self._seen["coordinations"].values() if selects(c.get("spec", {}).get("labelSelector"), labels)]
        if not selecting or annotation(deployment, "slipway.dev/ignore") == "true":
            return True
        return all(spec.get("atRest") == "Running" for spec in selecting) and is_complete(deployment)

    def check(self):
        self.judge_now()
        if self.violations:
            raise BrokenPromise(self.broken_promises())

    def broken_promises(self):
        """A text that ./tools/test knows, or an empty one: an alarm of the running scenario."""
        with self._lock:
            return "\n".join(BROKEN + text for text in self.violations)

    def stop(self):
        """Judges what has happened; afterwards nothing is read any more."""
        try:
            self.judge_now()
        except (AssertionError, api.ApiError) as error:
            self.violations.append("the observer failed: %s" % error)
        self._stop.set()


def pausers(deployment):
    """The field managers that own spec.paused."""
    return {entry.get("manager") for entry in deployment["metadata"].get("managedFields") or []
            if "f:paused" in (entry.get("fieldsV1") or {}).get("f:spec", {})}


__all__ = ["HELD_BY", "REVISION", "Observer", "annotation", "condition", "is_complete", "is_observed", "is_paused", "is_rolling", "number",
           "owner", "selects", "want"]
