# SPDX-License-Identifier: Apache-2.0
"""The stories that ./tools/run plays. Each gets a stage on which the cluster stands and nothing else."""

import sys
import threading
import time

from control_plane import api
from story.stage import MODULES, NAMESPACE, TOP, Failed, Step, until
from story.timeline import Timeline

NAMES = ("cart", "catalog", "checkout")
DEPLOYMENTS = "/apis/apps/v1/namespaces/%s/deployments" % NAMESPACE
COORDINATION = "/apis/apps.containerinfra.nl/v1/namespaces/%s/deploymentcoordinations/%s" % (NAMESPACE, NAMESPACE)
LEGEND = "· waits   █ rolls   ─ done"


# ---- what the stories are made of ----

class Watcher(threading.Thread):
    """Feeds the timeline from a watch of the Deployments, or of what else path names."""

    def __init__(self, client, timeline, path=DEPLOYMENTS):
        super().__init__(daemon=True)
        self.client, self.timeline, self.path = client, timeline, path
        self.lock = threading.Lock()
        self.is_done = False
        self.start()

    def run(self):
        while not self.is_done:
            try:
                found = self.client.get(self.path)
                for item in found["items"]:
                    self.see(item)
                for what, item in self.client.watch(self.path, found["metadata"]["resourceVersion"]):
                    if what in ("ADDED", "MODIFIED"):
                        self.see(item)
            except (api.ApiError, *api.BROKEN):
                time.sleep(0.2)

    def see(self, item):
        with self.lock:
            self.timeline.see(item)


def condition(client, kind):
    for found in client.get(COORDINATION).get("status", {}).get("conditions") or []:
        if found["type"] == kind:
            return found
    return {}


def at_rest(client):
    items = client.get(DEPLOYMENTS)["items"]
    return condition(client, "Ready").get("status") == "True" and len(items) == len(NAMES) and \
        all((item.get("status", {}).get("availableReplicas") or 0) == 3 for item in items)


def set_up(stage, replicas_of_slipway=1):
    """slipway runs, and so do the three Deployments under one coordination."""
    with Step("install the CRD and slipway's permissions"):
        stage.cluster.install()
    stage.cluster.kubelets("PATCH", "/settings", {"start": "1s", "stop": "300ms"})
    with Step("start slipway with the modules %s" % ", ".join(MODULES)):
        names = ["slipway"] + ["slipway-%d" % number for number in range(2, replicas_of_slipway + 1)]
        for name in names:
            stage.start_slipway(name, leader_elect=replicas_of_slipway > 1)
        for slipway in stage.slipways:
            slipway.wait_ready()
        stage.register_webhook(stage.slipways[0])
    with Step("create the Deployments %s under the coordination %s" % (", ".join(NAMES), NAMESPACE)):
        stage.cluster.apply(TOP / "manifests" / "samples" / "shop.yaml")
        until(lambda: at_rest(stage.client), "all three run and the coordination is Ready")


def change_all(stage, version):
    timeline = Timeline(NAMES, version)
    watcher = Watcher(stage.client, timeline)
    timeline.changed()
    for name in NAMES:
        image = "example.org/%s:%s" % (name, version)
        stage.client.patch(DEPLOYMENTS + "/" + name, {"spec": {"template": {"spec": {"containers": [{"name": name, "image": image}]}}}},
                           api.STRATEGIC)
    return timeline, watcher


class Picture:
    """On a terminal the timeline in place, elsewhere a line for each change."""

    def __init__(self, timeline, watcher):
        self.timeline, self.watcher = timeline, watcher
        self.is_live, self.drawn, self.told = sys.stdout.isatty(), 0, {}

    def draw(self):
        with self.watcher.lock:
            rows = list(self.timeline.rows(True)) if self.is_live else []
            states = {track.name: track.state for track in self.timeline.tracks.values()}
        if self.is_live:
            print("\033[%dA" % self.drawn if self.drawn else "", end="")
            print("\n".join("\r\033[K" + row for row in rows), flush=True)
            self.drawn = len(rows)
        for name, state in states.items():
            if not self.is_live and self.told.get(name) != state:
                print("  %6.2f s  %-10s %s" % (self.timeline.now(), name, state), flush=True)
                self.told[name] = state

    def draw_until(self, condition, what, timeout_s=120):
        while not condition():
            if self.timeline.now() > timeout_s:
                raise Failed("after %d s still not: %s" % (timeout_s, what))
            self.draw()
            time.sleep(0.1)

    def say(self, text):
        """A line below the picture, which begins anew."""
        self.draw()
        print("\n  %6.2f s  %s\n" % (self.timeline.now(), text), flush=True)
        self.drawn = 0

    def finish(self):
        self.draw_until(self.timeline.is_over, "all have rolled out")
        if self.is_live:
            print("\033[%dA" % self.drawn if self.drawn else "", end="")
        print("\n".join(("\r\033[K" if self.is_live else "") + row for row in self.timeline.rows(self.is_live)))
        self.watcher.is_done = True
        print()
        print("\n".join(self.timeline.table()))
        print()
        if self.timeline.most_at_once() > 1:
            raise Failed("two rolled at once: that must never happen")


