# SPDX-License-Identifier: Apache-2.0
"""Where a story is played: a cluster, real or simulated, with slipway on it."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SLIPWAY_BUILD") or TOP / "build")
sys.path.insert(0, str(TOP / "tools"))

from control_plane.instance import Instance  # noqa: E402
from control_plane.ports import free_port  # noqa: E402
from story.access import Access, Failed  # noqa: E402
from story.certificate import make_certificate  # noqa: E402
from story.simulator import Simulator  # noqa: E402

NAMESPACE = "shop"
WEBHOOK_PATH = "/mutate-apps-v1-deployment"
MODULES = ("coordination", "pausing", "events")


class Step:
    """A line that says what is being done, and how long it took when it is."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        self.begin = time.monotonic()
        print("• %s" % self.text, end="" if sys.stdout.isatty() else "\n", flush=True)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            end = "\r\033[K" if sys.stdout.isatty() else ""
            print("%s✓ %s (%.1f s)" % (end, self.text, time.monotonic() - self.begin), flush=True)
        elif sys.stdout.isatty():
            print()


def run(*argv):
    """Quiet unless it fails."""
    done = subprocess.run([str(arg) for arg in argv], cwd=TOP, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Failed("%s failed:\n%s" % (" ".join(map(str, argv)), "\n".join(done.stdout.splitlines()[-30:])))


def until(condition, what, timeout_s=60):
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise Failed("after %d s still not: %s" % (timeout_s, what))
        time.sleep(0.1)


# ---- clusters ----

class Stage:
    """What both kinds of cluster have in common; `cluster` is the access to it, from start() on."""

    def __init__(self, folder):
        self.folder = folder
        self.slipways = []

    @property
    def client(self):
        return self.cluster.api

    def start_slipway(self, name="slipway", **options):
        self.slipways.append(Slipway(self, name, **options))
        return self.slipways[-1]

    def register_webhook(self, slipway):
        """The API server asks this process before it stores a Deployment of the story."""
        self.cluster.register_webhook(slipway.name, {"slipway.dev/sample": "shop"},
                                      "https://127.0.0.1:%d%s" % (slipway.webhook_port, WEBHOOK_PATH), slipway.ca_pem)

    def unregister_webhook(self, slipway):
        self.cluster.unregister_webhook(slipway.name)

    def stop_slipways(self):
        for slipway in self.slipways:
            slipway.stop()


class SimulatedStage(Stage):
    what = "slipway-sim, the simulated cluster"

    def __init__(self, folder, *options):
        """options: more arguments of slipway-sim."""
        super().__init__(folder)
        self.options = options

    def start(self):
        self.at = Simulator.start(self.folder / "sim", BUILD / "tools" / "sim" / "slipway-sim", *self.options)
        self.cluster = Access(self.at)

    def stop(self):
        self.stop_slipways()
        self.at.stop()


class RealStage(Stage):
    what = "etcd, kube-apiserver, kube-controller-manager"

    def start(self):
        self.plane = self.folder / "control-plane"
        run("tools/control-plane", "up", "--dir", self.plane)
        self.at = Instance(str(self.plane))
        self.at.load()
        self.cluster = Access(self.at)

    def stop(self):
        self.stop_slipways()
        run("tools/control-plane", "down", "--dir", self.plane)


# ---- slipway ----

class Slipway:
    """The process, under its own ServiceAccount."""

    def __init__(self, stage, name, leader_elect=False, settings="", env=None, arguments=(), modules=MODULES):
        """settings: more lines of its configuration; env: more of its environment; arguments: more of its command line."""
        self.name, self.modules = name, modules
        self.folder = stage.folder / name
        self.health_port, self.webhook_port, self.metrics_port = free_port(), free_port(), free_port()
        self.ca_pem = make_certificate(self.folder / "certs")
        (self.folder / "kubeconfig").write_text(stage.cluster.kubeconfig("kube-system"))
        self.configure(settings)
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self.started = time.monotonic()
            self.process = subprocess.Popen([
                BUILD / "slipway", "--config", self.folder / "slipway.yaml",
                "--kubeconfig", self.folder / "kubeconfig", "--log-format", "console",
                "--webhook-bind-address", "127.0.0.1:%d" % self.webhook_port,
                "--webhook-cert-dir", self.folder / "certs",
                "--health-probe-bind-address", "127.0.0.1:%d" % self.health_port,
                "--metrics-bind-address", "127.0.0.1:%d" % self.metrics_port,
                *(["--leader-elect"] if leader_elect else []), *arguments,
            ], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ, POD_NAME=name, **(env or {})))

    def configure(self, settings):
        """In one step, as that of a ConfigMap changes."""
        new = self.folder / "slipway.yaml.new"
        new.write_text("modules: [%s]\n%s" % (", ".join(self.modules), settings))
        os.replace(new, self.folder / "slipway.yaml")

    def wait_ready(self):
        for _ in range(600):
            if self.process.poll() is not None:
                raise Failed("slipway ended with %d:\n%s" % (self.process.returncode, self.log.read_text()))
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/readyz" % self.health_port, timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise Failed("slipway is not ready after 30 s:\n" + self.log.read_text())

    def resident_mib(self):
        for line in open("/proc/%d/status" % self.process.pid):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
