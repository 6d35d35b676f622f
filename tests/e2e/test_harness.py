# SPDX-License-Identifier: Apache-2.0
"""The harness itself, without slipway: its observer sees what must never happen, and does not see what did not."""

import subprocess

import pytest

from harness import observer as look
from harness.promise import BrokenPromise, promised
from harness.scene import DEPLOYMENT_PATH, Scene
from harness.wait import stays, until


def test_the_observer_sees_two_roll_at_once_and_only_then(scene):
    scene.cluster.pods_take(scene.namespace, start="1s")
    scene.coordinate()
    scene.create("a", replicas=1)
    scene.until_runs("a", version="1")
    scene.create("b", replicas=1)
    scene.until_runs("b", version="1")
    scene.update("a")
    scene.until_runs("a")
    scene.update("b")
    scene.until_runs("b")
    scene.scale("a", 3)
    scene.scale("b", 3)
    until(lambda: len(scene.observer.pods()) >= 6, "six Pods")
    scene.until_runs("a", "b")
    scene.observer.check()
    assert scene.observer.turns() == ["a", "b", "a", "b"]
    scene.disarm()
    scene.update("a", "b", version="3")
    scene.until_runs("a", "b", version="3")
    scene.observer.judge_now()
    assert "a and b roll at once" in scene.observer.violations[0]
    scene.observer.violations.clear()


def test_the_observer_excuses_until_they_rest(scene):
    scene.stall_pods()
    scene.coordinate()
    scene.observer.excuse("b", "c")
    scene.create("a", replicas=1)
    scene.until_rolling("a")
    for name in "bc":
        scene.create(name, replicas=1)
    for name in "bc":
        scene.until_rolling(name)
    scene.let_pods_go()
    scene.until_runs("a", "b", "c", version="1")
    scene.observer.check()
    scene.update("b", "c")
    scene.until_runs("b", "c")
    with pytest.raises(BrokenPromise, match="PROMISE BROKEN: .*roll at once"):
        until(lambda: False, "it is excused no longer, and whoever waits is told")
    with pytest.raises(BrokenPromise, match="PROMISE BROKEN: .*roll at once"):
        stays(lambda: True, "whatever is waited for", 30)
    with pytest.raises(BrokenPromise, match="PROMISE BROKEN: .*roll at once"):
        scene.observer.check()
    scene.observer.violations.clear()
    until(lambda: True, "nothing is broken any more")


def test_the_observer_finds_who_stays_held_by_nobody(scene):
    scene.create("a", replicas=1, paused=True, annotations={look.HELD_BY: "coordination/web"})
    scene.create("b", replicas=1, paused=True)
    until(lambda: scene.observer.forsaken() == ["a"], "a is forsaken; b was paused by somebody else")
    scene.coordinate()
    until(lambda: scene.observer.forsaken() == [], "a is selected now")
    scene.create("c", replicas=0)
    scene.api.patch(DEPLOYMENT_PATH % scene.namespace + "/c?fieldManager=slipway", {"spec": {"paused": True}})
    until(lambda: scene.observer.forsaken() == ["c"], "paused by slipway, and nothing says why")


def test_a_promise_is_kept_or_broken():
    promised(True, "not said")
    with pytest.raises(BrokenPromise, match="^PROMISE BROKEN: one of them$"):
        promised(False, lambda: "one of them")


class Culprit:
    """Stands where a slipway would, and does something that slipway must never do: a script with kubectl."""

    is_running = is_in_charge = True
    overlap_s = 0.0  # it counts none

    def __init__(self, scene, script):
        self._scene, self._script = scene, script
        scene.processes.append(self)

    def act(self):
        env = dict(self._scene.cluster.environment(), NAMESPACE=self._scene.namespace)
        subprocess.run(["bash", "-euc", self._script], env=env, check=True, stdin=subprocess.DEVNULL, timeout=120)

    def stop(self):
        self.is_running = False

    def check_log(self):
        pass


HOLD = '{"metadata":{"annotations":{"slipway.dev/held-by":"coordination/web"}},"spec":{"paused":true}}'
LET_GO = '{"metadata":{"annotations":{"slipway.dev/held-by":null}},"spec":{"paused":false}}'


def group_without_slipway(cluster, namespace_name, tmp_path):
    """A scene of its own, since the fixture's must not fail. All is as a slipway would leave it: held, at rest."""
    scene = Scene(cluster, namespace_name, tmp_path)
    scene.coordinate()
    for name in "ab":
        scene.create(name, replicas=1)
        scene.until_runs(name, version="1")
    Culprit(scene, "kubectl patch deployment a b -n $NAMESPACE --type=merge -p '%s'" % HOLD).act()
    return scene


def test_a_scene_fails_where_two_of_a_group_are_unpaused_at_once(cluster, namespace_name, tmp_path):
    scene = group_without_slipway(cluster, namespace_name, tmp_path)
    scene.disarm()
    scene.update("a", "b")
    Culprit(scene, "kubectl patch deployment a b -n $NAMESPACE --type=merge -p '%s'" % LET_GO).act()
    scene.until_runs("a", "b")
    with pytest.raises(AssertionError, match="web: a and b roll at once"):
        scene.close()


def test_a_scene_fails_where_one_stays_paused_and_nobody_holds_it(cluster, namespace_name, tmp_path):
    scene = group_without_slipway(cluster, namespace_name, tmp_path)
    # It frees the one, forgets the other, and takes the coordination away.
    Culprit(scene, "kubectl patch deployment a -n $NAMESPACE --type=merge -p '%s';"
                   "kubectl delete deploymentcoordination web -n $NAMESPACE" % LET_GO).act()
    with pytest.raises(AssertionError, match="PROMISE BROKEN: nobody holds, and yet is paused by us: b: paused True") as told:
        scene.close(patience_s=1)
    assert "a: paused" not in str(told.value)


def test_whoever_waits_is_told_that_one_stays_paused_while_a_slipway_leads(cluster, namespace_name, tmp_path):
    scene = group_without_slipway(cluster, namespace_name, tmp_path)
    scene.observer.forsaken_s = 1
    culprit = Culprit(scene, "kubectl delete deploymentcoordination web -n $NAMESPACE")
    for process in scene.processes:
        process.is_in_charge = False
    culprit.act()
    until(lambda: scene.observer.forsaken() == ["a", "b"], "they are forsaken")
    stays(lambda: True, "nobody leads, so nobody can see to it", 3)
    culprit.is_in_charge = True
    with pytest.raises(BrokenPromise, match="PROMISE BROKEN: .* nobody holds, and yet is paused by us for 1 s, while a slipway leads: [ab]: paused True"):
        until(lambda: False, "the alarm is heard")
    for process in scene.processes:
        process.stop()
    with pytest.raises(AssertionError, match="PROMISE BROKEN: .* while a slipway leads"):
        scene.close(patience_s=1)


def test_a_scene_without_a_culprit_does_not_fail(cluster, namespace_name, tmp_path):
    scene = group_without_slipway(cluster, namespace_name, tmp_path)
    for name in "ab":
        scene.update(name)
        Culprit(scene, "kubectl patch deployment %s -n $NAMESPACE --type=merge -p '%s'" % (name, LET_GO)).act()
        scene.until_runs(name)
    scene.close()
