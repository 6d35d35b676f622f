# SPDX-License-Identifier: Apache-2.0
"""The installed chart. What a node would do is done here: for each Pod of slipway a process runs with the arguments, the
configuration files and the ServiceAccount that the Pod has in the API server, and ends when the Pod is gone.

Only where it listens is its own choice, since there is one machine, and how it reaches the API server, since the folder of a Pod's token is
not ours. A nodeSelector that no Node meets keeps the Pods from those who play kubelets in other tests.
"""

import http.client
import os
import pathlib
import ssl
import subprocess

from chart import CHARTS, helm, helm_path
from harness.cluster import api
from harness.slipway import BUILD, Mounted, Slipway, free_port
from harness.wait import until

NAMESPACE = "kube-system"
VALUES = {"nodeSelector": {"slipway.test/played": "here"}}
PODS = "/api/v1/namespaces/%s/pods" % NAMESPACE
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = CONFIGURATIONS.replace("mutating", "validating")
OF_SLIPWAY = {"app.kubernetes.io/name": "slipway", "app.kubernetes.io/instance": "slipway", "app.kubernetes.io/component": "operator"}


def files_of(cluster, pod):
    """name: text, of the volume with the configuration."""
    volume = next(volume["configMap"] for volume in pod["spec"]["volumes"] if volume["name"] == "config")
    data = cluster.api.get("/api/v1/namespaces/%s/configmaps/%s" % (NAMESPACE, volume["name"]))["data"]
    return {item["path"]: data[item["key"]] for item in volume["items"]}


class Container:
    """What both a replica and the Job need."""

    def __init__(self, cluster, folder, pod):
        self.folder = folder / pod["metadata"]["name"]
        self.folder.mkdir(parents=True)
        self.token = cluster.token(NAMESPACE, pod["spec"]["serviceAccountName"])
        (self.folder / "kubeconfig").write_text(cluster.kubeconfig(NAMESPACE, token=self.token))
        self.mounted = Mounted(self.folder / "etc")
        self.mounted.publish(files_of(cluster, pod))
        args = pod["spec"]["containers"][0]["args"]
        self.argv = [str(BUILD / "slipway"), *(arg.replace("/etc/slipway/", "%s/" % self.mounted.path) for arg in args),
                     "--kubeconfig", str(self.folder / "kubeconfig")]


