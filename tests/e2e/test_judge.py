# SPDX-License-Identifier: Apache-2.0
"""The judge of the observer, with events made by hand: no false alarm, and nothing overlooked."""

from harness import judge as judging
from harness.judge import Judge


class World:
    """Tells a judge what an API server would have stored."""

    def __init__(self, **spec):
        self.judge, self.at_s = Judge(), 0.0
        self.coordinate(**spec)

    def coordinate(self, **spec):
        spec.setdefault("labelSelector", {"matchLabels": {"app": "web"}})
        self.take("coordinations", {"metadata": {"name": "web"}, "spec": spec})

    def take(self, kind, obj, what="MODIFIED"):
        self.at_s += 0.01
        self.judge.take(kind, what, obj, self.at_s)

    def deployment(self, name, generation=2, observed=None, paused=False, want=2, pods=2, updated=2, available=2,
                   reason="NewReplicaSetAvailable", labels=None, what="MODIFIED", strategy="RollingUpdate", uid=None,
                   revision=None):
        status = {"observedGeneration": generation if observed is None else observed, "replicas": pods, "updatedReplicas": updated,
                  "availableReplicas": available, "conditions": []}
        if reason:
            known = {"DeploymentPaused": "Unknown", "DeploymentResumed": "Unknown", "ProgressDeadlineExceeded": "False"}
            status["conditions"] = [{"type": "Progressing", "status": known.get(reason, "True"), "reason": reason}]
        self.take("deployments", {
            "metadata": {"name": name, "uid": uid or "uid-" + name, "generation": generation, "resourceVersion": "1",
                         "labels": {"app": "web"} if labels is None else labels,
                         "annotations": {judging.REVISION: str(revision)} if revision else {}},
            "spec": {"replicas": want, "paused": paused, "strategy": {"type": strategy}}, "status": status}, what)

    def rolls(self, name, generation=3, **more):
        self.deployment(name, generation, pods=3, updated=1, reason="ReplicaSetUpdated", **more)

    def replicaset(self, name, template, size, revision, what="MODIFIED"):
        self.take("replicasets", {
            "metadata": {"name": "%s-%s" % (name, template), "labels": {judging.TEMPLATE_HASH: template},
                         "annotations": {judging.REVISION: str(revision)},
                         "ownerReferences": [{"controller": True, "uid": "uid-" + name, "name": name}]},
            "spec": {"replicas": size}}, what)

    def at_rest(self, *names):
        for name in names:
            self.deployment(name, 1, observed=0, pods=0, updated=0, available=0, reason=None)
            self.replicaset(name, "one", 2, 1)
            self.deployment(name)

    @property
    def said(self):
        return [text.split(": ", 1)[1].split("\n")[0] for text in self.judge.violations]


def test_two_that_roll_at_once_are_seen():
    world = World()
    world.at_rest("a", "b", "c")
    assert not world.said
    world.rolls("a")
    assert not world.said
    world.rolls("b")
    assert world.said == ["web: a and b roll at once"]
    world.rolls("b", 4)
    assert len(world.said) == 1, "once for each beginning"


def test_one_after_the_other_is_good():
    world = World()
    world.at_rest("a", "b")
    world.rolls("a")
    world.deployment("a", 3)
    world.rolls("b")
    assert not world.said


def test_as_many_as_may():
    world = World(maxActive=2)
    world.at_rest("a", "b", "c")
    world.rolls("a")
    world.rolls("b")
    assert not world.said
    world.rolls("c")
    assert world.said == ["web: a and b and c roll at once"]


def test_who_is_not_selected_may():
    world = World()
    world.at_rest("a")
    world.rolls("a")
    world.rolls("b", labels={"app": "other"})
    assert not world.said


def test_a_rollout_that_only_its_replicaset_tells_of():
    """Paused before the Deployment's status says anything."""
    world = World()
    world.at_rest("a", "b")
    world.rolls("a")
    world.deployment("b", 3, observed=2)
    world.replicaset("b", "two", 1, 2)
    world.deployment("b", 4, observed=2, paused=True)
    world.deployment("b", 4, paused=True, pods=3, updated=1, reason="DeploymentPaused")
    assert world.said == ["web: a and b roll at once"]


def test_a_pause_that_is_not_observed_stops_nothing():
    world = World()
    world.at_rest("a", "b")
    world.rolls("a")
    world.deployment("a", 4, observed=3, paused=True, pods=3, updated=1)
    world.rolls("b")
    assert world.said == ["web: a and b roll at once"]
    world = World()
    world.at_rest("a", "b")
    world.rolls("a")
    world.deployment("a", 4, paused=True, pods=3, updated=1, reason="DeploymentPaused")
    world.rolls("b")
    assert not world.said


def test_scaling_and_lost_pods_are_no_rollouts():
    world = World()
    world.at_rest("a", "b")
    world.rolls("a")
    world.deployment("b", 3, observed=2, want=4)
    world.replicaset("b", "one", 4, 1)
    world.deployment("b", 3, want=4, pods=4, updated=4)
    world.deployment("b", 3, want=4, pods=3, updated=3)
    world.deployment("b", 4, want=0, pods=0, updated=0, available=0)
    world.replicaset("b", "one", 0, 1)
    world.replicaset("b", "one", 3, 1)
    world.deployment("b", 5, want=3, pods=3, updated=3, available=1)
    assert not world.said


