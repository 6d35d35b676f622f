# SPDX-License-Identifier: Apache-2.0
"""Stepped rollouts: how soon a Deployment stands still at its stop, on slipway-sim and on a real control plane; how many Pods are
updated beyond it; what a thousand rollouts under analysis cost."""

import re
import subprocess
import threading
import time
import urllib.parse

from benchmarks import proc
from benchmarks.figures import Figure, median, percentile
from benchmarks.handover import START
from benchmarks.stand import BUILD, DEPLOYMENTS, NAMESPACE, Failed, cluster, cores, has_real, in_parallel, pin, run, until
from benchmarks.traces import Trace
from benchmarks.wire import Wire
from control_plane import api
from story.provider import Provider
from story.stage import MODULES

SUMMARY = "stepped rollouts: from a stop's last Pod to the pause; Pods beyond it; the cost of 1 000 of them"
PATH = DEPLOYMENTS % NAMESPACE
ROLLOUTS = "/apis/slipway.dev/v1alpha1/namespaces/%s/steppedrollouts" % NAMESPACE
PODS = 10  # of a Deployment: with steps of one Pod it is held nine times
WORLD = "tests/sim/sim_world"
CHECKS = 3


def deployment(name, replicas):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example.org/main:1"}]}}}}


def stepped(name, **analysis):
    return {"apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": name},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "stepSize": 1, "analysis": analysis}}


def names(count):
    return ["step-%04d" % number for number in range(count)]


def start_slipway(stage):
    slipway = stage.start_slipway(modules=(*MODULES, "stepping"))
    slipway.wait_ready()
    stage.register_webhook(slipway)
    return slipway


def make(client, found, replicas, **analysis):
    def one(name):
        client.post(PATH, deployment(name, replicas))
        client.post(ROLLOUTS, stepped(name, **analysis))

    in_parallel(one, found)


def count(client, **wanted):
    """SteppedRollouts whose status has these values."""
    return sum(1 for item in client.get(ROLLOUTS)["items"]
               if all((item.get("status") or {}).get(key) == value for key, value in wanted.items()))


def all_are(client, total, timeout_s=300, every_s=0.5, **wanted):
    until(lambda: count(client, **wanted) == total, lambda: "%d are %s: %d" % (total, wanted, count(client, **wanted)), timeout_s, every_s)


def update(client, found, version):
    body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.org/main:%d" % version}]}}}}
    in_parallel(lambda name: client.patch(PATH + "/" + name, body, api.STRATEGIC), found)


# ---- from the stop to the pause ----

class StepTrace(Trace):
    """looks: (ns, ns by the wire, name, updated Pods, paused) of each Deployment that slipway's watch was told of."""

    def __init__(self, path, wire=None):
        self.looks = []
        super().__init__(path, wire)

    def _see(self, ns, heard, item):
        super()._see(ns, heard, item)
        meta, status = item["metadata"], item.get("status", {})
        self.looks.append((ns, heard, meta["namespace"] + "/" + meta["name"], status.get("updatedReplicas") or 0,
                           bool(item["spec"].get("paused"))))

    def holds(self, since):
        """(ns until our pause was on the wire, ns until it was answered) of each pause from then on: since slipway was told of as many
        updated Pods as it knew of when it sent it. (With steps of one Pod the last change of that number is the stop.)"""
        for write in self.writes:
            is_pause = write.deployment and isinstance(write.body, dict) and (write.body.get("spec") or {}).get("paused") is True
            if not is_pause or not write.is_good or write.read < since:
                continue
            told = self._reached(write)
            if told and write.came >= told[1]:
                yield write.came - told[1], write.answered - told[0]

    def _reached(self, write):
        told, known = None, None
        for ns, heard, name, updated, paused in self.looks:
            if ns > write.read:
                break
            if name != write.deployment:
                continue
            if paused or updated == 0:
                told, known = None, None
            elif updated != known:
                told, known = (ns, heard), updated
        return told


