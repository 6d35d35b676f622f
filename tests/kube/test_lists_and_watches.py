# SPDX-License-Identifier: Apache-2.0
"""The reflector against the real API server, with a proxy in between that does what networks do."""

import gzip
import json
import threading
import time

import pytest

from control_plane.instance import service_account_token
from probes import FAST, Objects, check_deltas
from harness import wire
from harness.wait import until

WATCH = ("--watch", *FAST)


@pytest.fixture
def objects(cluster, namespace):
    return Objects(cluster, namespace)


def fill(objects, count):
    for i in range(count):
        objects.create("x%03d" % i, "v%d" % i)


def lists(proxy):
    return [request for request in proxy.requests if not request.is_watch and "limit" in request.query]


def relists(proxy):
    """Those with a version."""
    return [request for request in proxy.requests if not request.is_watch and "resourceVersion" in request.query]


def watches(proxy):
    return [request for request in proxy.requests if request.is_watch]


def test_lists_600_objects_in_pages_and_watches_from_the_first(objects, proxy, new_probe):
    fill(objects, 600)
    probe = new_probe(proxy, *WATCH, "--page-size", "100")
    probe.until_listed(600)
    assert probe.state() == objects.state()
    assert [request.query["limit"] for request in lists(proxy)] == [["100"]] * 6
    assert ["continue" in request.query for request in lists(proxy)] == [False] + [True] * 5
    assert not any("resourceVersion" in request.query for request in lists(proxy))
    until(lambda: watches(proxy), "a watch")
    watch = watches(proxy)[0]
    assert watch.query["allowWatchBookmarks"] == ["true"] and 300 <= int(watch.query["timeoutSeconds"][0]) < 600
    assert watch.headers["user-agent"].startswith("slipway/") and watch.headers["user-agent"].endswith("probe")
    objects.change("x005", "changed")
    objects.delete("x006")
    objects.create("y", "new")
    probe.until_state(objects.state())
    check_deltas(probe.deltas())


def test_the_default_page_is_500(objects, proxy, new_probe):
    fill(objects, 501)
    new_probe(proxy, *WATCH).until_listed(501)
    assert [request.query["limit"] for request in lists(proxy)] == [["500"]] * 2


