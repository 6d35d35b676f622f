# SPDX-License-Identifier: Apache-2.0
"""A configuration that changes under a running slipway, as that of a mounted ConfigMap does."""

import signal

from harness.wait import until

RUNNING, PAUSED = {"coordination.yaml": "atRest: Running\n"}, {"coordination.yaml": "atRest: Paused\n"}


def reloads(slipway, result="applied"):
    return slipway.metric("slipway_config_reloads_total", 'result="%s"' % result)


def until_reloaded(slipway, count, result="applied"):
    until(lambda: reloads(slipway, result) >= count, lambda: "%s for the %d. time\n%s" % (result, count, slipway.log_tail()))


def until_at_rest(scene, names, paused):
    until(lambda: all(scene.is_paused(name) == paused for name in names),
          lambda: "paused: %s; are %s" % (paused, "; ".join(map(scene.observer.describe, names))))


def streams(slipway, proxy):
    """What would have been opened again if a watch had been lost."""
    return slipway.metric("slipway_lists_total"), len([request for request in list(proxy.requests) if request.is_watch])


def link_elsewhere(slipway, text):
    """The module's file becomes a link to one of which there is no event; returns that."""
    elsewhere = slipway.folder / "coordination.yaml"
    elsewhere.write_text(text)
    (slipway.modules.path / "coordination.yaml").symlink_to(elsewhere)
    return elsewhere


def test_a_changed_configuration_is_acted_on_and_no_watch_is_opened_again(scene):
    slipway, proxy = scene.slipway_behind_proxy(start=False, webhook=False)
    elsewhere = link_elsewhere(slipway, "atRest: Paused\n")
    slipway.start()
    scene.webhook_of(slipway)
    scene.group("a", "b", replicas=1)
    until_at_rest(scene, "ab", paused=True)
    before = streams(slipway, proxy)
    assert before[0] >= 2 and before[1] >= 2, before
    scene.roll_and_stall("a", "b")
    scene.until_held("b")

    slipway.signal(signal.SIGHUP)
    until_reloaded(slipway, 1)
    elsewhere.write_text("atRest: Running\n")
    slipway.signal(signal.SIGHUP)
    until_reloaded(slipway, 2)
    assert scene.is_held("b") and not scene.runs("a", "2"), "who waits goes on waiting"
    scene.let_pods_go()
    scene.until_runs("a", "b")
    scene.until_ready()
    until_at_rest(scene, "ab", paused=False)
    assert scene.observer.turns()[-2:] == ["a", "b"]

    (slipway.modules.path / "coordination.yaml").unlink()
    slipway.modules.publish(PAUSED)
    until_at_rest(scene, "ab", paused=True)
    slipway.modules.publish(RUNNING)
    until_at_rest(scene, "ab", paused=False)
    slipway.modules.publish(PAUSED)
    until_at_rest(scene, "ab", paused=True)
    scene.update("a", "b", version="3")
    scene.until_runs("a", "b", version="3")
    scene.until_ready()
    until_at_rest(scene, "ab", paused=True)

    assert streams(slipway, proxy) == before
    assert reloads(slipway, "invalid") == reloads(slipway, "refused") == 0
    assert slipway.metric("slipway_config_reload_success") == 1


def test_a_broken_file_changes_nothing_until_it_is_mended(scene):
    slipway, proxy = scene.slipway_behind_proxy(config={"coordination": "atRest: Running\n"})
    scene.group("a", "b", replicas=1)
    before = streams(slipway, proxy)
    since = slipway.metric("slipway_config_reload_success_timestamp_seconds")
    assert slipway.metric("slipway_config_reload_success") == 1 and since > 0

    # One file is good, the other is not: neither is taken.
    slipway.settings.publish({"slipway.yaml": "client:\n  qps: many\n"})
    until_reloaded(slipway, 1, "invalid")
    slipway.modules.publish(PAUSED)
    until_reloaded(slipway, 2, "invalid")
    assert slipway.log().count("slipway.yaml:2: client.qps: expected an integer from 1 to 100000") == 2
    assert slipway.metric("slipway_config_reload_success") == 0
    assert slipway.metric("slipway_config_reload_success_timestamp_seconds") == since
    scene.update("a", "b")
    scene.until_runs("a", "b")
    scene.until_ready()
    until_at_rest(scene, "ab", paused=False)

    slipway.modules.publish({"coordination.yaml": "\natRest: Sometimes\n"})
    until_reloaded(slipway, 3, "invalid")
    slipway.settings.publish({"slipway.yaml": "client:\n  qps: 60\n"})
    until_reloaded(slipway, 4, "invalid")
    assert slipway.log().count("coordination.yaml:2: atRest: expected one of") == 1
    assert slipway.get(slipway.health_port, "/readyz")[0] == 200
    assert reloads(slipway) == 0

    slipway.modules.publish(PAUSED)
    until_reloaded(slipway, 1)
    assert slipway.metric("slipway_config_reload_success") == 1
    assert slipway.metric("slipway_config_reload_success_timestamp_seconds") >= since
    until_at_rest(scene, "ab", paused=True)
    assert '"applied":"modules.d/coordination.yaml, client.qps"' in slipway.log()
    assert streams(slipway, proxy) == before
