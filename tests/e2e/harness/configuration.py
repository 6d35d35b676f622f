# SPDX-License-Identifier: Apache-2.0
"""A webhook configuration that slipway keeps, as its author and others treat it."""

import base64

from .cluster import SERVICE_ACCOUNT, api

KIND = "MutatingWebhookConfiguration"
GROUP = "admissionregistration.k8s.io"
PATH = "/apis/%s/v1/mutatingwebhookconfigurations" % GROUP
RBAC = "rbac.authorization.k8s.io/v1"
OURS = "deployments.slipway.dev"
# Of somebody else, beside ours in the same object; nothing comes to it.
OTHER = {"name": "other.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore", "timeoutSeconds": 1,
         "clientConfig": {"url": "https://127.0.0.1:1/elsewhere", "caBundle": base64.b64encode(b"not ours").decode()},
         "namespaceSelector": {"matchLabels": {"nobody": "has-it"}},
         "rules": [{"apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["statefulsets"], "operations": ["DELETE"], "scope": "*"}]}


class Configuration:
    """The object of one scenario, as its author and others treat it."""

    def __init__(self, scene):
        self.scene, self.name = scene, "slipway-" + scene.namespace
        self.path = "%s/%s" % (PATH, self.name)
        self.role = "keeper-" + scene.namespace

    @property
    def settings(self):
        return "webhook: {configurationName: %s}\n" % self.name

    def permit(self):
        """As manifests/install.yaml does for the object named slipway."""
        self.scene.cluster.apply({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": self.role}, "rules": [
                {"apiGroups": [GROUP], "resources": ["mutatingwebhookconfigurations"], "resourceNames": [self.name],
                 "verbs": ["get", "list", "watch", "patch"]}]},
            {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": self.role},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.role},
             "subjects": [{"kind": "ServiceAccount", "namespace": SERVICE_ACCOUNT[0], "name": SERVICE_ACCOUNT[1]}]}]})

    def forbid(self):
        self.scene.cluster.kubectl("delete", "clusterrolebinding,clusterrole", self.role, "--ignore-not-found")

    def make(self, slipway, ca=b"", annotations=None):
        """What a chart would apply, with an entry of somebody else before ours; the API server fills in defaults."""
        ours = {"name": OURS, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 7,
                "reinvocationPolicy": "IfNeeded",
                "clientConfig": {"url": slipway.webhook_url, "caBundle": base64.b64encode(ca).decode()},
                "namespaceSelector": {"matchLabels": {"slipway.test/namespace": self.scene.namespace}},
                "objectSelector": {"matchExpressions": [{"key": "nobody", "operator": "DoesNotExist"}]},
                "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE", "UPDATE"],
                           "scope": "Namespaced"}]}
        self.scene.api.post(PATH, {"apiVersion": GROUP + "/v1", "kind": KIND, "metadata": {"name": self.name, "annotations": annotations or {}},
                                   "webhooks": [OTHER, ours]})

    def delete(self):
        self.scene.api.delete(self.path)

    def read(self):
        return self.scene.api.get(self.path)

    @property
    def webhooks(self):
        return self.read()["webhooks"]

    @property
    def ours(self):
        return next(webhook for webhook in self.webhooks if webhook["name"] == OURS)

    def change(self, do):
        """do gets the webhooks and changes them; whoever writes in between is overwritten, as by a tool that applies a manifest."""
        while True:
            found = self.read()
            do(found["webhooks"])
            try:
                return self.scene.api.request("PUT", self.path, found)
            except api.ApiError as error:
                if error.status != 409:
                    raise
