# SPDX-License-Identifier: Apache-2.0
"""What is done to a cluster from outside, real or simulated: kubectl, what slipway needs there, the kubelets that play."""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

from control_plane.instance import service_account_token  # noqa: E402

SERVICE_ACCOUNT = ("kube-system", "slipway")
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


PERMISSIONS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def manifests(name, kinds):
    """Those documents of a file below manifests/ that are of these kinds, as one text."""
    documents = re.split(r"(?m)^---\n", (TOP / "manifests" / name).read_text())
    return "---\n".join(found for found in documents if re.search(r"(?m)^kind: (%s)$" % "|".join(kinds), found))


class Failed(Exception):
    """Its text is for the user."""


class Access:
    """at: the instance of the control plane, or the simulator. For its administrator."""

    def __init__(self, at):
        self.at = at
        self.api = at.client()

    # ---- clients ----

    def environment(self):
        """For scripts: kubectl is found, and speaks to this cluster."""
        env = dict(os.environ, **self.at.environment())
        if "SLIPWAY_KUBECTL" in env:
            env["PATH"] = os.path.dirname(env["SLIPWAY_KUBECTL"]) + os.pathsep + env["PATH"]
        return env

    def kubectl(self, *args, stdin=None, check=True):
        """What it prints; with check=False the finished process instead."""
        env = self.environment()
        done = subprocess.run([env.get("SLIPWAY_KUBECTL", "kubectl"), *args], env=env, input=stdin, text=True, capture_output=True, timeout=300)
        if not check:
            return done
        if done.returncode:
            raise Failed("kubectl %s: %s" % (" ".join(args), done.stderr.strip()))
        return done.stdout

    def apply(self, what):
        """A manifest, its text, or the path of a file. Not validated by kubectl: slipway-sim has no OpenAPI document."""
        is_path = isinstance(what, pathlib.Path)
        file, stdin = (str(what), None) if is_path else ("-", what if isinstance(what, str) else json.dumps(what))
        return self.kubectl("apply", "--validate=false", "-f", file, stdin=stdin)

    # ---- slipway ----

    def install(self):
        """The CRDs, and the ServiceAccount with the permissions that slipway runs under."""
        for manifest in sorted((TOP / "manifests" / "crds").glob("*.yaml")):
            self.apply(manifest)
        self.apply(manifests("install-stepping.yaml", PERMISSIONS))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")

    def token(self, namespace=SERVICE_ACCOUNT[0], name=SERVICE_ACCOUNT[1]):
        return service_account_token(self.api, namespace, name, 24 * 3600)

    def kubeconfig(self, namespace, server=None, ca_file=None, token=None):
        """For slipway: under its ServiceAccount unless said otherwise, so that a missing permission is noticed."""
        cluster = {"certificate-authority": str(ca_file)} if ca_file else None
        return self.at.kubeconfig({"token": token or self.token()}, server=server, cluster=cluster, namespace=namespace)

    def register_webhook(self, name, labels, url, ca_pem, failure_policy="Fail", timeout_s=5, reinvocation="IfNeeded"):
        """The API server asks that URL before it stores a Deployment in a namespace that has the labels."""
        self.api.put_in_place(WEBHOOKS, {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "deployments.slipway.dev",
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "matchPolicy": "Equivalent",
                "reinvocationPolicy": reinvocation, "failurePolicy": failure_policy, "timeoutSeconds": timeout_s,
                "clientConfig": {"url": url, "caBundle": base64.b64encode(ca_pem).decode()},
                "namespaceSelector": {"matchLabels": labels},
                "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                           "operations": ["CREATE", "UPDATE"], "scope": "Namespaced"}],
            }],
        })

    def unregister_webhook(self, name):
        self.api.remove(WEBHOOKS + "/" + name)

    # ---- kubelets ----

    def kubelets(self, method, path, body=None):
        """To the process that plays them: how Pods behave, see tools/kubelets --help."""
        request = urllib.request.Request(self.at.kubelets_url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")
