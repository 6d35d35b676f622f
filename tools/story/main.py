# SPDX-License-Identifier: Apache-2.0
"""Brings up a cluster, starts slipway, changes three Deployments at once and shows what becomes of them."""

import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

from control_plane import api  # noqa: E402
from control_plane.instance import Instance, service_account_token  # noqa: E402
from story.certificate import make_certificate  # noqa: E402
from story.timeline import Timeline  # noqa: E402

NAMES = ("cart", "catalog", "checkout")
NAMESPACE = "shop"
DEPLOYMENTS = "/apis/apps/v1/namespaces/%s/deployments" % NAMESPACE
WEBHOOK_PATH = "/mutate-apps-v1-deployment"
MODULES = ("coordination", "pausing", "events")

DESCRIPTION = """\
Plays slipway's story on a cluster of its own on this machine: three Deployments of one application
are changed at the same moment, and roll one after the other. Installs and builds what is missing.
"""
EPILOG = """\
The cluster is a real etcd, kube-apiserver and kube-controller-manager on 127.0.0.1; no container
runs, a helper plays the kubelets. They are built once, which takes about six minutes. Everything is
stopped and removed at the end. tools/control-plane --help tells how to keep a cluster for yourself.
"""


class Failed(Exception):
    pass


# ---- steps ----

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


def run_shown(*argv):
    """For what shows its own progress."""
    if subprocess.call([str(arg) for arg in argv], cwd=TOP, stdin=subprocess.DEVNULL):
        raise Failed("%s failed (see above)" % " ".join(map(str, argv)))


def build():
    if not (TOP / "build" / "build.ninja").exists():
        # Without what only tests need; tools/test asks for that.
        run("meson", "setup", "build", "-Dtests=disabled")
    run("ninja", "-C", "build", "slipway", "modules")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


# ---- the cluster ----

def kubectl(instance, *args, stdin=None):
    env = instance.environment()
    done = subprocess.run([env.get("SLIPWAY_KUBECTL", "kubectl"), *args], env=dict(os.environ, **env), input=stdin, text=True,
                          capture_output=True)
    if done.returncode:
        raise Failed("kubectl %s: %s" % (" ".join(args), done.stderr.strip()))
    return done.stdout


def install(instance):
    for manifest in sorted((TOP / "manifests" / "crds").glob("*.yaml")):
        kubectl(instance, "apply", "-f", str(manifest))
    kubectl(instance, "apply", "-f", str(TOP / "manifests" / "rbac.yaml"))
    kubectl(instance, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


def register_webhook(instance, port, ca_pem):
    kubectl(instance, "apply", "-f", "-", stdin=json.dumps({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "slipway"},
        "webhooks": [{
            "name": "deployments.slipway.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "reinvocationPolicy": "IfNeeded", "failurePolicy": "Fail", "timeoutSeconds": 3,
            "clientConfig": {"url": "https://127.0.0.1:%d%s" % (port, WEBHOOK_PATH),
                             "caBundle": base64.b64encode(ca_pem).decode()},
            "namespaceSelector": {"matchLabels": {"slipway.dev/sample": "shop"}},
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                       "operations": ["CREATE", "UPDATE"], "scope": "Namespaced"}],
        }],
    }))