def play(bench, stage, total, core=None):
    """So many Deployments are rolled out in steps of one Pod; when the first was changed, as time.monotonic_ns() tells it."""
    stage.cluster.kubelets("PATCH", "/settings", {"start": START, "stop": "0ms"})
    slipway = start_slipway(stage)
    if core is not None:
        pin(slipway.process.pid, core)
    found = names(total)
    make(stage.client, found, PODS, interval="1s")
    all_are(stage.client, total, phase="Initialized")
    if not proc.until_quiet(slipway.process.pid):
        raise Failed("slipway does not come to rest")
    begin = time.monotonic_ns()
    bench.say("%d Deployments of %d Pods, one after the other" % (total, PODS))
    for name in found:  # what one is held for shall not wait for another
        update(stage.client, [name], 2)
        until(lambda: stage.client.get(ROLLOUTS + "/" + name)["status"].get("phase") == "Succeeded", "%s is promoted" % name, 180, 0.2)
    return begin


def measure_simulated(bench):
    total = bench.pick(2, 12)
    trace_file = bench.folder / "stepping-trace"
    with cluster(bench, "--trace", str(trace_file)) as stage:
        core, other = cores()
        pin(stage.at.pid, other)
        with Wire(urllib.parse.urlsplit(stage.at.server).port, bench.folder / "stepping-wire") as wire:
            begin = play(bench, stage, total, core)
    holds = list(StepTrace(trace_file, wire if wire.is_open else None).holds(begin))
    if len(holds) < 0.8 * total * (PODS - 1):
        raise Failed("the trace shows %d holds of %d" % (len(holds), total * (PODS - 1)))
    own, whole = [own / 1e6 for own, _ in holds], [ns / 1e6 for _, ns in holds]
    how = "slipway-sim --trace; %d holds in rollouts of %d Pods by steps of one; from when the event with the step's last Pod %s until our pause did" % (
        len(holds), PODS, "was sent, by the kernel's clock," if wire.is_open else "was there for the server")
    yield Figure("stepping_hold_sim_median_ms", median(own), how + "; until the pause was answered: median %.2f, p99 %.2f ms" % (
        median(whole), percentile(whole, 0.99)))
    yield Figure("stepping_hold_sim_p99_ms", percentile(own, 0.99), "the same; the longest %.2f ms" % max(own))