def show(stage, *commands):
    print("\nWhat kubectl shows of it:\n")
    for args in commands:
        print("$ kubectl " + " ".join(args))
        print(stage.cluster.kubectl(*args))


GET_COORDINATIONS = ("get", "deploymentcoordinations", "-n", NAMESPACE)
GET_EVENTS = ("get", "events", "-n", NAMESPACE, "--field-selector", "involvedObject.kind=DeploymentCoordination", "--sort-by=.lastTimestamp")


# ---- the stories ----

def play_shop(stage):
    set_up(stage)
    print("\nNow all three get a new image in the same moment:  %s\n" % LEGEND)
    timeline, watcher = change_all(stage, "2.0.0")
    Picture(timeline, watcher).finish()
    print("All three changed at once. At most %d rolled at a time; all were done after %.1f s." % (timeline.most_at_once(), timeline.now()))
    handovers = [seconds for _, _, seconds in timeline.handovers()]
    print("From one being complete to the next being released: %s." % ", ".join("%.0f ms" % (1000 * s) for s in handovers))
    print("slipway used %.1f MiB of memory." % stage.slipways[0].resident_mib())
    show(stage, GET_COORDINATIONS, GET_EVENTS)


def play_failure(stage):
    set_up(stage)
    for name in NAMES:
        stage.client.patch(DEPLOYMENTS + "/" + name, {"spec": {"progressDeadlineSeconds": 5}})
    stage.cluster.kubelets("PUT", "/settings/broken", {"namespace": NAMESPACE, "selector": "app.kubernetes.io/name=catalog", "fail": "CrashLoopBackOff"})
    print("\nNow all three get a new image, and that of catalog does not start:  %s\n" % LEGEND)
    timeline, watcher = change_all(stage, "2.0.0")
    picture = Picture(timeline, watcher)
    picture.draw_until(lambda: condition(stage.client, "Degraded").get("reason") == "RolloutFailed", "the coordination says that catalog fails")
    picture.say("Degraded: " + condition(stage.client, "Degraded")["message"])
    if sum(track.state == "waits" for track in timeline.tracks.values()) == 0:
        raise Failed("nobody may be let go behind one that has failed")
    stage.cluster.kubelets("DELETE", "/settings/broken")
    picture.say("somebody mends what catalog needs, and its Pods start")
    picture.finish()
    print("Nothing was lost: those behind catalog waited until it was whole.")
    show(stage, GET_COORDINATIONS, GET_EVENTS)


def holder_of_lease(client):
    """The name of the slipway that leads, as the lease tells it: "NAME_RANDOM"."""
    return client.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/slipway")["spec"]["holderIdentity"].rpartition("_")[0]


def play_leader(stage):
    set_up(stage, replicas_of_slipway=2)
    name = holder_of_lease(stage.client)
    leader, other = sorted(stage.slipways, key=lambda slipway: slipway.name != name)
    print("\nNow all three get a new image, and %s, which leads, is killed in the middle:  %s\n" % (leader.name, LEGEND))
    stage.register_webhook(stage.slipways[1])
    timeline, watcher = change_all(stage, "2.0.0")
    picture = Picture(timeline, watcher)
    picture.draw_until(lambda: any(track.state == "rolls" for track in timeline.tracks.values()), "the first rolls")
    leader.kill()
    stage.unregister_webhook(leader)
    picture.say("%s is dead (SIGKILL); %s takes over when the lease has run out, after 15 s at most" % (leader.name, other.name))
    picture.finish()
    print("No turn was lost, and none was given twice. Now leads: %s." % holder_of_lease(stage.client))
    show(stage, GET_COORDINATIONS)


PLAYS = {
    "shop": (play_shop, "three Deployments change at once and roll one after the other"),
    "failure": (play_failure, "the new version of one does not start; the others wait until it is mended"),
    "leader": (play_leader, "two replicas of slipway; the one that leads is killed in mid-rollout"),
}
