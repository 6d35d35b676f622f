# SPDX-License-Identifier: Apache-2.0
"""What slipway lives on is taken away: every place to write, the API server."""

import os
import time

from harness.reviewer import ask_once
from harness.storm import Askers
from harness.wait import until

# Every mount read-only, in a mount namespace of its own; then the process takes the place of the shell.
READ_ONLY = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else []), "sh", "-c", """
set -e
for at in $(awk '{print $5}' /proc/self/mountinfo | sort -r); do mount -o remount,bind,ro "$at" 2>/dev/null || true; done
for at in "$PWD" /tmp /dev/shm /var/tmp /run; do
    if [ -d "$at" ] && touch "$at/written" 2>/dev/null; then echo "$at can still be written"; exit 70; fi
done
exec "$@"
""", "read-only"]


def test_it_needs_no_place_to_write(scene):
    """It leads, answers reviews, rolls, reads another configuration, and ends well."""
    slipway = scene.slipway(start=False, webhook=False, leader_elect=True)
    slipway.argv = READ_ONLY + slipway.argv
    slipway.start()
    slipway.until_leading()
    scene.webhook_of(slipway)
    scene.group("a", "b", replicas=1)
    scene.update("a", "b")
    scene.until_runs("a", "b")
    slipway.modules.publish({"coordination.yaml": "atRest: Running\n"})
    until(lambda: not scene.is_paused("a") and not scene.is_paused("b"), "the other configuration is in force")
    scene.until_ready()


class Reviewers(Askers):
    def __init__(self, slipway, namespace):
        super().__init__([slipway])
        self._namespace = namespace

    def ask_on(self, slipway):
        while not self.is_over:
            try:
                ask_once(slipway, self._namespace)
                self.answered += 1
            except Exception as error:  # noqa: BLE001: whatever it is, it was no answer
                self.failed.append(repr(error))
            time.sleep(0.05)


def test_without_an_api_server_it_lives_on_ready_and_answers_reviews(scene):
    """Beyond the end of its lease, of which it gives up the lead; then it goes on by itself. (Five minutes of it, for three
    replicas, are played in virtual time.)"""
    slipway, proxy = scene.slipway_behind_proxy(leader_elect=True)
    slipway.until_leading()
    scene.group("a", "b", replicas=1)
    with Reviewers(slipway, scene.namespace) as reviewers:
        away = proxy.cut_request(reset=True)
        proxy.cut_now()
        began, before = time.monotonic(), len(proxy.requests)
        scene.update("a", "b")
        assert scene.is_held("a") and scene.is_held("b"), "the API server itself asks it still"

        def gives_up():
            assert slipway.get(slipway.health_port, "/readyz")[0] == 200 == slipway.get(slipway.health_port, "/healthz")[0]
            return not slipway.is_leading
        until(gives_up, "it leads no more", 15, 0.2)
        answered = reviewers.answered
        until(lambda: gives_up() and reviewers.answered > answered + 10, "it answers on", 15, 0.2)
        count, away_s = len(proxy.requests) - before, time.monotonic() - began
        print("%d requests and %d reviews in %.1f s without an API server" % (count, reviewers.answered, away_s))
        assert count < 10 * away_s, "it backs off"
        away.remove()
        until(lambda: slipway.is_leading, "it leads again", 30)
        scene.until_runs("a", "b", timeout_s=90)
        scene.until_ready()
    assert not reviewers.failed, reviewers.failed[:3]
