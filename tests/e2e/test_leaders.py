# SPDX-License-Identifier: Apache-2.0
"""Leaders that die between any two of their writes, are suspended, cut off, or two at once."""

import datetime
import random
import signal
import statistics
import threading
import time

import pytest

from harness import observer as look
from harness.fault_proxy import HANDOVER
from harness.promise import promised
from harness.wait import until
from harness.wall_clock import WallClock, yesterday

LEASE_S = 15


def all_run(scene, version, names="ab"):
    return all(scene.runs(name, version) for name in names)


def effects(proxy, since):
    """Hand-over writes of this process that changed something from then on."""
    return [write for write in proxy.handover_writes(since) if write.status is None or write.status < 300]


def every_moment(scene, kill, begin_round, meanwhile):
    """Rounds in which two Deployments are changed; in the n-th one slipway dies at its n-th write. The last is the one
    that has no n-th write any more. Returns how many there were."""
    number = 0
    while True:
        number += 1
        version = str(number + 1)
        has_met = begin_round(number)
        scene.update_in_the_end("a", "b", version=version, meanwhile=lambda: meanwhile(has_met))

        def is_over():
            return meanwhile(has_met) is not False and all_run(scene, version) and scene.condition("Ready").get("status") == "True"

        until(is_over, lambda: "both run version %s after a death at write %d: %s; %s" % (
            version, number, scene.observer.describe("a"), scene.observer.describe("b")), 60, 0.1)
        scene.observer.check()
        if not has_met():
            return number
        assert number < 40, "the hand-over of two Deployments does not take 40 writes"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_between_any_two_writes(scene, moment):
    """Before the n-th write reaches the API server; after it was applied, with its answer not yet received."""
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)

    def begin_round(number):
        dead, count = threading.Event(), [0]

        def die(_):
            count[0] += 1
            if count[0] == number:
                slipway.kill()
                dead.set()
            return count[0] != number

        for gate in list(proxy._gates):
            gate.remove()
        proxy.gate(**{moment: die})
        return dead.is_set

    def meanwhile(_):
        # Also when a write of the round before was the one at which it was to die.
        if slipway.process is None:
            slipway.start()

    rounds = every_moment(scene, None, begin_round, meanwhile)
    assert rounds > 6, "two turns are at least six writes"
    scene.until_ready()


def test_late_packets_of_a_dead_leader(scene):
    """Its n-th write stays on the way, and arrives when the successor has begun."""
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)
    late, statuses = [], []

    def begin_round(number):
        held = proxy.hold_request(path=HANDOVER, method="PATCH", skip=number - 1, times=1)
        late[:] = [held, False, 0.0]
        return lambda: bool(held.hits)

    def meanwhile(has_met):
        held, is_dead, death = late
        if has_met() and not is_dead:
            slipway.kill()
            late[1:] = [True, time.monotonic()]
            slipway.start()
        elif is_dead and held.waiting and (proxy.handover_writes(since=death) or time.monotonic() > death + 3):
            statuses.append(held.hits[0])
            held.release()
            held.waiting.clear()
        return not held.waiting  # the round is not over before it has arrived

    rounds = every_moment(scene, None, begin_round, meanwhile)
    assert rounds > 6 and len(statuses) == rounds - 1
    until(lambda: all(write.status for write in statuses), "every late write was answered")
    scene.until_ready()


def lease(scene):
    return scene.api.get("/apis/coordination.k8s.io/v1/namespaces/%s/leases/slipway" % scene.namespace)["spec"]