class Replica(Slipway):
    def __init__(self, cluster, folder, pod):
        self.cluster, self.namespace, self.name, self.pod = cluster, NAMESPACE, pod["metadata"]["name"], pod
        container = Container(cluster, folder, pod)
        self.folder, self.mounted = container.folder, container.mounted
        self.log_path = self.folder / "log"
        self.webhook_port, self.health_port, self.metrics_port = free_port(), free_port(), free_port()
        self.argv = container.argv + [
            "--webhook-bind-address", "127.0.0.1:%d" % self.webhook_port, "--health-probe-bind-address", "127.0.0.1:%d" % self.health_port,
            "--metrics-bind-address", "127.0.0.1:%d" % self.metrics_port]
        named = [entry for entry in pod["spec"]["containers"][0]["env"] if entry["name"] == "POD_NAME"]
        assert named[0]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
        self.env = dict(os.environ, POD_NAME=self.name)
        self.leader_elect, self.process, self.overlap_s = True, None, 0.0
        self.is_metrics_secure = False  # not for the administrator
        self.secrets = [container.token, *container.token.split(".")[1:]]

    def remount(self):
        """What its volume holds after the ConfigMap has changed."""
        self.mounted.publish(files_of(self.cluster, self.pod))

    def ask_for_metrics(self, token=None):
        """(status, text)"""
        unverified = ssl.create_default_context()
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.metrics_port, timeout=30, context=unverified)
        try:
            connection.request("GET", "/metrics", headers={"Authorization": "Bearer " + token} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def get(self, port, path):
        """Metrics as the cluster's administrator."""
        if port != self.metrics_port:
            return super().get(port, path)
        return self.ask_for_metrics(pathlib.Path(self.cluster.environment()["SLIPWAY_CONTROL_PLANE_TOKEN_FILE"]).read_text().strip())

    @property
    def is_leading(self):
        """By the Lease, which needs no permission to read metrics."""
        try:
            lease = self.cluster.api.get("/apis/coordination.k8s.io/v1/namespaces/%s/leases/slipway" % NAMESPACE)
        except api.ApiError:
            return False
        return self.is_running and (lease["spec"].get("holderIdentity") or "").startswith(self.name + "_")


class Installed:
    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.replicas, self.others = cluster, folder, [], []
        self.env = dict(cluster.environment(), HELM_CACHE_HOME=str(folder / "helm"), HELM_CONFIG_HOME=str(folder / "helm"),
                        HELM_DATA_HOME=str(folder / "helm"))

    def helm(self, *args, values=None, check=True):
        return helm(*args, "--namespace", NAMESPACE, values=values, env=self.env, check=check)

    def install(self, values=None):
        self.helm("install", "slipway-crds", CHARTS / "slipway-crds")
        self.cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        self.helm("install", "slipway", CHARTS / "slipway", values=dict(VALUES, **(values or {})))
        self.take_up()

    def upgrade(self, values):
        self.helm("upgrade", "slipway", CHARTS / "slipway", values=dict(VALUES, **values))

    # ---- Pods ----

    def pods(self, labels):
        selector = "%2C".join("%s%%3D%s" % (key.replace("/", "%2F"), value) for key, value in labels.items())
        return [pod for pod in self.cluster.api.get(PODS + "?labelSelector=" + selector)["items"] if not pod["metadata"].get("deletionTimestamp")]

    def take_up(self):
        """A process for each Pod of the Deployment."""
        wanted = self.cluster.api.get("/apis/apps/v1/namespaces/%s/deployments/slipway" % NAMESPACE)["spec"]["replicas"]
        until(lambda: len(self.pods(OF_SLIPWAY)) == wanted, "%d Pods of slipway are made" % wanted)
        for pod in self.pods(OF_SLIPWAY):
            self.replicas.append(Replica(self.cluster, self.folder, pod).start(wait=False))
        for replica in self.replicas:
            replica.wait_ready()

    def end_those_without_pod(self):
        names = {pod["metadata"]["name"] for pod in self.pods(OF_SLIPWAY)}
        for replica in self.replicas:
            if replica.is_running and replica.name not in names:
                replica.stop()

    # ---- the webhook ----

    def connect(self):
        """As kube-proxy would: what is for the Service of the webhook comes to the first replica. Its certificate is still verified for
        the Service's name."""
        self.cluster.api.patch("/api/v1/namespaces/%s/services/slipway-webhook" % NAMESPACE,
                               {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}})
        for path in CONFIGURATIONS, VALIDATING:
            found = [entry for entry in self.cluster.api.get(path)["items"] if entry["metadata"]["name"] == "slipway"]
            for number in range(len(found[0]["webhooks"]) if found else 0):
                self.cluster.api.patch(path + "/slipway", [{"op": "add", "path": "/webhooks/%d/clientConfig/service/port" % number,
                                                            "value": self.replicas[0].webhook_port}], "application/json-patch+json")

    # ---- the end ----

    def begin_uninstall(self):
        argv = [helm_path(), "uninstall", "slipway", "--namespace", NAMESPACE]
        self.others.append(subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return self.others[-1]

    def job_pod(self):
        labels = dict(OF_SLIPWAY, **{"app.kubernetes.io/component": "release"})
        return until(lambda: self.pods(labels), "the Job before the uninstallation has a Pod")[0]

    def begin_job(self, pod):
        container = Container(self.cluster, self.folder, pod)
        self.said = container.folder / "said"
        with open(self.said, "w") as said:
            self.others.append(subprocess.Popen(container.argv, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT))
        return self.others[-1]

    def end_job(self, pod, code):
        """The Pod's status, as its kubelet would write it."""
        phase = "Failed" if code else "Succeeded"
        self.cluster.api.patch("%s/%s/status" % (PODS, pod["metadata"]["name"]), {"status": {"phase": phase}})

    def close(self):
        """Whatever is left, also after a failure: the cluster is as it was."""
        for replica in self.replicas:
            if replica.is_running:
                replica.kill()
        for process in self.others:
            process.kill()
            process.wait()
        for release in "slipway", "slipway-crds":
            self.helm("uninstall", release, "--no-hooks", check=False)
        self.cluster.kubectl("delete", "job", "slipway-release", "-n", NAMESPACE, "--ignore-not-found")
        self.cluster.kubectl("delete", "clusterrole,clusterrolebinding", "slipway-release", "--ignore-not-found")
        self.cluster.kubectl("delete", "lease", "slipway", "-n", NAMESPACE, "--ignore-not-found")
        self.cluster.kubectl("delete", "crd", "deploymentcoordinations.apps.containerinfra.nl", "steppedrollouts.slipway.dev", "--ignore-not-found")
