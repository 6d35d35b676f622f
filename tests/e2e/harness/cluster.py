# SPDX-License-Identifier: Apache-2.0
"""A cluster as the scenarios see it. RealCluster is etcd, kube-apiserver and kube-controller-manager from
tools/control-plane; whatever else has the same methods can take its place.
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tools"))

from control_plane import api  # noqa: E402
from control_plane.instance import Instance, service_account_token  # noqa: E402

SERVICE_ACCOUNT = ("kube-system", "slipway")


class RealCluster:
    """An instance that runs already; start() makes one."""

    kind = "real"

    def __init__(self, folder):
        self._instance = Instance(str(folder))
        self._instance.load()
        self.api = self._instance.client()
        self.server = self._instance.server
        self.ca_file = self._instance.ca_file
        self.folder = pathlib.Path(folder)
        self._env = self._instance.environment()

    @staticmethod
    def start(folder):
        subprocess.run([TOP / "tools" / "control-plane", "up", "--dir", folder], check=True, stdin=subprocess.DEVNULL)
        cluster = RealCluster(folder)
        cluster.install()
        return cluster

    @staticmethod
    def stop(folder):
        subprocess.run([TOP / "tools" / "control-plane", "down", "--dir", folder], check=True, stdin=subprocess.DEVNULL)

    def install(self):
        """The CRDs, and the ServiceAccount with the permissions that slipway runs under."""
        for manifest in sorted((TOP / "manifests" / "crds").glob("*.yaml")):
            self.kubectl("apply", "-f", str(manifest))
        self.kubectl("apply", "-f", str(TOP / "manifests" / "rbac.yaml"))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")

    # ---- clients ----

    def kubectl(self, *args, stdin=None, check=True):
        """What it prints; with check=False the finished process instead."""
        run = subprocess.run([self._env.get("SLIPWAY_KUBECTL", "kubectl"), *args], env=dict(os.environ, **self._env), input=stdin, text=True, capture_output=True, timeout=120)
        if not check:
            return run
        assert run.returncode == 0, "kubectl %s: %s" % (" ".join(args), run.stderr)
        return run.stdout

    def apply(self, manifest):
        return self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def kubeconfig(self, namespace, server=None, ca_file=None):
        """For slipway: under its ServiceAccount, so that a missing permission fails a scenario."""
        token = service_account_token(self.api, *SERVICE_ACCOUNT, 24 * 3600)
        cluster = {"certificate-authority": str(ca_file)} if ca_file else None
        return self._instance.kubeconfig({"token": token}, server=server, cluster=cluster, namespace=namespace)

    def token(self):
        return service_account_token(self.api, *SERVICE_ACCOUNT, 24 * 3600)

    # ---- kubelets ----

    def kubelets(self, method, path, body=None):
        request = urllib.request.Request(self._instance.kubelets_url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
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


__all__ = ["RealCluster", "api"]
