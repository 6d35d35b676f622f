# SPDX-License-Identifier: Apache-2.0
"""The image at work: slipway in it as in a Pod, against slipway-sim. The API server has a name that only DNS knows, as the
kubelet writes it into resolv.conf."""

import os
import pathlib
import shutil
import signal
import subprocess
import types
import urllib.parse
import urllib.request

import pytest
from conftest import TOP
from container import SERVICE_ACCOUNT, Container
from names import NameServer

from control_plane.ports import free_port
from story import plays
from story.access import Access
from story.certificate import make_certificate
from story.simulator import Simulator
from story.stage import until

BUILD = pathlib.Path(os.environ.get("SLIPWAY_BUILD") or TOP / "build")
SERVER = "kubernetes.default.svc"
RESOLVER = "nameserver %s\nsearch kube-system.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"
CONFIGURATION = """\
modules: [coordination, pausing, events]
webhook: {bindAddress: "127.0.0.1:%d"}
healthProbe: {bindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "127.0.0.1:%d"}
stopDelay: 0s
"""
NOBODY = 65532


@pytest.fixture
def container(root, image):
    return Container(root, image.config())


@pytest.fixture
def cluster(tmp_path):
    """What plays.py calls a stage."""
    simulator = Simulator.start(tmp_path / "sim", BUILD / "tools" / "sim" / "slipway-sim", hosts=[SERVER])
    access = Access(simulator)
    access.install()
    access.kubelets("PATCH", "/settings", {"start": "300ms", "stop": "100ms"})
    yield types.SimpleNamespace(cluster=access, client=access.api, at=simulator)
    assert simulator.stop() == 0


@pytest.fixture
def resolver():
    """The cluster's DNS."""
    server = NameServer({SERVER + ".cluster.local": "127.0.0.1"})
    yield server
    server.stop()


class Pod:
    """One slipway: what the kubelet mounts for it, and what the API server needs to know of it."""

    def __init__(self, container, cluster, resolver, folder):
        self.container, self.cluster, self.folder = container, cluster, folder
        self.webhook_port, self.health_port = free_port(), free_port()
        self.log, self.process = folder / "log", None
        self.ca_pem = make_certificate(folder / "certs")
        self.write("account/token", cluster.cluster.token())
        self.write("account/namespace", "kube-system")
        self.write("account/ca.crt", pathlib.Path(cluster.at.ca_file).read_text())
        self.write("config/slipway.yaml", CONFIGURATION % (self.webhook_port, self.health_port, free_port()))
        self.write("config/modules.d/coordination.yaml", "atRest: Paused\n")
        self.write("resolv.conf", RESOLVER % resolver.address)
        self.write("hosts", "127.0.0.1 localhost\n")
        for name in ("tls.crt", "tls.key"):
            self.write("config/tls/" + name, (folder / "certs" / name).read_text())
        container.mount(folder / "config", "/etc/slipway")
        container.mount(folder / "account", SERVICE_ACCOUNT)
        container.mount(folder / "resolv.conf", "/etc/resolv.conf")
        container.mount(folder / "hosts", "/etc/hosts")
        self.env = {"KUBERNETES_SERVICE_HOST": SERVER, "KUBERNETES_SERVICE_PORT": str(urllib.parse.urlsplit(cluster.at.server).port),
                    "POD_NAME": "slipway-0"}

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)

    def start(self, *args):
        self.process = self.container.start(*args, log=self.log, env=self.env)
        until(self.is_ready, "slipway is ready", 60)

    def is_ready(self):
        assert self.process.poll() is None, "slipway ended:\n" + self.log.read_text()
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/readyz" % self.health_port, timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def status(self, name):
        """Of the process, from /proc."""
        text = pathlib.Path("/proc/%d/status" % self.process.pid).read_text()
        return dict(line.split(":\t", 1) for line in text.splitlines())[name].split()

    def mounts(self):
        """Mount point to options, as the process sees them: proc(5)."""
        lines = pathlib.Path("/proc/%d/mountinfo" % self.process.pid).read_text().splitlines()
        return {line.split()[4]: line.split()[5].split(",") for line in lines}

    def stop(self):
        """As the kubelet does; it must end by itself."""
        self.process.send_signal(signal.SIGTERM)
        code, self.process = self.process.wait(60), None
        assert code == 0, self.log.read_text()


