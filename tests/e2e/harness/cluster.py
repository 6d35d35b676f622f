# SPDX-License-Identifier: Apache-2.0
"""A cluster as the scenarios see it. RealCluster is etcd, kube-apiserver and kube-controller-manager from
tools/control-plane; whatever else has the same methods can take its place.
"""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tools"))

from control_plane import api  # noqa: E402
from control_plane.instance import Instance  # noqa: E402
from story.access import SERVICE_ACCOUNT, Access  # noqa: E402
from story.simulator import Simulator  # noqa: E402


class Cluster(Access):
    """What both kinds have in common."""

    def __init__(self, at, folder):
        super().__init__(at)
        self.server = at.server
        self.ca_file = at.ca_file
        self.folder = pathlib.Path(folder)

    @property
    def kubelets_port(self):
        return urllib.parse.urlsplit(self.at.kubelets_url).port

    def pods_take(self, namespace, **settings):
        """How Pods of the namespace behave from now on: start="3s", stop="2s", ready="false", fail="CrashLoopBackOff"."""
        self.kubelets("PUT", "/settings/" + namespace, dict(settings, namespace=namespace))

    def crash(self, namespace, pod, down="1s"):
        self.kubelets("POST", "/crash", {"namespace": namespace, "pod": pod, "down": down})


class RealCluster(Cluster):
    """An instance that runs already; start() makes one, or finds that which another has made."""

    kind = "real"

    def __init__(self, folder):
        instance = Instance(str(folder))
        instance.load()
        super().__init__(instance, folder)

    @staticmethod
    def up(folder, *options):
        """Starts what does not run of it, and installs nothing; the same options each time."""
        subprocess.run([TOP / "tools" / "control-plane", "up", "--dir", folder, *options], check=True, stdin=subprocess.DEVNULL)

    @staticmethod
    def start(folder, *options):
        RealCluster.up(folder, *options)
        cluster = RealCluster(folder)
        cluster.install()
        return cluster

    @staticmethod
    def stop(folder):
        subprocess.run([TOP / "tools" / "control-plane", "down", "--dir", folder], check=True, stdin=subprocess.DEVNULL)

    # ---- its parts ----

    def signal(self, part, number):
        """To kube-controller-manager, kube-apiserver or etcd. Only where no other scenario needs them."""
        os.kill(self.at.running(part).pid, number)

    def compact(self):
        """etcd forgets all that was before now. https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/"""
        def ask(path, body):
            request = urllib.request.Request("http://127.0.0.1:%d/v3/kv/%s" % (self.at.state["ports"]["etcd"], path),
                                             data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())
        revision = ask("range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"]
        ask("compaction", {"revision": revision, "physical": True})


class SimulatedCluster(Cluster):
    """slipway-sim in a process of its own."""

    kind = "sim"

    def __init__(self, folder):
        super().__init__(Simulator(folder), folder)

    @staticmethod
    def start(folder, *_):
        folder = pathlib.Path(folder)
        if not (folder / "state.json").exists():
            build = pathlib.Path(os.environ.get("SLIPWAY_SIM_BUILD") or os.environ.get("SLIPWAY_BUILD") or TOP / "build")
            Simulator.start(folder, build / "tools" / "sim" / "slipway-sim")
            SimulatedCluster(folder).install()
        return SimulatedCluster(folder)

    @staticmethod
    def stop(folder):
        Simulator(folder).stop()
        shutil.rmtree(folder)

    # ---- its parts ----

    def signal(self, part, number):
        """What a signal to that process would do; only kube-controller-manager can be stopped and go on."""
        assert part == "kube-controller-manager" and number in (signal.SIGSTOP, signal.SIGCONT)
        self.kubelets("PUT", "/controllers", {"running": number == signal.SIGCONT})

    def compact(self):
        self.kubelets("POST", "/compact", {})


def only_real(why):
    """A mark for a scenario that the simulator cannot play."""
    return pytest.mark.skipif(os.environ.get("SLIPWAY_E2E_CLUSTER") == SimulatedCluster.kind, reason="only on a real control plane: " + why)


KINDS = {cluster.kind: cluster for cluster in (RealCluster, SimulatedCluster)}

__all__ = ["KINDS", "SERVICE_ACCOUNT", "RealCluster", "SimulatedCluster", "api", "only_real"]
