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
from control_plane.instance import Instance, service_account_token  # noqa: E402
from story.simulator import Simulator  # noqa: E402

SERVICE_ACCOUNT = ("kube-system", "slipway")


class Cluster:
    """What both kinds have in common; at: the instance of the control plane, or the simulator."""

    apply_options = ()

    def __init__(self, at, folder):
        self._at = at
        self.api = at.client()
        self.server = at.server
        self.ca_file = at.ca_file
        self.folder = pathlib.Path(folder)
        self._env = at.environment()

    def install(self):
        """The CRDs, and the ServiceAccount with the permissions that slipway runs under."""
        for manifest in sorted((TOP / "manifests" / "crds").glob("*.yaml")):
            self.kubectl("apply", *self.apply_options, "-f", str(manifest))
        self.kubectl("apply", *self.apply_options, "-f", str(TOP / "manifests" / "rbac.yaml"))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")

    # ---- clients ----

    def environment(self):
        """For scripts: kubectl is found, and speaks to this cluster."""
        env = dict(os.environ, **self._env)
        if "SLIPWAY_KUBECTL" in env:
            env["PATH"] = os.path.dirname(env["SLIPWAY_KUBECTL"]) + os.pathsep + env["PATH"]
        return env

    def kubectl(self, *args, stdin=None, check=True):
        """What it prints; with check=False the finished process instead."""
        run = subprocess.run([self._env.get("SLIPWAY_KUBECTL", "kubectl"), *args], env=self.environment(), input=stdin, text=True,
                             capture_output=True, timeout=300)
        if not check:
            return run
        assert run.returncode == 0, "kubectl %s: %s" % (" ".join(args), run.stderr)
        return run.stdout

    def apply(self, manifest):
        return self.kubectl("apply", *self.apply_options, "-f", "-", stdin=json.dumps(manifest))

    def kubeconfig(self, namespace, server=None, ca_file=None, token=None):
        """For slipway: under its ServiceAccount unless said otherwise, so that a missing permission fails a scenario."""
        token = token or self.token()
        cluster = {"certificate-authority": str(ca_file)} if ca_file else None
        return self._at.kubeconfig({"token": token}, server=server, cluster=cluster, namespace=namespace)

    def token(self, namespace=SERVICE_ACCOUNT[0], name=SERVICE_ACCOUNT[1]):
        return service_account_token(self.api, namespace, name, 24 * 3600)

    # ---- kubelets ----

    @property
    def kubelets_port(self):
        return urllib.parse.urlsplit(self._at.kubelets_url).port

    def kubelets(self, method, path, body=None):
        request = urllib.request.Request(self._at.kubelets_url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def pods_take(self, namespace, **settings):
        """How Pods of the namespace behave from now on: start="3s", stop="2s", ready="false", fail="CrashLoopBackOff"."""
        self.kubelets("PUT", "/settings/" + namespace, dict(settings, namespace=namespace))

    def crash(self, namespace, pod, down="1s"):
        self.kubelets("POST", "/crash", {"namespace": namespace, "pod": pod, "down": down})

    # ---- webhook ----

    def register_webhook(self, name, namespace_label, url, ca_pem, failure_policy="Fail", timeout_s=5, reinvocation="IfNeeded"):
        self.apply({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "deployments.slipway.dev",
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "matchPolicy": "Equivalent",
                "reinvocationPolicy": reinvocation, "failurePolicy": failure_policy, "timeoutSeconds": timeout_s,
                "clientConfig": {"url": url, "caBundle": base64.b64encode(ca_pem).decode()},
                "namespaceSelector": {"matchLabels": {"slipway.test/namespace": namespace_label}},
                "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                           "operations": ["CREATE", "UPDATE"], "scope": "Namespaced"}],
            }],
        })

    def unregister_webhook(self, name):
        self.kubectl("delete", "mutatingwebhookconfiguration", name, "--ignore-not-found")


class RealCluster(Cluster):
    """An instance that runs already; start() makes one, or finds that which another has made."""

    kind = "real"

    def __init__(self, folder):
        instance = Instance(str(folder))
        instance.load()
        super().__init__(instance, folder)

    @staticmethod
    def start(folder, *options):
        """Starts what does not run of it; the same options each time."""
        subprocess.run([TOP / "tools" / "control-plane", "up", "--dir", folder, *options], check=True, stdin=subprocess.DEVNULL)
        cluster = RealCluster(folder)
        cluster.install()
        return cluster

    @staticmethod
    def stop(folder):
        subprocess.run([TOP / "tools" / "control-plane", "down", "--dir", folder], check=True, stdin=subprocess.DEVNULL)

    # ---- its parts ----

    def signal(self, part, number):
        """To kube-controller-manager, kube-apiserver or etcd. Only where no other scenario needs them."""
        os.kill(self._at.running(part).pid, number)

    def compact(self):
        """etcd forgets all that was before now. https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/"""
        def ask(path, body):
            request = urllib.request.Request("http://127.0.0.1:%d/v3/kv/%s" % (self._at.state["ports"]["etcd"], path),
                                             data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())
        revision = ask("range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"]
        ask("compaction", {"revision": revision, "physical": True})


class SimulatedCluster(Cluster):
    """slipway-sim in a process of its own."""

    kind = "sim"
    apply_options = ("--validate=false",)  # it has no OpenAPI document

    def __init__(self, folder):
        super().__init__(Simulator(folder), folder)

    @staticmethod
    def start(folder, *_):
        folder = pathlib.Path(folder)
        if not (folder / "state.json").exists():
            build = pathlib.Path(os.environ.get("SLIPWAY_BUILD") or TOP / "build")
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

__all__ = ["KINDS", "RealCluster", "SimulatedCluster", "api", "only_real"]