@pytest.fixture
def pod(container, cluster, resolver, tmp_path):
    found = Pod(container, cluster, resolver, tmp_path / "pod")
    yield found
    if found.process:
        found.process.kill()
        found.process.wait()


def test_the_rollouts_of_a_coordination_go_through(pod, cluster, resolver):
    pod.start()
    assert SERVER + ".cluster.local" in resolver.asked, "it has found the API server by DNS"
    assert pod.status("Uid") == [str(NOBODY)] * 4 and pod.status("Gid") == [str(NOBODY)] * 4 and pod.status("Groups") == []
    assert pod.status("CapEff") == ["0000000000000000"] and pod.status("NoNewPrivs") == ["1"]
    assert "ro" in pod.mounts()["/"] and "ro" in pod.mounts()["/etc/slipway"]
    assert os.readlink("/proc/%d/exe" % pod.process.pid).endswith("/usr/bin/slipway")
    cluster.cluster.register_webhook("slipway", {"slipway.dev/sample": "shop"}, "https://127.0.0.1:%d/mutate-apps-v1-deployment" % pod.webhook_port,
                                     pod.ca_pem)
    cluster.cluster.apply(TOP / "manifests" / "samples" / "shop.yaml")
    until(lambda: plays.at_rest(cluster.client), "all three run and the coordination is Ready")
    timeline, watcher = plays.change_all(cluster, "2.0.0")
    until(timeline.is_over, "all three have rolled out", 120)
    watcher.is_done = True
    assert timeline.most_at_once() == 1 and [track.name for track in timeline.in_order()] == ["cart", "catalog", "checkout"]
    pod.stop()
    assert "Read-only file system" not in pod.log.read_text()

    # What the chart does before it is deleted.
    cluster.cluster.unregister_webhook("slipway")
    held = cluster.client.get(plays.DEPLOYMENTS)["items"]
    assert all(item["spec"].get("paused") for item in held), "they are held at rest"
    done = subprocess.run(pod.container.argv("release-all"), env=pod.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, done.stdout
    assert not any(item["spec"].get("paused") for item in cluster.client.get(plays.DEPLOYMENTS)["items"]), done.stdout


def test_nobody_trusts_an_api_server_that_no_known_authority_has_signed(pod):
    """The certificates of the image are those that hold where a kubeconfig names none."""
    pod.write("config/kubeconfig", pod.cluster.at.kubeconfig({"token": "x"}, cluster={"insecure-skip-tls-verify": False}))
    done = pod.container.run("release-all", "--kubeconfig", "/etc/slipway/kubeconfig")
    assert done.returncode != 0 and "certificate" in done.stdout and "/etc/ssl" not in done.stdout, done.stdout


def test_the_modules_are_in_the_program_and_the_configuration_names_them(container, tmp_path):
    listed = container.run("--list-modules")
    assert listed.returncode == 0 and [line.split()[0] for line in listed.stdout.splitlines() if line.split()[0] in ("coordination", "pausing", "events", "stepping")] == \
        ["coordination", "events", "pausing", "stepping"], listed.stdout
    assert ".so" not in listed.stdout
    assert container.run("--check-config").returncode == 0, "without a file in /etc/slipway"
    shutil.copytree(TOP / "manifests" / "samples" / "configuration", tmp_path / "sample")
    container.mount(tmp_path / "sample", "/etc/slipway")
    checked = container.run("--check-config")
    assert checked.returncode == 0, checked.stdout
    (tmp_path / "sample" / "modules.d" / "colour.yaml").write_text("red: 1\n")
    refused = container.run("--check-config")
    assert refused.returncode != 0 and "colour" in refused.stdout, "it was read"


def test_no_shell_is_there_and_the_linker_finds_every_library(container):
    for program in ("/bin/sh", "/usr/bin/sh", "/usr/bin/dpkg"):
        assert container.run(program=[program]).returncode == 127, program
    (linker,) = [path for path in (container.root / "usr/lib").rglob("ld-linux*") if path.is_file()]
    linked = container.run("--list", "/usr/bin/slipway", program=["/" + str(linker.relative_to(container.root))])
    assert linked.returncode == 0 and "not found" not in linked.stdout and linked.stdout.count(" => /") >= 9, linked.stdout
