# SPDX-License-Identifier: Apache-2.0
"""What networks and overloaded servers do, between slipway and the API server, while Deployments roll."""

import json
import random
import threading
import time

import pytest

from harness import observer as look
from harness.fault_proxy import HANDOVER
from harness.scene import COORDINATION_PATH, DEPLOYMENT_PATH
from harness.wait import stays, until, until_quiet

EVENTS = r"/events([/?]|$)"
LIST_OR_WATCH = r"/(deployments|deploymentcoordinations)\?"


def deployment_patches(proxy, since=0.0):
    return [write for write in proxy.handover_writes(since) if "/deployments/" in write.path]


# ---- answers that are lost, late or wrong ----

# Where a write that is lost is begun again with the record before it, "every second" can hit the same one for ever.

def lost(proxy):
    return proxy.lose_answer(path=HANDOVER, method="PATCH", every=2, times=5)


def lost_after_20_bytes(proxy):
    return proxy.cut_answer(after=20, reset=True, path=HANDOVER, method="PATCH", every=2, times=5)


def cut_in_the_body(proxy):
    return proxy.cut_answer(after=900, path=HANDOVER, method="PATCH", every=2, times=5)


def lost_request(proxy):
    return proxy.cut_request(path=HANDOVER, method="PATCH", every=2, times=5)


def applied_later(proxy):
    return proxy.apply_later(5, path=HANDOVER, method="PATCH", every=3, times=4)


def conflict(proxy):
    return proxy.answer(409, path=HANDOVER, method="PATCH", every=2, times=5)


def failed(proxy):
    return proxy.answer(500, path=HANDOVER, method="PATCH", every=2, times=6)


def html(proxy):
    return proxy.answer(502, body=b"<html><body><h1>502 Bad Gateway</h1></body></html>", path=HANDOVER, every=2, times=6)


def too_many(proxy):
    return proxy.answer(429, retry_after=1, path=HANDOVER, method="PATCH", every=2, times=4)


def too_many_of_all(proxy):
    return proxy.answer(429, retry_after=1, every=3, times=12)


def too_many_says_garbage(proxy):
    return proxy.answer(429, retry_after="soon, perhaps", path=HANDOVER, method="PATCH", every=3, times=3)


def unavailable_until_a_date(proxy):
    return proxy.answer(503, retry_after="Fri, 31 Dec 1999 23:59:59 GMT", path=HANDOVER, method="PATCH", every=2, times=4)


@pytest.mark.parametrize("fault", [lost, lost_after_20_bytes, cut_in_the_body, lost_request, applied_later, conflict, failed, html,
                                   too_many, too_many_of_all, too_many_says_garbage, unavailable_until_a_date],
                         ids=lambda fault: fault.__name__)
def test_writes_that_meet_a_fault(scene, fault):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", replicas=1)
    rule = fault(proxy)
    scene.update("a", "b", "c")
    scene.until_runs("a", "b", "c", timeout_s=90)
    rule.until_hit(3)
    rule.remove()
    scene.until_ready()
    turns = scene.observer.turns()[-3:]
    assert sorted(turns) == ["a", "b", "c"], "each rolled once: %s" % turns
    assert len(proxy.handover_writes()) < 200, "no storm"


def test_retry_after_is_waited_for(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)
    rule = proxy.answer(429, retry_after=2, path="/deployments/", method="PATCH", times=2)
    scene.update("a", "b")
    scene.until_runs("a", "b")
    first, second = rule.hits
    patches = [write for write in proxy.writes if "/deployments/" in write.path and write.method == "PATCH" and write.began > first.began]
    assert patches[0] is second and second.began - first.began >= 1.95
    assert patches[1].began - second.began >= 1.95


def change_labels(scene, name, count):
    scene.patch(name, {"metadata": {"labels": {"touched": str(count)}}})


def change_template(scene, name, count):
    if count < 8:
        scene.update(name, version="2.%d" % count)


def change_replicas(scene, name, count):
    scene.scale(name, 1 + count % 2)


def change_paused(scene, name, count):
    scene.patch(name, {"metadata": {"labels": {"touched": str(count)}}, "spec": {"paused": count % 4 < 2}})


