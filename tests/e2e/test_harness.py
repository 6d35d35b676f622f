# SPDX-License-Identifier: Apache-2.0
"""The harness itself, without slipway: its observer sees what must never happen, and does not see what did not."""

from harness import observer as look
from harness.scene import DEPLOYMENT_PATH
from harness.wait import until


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
    scene.update("a", "b", version="3")
    until(lambda: scene.observer.violations, "the observer has seen it")
    assert "a and b roll at once" in scene.observer.violations[0]
    scene.until_runs("a", "b", version="3")
    scene.observer.violations.clear()


def test_the_observer_excuses_until_they_rest(scene):
    scene.cluster.pods_take(scene.namespace, start="500ms")
    scene.coordinate()
    scene.observer.excuse("b", "c")
    scene.create("a", replicas=1)
    scene.until_rolling("a")
    for name in "bc":
        scene.create(name, replicas=1)
    scene.until_runs("a", "b", "c", version="1")
    scene.observer.check()
    scene.update("b", "c")
    until(lambda: scene.observer.violations, "it is excused no longer")
    scene.until_runs("b", "c")
    scene.observer.violations.clear()


def test_the_observer_finds_who_stays_held_by_nobody(scene):
    scene.create("a", replicas=1, paused=True, annotations={look.HELD_BY: "coordination/web"})
    scene.create("b", replicas=1, paused=True)
    until(lambda: scene.observer.forsaken() == ["a"], "a is forsaken; b was paused by somebody else")
    scene.coordinate()
    until(lambda: scene.observer.forsaken() == [], "a is selected now")
    scene.create("c", replicas=0)
    scene.api.patch(DEPLOYMENT_PATH % scene.namespace + "/c?fieldManager=slipway", {"spec": {"paused": True}})
    until(lambda: scene.observer.forsaken() == ["c"], "paused by slipway, and nothing says why")
