# SPDX-License-Identifier: Apache-2.0
"""What others call a Deployment, by their published rules, and where slipway differs from them on purpose.

The rules of kubectl: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status, tried against the
real one in test_verdicts.py. Those of kstatus: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md.

Each difference is an exception with a name: where theirs is said and `when` holds, ours must be what the exception says. Sections
are those of the specification of the client (S) and of the behaviour of coordination (B).
"""

NO_DEADLINE = 2147483647
DEADLINE = "ProgressDeadlineExceeded"
AVAILABLE = "NewReplicaSetAvailable"

# As the controller writes them.
PROGRESS = [("True", "NewReplicaSetCreated"), ("True", "FoundNewReplicaSet"), ("True", "ReplicaSetUpdated"), ("True", AVAILABLE),
            ("False", DEADLINE), ("False", "ReplicaSetCreateError"), ("Unknown", "DeploymentPaused"), ("Unknown", "DeploymentResumed")]


# ---- random Deployments ----

def numbers(dice, is_possible):
    """replicas, updated, ready, available and what is wanted: near each other, so that they are often equal."""
    want = dice.choice([0, 1, 1, 2, 3, 3, 5])
    if not is_possible:
        return [want] + [dice.choice([want, want, dice.randint(0, 5)]) for _ in range(4)]
    replicas = dice.choice([want, want, want, max(0, want - 1), want + 1, dice.randint(0, 6)])
    updated = dice.choice([replicas, replicas, dice.randint(0, replicas)])
    ready = dice.choice([replicas, replicas, dice.randint(0, replicas)])
    return [want, replicas, updated, ready, dice.choice([ready, ready, dice.randint(0, ready)])]