@pytest.mark.parametrize("change", [change_labels, change_template, change_replicas, change_paused], ids=lambda change: change.__name__)
def test_another_writer_is_faster_every_second_time(scene, change):
    """So that the API server itself answers 409: decisions are made again, and none is carried out that was made for another object."""
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", replicas=1)
    count = [0]

    def interfere(write):
        count[0] += 1
        if count[0] % 2:
            change(scene, write.name, count[0] // 2)

    gate = proxy.gate(before=interfere, path="/deployments/", times=None)
    scene.update("a", "b", "c")
    if change is change_paused:
        until(lambda: count[0] >= 8 or scene.status().get("pending", 0) == 0 and scene.runs("c", "2"), "it interfered", 30)
    else:
        until(lambda: count[0] >= 8, "it interfered", 30)
    if change is change_labels:
        scene.until_runs("a", "b", "c")
    gate.remove()
    conflicts = [write for write in proxy.writes if write.status == 409]
    assert conflicts, "there were conflicts"
    for name in "abc":
        if change is change_paused and not scene.annotation(name, "held-by"):
            scene.patch(name, {"spec": {"paused": False}})
    scene.update("a", "b", "c", version="end")
    scene.until_runs("a", "b", "c", version="end")
    scene.until_ready()


def test_own_writes_that_come_back_before_their_answer(scene):
    """Or behind it: the number of writes is that of an undisturbed round."""
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)

    def one_round(version):
        began = time.monotonic()
        scene.update("a", "b", version=version)
        scene.until_runs("a", "b", version=version)
        scene.until_ready()
        return sorted((write.name, write.payload.count(b"released-by"), b'"paused":true' in write.payload.replace(b" ", b""))
                      for write in deployment_patches(proxy, began) if write.status == 200)

    undisturbed = one_round("2")
    late = proxy.delay_answer(0.3, path=HANDOVER, method="PATCH")
    assert one_round("3") == undisturbed
    late.remove()
    ends = time.monotonic() + 6
    stop = threading.Event()

    def freeze_now_and_then():
        while time.monotonic() < ends and not stop.is_set():
            frozen = proxy.freeze()
            stop.wait(0.4)
            frozen.thaw()
            stop.wait(0.05)

    thread = threading.Thread(target=freeze_now_and_then)
    thread.start()
    try:
        assert one_round("4") == undisturbed
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("what", ["/deployments", "/deploymentcoordinations", "/deployment"])
def test_a_cache_that_stands_still_releases_nobody_wrongly(scene, what):
    """Its own write read back stale: watches are frozen while writes go on."""
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", replicas=1)
    scene.roll_and_stall("a")
    frozen = proxy.freeze(path=what)
    scene.let_pods_go()
    scene.update("b", "c")
    before = len(proxy.handover_writes())
    count = until_quiet(lambda: len(proxy.handover_writes()), "no storm of writes on old news") - before
    assert count < 20, "%d writes on old news" % count
    for version in range(3, 6):
        scene.update("a", version=str(version))
        time.sleep(0.3)
    frozen.thaw()
    scene.until_runs("a", version="5")
    scene.until_runs("b", "c")
    scene.until_ready()