def micro_time(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp()


def pair(scene, clocks=(None, None), **group):
    """Two processes; the first leads. Who can be lost is not asked by the API server, as where a Service knows who is ready."""
    first, first_proxy = scene.slipway_behind_proxy("first", leader_elect=True, webhook=False, clock=clocks[0])
    first.until_leading()
    second, second_proxy = scene.slipway_behind_proxy("second", leader_elect=True, clock=clocks[1])
    scene.group("a", "b", "c", replicas=1, **group)
    assert first.is_leading and not second.is_leading and not second_proxy.handover_writes()
    return first, first_proxy, second, second_proxy


def test_the_other_goes_on_when_the_leader_is_killed(scene):
    first, _, second, second_proxy = pair(scene)
    scene.roll_and_stall("a", "b", "c")
    first.kill()
    scene.let_pods_go()
    renewed = micro_time(lease(scene)["renewTime"])
    scene.until_runs("a", "b", "c", timeout_s=90)
    assert second.is_leading
    began = time.time() - time.monotonic() + second_proxy.handover_writes()[0].began
    assert began - renewed > LEASE_S - 0.1, "the lease of the dead was waited for"
    assert LEASE_S - 0.1 < micro_time(lease(scene)["acquireTime"]) - renewed < LEASE_S + 2, "and no longer"
    scene.until_ready()
    first.start()
    assert first.get(first.health_port, "/readyz")[0] == 200 and not first.is_leading, "a follower is ready"


def test_the_other_goes_on_at_once_when_the_leader_stops(scene):
    first, _, second, _ = pair(scene)
    scene.roll_and_stall("a", "b", "c")
    identity = lease(scene)["holderIdentity"]
    first.stop()
    scene.let_pods_go()
    assert lease(scene).get("holderIdentity") != identity, "it gave the lease back"
    second.until_leading()
    scene.until_runs("a", "b", "c", timeout_s=60)


def test_a_leader_that_is_told_to_stop_is_succeeded_within_a_second(scene):
    """From the signal to the other's name in the Lease; several times, since the machine may have other things to do just then."""
    leader, follower = (scene.slipway(name, leader_elect=True, webhook=False) for name in ("first", "second"))
    leader.until_leading()
    took = []
    for _ in range(5):
        before = lease(scene)
        # It may have begun a moment ago: to follow is to have seen the leader's name.
        until(lambda: before["holderIdentity"] in follower.log(), "the other follows")
        leader.signal(signal.SIGTERM)
        begin = time.monotonic()
        until(lambda: lease(scene).get("holderIdentity") not in (None, "", before["holderIdentity"]), "the other has it", 30, 0.01)
        took.append(time.monotonic() - begin)
        assert lease(scene)["leaseTransitions"] == before["leaseTransitions"] + 1
        follower.until_leading()
        leader.until_ended(0)
        leader.start()
        leader, follower = follower, leader
    print("hand-over after SIGTERM: %s s" % ", ".join("%.3f" % seconds for seconds in took))
    assert statistics.median(took) < 1, took


def test_a_leader_suspended_beyond_its_lease_writes_no_more(scene, tmp_path):
    """One of its writes is on the way meanwhile, and arrives when the other has begun. Their wall clocks are two hours apart, and
    that of the suspended one is put right before it wakes up."""
    clocks = [WallClock(tmp_path / name, ahead_s) for name, ahead_s in (("ahead", 3600), ("behind", -3600))]
    with yesterday(tmp_path):
        first, first_proxy, second, second_proxy = pair(scene, clocks)
    scene.roll_and_stall("a", "b", "c")
    held = first_proxy.hold_request(path=HANDOVER, method="PATCH", times=1)
    scene.let_pods_go()
    held.until_waiting()
    first.suspend()
    late = held.hits[0]
    until(lambda: any(write.status and write.path == late.path for write in effects(second_proxy, 0)), "the other has written the same object",
          LEASE_S + 30)
    held.release()
    scene.until_runs("a", "b", "c", timeout_s=60)
    until(lambda: late.status is not None, "the late write was answered")
    promised(late.status == 409, "it knew nothing of what the other wrote: %r" % late)
    scene.roll_and_stall("a", "b", "c", version="3")
    clocks[0].set(0)
    first.resume()
    resumed = time.monotonic()
    scene.let_pods_go(start="2s")
    scene.until_runs("a", "b", "c", version="3", timeout_s=60)
    assert not first_proxy.handover_writes(resumed) and not first.is_leading and second.is_leading
    until(lambda: first.get(first.health_port, "/readyz")[0] == 200, "it is a follower now, and ready")


def test_a_leader_that_is_cut_off_writes_no_more(scene):
    first, first_proxy, second, second_proxy = pair(scene)
    scene.roll_and_stall("a", "b", "c")
    hole = first_proxy.black_hole()
    scene.let_pods_go()
    lost = time.monotonic()
    until(lambda: not first.is_leading, "the first notices that it leads no more", every_s=0.1)
    assert not effects(second_proxy, lost), "not before the first has given up, after 10 s"
    until(lambda: effects(second_proxy, 0), "the other has begun")
    begun = effects(second_proxy, 0)[0].forwarded
    scene.until_runs("a")
    hole.heal()
    scene.until_runs("a", "b", "c", timeout_s=60)
    scene.update("a", "b", "c", version="3")
    scene.until_runs("a", "b", "c", version="3", timeout_s=60)
    # What hung in the hole when the first gave up comes out of it when it heals: a late packet, whose answer nobody reads.
    assert not [write for write in effects(first_proxy, begun) if write.status]
    assert not first.is_leading and second.is_leading
    until(lambda: first.get(first.health_port, "/readyz")[0] == 200, "the first is a follower now, and ready", 60)


@pytest.mark.parametrize("at_rest", ["Paused", "Running"])
def test_two_that_both_believe_to_lead(scene, at_rest):
    """For ever, with GitOps that changes templates all the time: whoever writes what, no two roll at once."""
    first, first_proxy = scene.slipway_behind_proxy("first", webhook=False)
    second, second_proxy = scene.slipway_behind_proxy("second")
    scene.group("a", "b", "c", replicas=1, spec={"atRest": at_rest})
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    end, version = time.monotonic() + 10, 1
    while time.monotonic() < end:
        version += 1
        scene.update(*chance.sample("abc", chance.randint(1, 3)), version=str(version))
        time.sleep(chance.choice([0.005, 0.1, 0.5]))
    scene.observer.check()
    first.kill()
    scene.update("a", "b", "c", version="last")
    scene.until_runs("a", "b", "c", version="last", timeout_s=60)
    scene.until_ready()
    assert effects(first_proxy, 0) and effects(second_proxy, 0), "both wrote"


@pytest.mark.parametrize("at_rest", ["Paused", "Running"])
def test_a_webhook_replica_with_an_older_cache(scene, at_rest):
    """Admission is answered by who has heard nothing since, while the turn changes hands and a writer applies a new template
    to the finished one every 5 ms."""
    first, first_proxy = scene.slipway_behind_proxy("first", leader_elect=True, webhook=False)
    first.until_leading()
    second, second_proxy = scene.slipway_behind_proxy("second", leader_elect=True)
    scene.group("a", "b", "c", replicas=1, spec={"atRest": at_rest})
    frozen = second_proxy.freeze()
    is_finished, stop, count = threading.Event(), threading.Event(), [2]

    def take_back_is_applied(write):
        if write.name == "a" and b'"slipway.dev/released-by":null' in write.payload.replace(b" ", b"") and write.status == 200:
            is_finished.set()
            until(lambda: count[0] > 4, "the writer has begun")

    def write():
        is_finished.wait(60)
        while not stop.wait(0.005):
            count[0] += 1
            scene.update("a", version=str(count[0]))

    first_proxy.gate(after=take_back_is_applied)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        scene.update("a", "b", "c")
        # Whose template changes all the time is never observed, so nobody behind b is chosen meanwhile.
        scene.until_runs("b", timeout_s=60)
        until(lambda: count[0] > 20, "the writer wrote")
    finally:
        stop.set()
        is_finished.set()
        writer.join()
    scene.until_runs("c")
    assert not second_proxy.handover_writes()
    scene.observer.check()
    scene.until_runs("a", version=str(count[0]))
    scene.until_ready()
    frozen.thaw()
    scene.update("a", "b", "c", version="end")
    scene.until_runs("a", "b", "c", version="end")


def test_a_lease_that_others_tamper_with(scene):
    """Deleted, emptied, taken by a stranger, changed under each renewal."""
    slipway, proxy = scene.slipway_behind_proxy(leader_elect=True)
    slipway.until_leading()
    path = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/slipway" % scene.namespace
    scene.group("a", "b", replicas=1)

    me = lease(scene)["holderIdentity"]
    scene.api.delete(path)
    until(lambda: slipway.is_leading and any(w.method == "POST" and w.status == 201 and w.path.endswith("/leases")
                                             for w in proxy.writes[-20:]), "it makes the deleted Lease again", 20)
    assert lease(scene)["holderIdentity"] == me
    scene.api.patch(path, {"spec": None})
    until(lambda: lease(scene).get("holderIdentity") == me and slipway.is_leading, "it takes the empty Lease", 20)
    transitions = lease(scene)["leaseTransitions"]
    taken = time.monotonic()
    scene.api.patch(path, {"spec": {"holderIdentity": "a stranger", "leaseDurationSeconds": 4}})
    until(lambda: not slipway.is_leading, "it leads no more", 15)
    scene.update("a", "b")
    until(lambda: slipway.is_leading, "it takes the Lease over when the stranger is silent", 20)
    assert time.monotonic() - taken >= 4 and lease(scene)["holderIdentity"] == me and lease(scene)["leaseTransitions"] == transitions + 1
    scene.until_runs("a", "b")
    renewals = proxy.gate(path="/leases/", method="PUT", before=lambda _: scene.api.patch(path, {"metadata": {"labels": {"at": str(time.monotonic_ns())}}}))
    until(lambda: len([w for w in proxy.writes if w.status == 409 and "/leases/" in w.path]) >= 2, "two renewals met a conflict", 20)
    scene.update("a", "b", version="3")
    renewals.remove()
    scene.until_runs("a", "b", version="3")
    until(lambda: slipway.is_leading, "it leads", 20)


def test_a_lease_edited_into_what_nobody_can_mean(scene):
    """It would be valid for 68 years, was renewed in the next century, and has changed hands as often as can be counted."""
    slipway = scene.slipway(leader_elect=True)
    slipway.until_leading()
    scene.group("a", "b", replicas=1)
    me = lease(scene)["holderIdentity"]
    scene.api.patch("/apis/coordination.k8s.io/v1/namespaces/%s/leases/slipway" % scene.namespace, {"spec": {
        "holderIdentity": "nobody", "leaseDurationSeconds": 2**31 - 1, "leaseTransitions": 2**31 - 1,
        "acquireTime": "2099-01-01T00:00:00.000000Z", "renewTime": "2099-01-01T00:00:00.000000Z"}})
    until(lambda: not slipway.is_leading, "it leads no more", 15)
    scene.update("a", "b")
    until(lambda: slipway.is_leading, "it leads again when nobody has renewed for the usual time", 30)
    found = lease(scene)
    assert (found["holderIdentity"], found["leaseDurationSeconds"], found["leaseTransitions"]) == (me, LEASE_S, 1), found
    scene.until_runs("a", "b")
    scene.until_ready()


def test_told_to_stop_at_a_random_moment_it_ends_well_and_goes_on_after(scene):
    slipway, _ = scene.slipway_behind_proxy()
    scene.cluster.pods_take(scene.namespace, start="300ms")
    scene.group("a", "b", "c", replicas=2)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    for round_ in range(4):
        version = str(round_ + 2)
        scene.update("a", "b", "c", version=version)
        time.sleep(chance.uniform(0, 2))
        slipway.stop()
        slipway.start()
        if round_ % 2:
            scene.until_runs("a", "b", "c", version=version)
    scene.until_runs("a", "b", "c", version="5")
    scene.until_ready()
    assert not scene.observer.forsaken()
    assert not any(look.annotation(d, "slipway.dev/released-by") for d in scene.observer.deployments().values())
