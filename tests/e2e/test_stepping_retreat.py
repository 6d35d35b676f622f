# SPDX-License-Identifier: Apache-2.0
"""Retreats in place: slipway brings Deployments back from wherever their rollout stands when it fails.

What their controller does with a paused Deployment whose ReplicaSets somebody scales is written down nowhere: so it is looked at
here, on every control plane that we meet, and on the simulator."""

import random

import pytest

from harness.retreat import Case, Retreats

# (replicas, surge, unavailable), sizes with the newest first at the beginning and after each bite, the lowest number available.
TABLE = [
    ((4, 1, 0), [(1, 4), (0, 4)], 4),
    ((7, 2, 0), [(6, 3), (4, 5), (2, 7), (0, 7)], 7),
    ((10, "25%", "25%"), [(11, 2), (6, 7), (1, 12), (0, 10)], 8),
    ((10, 0, 1), [(7, 3), (6, 4), (5, 5), (4, 6), (3, 7), (2, 8), (1, 9), (0, 10)], 9),
    ((10, 1, 0), [(8, 3), (7, 4), (6, 5), (4, 7), (3, 8), (2, 9), (1, 10), (0, 10)], 9),
    ((8, 1, 0), [(2, 2, 5), (1, 2, 6), (0, 2, 7), (0, 1, 8), (0, 0, 8)], 8),
    ((8, 2, 1), [(3, 3, 4), (0, 3, 7), (0, 0, 8)], 7),
    ((10, 1, 1), [(4, 2, 5), (2, 2, 7), (0, 2, 9), (0, 0, 10)], 9),
    ((6, 2, 0), [(4, 0, 4), (2, 0, 6), (0, 0, 6)], 6),
]
# Where the first thought would end badly: a template's ReplicaSet that would be complete, and ties.
HARD = [
    Case(3, 1, 0, [1, 2, 1]), Case(3, 2, 0, [1, 4]), Case(6, 2, 0, [3, 5]), Case(7, 1, 0, [2, 3, 3]), Case(7, 1, 0, [1, 3, 4]),
    Case(3, 1, 0, [2, 1, 1], target=1, template=0), Case(4, 1, 1, [0, 2, 3], target=2, template=1),
]


@pytest.fixture
def play(scene, receiver):
    """Plays cases with one slipway, and returns them as they ended."""
    made = []

    def go(cases):
        made.append(Retreats(scene, receiver, cases))
        return made[-1].play()
    yield go
    for retreats in made:
        retreats.close()


def test_every_row_of_the_table_and_where_the_first_thought_would_end_badly(play):
    rows = [Case(*limits, list(sizes[0][::-1])) for limits, sizes, _ in TABLE]
    played = play(rows + HARD)
    done = played.all[:len(rows)]
    assert [[tuple(sizes[::-1]) for sizes in retreat.path] for retreat in done] == [sizes for _, sizes, _ in TABLE]
    assert [retreat.lowest for retreat in done] == [lowest for _, _, lowest in TABLE]


def some_case(dice):
    """With two, three or four ReplicaSets, whatever their ages; scaled, or with Pods that fail, now and then."""
    while True:
        replicas, number = dice.randint(2, 12), dice.choice((2, 2, 3, 3, 4))
        surge, unavailable = dice.choice(((1, 0), (0, 1), (1, 1), (2, 0), (2, 1), (0, 3), (3, 2), ("25%", "25%"), ("50%", 0)))
        target = 0 if dice.random() < 0.7 else dice.randrange(number)
        template = number - 1 if dice.random() < 0.7 else dice.randrange(number)
        case = Case(replicas, surge, unavailable, [0] * number, target, template)
        for _ in range(replicas + case.limits()[0]):
            case.sizes[dice.randrange(number)] += 1
        others = [at for at in range(number) if at != target]
        kind = dice.random()
        if kind < 0.2:
            case.scale_to = dice.randint(1, 14)
        elif kind < 0.3:
            case.failing = frozenset(dice.sample(others, dice.randint(1, len(others))))
        elif kind < 0.4:
            case.crash = True
        if sum(case.limits()[:2]) >= replicas:
            continue  # it has no steps
        if case.target == case.template or not case.sizes[target] or not any(case.sizes[at] for at in others):
            continue
        if any(case.sizes[at] == replicas for at in others):
            continue  # complete: there is no retreat from it
        return case


def test_hundreds_of_others(scene, play):
    """Two, three and four ReplicaSets; scaling in the middle; Pods that fail."""
    dice = random.Random(20)
    played = play([some_case(dice) for _ in range(200 if scene.cluster.kind == "sim" else 100)])
    assert sum(retreat.end == "Retreated" for retreat in played.all) >= 0.9 * len(played.all)
