# SPDX-License-Identifier: Apache-2.0
"""Two candidates on the real API server, each behind a proxy of its own."""

import datetime
import os
import re
import signal
import time

import pytest

from probes import Objects
from harness.wait import until

# Short where a Lease shall run out, so that a test takes seconds, and long where it must not, however slow the machine is.
SHORT = ("--lease-ms", "6000", "--deadline-ms", "4000", "--retry-ms", "400")
LONG = ("--lease-ms", "60000", "--deadline-ms", "40000", "--retry-ms", "400")
SHORT_S, LONG_S = 6.0, 60.0


def micro_time(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp()


class Pair:
    def __init__(self, times, cluster, namespace, new_proxy, new_probe):
        self.cluster, self.namespace = cluster, namespace
        self.is_checked = True
        self.proxies = [new_proxy(), new_proxy()]
        self.probes = [new_probe(self.proxies[0], "--lease", "it", "--identity", "a_1", *times)]
        self.probes[0].until_line("leading 0")
        self.probes.append(new_probe(self.proxies[1], "--lease", "it", "--identity", "b_1", *times))

    def lease(self):
        return self.cluster.api.get("/apis/coordination.k8s.io/v1/namespaces/%s/leases/it" % self.namespace)

    def times(self):
        """(when, who, whether it leads now), in order."""
        found = []
        for who, probe in enumerate(self.probes):
            found += [(line.at, who, line.startswith("leading")) for line in probe.lines
                      if re.match("leading|lost|released", line)]
        return sorted(found)

    def check(self):
        """Never did two lead, by what they said."""
        leader = None
        for _, who, leads in self.times():
            if leads:
                assert leader is None, "two leaders: %r" % self.times()
                leader = who
            elif leader == who:
                leader = None


def checked(pair):
    yield pair
    if pair.is_checked:
        pair.check()


@pytest.fixture
def pair(cluster, namespace, new_proxy, new_probe):
    yield from checked(Pair(LONG, cluster, namespace, new_proxy, new_probe))


@pytest.fixture
def short_pair(cluster, namespace, new_proxy, new_probe):
    yield from checked(Pair(SHORT, cluster, namespace, new_proxy, new_probe))


def test_a_leader_behind_a_black_hole_stops_before_the_other_begins(short_pair):
    pair = short_pair
    a, b = pair.probes
    hole = pair.proxies[0].black_hole()
    lost = a.until_line("lost")
    leading = b.until_line("leading 1")
    assert lost.at < leading.at
    hole.heal()
    time.sleep(2)  # it must not come back
    assert [line for line in a.lines if line.startswith("leading")] == ["leading 0"]
    assert pair.lease()["spec"]["holderIdentity"] == "b_1"


def test_a_stopped_leader_writes_nothing_when_it_wakes_up(short_pair, cluster, namespace):
    pair = short_pair
    a, b = pair.probes
    objects = Objects(cluster, namespace)
    objects.create("a", "start")
    os.kill(a.process.pid, signal.SIGSTOP)
    try:
        b.until_line("leading 1")
        a.say("put a late")  # the first thing that it finds
    finally:
        os.kill(a.process.pid, signal.SIGCONT)
    assert a.until_line("reply .*").split()[2:5] == ["0", "-19993", "unsent"]
    a.until_line("lost")
    assert objects.get("a")["data"]["value"] == "start"
    pair.is_checked = False  # by its lines a led until it woke up, for it could not say what it did not know


def test_conflicts_at_each_renewal_are_survived(pair):
    path = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/it" % pair.namespace
    end = time.monotonic() + 5
    i = 0
    while time.monotonic() < end:
        i += 1
        pair.cluster.api.patch(path, {"metadata": {"labels": {"touched": str(i)}}})
        time.sleep(0.1)
    assert not [line for line in pair.probes[0].lines if line == "lost"]
    assert pair.lease()["spec"]["leaseTransitions"] == 0


def test_a_deleted_lease_is_made_again(pair):
    for _ in range(3):
        pair.cluster.kubectl("delete", "lease", "it", "-n", pair.namespace)
        until(lambda: pair.cluster.kubectl("get", "lease", "-n", pair.namespace, "-o", "name"), "the lease")
        time.sleep(1)
    assert pair.lease()["spec"]["holderIdentity"] == "a_1"


def test_lost_answers_and_errors_do_not_cost_the_lead(pair):
    proxy = pair.proxies[0]
    for fault in (lambda: proxy.lose_answer(method="PUT", times=2), lambda: proxy.answer(500, path="leases", times=2),
                  lambda: proxy.answer(429, retry_after=0, path="leases", times=2),
                  lambda: proxy.answer(409, path="leases", times=1)):
        rule = fault()
        until(lambda: rule.hits, "the fault", 5)
        time.sleep(1.5)
        rule.remove()
    assert "lost" not in pair.probes[0].lines


def test_a_released_lease_is_taken_at_once(pair):
    a, b = pair.probes
    released = a.ask("release", "released")
    leading = b.until_line("leading 1")
    assert leading.at - released.at < LONG_S / 2, "not because it ran out"
    assert pair.lease()["spec"]["holderIdentity"] == "b_1"


def test_a_killed_leader_is_followed(short_pair):
    pair = short_pair
    a, b = pair.probes
    renewed = micro_time(pair.lease()["spec"]["renewTime"])
    a.kill()
    leading = b.until_line("leading 1")
    assert time.time() - time.monotonic() + leading.at - renewed > SHORT_S - 0.1, "it was waited for"
    pair.is_checked = False  # the dead say nothing
