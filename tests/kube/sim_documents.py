# SPDX-License-Identifier: Apache-2.0
"""Documents and patches on which the simulated API server and the real one must agree."""


def workload(kind, **spec):
    pods = {"containers": [{"name": "a", "image": "a:1"}]}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": pods}, **spec}}


def deployment(**spec):
    return workload("Deployment", **{"paused": True, "replicas": 0, **spec})


def with_pods(given, **pods):
    given["spec"]["template"]["spec"].update(pods)
    return given


def core(kind, **members):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **members}


CONTAINER = {
    "name": "a", "image": "registry:5000/a", "command": ["a"], "args": [], "workingDir": "",
    "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP", "name": "u"}],
    "env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}}],
    "envFrom": [{"configMapRef": {"name": "c"}}],
    "resources": {"limits": {"cpu": "1500m", "memory": "1024Mi"}, "requests": {"cpu": 0.5, "memory": "0.5Gi"}},
    "livenessProbe": {"httpGet": {"port": 80}}, "readinessProbe": {"exec": {"command": ["x"]}, "timeoutSeconds": 5, "initialDelaySeconds": 0},
    "startupProbe": {"tcpSocket": {"port": "u"}}, "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/x"}}},
    "volumeMounts": [{"name": "v0", "mountPath": "/v0"}, {"name": "v1", "mountPath": "/v1", "readOnly": True}],
    "securityContext": {"runAsNonRoot": False, "capabilities": {"drop": ["ALL"]}},
}
VOLUMES = [
    {"name": "v0"}, {"name": "v1", "secret": {"secretName": "s"}}, {"name": "v2", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
    {"name": "v3", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [
        {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}},
    {"name": "v4", "hostPath": {"path": "/x"}}, {"name": "v5", "emptyDir": {"medium": "Memory", "sizeLimit": "100M"}},
    {"name": "v6", "persistentVolumeClaim": {"claimName": "p"}},
    {"name": "v7", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
]

# What comes out of a create: defaults, what is dropped, what is always written.
DEFAULTS = {
    "deployment": workload("Deployment"),
    "deployment-null": deployment(replicas=None, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, minReadySeconds=0),
    "deployment-recreate": deployment(strategy={"type": "Recreate"}, revisionHistoryLimit=0, unknown=3),
    "deployment-full": with_pods(deployment(), containers=[CONTAINER], volumes=VOLUMES, initContainers=[{"name": "i", "image": "i:latest"}],
                                 tolerations=[{"key": "a", "operator": "Exists"}], serviceAccountName="sa", hostNetwork=False,
                                 affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                                     {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}]}},
                                 imagePullSecrets=[{"name": "p"}], hostAliases=[{"ip": "1.2.3.4", "hostnames": ["h"]}],
                                 topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]),
    "replicaset": workload("ReplicaSet", replicas=0),
    "statefulset": workload("StatefulSet", serviceName="s", replicas=0),
    "statefulset-ondelete": workload("StatefulSet", serviceName="s", replicas=0, updateStrategy={"type": "OnDelete"}),
    "statefulset-claims": workload("StatefulSet", serviceName="s", replicas=0, volumeClaimTemplates=[
        {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]),
    "daemonset": with_pods(workload("DaemonSet"), nodeSelector={"none": "here"}),
    "pod": core("Pod", spec={"containers": [{"name": "a", "image": "a"}], "schedulerName": "none"}),
    "pod-full": core("Pod", spec={"containers": [dict(CONTAINER, volumeMounts=[])], "terminationGracePeriodSeconds": 0, "schedulerName": "none",
                                  "automountServiceAccountToken": False}),
    "pod-guaranteed": core("Pod", spec={"schedulerName": "none", "containers": [
        {"name": "a", "image": "a:1", "resources": {"limits": {"cpu": "1", "memory": "1G"}}}]}),
    "pod-tolerates": core("Pod", spec={"schedulerName": "none", "containers": [{"name": "a", "image": "a:1"}],
                                       "tolerations": [{"operator": "Exists"}]}),
    "service": core("Service", spec={"selector": {"a": "b"}, "ports": [{"port": 80}, {"port": 81, "targetPort": "web", "name": "n"}][:1]}),
    "service-headless": core("Service", spec={"clusterIP": "None", "ports": [{"port": 80, "targetPort": "web"}], "sessionAffinity": "ClientIP"}),
    "configmap": core("ConfigMap", data={"a": "b", "c": ""}, other=1),
    "configmap-empty": core("ConfigMap", data={}),
    "secret": core("Secret", data={"a": "Yg=="}, stringData={"c": "d"}),
    "endpoints": core("Endpoints", subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]),
    "lease": {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x", "labels": {}},
              "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0, "renewTime": "2026-01-02T03:04:05.678901+02:00"}},
    "event": core("Event", involvedObject={"kind": "Pod", "namespace": "NAMESPACE", "name": "p"}, reason="R", message="m", type="Normal", count=1,
                  firstTimestamp="2026-01-02T03:04:05Z"),
    "new-event": {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "x"}, "eventTime": "2026-01-02T03:04:05.000001Z",
                  "action": "A", "reason": "R", "type": "Normal", "reportingController": "c.x/y", "reportingInstance": "i",
                  "regarding": {"kind": "Pod", "namespace": "NAMESPACE", "name": "p"}, "note": "n"},
}

