# SPDX-License-Identifier: Apache-2.0
"""The story of a stepped rollout: one update that passes its three stops, and one that fails at the second and goes back."""

import contextlib
import shutil
import sys
import time
import types

from control_plane import api
from story.plays import DEPLOYMENTS, GET_EVENTS, Watcher, show
from story.provider import Provider
from story.stage import MODULES, NAMESPACE, Failed, Step, until

ROLLOUTS = "/apis/slipway.dev/v1alpha1/namespaces/%s/steppedrollouts" % NAMESPACE
REPLICAS = 10
LIMIT = 0.01
QUERY = 'sum(rate(http_requests_total{namespace="{{ namespace }}", code=~"5.."}[{{ interval }}]))'

ASKS, ADVANCES, ANALYSED, DONE, RETREATS, BACK = "asks", "advances", "is analysed", "done", "goes back", "is back"
COLOURS = {ASKS: "\033[33m", ADVANCES: "\033[36m", ANALYSED: "\033[33m", DONE: "\033[32m", RETREATS: "\033[31m", BACK: "\033[31m"}
SIGNS = {ASKS: "·", ADVANCES: ">", ANALYSED: "?", DONE: "─", RETREATS: "<", BACK: "─"}
HEIGHTS = " ▁▂▃▄▅▆▇█"
LEGEND = "▁▄█ new Pods   > advances   ? is analysed   < goes back"


def objects(provider):
    labels = {"app.kubernetes.io/name": "web"}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"slipway.dev/sample": "shop"}}}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAMESPACE, "labels": labels},
           "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels},
                    "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "example.org/web:1.0.0"}]}}}}
    yield {"apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": "web", "namespace": NAMESPACE},
           "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "steps": [1, "30%", "60%"], "progressDeadlineSeconds": 60,
                    "analysis": {"interval": "1s", "iterations": 2, "pods": {}, "metrics": [
                        {"name": "error-rate", "thresholdRange": {"max": LIMIT}, "query": QUERY,
                         "provider": {"type": "prometheus", "address": provider.url}}]}}}


# ---- what is seen of one update ----

