# SPDX-License-Identifier: Apache-2.0
"""From one Deployment being complete to the next being released: slipway on slipway-sim and on a real control plane, and
a poller."""

import threading
import time
import urllib.parse

from benchmarks import proc
from benchmarks.figures import Figure, median, percentile
from benchmarks.poller import EVERY_S, Poller
from benchmarks.stand import DEPLOYMENTS, NAMESPACE, Failed, cluster, cores, fill, has_real, in_parallel, pin, ready_count, start_slipway, until
from benchmarks.traces import Trace, is_complete
from benchmarks.wire import Wire
from control_plane import api
from story.timeline import Timeline

SUMMARY = "hand-over from one Deployment to the next: slipway-sim, real control plane, a poller"
PATH = DEPLOYMENTS % NAMESPACE
# A hand-over is about nine requests, most of them Events, and slipway allows itself 50 a second: were Pods quicker than this, its
# own limit would be measured.
START = "400ms"
MEMBERS = 11  # of a group: ten hand-overs each time that all are changed


class Watcher(threading.Thread):
    """Feeds timelines, one a group, from a watch; what it sees late, it sees late of both ends of a hand-over."""

    def __init__(self, client, timelines):
        super().__init__(daemon=True)
        self.client, self.timelines = client, timelines
        self.is_done, self.error = False, None
        self.version = client.get(PATH)["metadata"]["resourceVersion"]
        self.start()

    def run(self):
        try:
            for what, item in self.client.watch(PATH, self.version):
                if self.is_done:
                    return
                if what == "MODIFIED":
                    self.timelines[item["metadata"]["labels"]["group"]].see(item)
        except Exception as error:  # noqa: BLE001: told by check()
            self.error = error

    def check(self):
        if self.error:
            raise Failed("the watch of the Deployments: %r" % self.error)