def test_who_is_shown_lists_of_before_the_last_turn_releases_nobody(scene):
    """It starts anew behind a replica that is a turn behind: there a is complete and about to give way, while b rolls already."""
    slipway, proxy = scene.slipway_behind_proxy(settings="client: {watchList: 'off'}\n")  # its lists are made up below
    scene.group("a", "b", "c", replicas=1, spec={"minReadySeconds": 10})
    scene.roll_and_stall("a")
    scene.update("b", "c")
    scene.let_pods_go()
    until(lambda: scene.runs("a", "2"), "a is complete, and waits")
    old = {"deployments": scene.api.get(DEPLOYMENT_PATH % scene.namespace),
           "deploymentcoordinations": scene.api.get(COORDINATION_PATH % scene.namespace)}
    scene.stall_pods()
    assert old["deploymentcoordinations"]["items"][0]["status"]["activeDeployment"].endswith("/a")
    scene.until_rolling("b")
    slipway.kill()
    before = len(proxy.requests)
    frozen = proxy.freeze(path=LIST_OR_WATCH)
    lists = [proxy.answer(200, body=json.dumps(body).encode(), headers={"Content-Type": "application/json"}, method="GET", watch=False,
                          path=r"/%s\?" % plural) for plural, body in old.items()]
    slipway.start()
    until(lambda: any(write.status == 409 for write in proxy.requests[before:] if write.is_write), "it acts on old news, in vain")
    count = until_quiet(lambda: len(proxy.handover_writes()), "no storm of writes on old news")
    assert count < 60, "%d writes on old news" % count
    assert all(rule.hits for rule in lists)
    assert scene.is_held("c") and scene.runs("a", "2") and scene.status()["activeDeployment"].endswith("/b")
    assert not any(b"released-by" in write.payload and write.name == "c" for write in proxy.requests[before:] if write.is_write)
    for rule in lists:
        rule.remove()
    frozen.thaw()
    scene.let_pods_go()
    scene.until_runs("a", "b", "c", timeout_s=90)
    scene.until_ready()


# ---- watches ----

def gone_in_the_stream(proxy):
    proxy.inject_error(410)


def gone_as_an_answer(proxy):
    proxy.answer(410, watch=True, times=2)
    proxy.cut_now(watch=True)


def gone_at_once(proxy):
    proxy.begin_with_error(410, times=2)
    proxy.cut_now(watch=True)


def too_large_at_the_relist(proxy):
    proxy.answer(504, message="Too large resource version: 1, current: 0", list=True, path=r"[?&]resourceVersion=[1-9]", times=2)
    proxy.inject_error(410)


def error_500(proxy):
    proxy.inject_error(500)


def error_429(proxy):
    proxy.inject_error(429)


def error_504(proxy):
    proxy.inject_error(504)


def cut_streams(proxy):
    proxy.cut_now(watch=True)


def cut_in_the_list(proxy):
    proxy.cut_answer(after=1500, list=True, path=LIST_OR_WATCH, times=2)
    proxy.inject_error(410)


def cut_in_the_watch(proxy):
    proxy.cut_answer(after=2500, watch=True, times=3)
    proxy.cut_now(watch=True)


@pytest.mark.parametrize("fault", [gone_in_the_stream, gone_as_an_answer, gone_at_once, too_large_at_the_relist, error_500, error_429,
                                   error_504, cut_streams, cut_in_the_list, cut_in_the_watch], ids=lambda fault: fault.__name__)
def test_a_watch_that_ends_badly_while_things_change(scene, fault):
    """No change is lost and none is seen twice, whatever happened while nobody watched."""
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", replicas=1)
    scene.roll_and_stall("a", "b")
    fault(proxy)
    scene.update("c")
    scene.let_pods_go(start="300ms")
    fault(proxy)
    scene.until_runs("a", "b", "c", timeout_s=90)
    scene.until_ready(timeout_s=90)
    assert sorted(scene.observer.turns()[-3:]) == ["a", "b", "c"]


def in_the_gap(scene, proxy, change):
    """What happens now is heard of by nobody but the relist that follows."""
    frozen = proxy.freeze()
    change()
    gone = proxy.answer(410, watch=True, times=2)
    proxy.cut_now(watch=True)
    gone.until_hit()
    frozen.thaw()
    gone.remove()


