# SPDX-License-Identifier: Apache-2.0
"""The Node that a scheduler would choose for a Pod: the emptiest of those it may run on.

Honoured are nodeSelector, the required part of node affinity (DaemonSets name their Node there),
taints with NoSchedule or NoExecute against tolerations, cordons, and the Node's number of Pods.
Requests, preferences, Pod affinity and topology spread are not.
"""

import re

from .settings import matches

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def choose(pod, nodes, counts):
    """The name of a Node or None; `counts` is the number of Pods by name of the Node."""
    fitting = [name for name, node in nodes.items()
               if fits(pod, node) and counts.get(name, 0) < _room(node)]
    return min(fitting, key=lambda name: (counts.get(name, 0), name), default=None)


def fits(pod, node):
    spec = pod["spec"]
    labels = node["metadata"].get("labels") or {}
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return False
    return _affinity_allows(spec, node, labels) and _taints_allow(spec, node)


def _affinity_allows(spec, node, labels):
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    for term in required.get("nodeSelectorTerms") or []:
        expressions = term.get("matchExpressions") or []
        by_field = term.get("matchFields") or []
        if not expressions and not by_field:
            continue
        if (all(matches(labels, one["key"], one["operator"], one.get("values") or [])
                for one in expressions)
                and all(matches(fields, one["key"], one["operator"], one.get("values") or [])
                        for one in by_field)):
            return True
    return False


def _taints_allow(spec, node):
    taints = list(node["spec"].get("taints") or [])
    if node["spec"].get("unschedulable"):
        taints.append(CORDON)
    tolerations = spec.get("tolerations") or []
    return all(taint["effect"] == "PreferNoSchedule"
               or any(_tolerates(toleration, taint) for toleration in tolerations)
               for taint in taints)


def _tolerates(toleration, taint):
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return (toleration.get("key") == taint["key"]
            and toleration.get("value", "") == taint.get("value", ""))


def _room(node):
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    found = re.fullmatch(r"(\d+)(k|M)?", str(allocatable.get("pods", 0)))
    # The API server writes 10000 as 10k.
    return int(found[1]) * {None: 1, "k": 1000, "M": 1000_000}[found[2]] if found else 0