def merged(one, other):
    """Both, where both are dicts; else the other."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    return {key: merged(one[key], other[key]) if key in one and key in other else {**one, **other}[key] for key in {**one, **other}}


def names_of(group, members):
    return ["%s-%03d" % (group, member) for member in range(members)]


def all_ready(client, groups):
    until(lambda: ready_count(client) == groups, lambda: "the groups are Ready: %d of %d" % (ready_count(client), groups), 300)


def roll(client, groups, members, version, timeout_s, change=lambda group, member: {}):
    """All Deployments of the groups get another image in the same moment, and what else change() says; the timelines, when
    all have rolled."""
    timelines = {group: Timeline(names_of(group, members), version) for group in groups}
    for timeline in timelines.values():
        timeline.changed()
    watcher = Watcher(client, timelines)

    def patch(what):
        group, name = what
        body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.org/main:" + version}]}}}}
        client.patch(PATH + "/" + name, merged(body, change(group, name)), api.STRATEGIC)

    in_parallel(patch, [(group, name) for group in groups for name in names_of(group, members)])

    def is_over():
        watcher.check()
        return all(timeline.is_over() for timeline in timelines.values())

    until(is_over, lambda: "all have rolled: %s" % {name: track.state for timeline in timelines.values() for name, track in timeline.tracks.items()},
          timeout_s)
    watcher.is_done = True
    assert max(timeline.most_at_once() for timeline in timelines.values()) == 1, "two rolled at once"
    return timelines


def seen_ms(timelines):
    return [1000 * seconds for timeline in timelines.values() for _, _, seconds in timeline.handovers()]


def play(bench, stage, rounds, core=None):
    """slipway hands over (MEMBERS - 1) * rounds times; (what a watcher saw, in ms; processor time of slipway, and how long it was
    ready and others ran, in ms; when it began, as time.monotonic_ns() tells it)."""
    stage.cluster.kubelets("PATCH", "/settings", {"start": START, "stop": "0ms"})
    slipway = start_slipway(stage)
    if core is not None:
        pin(slipway.process.pid, core)
    stage.register_webhook(slipway)
    fill(bench, stage.client, 1, MEMBERS)
    all_ready(stage.client, 1)
    if not proc.until_quiet(slipway.process.pid):
        raise Failed("slipway does not come to rest")
    pid = slipway.process.pid
    found, begin, ran, waited = [], time.monotonic_ns(), proc.cpu_ns(pid), proc.waited_ns(pid)
    for number in range(rounds):
        bench.say("round %d of %d" % (number + 1, rounds))
        found += seen_ms(roll(stage.client, ["g0000"], MEMBERS, "v%d" % (number + 2), 300))
        all_ready(stage.client, 1)
    return found, (proc.cpu_ns(pid) - ran) / 1e6, (proc.waited_ns(pid) - waited) / 1e6, begin


def measure_simulated(bench):
    rounds = bench.pick(2, 12)
    trace_file = bench.folder / "trace"
    with cluster(bench, "--trace", str(trace_file)) as stage:
        core, other = cores()
        pin(stage.at.pid, other)
        with Wire(urllib.parse.urlsplit(stage.at.server).port, bench.folder / "wire") as wire:
            seen, cpu_ms, waited_ms, begin = play(bench, stage, rounds, core)
    handovers = list(Trace(trace_file, wire if wire.is_open else None).handovers(begin))
    if len(handovers) < 0.9 * len(seen):
        raise Failed("the trace shows %d hand-overs, a watcher saw %d" % (len(handovers), len(seen)))
    own, whole = [sum(steps) / 1e6 for steps, _ in handovers], [ns / 1e6 for _, ns in handovers]
    steps = [median([steps[number] for steps, _ in handovers]) / 1e6 for number in range(3)]
    how = "slipway-sim --trace; %d hand-overs in a group of %d" % (len(handovers), MEMBERS)
    when = ("from when the server sent an event or an answer until we sent our next request, by the kernel's clock; our decryption and encryption "
            "are in it" if wire.is_open else "from when the server had an event or an answer until it had read our next request: its own encryption, "
            "and what it did meanwhile, are in it")
    yield Figure("handover_own_median_ms", median(own), how + "; " + when + ": medians %.2f, %.2f and %.2f ms. Processor time for a whole turn, Events "
                 "and reviews included: %.2f ms; in that turn it waited %.2f ms for its core, which others had" % (
                     *steps, cpu_ms / len(handovers), waited_ms / len(handovers)))
    yield Figure("handover_own_p99_ms", percentile(own, 0.99), "the same; the longest %.2f ms" % max(own))
    yield Figure("handover_sim_median_ms", median(whole), how + "; from the completing event to the answer of the release; p99 %.1f ms; "
                 "a watcher saw %.1f ms between both events" % (percentile(whole, 0.99), median(seen)))


def measure_real(bench):
    if not has_real():
        yield Figure("handover_real_median_ms", None, "not measured: there is no control plane here; tools/control-plane build makes it")
        return
    rounds = bench.pick(1, 10)
    bench.say("start the real control plane")
    with cluster(bench, real=True) as stage:
        version = stage.client.get("/version")["gitVersion"]
        seen, _, _, _ = play(bench, stage, rounds)
    yield Figure("handover_real_median_ms", median(seen), "%d hand-overs on etcd, kube-apiserver %s, kube-controller-manager; from one event "
                 "to the other at a watcher; p99 %.0f ms" % (len(seen), version, percentile(seen, 0.99)))


def measure_poller(bench):
    """Many groups at once, since each of its hand-overs takes seconds. How long the Pods take is spread over the time between
    two looks: were all as quick as above, each would be complete just behind a look."""
    count, members = bench.pick((10, 2), (20, 4))
    groups = ["g%04d" % number for number in range(count)]
    with cluster(bench) as stage:
        stage.cluster.kubelets("PATCH", "/settings", {"start": "30ms", "stop": "0ms"})
        fill(bench, stage.client, count, members)
        until(lambda: all(is_complete(item) for item in stage.client.get(PATH)["items"]), "all are complete", 60)
        poller = Poller(stage.client, NAMESPACE)

        def change(group, member):
            start_ms = 1000 * EVERY_S * groups.index(group) / count
            return {"spec": {"paused": True, "template": {"metadata": {"annotations": {"kubelets.slipway.dev/start": "%dms" % start_ms}}}}}

        bench.say("a poller hands over: about %d s" % (1.5 * EVERY_S * members))
        poller.start()
        seen = seen_ms(roll(stage.client, groups, members, "v2", 600, change))
        poller.stop()
    yield Figure("handover_poll_median_ms", median(seen), "%d hand-overs on slipway-sim, by a loop in Python that looks every %d s; a watcher's "
                 "time between both events, from %.0f to %.0f ms" % (len(seen), EVERY_S, min(seen), max(seen)))


def measure(bench):
    bench.say("hand-over on slipway-sim")
    whole = []
    for figure in (figure for part in (measure_simulated, measure_real) for figure in part(bench)):
        if figure.value is not None and not figure.key.startswith("handover_own"):
            whole.append(figure)
        yield figure
    for figure in measure_poller(bench):
        for ours in whole:
            ours.baseline = "the poller: %s, %.0f times as long" % (figure.text(), figure.value / ours.value)
        yield figure