def test_a_template_applied_and_put_back_in_the_gap_of_a_relist(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", replicas=1)
    turns = len(scene.observer.turns())
    scene.roll_and_stall("a", "b")

    def change():
        scene.update("c", version="2")
        scene.update("c", version="1")
        scene.update("b", version="1")
        scene.update("a", version="1")
        scene.update("a", version="2")

    in_the_gap(scene, proxy, change)
    scene.let_pods_go()
    scene.until_runs("a", version="2", timeout_s=60)
    scene.until_runs("b", "c", version="1", timeout_s=60)
    scene.until_ready(timeout_s=60)
    assert not set(scene.observer.turns()[turns:]) & {"b", "c"}, "they needed no turn"


def recreate(scene, name, version):
    scene.api.delete(DEPLOYMENT_PATH % scene.namespace + "/" + name, {"propagationPolicy": "Background"})
    scene.create(name, replicas=1, version=version)


@pytest.mark.parametrize("name", ["a", "b"], ids=["the_active_one", "a_held_one"])
def test_recreated_in_the_gap_of_a_relist(scene, name):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", replicas=1)
    scene.roll_and_stall("a", "b", "c")
    in_the_gap(scene, proxy, lambda: recreate(scene, name, "3"))
    scene.let_pods_go()
    scene.until_runs(name, version="3", timeout_s=60)
    scene.until_runs(*{"a", "b", "c"} - {name}, version="2", timeout_s=60)
    scene.until_ready(timeout_s=60)


def test_deleted_and_relabelled_in_the_gap_of_a_relist(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", "d", replicas=1)
    scene.roll_and_stall("a", "b", "c", "d")

    def change():
        scene.delete("a")
        scene.patch("b", {"metadata": {"labels": {"app": "elsewhere"}}})

    in_the_gap(scene, proxy, change)
    scene.let_pods_go()
    until(lambda: not scene.is_paused("b") and not scene.annotation("b", "held-by"), "b is let go", 60)
    scene.until_runs("b", "c", "d", timeout_s=60)
    scene.until_ready(timeout_s=60)
    assert scene.status()["selected"] == 2


# ---- connections ----

def test_the_api_server_comes_and_goes_while_three_roll(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.cluster.pods_take(scene.namespace, start="300ms")
    scene.group("a", "b", "c", replicas=2)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    scene.update("a", "b", "c")
    end = time.monotonic() + 6
    while time.monotonic() < end:
        proxy.cut_now(reset=chance.random() < 0.5)
        time.sleep(chance.uniform(0.05, 0.4))
    refused = proxy.cut_request()
    time.sleep(1)
    refused.remove()
    scene.until_runs("a", "b", "c", timeout_s=90)
    scene.until_ready(timeout_s=90)
    assert sorted(scene.observer.turns()[-3:]) == ["a", "b", "c"]
    assert slipway.get(slipway.health_port, "/readyz")[0] == 200


def test_nothing_but_errors_for_a_while(scene):
    """The process lives, stays ready, and does not hammer; afterwards it goes on."""
    slipway, proxy = scene.slipway_behind_proxy()
    scene.cluster.pods_take(scene.namespace, start="300ms")
    scene.group("a", "b", "c", replicas=1)
    rules = [proxy.answer(503, every=2), proxy.answer(500)]
    proxy.cut_now()
    before = len(proxy.requests)
    scene.update("a", "b", "c")
    stays(lambda: slipway.get(slipway.health_port, "/readyz")[0] == 200, "it stays ready", 4)
    assert len(proxy.requests) - before < 80, "it backs off"
    for rule in rules:
        rule.remove()
    scene.until_runs("a", "b", "c", timeout_s=120)
    scene.until_ready(timeout_s=60)


def test_slow_answers_and_reordered_ones(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.cluster.pods_take(scene.namespace, start="300ms")
    scene.group("a", "b", "c", replicas=1)
    proxy.delay_request(0.2, method="PATCH", every=2)
    proxy.delay_answer(0.4, method="PATCH")
    scene.update("a", "b", "c")
    scene.until_runs("a", "b", "c", timeout_s=60)
    scene.until_ready()


def test_a_black_hole_that_heals(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", "c", replicas=1)
    scene.roll_and_stall("a", "b", "c")
    hole = proxy.black_hole()
    scene.let_pods_go()
    until(lambda: look.is_complete(scene.get("a")), "a is complete, and slipway does not know")
    scene.update("a", version="3")
    time.sleep(3)
    assert not scene.runs("b", "2") and not scene.runs("c", "2")
    hole.heal()
    scene.until_runs("b", "c", timeout_s=90)
    scene.until_runs("a", version="3", timeout_s=90)
    scene.until_ready(timeout_s=60)


def test_connections_that_somebody_on_the_way_has_forgotten(scene):
    """What exists goes nowhere any more, new ones work: it is noticed within 75 s. Of one process the watches, of another all: at
    the same time, since it takes so long, and then each must lead the group alone."""
    watches, watches_proxy = scene.slipway_behind_proxy("watches", webhook=False)
    everything, everything_proxy = scene.slipway_behind_proxy("everything")
    scene.group("a", "b", replicas=1)
    holes = [watches_proxy.black_hole(new=False, watch=True), everything_proxy.black_hole(new=False)]
    lost = time.monotonic()
    scene.update("a", "b")
    # Without the kernel's help only the end of the time of a watch would tell, 300 s at least.
    for proxy in (watches_proxy, everything_proxy):
        until(lambda proxy=proxy: any(request.is_watch and request.began > lost for request in proxy.requests), "it watches anew", 40)
    scene.until_runs("a", "b")
    scene.webhook_of(watches)
    everything.stop()
    scene.update("a", "b", version="3")
    scene.until_runs("a", "b", version="3")
    everything.start()
    scene.webhook_of(everything)
    watches.stop()
    for hole in holes:
        hole.heal()
    scene.update("a", "b", version="4")
    scene.until_runs("a", "b", version="4")
    scene.until_ready()


@pytest.mark.parametrize("status", [403, 404, 410, 429, 500])
def test_it_starts_while_lists_are_refused(scene, status):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)
    slipway.stop()
    proxy.answer(status, path=LIST_OR_WATCH, list=True, times=3)
    slipway.start(wait=False)
    scene.update_in_the_end("a", "b")
    scene.until_runs("a", "b", timeout_s=90)
    scene.until_ready()
    assert isinstance(scene.get("a")["spec"]["paused"], bool)


def test_events_that_are_refused_hinder_nobody(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)
    until_quiet(lambda: slipway.metric("slipway_events_written_total"), "the Events of the beginning are written")
    written = slipway.metric("slipway_events_written_total")
    refused = proxy.answer(403, path=EVENTS)
    scene.update("a", "b")
    scene.until_runs("a", "b")
    scene.until_ready()
    refused.until_hit(4)
    # Each that was refused is dropped and counted, and asked for no second time.
    until(lambda: slipway.metric("slipway_events_dropped_total", 'why="error"') == len(refused.hits),
          lambda: "%s of %d refused Events are counted" % (slipway.metric("slipway_events_dropped_total"), len(refused.hits)))
    assert slipway.metric("slipway_events_written_total") == written
    refused.remove()


def test_events_that_are_never_answered_hinder_nobody(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)
    held = proxy.hold_request(path=EVENTS)
    for version in ("2", "3"):
        scene.update("a", "b", version=version)
        scene.until_runs("a", "b", version=version)
        scene.until_ready()
    held.until_waiting()
    assert len(held.hits) == 1, "one is under way, the others wait behind it"
    began = time.monotonic()
    held.release()
    until(lambda: [write for write in proxy.writes if write.began > began and "/events" in write.path and write.status in (200, 201)],
          "the others follow")


def test_deployments_that_may_not_be_written_are_an_error_that_is_told(scene):
    slipway, proxy = scene.slipway_behind_proxy()
    scene.group("a", "b", replicas=1)
    failed = slipway.metric("slipway_failed_writes_total")
    refused = proxy.answer(403, message="said by the proxy", path="/deployments/", method="PATCH")
    scene.update("a")
    scene.until_event("UnpauseFailed", "web")
    told = [event for event in scene.events("web") if event["reason"] == "UnpauseFailed"]
    assert [(event["type"], event["message"]) for event in told] == [("Warning", "a: said by the proxy")]
    for kind, status in (("Ready", "False"), ("Progressing", "False"), ("Degraded", "True")):
        scene.until_condition(kind, status, "Error")
        assert scene.condition(kind)["message"] == "a: said by the proxy"
    assert slipway.metric("slipway_failed_writes_total") > failed
    assert scene.is_held("a"), "it stays held"
    refused.remove()
    scene.until_runs("a")
    scene.until_ready()
    scene.until_condition("Degraded", "False", "NoErrors")
    scene.stall_pods()
    scene.update("b")
    scene.until_condition("Progressing", "True", "DeploymentRollingOut")
    scene.let_pods_go()
    scene.until_runs("b")