CONTAINERS = [{"name": "a", "image": "a:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, {"name": "b", "image": "b:1"},
              {"name": "c", "image": "c:1"}]
THREE = with_pods(deployment(), containers=CONTAINERS, volumes=[{"name": "v"}, {"name": "w", "configMap": {"name": "c"}}])
MARKED = core("ConfigMap", data={"a": "1", "b": "2"})
MARKED["metadata"].update(labels={"l": "1", "m": "2"}, finalizers=["x.org/a", "x.org/b", "x.org/c"],
                          ownerReferences=[{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1"},
                                           {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "2", "controller": True}])


def pods(**members):
    return {"spec": {"template": {"spec": members}}}


# (object, how, patch)
PATCHES = {
    "merge-members": (MARKED, "merge", {"data": {"a": None, "c": "3"}, "metadata": {"labels": {"m": None}}}),
    "merge-list": (THREE, "merge", pods(containers=[{"name": "z", "image": "z:1", "env": None}])),
    "merge-null-object": (THREE, "merge", {"metadata": {"annotations": {"a": "b", "c": None}}}),
    "merge-finalizers": (MARKED, "merge", {"metadata": {"finalizers": ["x.org/b"]}}),
    "json-operations": (THREE, "json", [{"op": "replace", "path": "/spec/replicas", "value": 2}, {"op": "add", "path": "/metadata/labels", "value": {"a/b": "c"}},
                                        {"op": "copy", "from": "/spec/template/spec/containers/0", "path": "/spec/template/spec/containers/-"},
                                        {"op": "replace", "path": "/spec/template/spec/containers/3/name", "value": "d"},
                                        {"op": "move", "from": "/metadata/labels/a~1b", "path": "/metadata/labels/q"},
                                        {"op": "remove", "path": "/spec/template/spec/containers/1"}, {"op": "test", "path": "/spec/paused", "value": True}]),
    "json-replace-absent": (MARKED, "json", [{"op": "replace", "path": "/data/z", "value": "1"}]),
    "json-test-absent": (MARKED, "json", [{"op": "test", "path": "/data/z", "value": None}, {"op": "add", "path": "/data/z", "value": "1"}]),
    "json-negative": (MARKED, "json", [{"op": "remove", "path": "/metadata/finalizers/-1"}]),
    "strategic-image": (THREE, "strategic", pods(containers=[{"name": "b", "image": "b:2"}])),
    "strategic-add": (THREE, "strategic", pods(containers=[{"name": "z", "image": "z:1"}, {"name": "b", "image": "b:2"}])),
    "strategic-delete": (THREE, "strategic", pods(containers=[{"name": "a", "$patch": "delete"}])),
    "strategic-replace": (THREE, "strategic", pods(containers=[{"$patch": "replace"}, {"name": "n", "image": "n:1"}])),
    "strategic-order": (THREE, "strategic", pods(**{"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "a", "image": "a:2"}]})),
    "strategic-order-all": (THREE, "strategic", pods(**{"$setElementOrder/containers": [{"name": "c"}, {"name": "n"}, {"name": "b"}, {"name": "a"}],
                                                        "containers": [{"name": "n", "image": "n:2"}]})),
    "strategic-env": (THREE, "strategic", pods(containers=[{"name": "a", "env": [{"name": "B", "value": None, "valueFrom": {"fieldRef": {
        "fieldPath": "metadata.name"}}}, {"name": "C", "value": "3"}]}])),
    "strategic-retain": (THREE, "strategic", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    "strategic-volume": (THREE, "strategic", pods(volumes=[{"name": "w", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}])),
    "strategic-replace-map": (THREE, "strategic", {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}}),
    "strategic-null": (THREE, "strategic", {"spec": {"minReadySeconds": None, "template": {"metadata": {"annotations": {"a": "b", "c": None}}}}}),
    "strategic-args": (THREE, "strategic", pods(containers=[{"name": "a", "args": ["1"]}], tolerations=[{"key": "k", "operator": "Exists"}])),
    "strategic-ports": (THREE, "strategic", pods(containers=[{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}])),
    "strategic-finalizers": (MARKED, "strategic", {"metadata": {"finalizers": ["x.org/d", "x.org/b"]}}),
    "strategic-drop-finalizer": (MARKED, "strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.org/b"],
                                                                   "$setElementOrder/finalizers": ["x.org/a", "x.org/c"]}}),
    "strategic-owners": (MARKED, "strategic", {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "1"},
                                                                              {"uid": "3", "apiVersion": "v1", "kind": "K", "name": "p"}]}}),
    "strategic-selector": (core("Service", spec={"selector": {"a": "b"}, "clusterIP": "None", "ports": [{"port": 80, "name": "n"}, {"port": 81, "name": "m"}]}), "strategic",
                           {"spec": {"selector": {"c": "d"}, "ports": [{"port": 81, "targetPort": 9}]}}),
}

