# SPDX-License-Identifier: Apache-2.0
"""What is measured stands here: the programs as they are built by default, clusters, and slipway on them."""

import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SLIPWAY_BUILD") or TOP / "build-bench")
os.environ["SLIPWAY_BUILD"] = str(BUILD)
sys.path.insert(0, str(TOP / "tools"))

from control_plane import build as control_plane_build  # noqa: E402
from story.stage import NAMESPACE, Failed, RealStage, SimulatedStage, run  # noqa: E402

BENCH_ADMISSION = "tools/benchmarks/bench_admission"
BENCH_DECODE = "tools/benchmarks/bench_decode"
PROGRAMS = ("slipway", "modules", "tools/sim/slipway-sim", BENCH_ADMISSION, BENCH_DECODE)
SLIPWAY_USER = "system:serviceaccount:kube-system:slipway"
COORDINATIONS = "/apis/apps.containerinfra.nl/v1/namespaces/%s/deploymentcoordinations"
DEPLOYMENTS = "/apis/apps/v1/namespaces/%s/deployments"


class Missing(Exception):
    """What is to be measured, or what it needs, is not there."""


class Bench:
    """What every subject gets: the options, a folder, and a place to say how far it is."""

    def __init__(self, is_quick, folder):
        self.is_quick, self.folder = is_quick, folder
        self._begin = time.monotonic()

    def say(self, text):
        """Progress; the results alone go to standard output."""
        print("  %6.1f s  %s" % (time.monotonic() - self._begin, text), file=sys.stderr, flush=True)

    def pick(self, quick, whole):
        return quick if self.is_quick else whole

    @contextlib.contextmanager
    def scratch(self):
        """A folder for one cluster, so that two subjects never share one."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


def build(bench):
    """As meson builds it without being told otherwise, in a folder of our own; SLIPWAY_BUILD names another."""
    if not (BUILD / "build.ninja").exists():
        run("meson", "setup", BUILD, "-Dtests=disabled")
    bench.say("build %s" % BUILD.name)
    run("ninja", "-C", BUILD, *PROGRAMS)


# ---- cores ----

def cores():
    """(of what is measured, of what measures it); the same one where there is only one."""
    found = sorted(os.sched_getaffinity(0))
    return found[0], found[-1]


def pin(pid, core):
    """All threads that it has, and those that it makes later."""
    for task in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(task), {core})


# ---- clusters ----

def has_real():
    return os.access(os.path.join(control_plane_build.cache_dir(), "kube-apiserver"), os.X_OK)


@contextlib.contextmanager
def cluster(bench, *options, real=False):
    """With the kinds and permissions of slipway, and the namespace; no slipway yet."""
    with bench.scratch() as folder:
        stage = RealStage(folder) if real else SimulatedStage(folder, *options)
        stage.start()
        try:
            stage.cluster.install()
            make_namespace(stage.client, NAMESPACE)
            yield stage
        finally:
            stage.stop()


# ---- objects ----

def make_namespace(client, name):
    client.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                       "metadata": {"name": name, "labels": {"slipway.dev/sample": "shop"}}})


def coordination(name, **spec):
    """Selects the Deployments with the label group=NAME."""
    return {"apiVersion": "apps.containerinfra.nl/v1", "kind": "DeploymentCoordination", "metadata": {"name": name},
            "spec": dict({"labelSelector": {"matchLabels": {"group": name}}}, **spec)}


def deployment(name, group, is_marked=False):
    """is_marked: with the annotation that slipway would write to it, so that nothing is left to write."""
    labels = {"app": name, "group": group}
    annotations = {"slipway.dev/coordinated-by": group} if is_marked else {}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example.org/main:1"}]}}}}


def in_parallel(work, items, workers=4):
    """The first error is raised."""
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(work, items):
            pass


def fill(bench, client, groups, each, namespaces=(NAMESPACE,), first=0, is_marked=False, **spec):
    """So many groups, the first with number `first`, with so many Deployments each, dealt out to the namespaces."""
    done, lock = [0], threading.Lock()
    total = groups * each

    def make(number):
        namespace, group = namespaces[number % len(namespaces)], "g%04d" % (first + number)
        client.post(COORDINATIONS % namespace, coordination(group, **spec))
        for member in range(each):
            client.post(DEPLOYMENTS % namespace, deployment("%s-%03d" % (group, member), group, is_marked))
        with lock:
            before, done[0] = done[0], done[0] + each
            if total >= 1000 and before * 10 // total != done[0] * 10 // total:
                bench.say("%d of %d Deployments are there" % (done[0], total))

    in_parallel(make, range(groups))


def ready_count(client, path="/apis/apps.containerinfra.nl/v1/deploymentcoordinations"):
    """Of how many coordinations the condition Ready is True."""
    return sum(1 for item in client.get(path)["items"] for condition in item.get("status", {}).get("conditions") or []
               if condition["type"] == "Ready" and condition["status"] == "True")


def until(condition, what, timeout_s, every_s=0.05):
    """As that of story.stage; what may be a function that says what was seen last."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise Failed("after %d s still not: %s" % (timeout_s, what() if callable(what) else what))
        time.sleep(every_s)


# ---- slipway ----

def readyz(slipway):
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d/readyz" % slipway.health_port, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def start_slipway(stage, name="slipway"):
    slipway = stage.start_slipway(name)
    slipway.wait_ready()
    return slipway


def first_core_of(slipway):
    core, _ = cores()
    pin(slipway.process.pid, core)
    return core