def test_a_template_changed_while_nothing_runs_needs_no_turn():
    world = World()
    world.at_rest("a", "b")
    world.rolls("a")
    world.deployment("b", 3, want=0, pods=0, updated=0, available=0)
    world.replicaset("b", "one", 0, 1)
    world.replicaset("b", "two", 0, 2)
    world.replicaset("b", "one", 0, 1)
    world.replicaset("b", "two", 2, 2)
    assert not world.said


def test_a_first_rollout_is_one():
    world = World()
    world.at_rest("a")
    world.rolls("a")
    world.deployment("b", 1, observed=0, pods=0, updated=0, available=0, reason=None)
    world.replicaset("b", "one", 2, 1)
    assert world.said == ["web: a and b roll at once"]


def test_the_gap_of_recreate_and_one_without_deadline():
    world = World()
    world.at_rest("a", "b")
    world.deployment("a", 3, pods=0, updated=0, available=0, strategy="Recreate")
    world.deployment("b", 3, pods=1, updated=1, available=1, reason=None)
    assert world.said == ["web: a and b roll at once"]


def test_a_failed_one_that_is_not_held_still_rolls():
    world = World()
    world.at_rest("a", "b")
    world.deployment("a", 3, pods=2, updated=2, available=1, reason="ProgressDeadlineExceeded")
    world.rolls("b")
    assert world.said == ["web: a and b roll at once"]


def test_excused_ones_may_begin_but_nobody_beside_them_and_not_for_ever():
    world = World()
    world.at_rest("a", "b", "c", "d")
    world.judge.excused = {"b": 2, "c": 2}
    world.rolls("a")
    world.rolls("b")
    world.rolls("c")
    assert not world.said
    world.rolls("d")
    assert world.said == ["web: a and b and c and d roll at once"]
    for name in "acd":
        world.deployment(name, 3)
    world.judge.look_at_excess(world.at_s + 100)
    assert len(world.said) == 1
    world.rolls("c", 4)
    assert world.said[1:] == ["web: b and c roll at once"], "c was excused for one rollout"
    world.judge.look_at_excess(world.at_s)
    world.judge.look_at_excess(world.at_s + judging.TOO_LONG_S + 1)
    assert world.said[2:] == ["web: b and c roll on beside each other"]


def test_two_who_come_together_by_their_labels_must_part():
    world = World()
    world.at_rest("a", "b")
    world.rolls("a")
    world.rolls("b", labels={"app": "other"})
    world.rolls("b")
    world.judge.look_at_excess(world.at_s)
    assert not world.said
    world.judge.look_at_excess(world.at_s + judging.TOO_LONG_S + 1)
    assert world.said == ["web: a and b roll on beside each other"]


def test_a_new_object_of_the_same_name_inherits_nothing():
    world = World()
    world.at_rest("a", "b")
    world.rolls("a")
    world.deployment("a", 3, what="DELETED")
    world.rolls("b")
    world.deployment("a", 1, uid="another", observed=0, pods=0, updated=0, available=0, paused=True)
    assert not world.said
    world.replicaset("a", "two", 2, 2)
    assert not world.said, "a ReplicaSet of the old one"


def test_scaled_to_zero_and_back_it_does_not_roll():
    world = World()
    world.at_rest("a", "b")
    world.rolls("b")
    world.deployment("a", 3, want=0, pods=0, updated=0, available=0, revision=1)
    world.deployment("a", 4, pods=2, updated=2, available=0, reason="ReplicaSetUpdated", revision=1)
    assert not world.said
    world.deployment("a", 5, pods=2, updated=2, available=0, reason="ReplicaSetUpdated", revision=2)
    assert world.said == ["web: a and b roll at once"], "another revision is another rollout"


def test_the_gap_of_recreate_is_part_of_the_rollout_though_its_revision_is_still_the_old_one():
    world = World()
    world.at_rest("a", "b")
    world.deployment("a", 2, strategy="Recreate", revision=1)
    world.deployment("a", 3, strategy="Recreate", pods=0, updated=0, available=0, reason="ReplicaSetUpdated", revision=1)
    world.rolls("b")
    assert world.said == ["web: a and b roll at once"]


def test_selectors_as_the_api_server_reads_them():
    labels = {"app": "web", "tier": "front"}
    assert judging.selects({}, labels) and not judging.selects(None, labels)
    for operator, values, verdict in (("In", ["web"], True), ("In", ["x"], False), ("NotIn", ["x"], True), ("NotIn", ["web"], False),
                                      ("Exists", [], True), ("DoesNotExist", [], False), ("Exists", ["web"], False), ("In", [], False),
                                      ("Near", ["web"], False)):
        assert judging.selects({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}, labels) is verdict, operator
    assert judging.selects({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["x"]}]}, labels)
    assert not judging.selects({"matchExpressions": [{"key": "none", "operator": "Exists"}]}, labels)