class Holds(threading.Thread):
    """What a watcher sees: from the event with another number of updated Pods to that which shows the pause."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.is_done, self.error = client, False, None
        self.known, self.took = {}, []
        self.version = client.get(PATH)["metadata"]["resourceVersion"]
        self.start()

    def run(self):
        try:
            for what, item in self.client.watch(PATH, self.version):
                if self.is_done:
                    return
                if what == "MODIFIED":
                    updated = item["status"].get("updatedReplicas") or 0
                    # With all of them updated there is no stop: what is paused then is the next template, before its first Pod.
                    self.see(item["metadata"]["name"], updated if updated < PODS else 0, bool(item["spec"].get("paused")))
        except Exception as error:  # noqa: BLE001: told by check()
            self.error = error

    def see(self, name, updated, paused):
        known, since = self.known.get(name, (None, None))
        if paused:
            if since is not None and known:
                self.took.append(1000 * (time.monotonic() - since))
            self.known[name] = (None, None)
        elif updated != known:
            self.known[name] = (updated, time.monotonic())

    def check(self):
        if self.error:
            raise Failed("the watch of the Deployments: %r" % self.error)


def measure_real(bench):
    if not has_real():
        yield Figure("stepping_hold_real_median_ms", None, "not measured: there is no control plane here; tools/control-plane build makes it")
        return
    total = bench.pick(1, 8)
    bench.say("start the real control plane")
    with cluster(bench, real=True) as stage:
        version = stage.client.get("/version")["gitVersion"]
        holds = Holds(stage.client)
        play(bench, stage, total)
        holds.is_done = True
        holds.check()
    if not holds.took:
        raise Failed("the watcher saw no hold")
    yield Figure("stepping_hold_real_median_ms", median(holds.took), "%d holds on etcd, kube-apiserver %s, kube-controller-manager; from the event with "
                 "the step's last Pod to that with the pause, at a watcher; p99 %.0f ms" % (len(holds.took), version, percentile(holds.took, 0.99)))


# ---- beyond the stop ----

def measure_overshoot(bench):
    run("ninja", "-C", BUILD, WORLD)
    total = bench.pick(90, 1000)
    bench.say("%d rollouts in virtual time" % total)
    done = subprocess.run([BUILD / WORLD, "--overshoot", str(total)], capture_output=True, text=True)
    found = re.findall(r"surge (\S+): (\d+) rollouts, (\d+) holds, most (\d+), sum (\d+)", done.stdout)
    assert done.returncode == 0 and found, "sim_world: %s%s" % (done.stdout[-2000:], done.stderr[-2000:])
    each = "; ".join("surge %s: %s holds, at most %s Pods too many, %.2f on average" % (surge, holds, most, int(number) / max(int(holds), 1))
                     for surge, _, holds, most, number in found)
    yield Figure("stepping_overshoot_max_pods", max(int(most) for _, _, _, most, _ in found),
                 "sim_world --overshoot %d, virtual time, %s rollouts of %d Pods by steps of one, maxUnavailable 0: %s. The first batch of a surge "
                 "passes the stops that are in it; a surge of 100 %% has no steps and is refused" % (
                     total, "/".join(rollouts for _, rollouts, _, _, _ in found), PODS, each))


# ---- a thousand of them ----

def load(pid, seconds):
    """Per cent of a core."""
    before, began = proc.cpu_ns(pid), time.monotonic_ns()
    time.sleep(seconds)
    return 100 * (proc.cpu_ns(pid) - before) / (time.monotonic_ns() - began)


def measure_many(bench):
    total, seconds = bench.pick((100, 20), (1000, 60))
    provider = Provider(lambda query: 0.5)
    provider.server.RequestHandlerClass.protocol_version = "HTTP/1.1"  # connections are kept, as Prometheus does
    metrics = [{"name": "metric-%d" % number, "thresholdRange": {"max": 1}, "query": 'errors{name="{{ name }}",number="%d"}' % number,
                "provider": {"type": "prometheus", "address": provider.url}} for number in range(CHECKS)]
    try:
        with cluster(bench) as stage:
            stage.cluster.kubelets("PATCH", "/settings", {"start": "0ms", "stop": "0ms"})
            slipway = start_slipway(stage)
            pid = slipway.process.pid
            bench.say("make %d Deployments with SteppedRollouts" % total)
            found = names(total)
            make(stage.client, found, 2, interval="%ds" % seconds, iterations=1000, metrics=metrics)
            all_are(stage.client, total, phase="Initialized", timeout_s=900, every_s=2)
            if not proc.until_quiet(pid):
                raise Failed("slipway does not come to rest")
            idle_mib, idle = proc.rss_mib(pid), load(pid, seconds)
            bench.say("all of them get another template")
            update(stage.client, found, 2)
            all_are(stage.client, total, activity="Analysing", timeout_s=900, every_s=2)
            until(lambda: len(provider.asked) >= total * CHECKS, lambda: "each was checked: %d queries" % len(provider.asked), 300, 1)
            bench.say("%d s of analysis" % seconds)
            asked = len(provider.asked)
            busy = load(pid, seconds)
            asked = len(provider.asked) - asked
            busy_mib = proc.rss_mib(pid)
    finally:
        provider.stop()
    what = "%d SteppedRollouts under analysis, %d metrics each, every %d s%s: %d queries in %d s" % (
        total, CHECKS, seconds, " (quick: not 1 000, nor every minute)" if bench.is_quick else "", asked, seconds)
    yield Figure("stepping_1000_rss_mib", busy_mib, what + "; VmRSS", "the same at rest: %.1f MiB" % idle_mib)
    yield Figure("stepping_1000_cpu_percent", busy, what + "; %.2f CPU seconds a minute" % (busy * 0.6),
                 "the same at rest: %.2f %%, %.2f CPU seconds a minute" % (idle, idle * 0.6))


def measure(bench):
    for part in (measure_simulated, measure_real, measure_overshoot, measure_many):
        yield from part(bench)