def conditions(dice, paused):
    found = []
    if dice.random() < 0.85:
        known = [one for one in PROGRESS if (one[0] == "Unknown") <= paused or one[1] == "DeploymentResumed"]
        status, reason = dice.choice(known)
        if dice.random() < 0.2:
            status, reason = dice.choice(["True", "False", "Unknown", "Unknown"]), dice.choice([DEADLINE, dice.choice(PROGRESS)[1]])
        found.append({"type": "Progressing", "status": status, "reason": reason})
    if dice.random() < 0.85:
        found.append({"type": "Available", "status": dice.choice(["True", "True", "False"]), "reason": "MinimumReplicas"})
    if dice.random() < 0.1:
        found.append({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"})
    for one in found:
        one.update(message="", lastTransitionTime="2023-01-01T00:00:00Z")
        if dice.random() < 0.9:
            one["lastUpdateTime"] = "2023-01-01T00:00:00Z"
    dice.shuffle(found)
    return found


def deployment(dice, name, is_possible=True):
    """As the API server would show it: spec with its defaults, absent numbers for 0 now and then."""
    want, replicas, updated, ready, available = numbers(dice, is_possible)
    paused, generation = dice.random() < 0.3, dice.randint(1, 3)
    counts = {"replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": available,
              "unavailableReplicas": max(0, want - available)}
    status = {key: value for key, value in counts.items() if value or dice.random() < 0.2}
    observed = dice.choice([generation] * 12 + [generation - 1, generation + 1, None])
    if observed is not None:
        status["observedGeneration"] = observed
    status["conditions"] = conditions(dice, paused)
    metadata = {"name": name, "uid": "%s-%x" % (name, dice.getrandbits(64)), "generation": generation, "resourceVersion": "1",
                "annotations": {}}
    if dice.random() < 0.9:
        metadata["annotations"]["deployment.kubernetes.io/revision"] = "2"
    if dice.random() < 0.2:
        metadata["annotations"]["slipway.dev/released-by"] = "coordination/c"
    if dice.random() < 0.03:
        metadata["deletionTimestamp"] = "2023-01-01T00:00:00Z"
    spec = {"replicas": want, "paused": paused, "template": {"metadata": {"labels": {"app": "x"}}},
            "progressDeadlineSeconds": dice.choice([600, 600, 60, NO_DEADLINE])}
    if want == 1 and dice.random() < 0.2:
        del spec["replicas"]
    spec["strategy"] = {"type": dice.choice(["RollingUpdate", "RollingUpdate", "Recreate"])}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec, "status": status}


class Look:
    """A Deployment at the moment of the verdict, and what was seen of it before."""

    def __init__(self, given, is_late=False, scaled_from=None):
        metadata, spec, status = given["metadata"], given["spec"], given["status"]
        annotations = metadata.get("annotations", {})
        self.given, self.is_late, self.scaled_from = given, is_late, scaled_from
        self.generation, self.observed = metadata["generation"], status.get("observedGeneration")
        self.is_deleted = "deletionTimestamp" in metadata
        self.is_released = "slipway.dev/released-by" in annotations
        self.want, self.is_paused = spec.get("replicas", 1), spec.get("paused", False)
        self.deadline = spec["progressDeadlineSeconds"]
        self.replicas, self.updated, self.ready, self.available = (
            status.get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"))
        by_type = {one["type"]: one for one in status.get("conditions", [])}
        self.progress = by_type.get("Progressing", {}).get("status"), by_type.get("Progressing", {}).get("reason")
        self.availability = by_type.get("Available", {}).get("status")
        # Of slipway's own vocabulary (B 2).
        self.is_observed = (self.observed or 0) >= self.generation
        self.is_exact = self.updated == self.replicas == self.available == self.want
        is_new = self.want > 0 and "deployment.kubernetes.io/revision" not in annotations
        self.is_outdated = self.replicas > self.updated or is_new
        self.is_in_gap = spec["strategy"]["type"] == "Recreate" and self.want > 0 and self.replicas == 0

    def lines(self):
        """For the program: now, or also as it was before."""
        if self.is_late:
            return [(0, self.given), ((self.deadline + 1) * 1000, self.given)]
        if self.scaled_from is not None:
            before = dict(self.given, spec=dict(self.given["spec"], replicas=self.scaled_from),
                          metadata=dict(self.given["metadata"], generation=self.generation - 1))
            return [(0, before), (1000, self.given)]
        return [(0, self.given)]


def look(dice, is_possible=True):
    given = deployment(dice, "d", is_possible)
    kind = dice.random()
    if is_possible and kind < 0.12 and given["spec"]["progressDeadlineSeconds"] != NO_DEADLINE:
        return Look(given, is_late=True)
    if kind > 0.95 and given["spec"].get("replicas", 1) > 0 and given["status"].get("observedGeneration"):
        given["metadata"]["generation"] = given["status"]["observedGeneration"] + 1
        return Look(given, scaled_from=given["spec"].get("replicas", 1) + 1)
    return Look(given)


# ---- what others say ----

def kubectl(d):
    """rollout status: unknown, failed, rolling (it waits), complete."""
    if (d.observed or 0) < d.generation:
        return "unknown"
    if d.progress[1] == DEADLINE:
        return "failed"
    if d.updated < d.want or d.replicas > d.updated or d.available < d.updated:
        return "rolling"
    return "complete"


def kstatus(d):
    """Terminating, InProgress, Failed, Current."""
    if d.is_deleted:
        return "Terminating"
    if d.observed is not None and d.observed != d.generation:
        return "InProgress"
    if d.progress[1] == DEADLINE:
        return "Failed"
    if d.replicas != d.want or d.updated < d.want or d.available < d.updated or d.ready < d.want:
        return "InProgress"
    if d.deadline != NO_DEADLINE and d.progress != ("True", AVAILABLE):
        return "InProgress"
    return "Current" if d.availability == "True" else "InProgress"


# What ours are called there. One that is settled and not complete has no word of theirs.
AS_KUBECTL = {"unknown": "unknown", "failed": "failed", "rolling": "rolling", "complete": "complete"}
AS_KSTATUS = {"gone": "Terminating", "unknown": "InProgress", "rolling": "InProgress", "failed": "Failed", "complete": "Current"}


# ---- where slipway differs ----

class Difference:
    def __init__(self, name, theirs, when, ours, why):
        self.name, self.theirs, self.when, self.ours, self.why = name, theirs.split(), when, ours, why

    def applies(self, theirs, d):
        return theirs in self.theirs and self.when(d)


def is_looked_at(d):
    """Neither gone nor unknown, and the controller's clock alone counts."""
    return not d.is_deleted and d.is_observed and d.scaled_from is None and not has_own_deadline(d)


def is_done_once(d):
    """Complete before, for its controller; unless so many Pods were lost since that it has to wait again (B 3.2)."""
    is_lost = d.availability == "False" and d.available < d.want
    return not d.is_paused and not d.is_outdated and not is_lost and d.progress[1] == AVAILABLE


def has_own_deadline(d):
    return (d.is_late and not d.is_deleted and d.is_observed and not d.is_exact and not d.is_paused and not is_done_once(d)
            and not has_failed(d))


def has_failed(d):
    return not d.is_paused and not d.is_exact and d.progress == ("False", DEADLINE)


def stands(d):
    """Not complete, and free of all that makes a rollout but the condition."""
    return (is_looked_at(d) and not d.is_exact and not d.is_paused and not d.is_released and not d.is_outdated and not d.is_in_gap)


def rolls(d):
    """By its own numbers and its condition, whatever others make of these."""
    if d.is_exact or d.is_paused:
        return d.is_released and not d.is_exact
    status, reason = d.progress
    is_busy = d.updated < d.want if status is None else status != "Unknown" and reason != AVAILABLE
    return d.is_released or d.is_outdated or d.is_in_gap or is_busy


def by_numbers(d):
    if d.is_exact:
        return "complete"
    if has_failed(d):
        return "failed"
    return "rolling" if rolls(d) else "settled"


def shared(waits, failed):
    """What differs in both: `waits` and `failed` are their words."""
    return [
        Difference("a deadline that passed before it was complete", failed, lambda d: is_looked_at(d) and d.is_exact, "complete",
                   "S 20.2 complete is about numbers; S 20.5 the condition is sticky"),
        Difference("a deadline that passed before the pause", failed,
                   lambda d: is_looked_at(d) and not d.is_exact and d.is_paused and not d.is_released, "settled",
                   "S 20.5 pausing does not clear it; B 2 failed: not paused"),
        Difference("a deadline that passed before the pause, released since", failed,
                   lambda d: is_looked_at(d) and not d.is_exact and d.is_paused and d.is_released, "rolling",
                   "B 2 rolling: whoever carries released-by and is not complete"),
        Difference("a deadline whose condition is not False, settled", failed,
                   lambda d: is_looked_at(d) and not d.is_paused and not d.is_exact and d.progress[0] != "False" and not rolls(d),
                   "settled", "S 20.5, B 2: ProgressDeadlineExceeded is False"),
        Difference("a deadline whose condition is not False, rolling", failed,
                   lambda d: is_looked_at(d) and not d.is_paused and not d.is_exact and d.progress[0] != "False" and rolls(d),
                   "rolling", "S 20.5, B 2: ProgressDeadlineExceeded is False"),
        Difference("paused, with something to roll", waits,
                   lambda d: is_looked_at(d) and not d.is_exact and d.is_paused and not d.is_released, "settled",
                   "S 22 others wait for it or call it in progress; B 2 rolling: not paused"),
        Difference("Pods lost, or a scale in progress", waits, lambda d: stands(d) and d.progress[1] == AVAILABLE, "settled",
                   "S 20.3 neither is a rollout; B 2 rolling: another reason than NewReplicaSetAvailable"),
        Difference("resumed, and its controller has not said more", waits,
                   lambda d: stands(d) and d.progress[0] == "Unknown" and d.progress[1] != AVAILABLE, "settled",
                   "B 2 rolling: Progressing is True or False"),
        Difference("no condition, and all updated", waits,
                   lambda d: stands(d) and d.progress[0] is None and d.updated >= d.want, "settled",
                   "B 2 rolling: no Progressing condition and updatedReplicas < want"),
        Difference("no progress for as long as its deadline", waits, has_own_deadline, "failed", "S 20.6 a deadline of our own"),
    ]


def of_scaled(theirs, verdicts):
    return [Difference("only scaled, and not observed yet: " + ours, theirs,
                       lambda d, ours=ours: d.scaled_from is not None and not d.is_deleted and by_numbers(d) == ours, ours,
                       "B 2 observed: a change of replicas alone does not make it unobserved")
            for ours in verdicts.split()]


def of_more(theirs):
    """Complete for others, with more Pods than wanted."""
    return [Difference("more than wanted: " + ours, theirs,
                       lambda d, ours=ours: is_looked_at(d) and not d.is_exact and by_numbers(d) == ours, ours,
                       "S 20.2 complete is equality with spec.replicas; S 20.3 scaling is no rollout")
            for ours in ("rolling", "settled")]


KUBECTL = shared("rolling", "failed") + of_scaled("unknown", "complete failed rolling settled") + of_more("complete") + [
    Difference("being deleted", "unknown failed rolling complete", lambda d: d.is_deleted, "gone",
               "B 2 with deletionTimestamp it is gone for the plan"),
    Difference("more than wanted, for as long as its deadline", "complete", has_own_deadline, "failed", "S 20.6 a deadline of our own"),
]

KSTATUS = shared("InProgress", "Failed") + of_scaled("InProgress", "complete failed settled") + of_more("Current") + [
    Difference("paused at rest", "InProgress", lambda d: is_looked_at(d) and d.is_exact and d.is_paused, "complete",
               "S 22 kstatus wants NewReplicaSetAvailable and sees DeploymentPaused"),
    Difference("complete before its condition says so", "InProgress",
               lambda d: is_looked_at(d) and d.is_exact and not d.is_paused and d.progress != ("True", AVAILABLE), "complete",
               "S 20.2 complete is about numbers"),
    Difference("complete without Available", "InProgress",
               lambda d: is_looked_at(d) and d.is_exact and not d.is_paused and d.availability != "True", "complete",
               "S 20.2 complete is about numbers; S 20.5 Available says nothing about this rollout"),
    Difference("more available than ready", "InProgress",
               lambda d: is_looked_at(d) and d.is_exact and not d.is_paused and d.ready < d.want, "complete",
               "S 20.2 readyReplicas is not asked"),
    Difference("observed beyond its generation, complete", "InProgress",
               lambda d: is_looked_at(d) and d.observed > d.generation and d.is_exact, "complete", "S 20.1 at least the generation"),
    Difference("observed beyond its generation, failed", "InProgress",
               lambda d: is_looked_at(d) and d.observed > d.generation and has_failed(d), "failed", "S 20.1 at least the generation"),
    Difference("observed beyond its generation, settled", "InProgress",
               lambda d: is_looked_at(d) and d.observed > d.generation and by_numbers(d) == "settled", "settled",
               "S 20.1 at least the generation"),
    Difference("scaling down", "InProgress", lambda d: stands(d) and d.replicas > d.want and by_numbers(d) == "settled", "settled",
               "S 20.3 scaling is no rollout"),
    Difference("never observed", "Current Failed", lambda d: not d.is_deleted and d.observed is None and d.scaled_from is None, "unknown",
               "S 20.1 until observed the numbers speak of the past; an absent one is 0"),
]


def compare(seen, theirs_of, words, exceptions):
    """seen: pairs of a look and our verdict. Mistakes in words, and how often each exception was met."""
    wrong, met = [], dict.fromkeys((one.name for one in exceptions), 0)
    assert len(met) == len(exceptions), "two have one name"
    for d, ours in seen:
        theirs = theirs_of(d)
        meant = [one for one in exceptions if one.applies(theirs, d)]
        is_right = {one.ours for one in meant} == {ours} if meant else words.get(ours) == theirs
        if not is_right:
            wrong.append("%s says %s, slipway %s, meant is %s: %s" % (theirs_of.__name__, theirs, ours, [one.name for one in meant], d.lines()))
        for one in meant:
            met[one.name] += words.get(ours) != theirs
    return wrong, met