class Slipway:
    """The process, under its own ServiceAccount."""

    def __init__(self, instance, folder):
        self.folder = folder / "slipway"
        self.health_port, self.webhook_port = free_port(), free_port()
        self.ca_pem = make_certificate(self.folder / "certs")
        token = service_account_token(instance.client(), "kube-system", "slipway", 3600)
        (self.folder / "kubeconfig").write_text(instance.kubeconfig({"token": token}, namespace="kube-system"))
        (self.folder / "slipway.yaml").write_text("modules: [%s]\n" % ", ".join(MODULES))
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([
                TOP / "build" / "slipway", "--config", self.folder / "slipway.yaml",
                "--kubeconfig", self.folder / "kubeconfig", "--log-format", "console",
                "--webhook-bind-address", "127.0.0.1:%d" % self.webhook_port,
                "--webhook-cert-dir", self.folder / "certs",
                "--health-probe-bind-address", "127.0.0.1:%d" % self.health_port,
                "--metrics-bind-address", "127.0.0.1:%d" % free_port(),
            ], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

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

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


# ---- the story ----

def until(condition, what, timeout_s=60):
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise Failed("after %d s still not: %s" % (timeout_s, what))
        time.sleep(0.1)


class Watcher(threading.Thread):
    """Feeds the timeline from a watch of the Deployments."""

    def __init__(self, client, timeline):
        super().__init__(daemon=True)
        self.client, self.timeline = client, timeline
        self.lock = threading.Lock()
        self.is_done = False

    def run(self):
        while not self.is_done:
            try:
                found = self.client.get(DEPLOYMENTS)
                for item in found["items"]:
                    self.see(item)
                for what, item in self.client.watch(DEPLOYMENTS, found["metadata"]["resourceVersion"]):
                    if what in ("ADDED", "MODIFIED"):
                        self.see(item)
            except (api.ApiError, *api.BROKEN):
                time.sleep(0.2)

    def see(self, item):
        with self.lock:
            self.timeline.see(item)


def at_rest(client):
    coordination = client.get("/apis/apps.containerinfra.nl/v1/namespaces/%s/deploymentcoordinations/%s" % (NAMESPACE, NAMESPACE))
    ready = [c for c in coordination.get("status", {}).get("conditions") or [] if c["type"] == "Ready" and c["status"] == "True"]
    if not ready:
        return False
    items = client.get(DEPLOYMENTS)["items"]
    return len(items) == len(NAMES) and all((item.get("status", {}).get("availableReplicas") or 0) == 3 for item in items)


def change_all(client, timeline):
    patches = [(name, {"spec": {"template": {"spec": {"containers": [{"name": name, "image": "example.org/%s:%s" % (name, timeline.version)}]}}}})
               for name in NAMES]
    timeline.changed()
    for name, patch in patches:
        client.patch(DEPLOYMENTS + "/" + name, patch, api.STRATEGIC)


def watch_it(watcher, timeline, timeout_s=120):
    """Draws while it happens: on a terminal the picture in place, elsewhere a line for each change."""
    is_live, drawn, told = sys.stdout.isatty(), 0, {}
    while not timeline.is_over():
        if timeline.now() > timeout_s:
            raise Failed("after %d s they have not all rolled out" % timeout_s)
        with watcher.lock:
            rows = list(timeline.rows(True)) if is_live else []
            states = {track.name: track.state for track in timeline.tracks.values()}
        if is_live:
            print("\033[%dA" % drawn if drawn else "", end="")
            print("\n".join("\r\033[K" + row for row in rows), flush=True)
            drawn = len(rows)
        for name, state in states.items():
            if not is_live and told.get(name) != state:
                print("  %6.2f s  %-10s %s" % (timeline.now(), name, state), flush=True)
                told[name] = state
        time.sleep(0.1)
    if is_live:
        print("\033[%dA" % drawn if drawn else "", end="")
    print("\n".join(("\r\033[K" if is_live else "") + row for row in timeline.rows(is_live)))


def summary(timeline, slipway):
    print()
    print("\n".join(timeline.table()))
    handovers = [seconds for _, _, seconds in timeline.handovers()]
    print()
    print("All three changed at once. At most %d rolled at a time; all were done after %.1f s." % (timeline.most_at_once(), timeline.now()))
    if handovers:
        print("From one being complete to the next being released: %s." % ", ".join("%.0f ms" % (1000 * s) for s in handovers))
    print("slipway used %.1f MiB of memory." % slipway.resident_mib())


def play(folder):
    instance_folder = folder / "control-plane"
    try:
        with Step("start etcd, kube-apiserver, kube-controller-manager"):
            run("tools/control-plane", "up", "--dir", instance_folder)
        instance = Instance(str(instance_folder))
        instance.load()
        client = instance.client()
        with Step("install the CRD and slipway's permissions"):
            install(instance)
        with Step("start slipway with the modules %s" % ", ".join(MODULES)):
            slipway = Slipway(instance, folder)
        try:
            tell(instance, client, slipway)
        finally:
            slipway.stop()
    finally:
        with Step("stop and remove everything"):
            run("tools/control-plane", "down", "--dir", instance_folder)


def tell(instance, client, slipway):
    slipway.wait_ready()
    register_webhook(instance, slipway.webhook_port, slipway.ca_pem)
    request = urllib.request.Request(instance.kubelets_url + "/settings", method="PATCH", data=b'{"start": "1s", "stop": "300ms"}',
                                     headers={"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).close()
    with Step("create the Deployments %s under the coordination %s" % (", ".join(NAMES), NAMESPACE)):
        kubectl(instance, "apply", "-f", str(TOP / "manifests" / "samples" / "shop.yaml"))
        until(lambda: at_rest(client), "all three run and the coordination is Ready")
    timeline = Timeline(NAMES, "2.0.0")
    watcher = Watcher(client, timeline)
    watcher.start()
    print("\nNow all three get a new image in the same moment:  · waits   █ rolls   ─ done\n")
    change_all(client, timeline)
    watch_it(watcher, timeline)
    watcher.is_done = True
    summary(timeline, slipway)
    print("\nWhat kubectl shows of it:\n")
    for args in (("get", "deploymentcoordinations", "-n", NAMESPACE),
                 ("get", "events", "-n", NAMESPACE, "--field-selector", "involvedObject.kind=DeploymentCoordination",
                  "--sort-by=.lastTimestamp")):
        print("$ kubectl " + " ".join(args))
        print(kubectl(instance, *args))
    if timeline.most_at_once() > 1:
        raise Failed("two rolled at once: that must never happen")


def main():
    parser = argparse.ArgumentParser(prog="./tools/run", description=DESCRIPTION, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="on a real control plane")
    args = parser.parse_args()
    if not args.real:
        parser.error("say on what to play it: ./tools/run --real")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="slipway-run-"))
    try:
        with Step("look for missing packages"):
            run("tools/packages", "build", "control-plane")
        with Step("build slipway"):
            build()
        run_shown("tools/control-plane", "build")
        play(folder)
    except Failed as error:
        log = folder / "slipway" / "log"
        print("\n./tools/run: %s" % error, file=sys.stderr)
        if log.exists():
            print("\nslipway's last words:\n%s" % "\n".join(log.read_text().splitlines()[-15:]), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