def test_a_list_cut_at_each_twentieth_is_not_applied(objects, proxy, new_probe):
    fill(objects, 40)
    size = len(json.dumps(objects._api.get(objects._path), separators=(",", ":")))  # as Go writes it; a head comes on top
    for part in range(20):
        rule = proxy.cut_answer(after=size * part // 20, reset=part % 2 == 0, path="limit=")
        probe = new_probe(proxy, *WATCH)
        rule.until_hit()
        assert not probe.deltas()
        rule.remove()
        probe.until_listed(40)
        assert probe.state() == objects.state()
        check_deltas(probe.deltas())


def test_a_watch_cut_at_each_twentieth_loses_nothing(objects, proxy, new_probe):
    fill(objects, 5)
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(5)
    until(lambda: proxy.count_watches() == 1, "a watch")
    proxy.cut_now(watch=True)
    for part in range(20):
        # A head of about 200 bytes and four events of about 700.
        rule = proxy.cut_answer(after=3000 * part // 20, reset=part % 2 == 0, watch=True, times=1).until_hit()
        for i in range(4):
            objects.change("x%03d" % i, "part%d" % part)
        objects.delete("x004")
        objects.create("x004", "again%d" % part)
        probe.until_state(objects.state())
        rule.remove()
        proxy.cut_now(watch=True)
    check_deltas(probe.deltas())
    assert len(lists(proxy)) == 1 and not relists(proxy)  # it always went on from where it was


def test_objects_that_change_while_the_watch_is_away(objects, proxy, new_probe):
    for name in ("deleted", "recreated", "changed", "same"):
        objects.create(name, "1")
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(4)
    until(lambda: proxy.count_watches() == 1, "a watch")
    frozen = proxy.freeze()
    objects.delete("deleted")
    objects.delete("recreated")
    objects.create("recreated", "2")
    objects.change("changed", "2")
    objects.create("new", "2")
    version = objects.get("new")["metadata"]["resourceVersion"]
    proxy.inject_error(410)
    frozen.thaw()
    probe.until_state(objects.state())
    check_deltas(probe.deltas())
    kinds = [(kind, name) for kind, name, *_ in probe.deltas()[4:]]
    assert sorted(kinds) == sorted([("-", "deleted"), ("-", "recreated"), ("+", "recreated"), ("~", "changed"), ("+", "new")])
    assert int(version) <= max(int(delta[2]) for delta in probe.deltas())


@pytest.mark.parametrize("where", ["in the head", "in the stream"])
def test_a_410_relists_at_least_as_new_as_what_was_seen(objects, proxy, new_probe, where):
    fill(objects, 3)
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(3)
    until(lambda: proxy.count_watches() == 1, "a watch")
    seen = objects.change("x000", "seen")
    probe.until_state(objects.state())
    if where == "in the head":
        proxy.answer(410, watch=True, times=1)
        proxy.cut_now(watch=True)
    else:
        proxy.inject_error(410)
    until(lambda: relists(proxy), "a list")
    assert relists(proxy)[0].query["resourceVersion"] == [seen] and "limit" not in relists(proxy)[0].query
    objects.change("x001", "after")
    probe.until_state(objects.state())
    check_deltas(probe.deltas())
    assert len([line for line in probe.lines if line.startswith("listed cached")]) == 1


def test_a_stale_replica_does_not_take_the_store_back(cluster, namespace, objects, proxy, new_probe):
    """Behind a balancer the next server may show what was true a minute ago, in its lists and in its watches."""
    for name in ("changed", "deleted", "recreated"):
        objects.create(name, "1")
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(3)
    until(lambda: proxy.count_watches() == 1, "a watch")
    old = cluster.api.get("/api/v1/namespaces/%s/configmaps" % namespace)
    objects.change("changed", "2")
    objects.delete("deleted")
    objects.delete("recreated")
    objects.create("recreated", "2")
    objects.create("new", "2")
    probe.until_state(objects.state())
    told, last = len(probe.deltas()), max(int(item["metadata"]["resourceVersion"]) for item in old["items"])
    frames = [{"type": kind, "object": dict(item, kind="ConfigMap", apiVersion="v1")} for item in old["items"] for kind in ("ADDED", "MODIFIED")]
    frames.append({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": str(last)}}})
    stream = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    stream += b"".join(wire.chunk(json.dumps(frame).encode() + b"\n") for frame in frames) + b"0\r\n\r\n"
    old_list = proxy.answer(200, body=json.dumps(old).encode(), headers={"Content-Type": "application/json"}, watch=False,
                            path=r"[?&]resourceVersion=[1-9]")
    old_watch = proxy.speak(stream, watch=True)
    proxy.inject_error(410)
    old_list.until_hit()
    old_watch.until_hit(3)
    assert probe.state() == objects.state() and len(probe.deltas()) == told
    old_watch.remove()
    old_list.remove()
    objects.change("new", "3")
    probe.until_state(objects.state())
    check_deltas(probe.deltas())


def test_a_410_on_the_third_page_throws_the_list_away(objects, proxy, new_probe):
    fill(objects, 50)
    rule = proxy.answer(410, path="continue=", skip=1, times=1)
    probe = new_probe(proxy, *WATCH, "--page-size", "10")
    probe.until_listed(50)
    assert len(rule.hits) == 1 and len(lists(proxy)) == 3 + 5
    check_deltas(probe.deltas())
    assert probe.state() == objects.state()


def test_a_version_that_is_too_large_is_given_up(objects, proxy, new_probe):
    fill(objects, 3)
    too_large = json.dumps({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout", "code": 504,
        "message": "Too large resource version: 99, current: 98",
        "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                    "retryAfterSeconds": 1}}).encode()
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(3)
    until(lambda: proxy.count_watches() == 1, "a watch")
    proxy.answer(504, body=too_large, headers={"Content-Type": "application/json"}, watch=True, times=1)
    proxy.cut_now(watch=True)
    until(lambda: len(lists(proxy)) == 2, "a list without a version")
    objects.change("x000", "after")
    probe.until_state(objects.state())


@pytest.mark.parametrize("status", [500, 503, 504, 429])
def test_errors_of_the_server_in_the_stream_and_out_of_it(objects, proxy, new_probe, status):
    fill(objects, 3)
    rule = proxy.answer(status, retry_after=1 if status == 429 else None, path="configmaps", times=2)
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(3)
    assert len(rule.hits) == 2
    until(lambda: proxy.count_watches() == 1, "a watch")
    assert proxy.inject_error(status) == 1
    proxy.begin_with_error(status, times=1).until_hit()
    until(lambda: proxy.count_watches() == 1, "a watch again")
    objects.change("x000", "after")
    probe.until_state(objects.state())
    check_deltas(probe.deltas())


def test_a_page_of_html_is_no_list(objects, proxy, new_probe):
    fill(objects, 3)
    rule = proxy.answer(200, body=b"<html>Welcome to the Wifi</html>", path="configmaps", times=3)
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(3)
    assert len(rule.hits) == 3 and "list failed" in probe.said()
    rule = proxy.answer(502, body=b"<html>Bad Gateway</html>", path="configmaps", times=2)
    proxy.cut_now()
    rule.until_hit(2)
    objects.change("x000", "after")
    probe.until_state(objects.state())
    assert "<html>Bad Gateway</html>" in probe.said()


def whole(text):
    return gzip.compress(text)


def a_member_for_each_line(text):
    return b"".join(gzip.compress(line) for line in text.splitlines(keepends=True))


def corrupted(text):
    packed = bytearray(gzip.compress(text))
    packed[len(packed) // 2] ^= 0xff
    return bytes(packed)


@pytest.mark.parametrize("pack", [whole, a_member_for_each_line, corrupted], ids=lambda pack: pack.__name__)
def test_gzip_is_not_asked_for_and_not_taken_for_anything_else(cluster, namespace, objects, proxy, new_probe, pack):
    """The API server packs what is larger than 128 KiB, for those who take it; somebody in between may do so unasked."""
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    for number in range(3):
        objects.create("x%d" % number, "v" * 60000)
    text = json.dumps(cluster.api.get("/api/v1/namespaces/%s/configmaps" % namespace), indent=1).encode()
    rule = proxy.answer(200, body=pack(text), headers=packed, watch=False)
    probe = new_probe(proxy, *WATCH)
    rule.until_hit(2)
    assert not probe.deltas() and "list failed" in probe.said()
    rule.remove()
    probe.until_listed(3)
    assert probe.state() == objects.state()
    until(lambda: proxy.count_watches() == 1, "a watch")
    frames = b"".join(json.dumps({"type": kind, "object": dict(objects.get("x0"), kind="ConfigMap", apiVersion="v1")}).encode() + b"\n"
                      for kind in ("MODIFIED", "DELETED"))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    rule = proxy.speak(head + wire.chunk(pack(frames)) + b"0\r\n\r\n", watch=True)
    proxy.cut_now(watch=True)
    rule.until_hit(2)
    rule.remove()
    objects.change("x1", "after")
    probe.until_state(objects.state())
    check_deltas(probe.deltas())
    assert not any(kind == "-" for kind, *_ in probe.deltas())
    assert not any("gzip" in request.headers.get("accept-encoding", "") for request in proxy.requests)


def test_a_requested_list_shows_what_was_written_before(objects, proxy, new_probe):
    fill(objects, 10)
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(10)
    until(lambda: proxy.count_watches() == 1, "a watch")
    proxy.freeze()  # this replica hears of nothing any more
    objects.change("x003", "written")
    objects.delete("x004")
    assert probe.state() != objects.state()
    probe.relist()
    assert probe.state() == objects.state()
    check_deltas(probe.deltas())


def test_lists_asked_for_while_everything_changes(objects, proxy, new_probe):
    fill(objects, 30)
    probe = new_probe(proxy, *WATCH, "--page-size", "7")
    probe.until_listed(30)
    done = threading.Event()

    def change():
        i = 0
        while not done.is_set():
            name = "x%03d" % (i % 30)
            if i % 7 == 3:
                objects.delete(name)
                objects.create(name, "n%d" % i)
            else:
                objects.change(name, "c%d" % i)
            i += 1
    writer = threading.Thread(target=change)
    writer.start()
    try:
        for i in range(15):
            probe.relist()
            if i % 3 == 0:
                proxy.cut_now()
            elif i % 3 == 1:
                proxy.inject_error(410)
    finally:
        done.set()
        writer.join()
    probe.until_state(objects.state())
    check_deltas(probe.deltas())


def test_a_watch_of_a_network_that_forgot_it_is_found_dead(objects, proxy, new_probe):
    """Packets vanish both ways, no connection is closed. The kernel's keep-alive finds it within 75 s."""
    fill(objects, 3)
    probe = new_probe(proxy, *WATCH)
    probe.until_listed(3)
    until(lambda: proxy.count_watches() == 1, "a watch")
    objects.change("x000", "heard")
    probe.until_state(objects.state())
    # Until all is acknowledged: what is not the proxy's kernel would send again and again, and that is a sign of life.
    time.sleep(0.5)
    proxy.black_hole(new=False)
    objects.change("x000", "unheard")
    # Without the kernel's help only the end of the watch's time would tell, 300 s at least.
    probe.until_state(objects.state(), timeout_s=40)
    check_deltas(probe.deltas())


def test_a_silent_watch_ends_with_its_time(objects, proxy, new_probe):
    """A proxy that keeps the connection alive but says nothing: the time that the watch was to last, and 15 s."""
    fill(objects, 1)
    probe = new_probe(proxy, *WATCH, "--watch-seconds", "2")
    probe.until_listed(1)
    until(lambda: proxy.count_watches() == 1, "a watch")
    frozen = proxy.freeze()
    objects.change("x000", "unheard")
    ages = []

    def is_given_up():
        ages.append(int(probe.ask("age", "age .*").split()[1]))
        return "silent for too long" in probe.said()
    until(is_given_up, "the dead man's timer", 25)
    # The next watch may be open already, and the last age asked for that one's.
    assert max(ages) > 15000
    frozen.thaw()
    probe.until_state(objects.state())
    assert int(probe.ask("age", "age .*").split()[1]) < max(ages)


def test_watches_that_end_in_time_go_on_without_a_gap(objects, proxy, new_probe):
    fill(objects, 1)
    probe = new_probe(proxy, *WATCH, "--watch-seconds", "1")
    probe.until_listed(1)
    for i in range(60):
        objects.change("x000", "c%d" % i)
        time.sleep(0.05)  # spread over several watches
    probe.until_state(objects.state())
    versions = [delta[2] for delta in probe.deltas()]
    assert len(versions) == len(set(versions)) == 61  # each change once
    assert len(watches(proxy)) >= 2 and not relists(proxy) and "watch lost" not in probe.said()


def test_missing_permissions_are_named(cluster, namespace, proxy, new_probe):
    cluster.kubectl("create", "serviceaccount", "nobody", "-n", namespace)
    token = service_account_token(cluster.api, namespace, "nobody", 3600)
    probe = new_probe(proxy, *WATCH, user={"token": token})
    until(lambda: "not allowed to read a kind" in probe.said(), "a message")
    assert "kind=configmaps" in probe.said() and "cannot list" in probe.said()
    cluster.kubectl("create", "role", "reader", "-n", namespace, "--verb=list,watch", "--resource=configmaps")
    cluster.kubectl("create", "rolebinding", "reader", "-n", namespace, "--role=reader", "--serviceaccount=%s:nobody" % namespace)
    probe.until_listed(0)
    assert token not in probe.said()


# ---- lists as streams ----

STREAM = ("--watch", "--stream", *FAST)


def streams(proxy):
    return [request for request in proxy.requests if "sendInitialEvents" in request.query]


def can_stream(cluster):
    """Of the releases that the tests run on: 1.20 does not know it, 1.36 has it on."""
    minor = int(cluster.api.get("/version")["minor"].rstrip("+"))
    assert minor <= 31 or minor >= 34, "it depends on a feature gate in between"
    return minor >= 34


def test_a_list_as_a_stream_or_in_pages_where_the_server_cannot(cluster, objects, proxy, new_probe):
    fill(objects, 30)
    probe = new_probe(proxy, *STREAM)
    probe.until_line("listed consistent 30")
    assert probe.state() == objects.state()
    objects.change("x001", "changed")
    objects.delete("x002")
    probe.until_state(objects.state())
    stream = streams(proxy)[0]
    assert stream.query["resourceVersionMatch"] == ["NotOlderThan"] and "resourceVersion" not in stream.query
    assert len(streams(proxy)) == 1
    if can_stream(cluster):
        assert stream.status == 200 and not lists(proxy) and len(watches(proxy)) == 1
    else:
        assert stream.status == 422 and len(lists(proxy)) == 1 and "has no lists as streams" in probe.said()
    # Deletions that happen while nobody looks are found by comparison.
    frozen = proxy.freeze()
    objects.delete("x003")
    objects.create("y", "new")
    proxy.inject_error(410)
    frozen.thaw()
    probe.until_state(objects.state())
    probe.relist()
    assert probe.state() == objects.state()
    check_deltas(probe.deltas())
    assert len(streams(proxy)) == (3 if can_stream(cluster) else 1)


def test_streams_that_are_cut_before_the_mark_give_way_to_pages(cluster, objects, proxy, new_probe):
    fill(objects, 10)
    rule = proxy.cut_answer(after=1500, path="sendInitialEvents")
    probe = new_probe(proxy, *STREAM)
    probe.until_line("listed consistent 10", timeout_s=60)
    assert len(lists(proxy)) == 1 and len(rule.hits) == (2 if can_stream(cluster) else 1)
    assert probe.state() == objects.state()
    check_deltas(probe.deltas())


def test_a_server_that_gives_up_in_the_stream_is_asked_for_pages(objects, proxy, new_probe):
    """One whose etcd lacks progress notifications. (Those that ignore what they do not know never send the mark: a minute
    of silence, which test_reflector.c waits for in virtual time.)"""
    fill(objects, 5)
    frames = [{"type": "ADDED", "object": dict(item, kind="ConfigMap", apiVersion="v1")} for item in objects._api.get(objects._path)["items"]]
    frames.append({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "reason": "InternalError"}})
    stream = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    stream += b"".join(wire.chunk(json.dumps(frame).encode() + b"\n") for frame in frames) + b"0\r\n\r\n"
    rule = proxy.speak(stream, path="sendInitialEvents")
    probe = new_probe(proxy, *STREAM)
    rule.until_hit()
    probe.until_line("listed consistent 5")
    assert len(lists(proxy)) == 1 and "has no lists as streams" in probe.said()
    objects.change("x000", "after")
    probe.until_state(objects.state())
    check_deltas(probe.deltas())
