# SPDX-License-Identifier: Apache-2.0
"""Nodes of one namespace: only its DaemonSet chooses them, and nobody else's Pods are let there. They come and go as
replicas do."""

PATH = "/api/v1/nodes"


class Nodes:
    def __init__(self, scene, count):
        self.api, self.key = scene.api, "slipway.test/" + scene.namespace
        self.prefix, self.count = scene.namespace + "-node-", 0
        self.scale(count)

    def pod_spec(self):
        """What brings Pods there."""
        return {"nodeSelector": {self.key: "own"}, "tolerations": [{"key": self.key, "operator": "Exists"}]}

    def scale(self, count):
        for number in range(self.count, count):
            self.api.post(PATH, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.prefix + str(number), "labels": {self.key: "own"}},
                                 "spec": {"taints": [{"key": self.key, "effect": "NoSchedule"}]}})
        for number in range(count, self.count):
            self.api.remove(PATH + "/" + self.prefix + str(number))
        self.count = count
