# SPDX-License-Identifier: Apache-2.0
"""Wall clocks that are wrong, and are put right while Deployments roll."""

import datetime
import time

import pytest

from harness.scene import revision_of
from harness.wall_clock import WallClock, yesterday

HOUR_S = 3600


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S], ids=["ahead", "behind"])
def test_a_wall_clock_that_is_an_hour_wrong_and_is_put_right(scene, tmp_path, ahead_s):
    """The wait, the queue and the Lease are as ever, only what is shown is off; a step in mid-turn changes nothing either, and
    what was written down in another time is no riddle after a restart."""
    clock = WallClock(tmp_path / "clock", ahead_s)
    with yesterday(tmp_path):
        slipway, proxy = scene.slipway_behind_proxy(leader_elect=True, clock=clock)
    slipway.until_leading()
    scene.group("a", "b", "c", replicas=1)
    scene.settle_coordination(minReadySeconds=2)
    shown = seconds(scene.state_of("a")["lastRolloutFinished"])
    assert abs(shown - time.time() - ahead_s) < HOUR_S / 2, "its clock is wrong indeed"
    scene.roll_and_stall("a", "b", "c")
    clock.set(0)
    scene.let_pods_go()
    scene.until_runs("a", "b", "c")
    scene.until_ready()
    assert scene.observer.turns()[-3:] == ["a", "b", "c"]
    for first, second in ("ab", "bc"):
        assert scene.gap(first, second) >= 2, "the wait of 2 s between %s and %s" % (first, second)
    # The wait of a begins under a clock that goes back behind, or leaps ahead of, all that is stored.
    clock.set(-ahead_s)
    scene.roll_and_stall("a", "b", version="3")
    slipway.stop()
    clock.set(ahead_s)
    slipway.start()
    slipway.until_leading()  # it sees the completion itself: of one that was before, it has only Kubernetes' word, by the wrong clock
    scene.let_pods_go()
    scene.until_runs("a", "b", version="3")
    scene.until_ready()
    assert scene.gap("a", "b") >= 2
    assert revision_of(scene.get("c")) == 2, "c had nothing to roll"