class Steps:
    """From the watches of the Deployment and of its SteppedRollout."""

    def __init__(self, version):
        self.version, self.begin = version, time.monotonic()
        self.updated, self.status = 0, {}
        self.points = [(0.0, 0, ASKS)]  # (at, updated Pods, what happens)
        self.news = []  # (at, words)
        self.is_ours = False  # the status is that of this update

    def now(self):
        return time.monotonic() - self.begin

    @property
    def activity(self):
        phase, activity = self.status.get("phase", ""), self.status.get("activity", "")
        if not self.is_ours or phase == "Waiting":
            return ASKS
        if phase == "Succeeded":
            return DONE
        if phase == "Failed":
            return BACK if activity == "Retreated" else RETREATS
        return ANALYSED if activity == "Analysing" else ADVANCES

    def note(self, words):
        if not self.news or self.news[-1][1] != words:
            self.news.append((self.now(), words))

    def add(self):
        point = (self.updated, self.activity)
        if self.points[-1][1:] != point:
            self.points.append((self.now(), *point))

    def see_deployment(self, item):
        is_new = item["spec"]["template"]["spec"]["containers"][0]["image"].endswith(self.version)
        if is_new and item.get("status", {}).get("observedGeneration", 0) >= item["metadata"]["generation"]:
            self.updated = item["status"].get("updatedReplicas") or 0
            self.add()

    def see_rollout(self, item):
        before, status = self.status, item.get("status") or {}
        if not self.is_ours:
            self.is_ours = status.get("phase") not in (None, "Initialized", "Succeeded", "Failed")
        self.status = status
        if self.is_ours:
            self.tell(before, status)
        self.add()

    def tell(self, before, status):
        activity, rounds = self.activity, status.get("iterations") or 0
        if activity == ANALYSED and rounds and rounds != before.get("iterations"):
            self.note("step %s: round %d of 2 has passed, %s" % (status.get("step"), rounds, measured(status)))
        elif activity == ADVANCES and status.get("currentStep"):
            self.note("step %s: goes on to %s of %d Pods" % (status.get("step"), status.get("stop"), REPLICAS))
        elif status.get("phase") == "Failed" and before.get("phase") != "Failed":
            self.note("step %s: fails, %s; its Pods go back" % (status.get("step"), measured(status)))
        elif activity == DONE:
            self.note("promoted")
        elif activity == BACK:
            self.note("all Pods are back")

    def is_over(self):
        return self.activity in (DONE, BACK)

    # ---- pictures ----

    def rows(self, is_coloured):
        """How many are updated, and below what happens."""
        width = max(20, min(72, shutil.get_terminal_size().columns - 40))
        now = self.now()
        span, heights, signs, last = max(now, 8.0), "", "", None
        for column in range(width):
            at = (column + 0.5) * span / width
            if at > now:
                break
            updated, activity = next(point[1:] for point in reversed(self.points) if point[0] <= at)
            if is_coloured and activity != last:
                heights, signs = ("%s\033[0m%s" % (text, COLOURS[activity]) for text in (heights, signs))
            heights += HEIGHTS[-(-8 * updated // REPLICAS)]
            signs += SIGNS[activity]
            last = activity
        end = ("\033[0m" if is_coloured else "") + " " * (width - min(width, int(now * width / span + 0.5)))
        return ["  web  %s%s %2d/%d" % (heights, end, self.updated, REPLICAS), "       %s%s %s" % (signs, end, self.activity)]


def measured(status):
    """"error-rate 0.002 (<= 0.01)": what the provider said."""
    return ", ".join("%(name)s %(value)s (%(range)s)" % check for check in status.get("checks") or [] if check.get("type") == "metric") or \
        status.get("message", "")


class Picture:
    """On a terminal the rows in place below the news, elsewhere the news alone; and the rows once more at the end."""

    def __init__(self, steps, lock):
        self.steps, self.lock = steps, lock
        self.is_live, self.told, self.drawn = sys.stdout.isatty(), 0, 0

    def draw(self, is_last=False):
        with self.lock:
            news, rows = self.steps.news[self.told:], self.steps.rows(self.is_live)
        self.told += len(news)
        lines = ["  %6.2f s  %s" % found for found in news]
        if is_last or self.is_live:
            lines += ["", *rows]
        if self.drawn:
            print("\033[%dA\033[J" % self.drawn, end="")
        print("".join(line + "\n" for line in lines), end="", flush=True)
        self.drawn = 1 + len(rows) if self.is_live else 0

    def finish(self, timeout_s=120):
        while not self.steps.is_over():
            if self.steps.now() > timeout_s:
                raise Failed("after %d s the rollout is not over: %s" % (timeout_s, self.steps.status))
            self.draw()
            time.sleep(0.1)
        self.draw(True)
        print()


@contextlib.contextmanager
def updating(stage, version):
    """The Deployment gets that image; its rollout is watched and drawn."""
    steps = Steps(version)
    watchers = [Watcher(stage.client, types.SimpleNamespace(see=steps.see_deployment), DEPLOYMENTS),
                Watcher(stage.client, types.SimpleNamespace(see=steps.see_rollout), ROLLOUTS)]
    watchers[1].lock = watchers[0].lock
    stage.client.patch(DEPLOYMENTS + "/web", {"spec": {"template": {"spec": {"containers": [
        {"name": "web", "image": "example.org/web:" + version}]}}}}, api.STRATEGIC)
    try:
        yield Picture(steps, watchers[0].lock)
    finally:
        for watcher in watchers:
            watcher.is_done = True


def web(stage):
    return stage.client.get(DEPLOYMENTS + "/web")


def error_rate(stage):
    """What a Prometheus would have measured: 0.2 % of all requests fail, and 4 % more of those to Pods of version 3."""
    found = web(stage)
    is_bad = found["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":3.0.0")
    share = (found["status"].get("updatedReplicas") or 0) / REPLICAS
    return round(0.002 + (0.04 * share if is_bad else 0), 4)


# ---- the story ----

def set_up(stage, provider):
    with Step("install the CRDs and slipway's permissions"):
        stage.cluster.install()
    stage.cluster.kubelets("PATCH", "/settings", {"start": "700ms", "stop": "300ms"})
    modules = (*MODULES, "stepping")
    with Step("start slipway with the modules %s" % ", ".join(modules)):
        slipway = stage.start_slipway(modules=modules)
        slipway.wait_ready()
        stage.register_webhook(slipway)
    with Step("create the Deployment web and a SteppedRollout with three stops: 1, 30 %, 60 %"):
        for document in objects(provider):
            stage.cluster.apply(document)
        until(lambda: (web(stage).get("status", {}).get("availableReplicas") or 0) == REPLICAS, "all of web run")
        until(lambda: rollout(stage).get("phase") == "Initialized", lambda: "the SteppedRollout has seen it: %s" % rollout(stage))


def rollout(stage):
    return stage.client.get(ROLLOUTS + "/web").get("status") or {}


def play_stepping(stage):
    provider = Provider(lambda query: error_rate(stage))
    try:
        set_up(stage, provider)
        print("\nNow web gets version 2.0.0. 0.2 %% of its requests fail; 1 %% may:  %s\n" % LEGEND)
        with updating(stage, "2.0.0") as picture:
            picture.finish()
        if picture.steps.activity != DONE:
            raise Failed("version 2.0.0 is good, and was not promoted: %s" % picture.steps.status)
        stops = sorted({updated for _, updated, activity in picture.steps.points if activity == ANALYSED})
        print("Promoted after %.1f s; it was analysed at %s new Pods.\n" % (picture.steps.now(), ", ".join(map(str, stops))))
        print("Now version 3.0.0. 4 % more of its requests fail, which shows when enough of its Pods serve:\n")
        with updating(stage, "3.0.0") as picture:
            picture.finish()
        found = web(stage)
        if picture.steps.activity != BACK or not found["spec"]["paused"] or found["status"].get("updatedReplicas"):
            raise Failed("version 3.0.0 is bad, and its Pods are not back: %s" % picture.steps.status)
        print("All %d Pods are of version 2.0.0 again, and the manifest still says %s: whatever applies it from git has nothing to put back.\n"
              "The Deployment stays paused with it until another template comes." % (
                  REPLICAS, found["spec"]["template"]["spec"]["containers"][0]["image"]))
        print("The provider was asked %d times; slipway used %.1f MiB of memory." % (len(provider.asked), stage.slipways[0].resident_mib()))
        show(stage, ("get", "steppedrollouts.slipway.dev", "-n", NAMESPACE),
             tuple("involvedObject.kind=SteppedRollout" if "involvedObject" in word else word for word in GET_EVENTS))
    finally:
        provider.stop()