WIDGET = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.sim.slipway.dev"},
    "spec": {"group": "sim.slipway.dev", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
                     "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "default": 3},
                     "mode": {"type": "string", "enum": ["On", "Off"], "default": "On"},
                     "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
                     "maybe": {"type": "string", "nullable": True},
                     "at": {"type": "string", "format": "date-time"},
                     "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                     "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                     "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                     "list": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                     "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                         "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}}}}}}}}}}]}}


def widget(**spec):
    return {"apiVersion": "sim.slipway.dev/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": spec}


DEFAULTS.update({
    "widget": widget(),
    "widget-null": widget(size=None, name=None, maybe=None),
    "widget-pruned": dict(widget(size=2, more=1, open={"a": {"b": 1}}, labels={"a": "b"}, parts=[{"name": "p", "other": 2}]), more=1),
})
PATCHES.update({
    "widget-merge": (widget(labels={"a": "b"}, list=["a"]), "merge", {"spec": {"labels": {"a": None, "c": "d"}, "list": ["b"], "size": None}}),
    "widget-json": (widget(list=["a"]), "json", [{"op": "add", "path": "/spec/list/0", "value": "b"}]),
})

# What is not taken; compared are the field and the sentence of every cause.
REFUSED = {
    "widget-minimum": widget(size=0),
    "widget-maximum": widget(size=10),
    "widget-type": widget(size="3"),
    "widget-object-type": widget(labels=["a"]),
    "widget-enum": widget(mode="on"),
    "widget-pattern": widget(name="A1"),
    "widget-lengths": widget(name="abcdefg"),
    "widget-short": widget(name="a"),
    "widget-time": widget(at="now"),
    "widget-required": widget(parts=[{"count": 1}]),
    "widget-items": widget(list=["a", "b", "c", "d"]),
    "widget-element": widget(list=["a", 1]),
    "widget-twice": widget(parts=[{"name": "a"}, {"name": "b"}, {"name": "a"}]),
    "widget-set": widget(tags=["a", "a"]),
    "selector": dict(workload("Deployment"), spec=dict(workload("Deployment")["spec"], selector={"matchLabels": {"app": "b"}})),
    "no-selector": dict(workload("Deployment"), spec={k: v for k, v in workload("Deployment")["spec"].items() if k != "selector"}),
    "replicas": workload("Deployment", replicas=-1),
    "ready-seconds": workload("Deployment", minReadySeconds=-1),
    "deadline": workload("Deployment", progressDeadlineSeconds=5, minReadySeconds=5),
    "no-containers": with_pods(workload("Deployment"), containers=[]),
    "no-image": with_pods(workload("Deployment"), containers=[{"name": "a"}]),
    "container-twice": with_pods(workload("Deployment"), containers=[{"name": "a", "image": "a"}, {"name": "a", "image": "a"}]),
    "container-name": with_pods(workload("Deployment"), containers=[{"name": "A", "image": "a"}]),
    "strategy-type": workload("Deployment", strategy={"type": "Fast"}),
    "strategy-both": workload("Deployment", strategy={"type": "Recreate", "rollingUpdate": {}}),
    "strategy-zero": workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    "strategy-percent": workload("Deployment", strategy={"rollingUpdate": {"maxUnavailable": "101%"}}),
    "restart": with_pods(workload("Deployment"), restartPolicy="Never"),
    "unknown-volume": with_pods(workload("Deployment"), containers=[{"name": "a", "image": "a", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]),
    "service-port": core("Service", spec={"ports": [{"port": 0}]}),
}

# Of these creates the table is compared as well.
TABLES = ["deployment-full", "replicaset", "statefulset", "daemonset", "pod", "pod-full", "service", "service-headless", "configmap", "secret",
          "endpoints", "lease", "event", "new-event"]

# (object made by "creator" or None, then applied: manager, patch, force)
APPLIES = {
    "creates": (None, "one", deployment(), False),
    "adds": (core("ConfigMap", data={"a": "1"}), "one", core("ConfigMap", data={"b": "2"}), False),
    "conflict": (core("ConfigMap", data={"a": "1"}), "one", core("ConfigMap", data={"a": "2"}), False),
    "conflicts": (core("ConfigMap", data={"a": "1", "b": "1"}), "one", core("ConfigMap", data={"a": "2", "b": "2"}), False),
    "forced": (core("ConfigMap", data={"a": "1", "b": "1"}), "one", core("ConfigMap", data={"a": "2"}), True),
    "same": (core("ConfigMap", data={"a": "1"}), "one", core("ConfigMap", data={"a": "1"}), False),
    "deployment": (with_pods(deployment(), containers=[dict(CONTAINER, volumeMounts=[])]), "one",
                   {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "labels": {"z": "1"}},
                    "spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "Z", "value": "1"}],
                                                                   "ports": [{"containerPort": 99, "protocol": "TCP"}]}]}}}}, False),
    "image": (deployment(), "one", with_pods(deployment(), containers=[{"name": "a", "image": "a:2"}]), False),
    "widget": (widget(labels={"a": "b"}, tags=["a"], parts=[{"name": "a"}], list=["x"], open={"a": {"b": 1}}), "one",
               widget(labels={"c": "d"}, tags=["b"], parts=[{"name": "b", "count": 4}, {"name": "a"}], open={"a": {"c": 2}}), False),
    "widget-list": (widget(list=["x"]), "one", widget(list=["y"]), False),
    "finalizers": (MARKED, "one", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "finalizers": ["x.org/z"], "labels": {"n": "1"}}}, False),
    "unknown": (None, "one", dict(core("ConfigMap"), other={"a": 1}), False),
    "wrong-version": (core("ConfigMap"), "one", dict(core("ConfigMap"), apiVersion="v2"), False),
}
