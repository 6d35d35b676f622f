# SPDX-License-Identifier: Apache-2.0
"""What a person does with kubectl works on slipway-sim, and looks as on a real cluster."""

import json

from story.stage import until


def rows(table):
    """Lines of cells, the head first."""
    return [line.split() for line in table.splitlines() if line.strip()]


def test_get_shows_tables(shop):
    assert rows(shop("get", "nodes"))[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    table = rows(shop("get", "deployments"))
    assert table[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert [row[:4] for row in table[1:]] == [[name, "3/3", "3", "3"] for name in ("cart", "catalog", "checkout")]
    assert rows(shop("get", "deploymentcoordinations"))[0] == ["NAME", "ACTIVE", "READY", "PROGRESSING", "PENDING", "AGE"]
    pods = rows(shop("get", "pods", "-l", "app.kubernetes.io/name=cart"))
    assert pods[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"] and [row[1:4] for row in pods[1:]] == [["1/1", "Running", "0"]] * 3


def test_get_as_yaml_json_and_by_path(shop):
    assert "image: example.org/cart:1.0.0" in shop("get", "deployment", "cart", "-o", "yaml")
    found = json.loads(shop("get", "deployment", "cart", "-o", "json"))
    assert found["status"]["availableReplicas"] == 3 and found["metadata"]["generation"] == 1
    assert shop("get", "deployment", "cart", "-o", "jsonpath={.spec.strategy.type}") == "RollingUpdate"


def test_create_and_delete(shop):
    shop("create", "deployment", "web", "--image=example.org/web:1")
    shop("rollout", "status", "deployment/web", "--timeout=60s")
    shop("create", "configmap", "settings", "--from-literal=a=b")
    assert shop("get", "configmap", "settings", "-o", "jsonpath={.data.a}") == "b"
    assert "already exists" in shop("create", "configmap", "settings", fails=True)
    shop("delete", "deployment", "web", "--timeout=60s")
    assert "not found" in shop("get", "deployment", "web", fails=True)
    until(lambda: not shop("get", "pods", "-l", "app=web", "-o", "name"), "its Pods are gone as well")


def test_set_image_rolls_and_history_tells_it(shop):
    shop("set", "image", "deployment/cart", "cart=example.org/cart:2")
    assert "successfully rolled out" in shop("rollout", "status", "deployment/cart", "--timeout=60s")
    assert [row[0] for row in rows(shop("rollout", "history", "deployment/cart"))[2:]] == ["1", "2"]
    shop("rollout", "undo", "deployment/cart")
    shop("rollout", "status", "deployment/cart", "--timeout=60s")
    assert shop("get", "deployment", "cart", "-o", "jsonpath={.spec.template.spec.containers[0].image}") == "example.org/cart:1.0.0"
    assert [row[0] for row in rows(shop("rollout", "history", "deployment/cart"))[2:]] == ["2", "3"]


def test_a_paused_one_rolls_when_it_is_resumed(shop):
    shop("rollout", "pause", "deployment/cart")
    shop("rollout", "restart", "deployment/catalog")
    shop("set", "image", "deployment/cart", "cart=example.org/cart:2")
    shop("rollout", "status", "deployment/catalog", "--timeout=60s")
    assert shop("get", "deployment", "cart", "-o", "jsonpath={.status.updatedReplicas}") == ""
    assert "paused" in shop("rollout", "restart", "deployment/cart", fails=True)
    shop("rollout", "resume", "deployment/cart")
    shop("rollout", "status", "deployment/cart", "--timeout=60s")
    assert shop("get", "deployment", "cart", "-o", "jsonpath={.status.updatedReplicas}") == "3"


def test_the_three_patches_and_scale(shop):
    shop("patch", "deployment", "cart", "--type=json", "-p", '[{"op":"replace","path":"/spec/minReadySeconds","value":1}]')
    shop("patch", "deployment", "cart", "--type=merge", "-p", '{"spec":{"revisionHistoryLimit":3}}')
    shop("patch", "deployment", "cart", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.org/side:1"}]}}}}')
    spec = json.loads(shop("get", "deployment", "cart", "-o", "json"))["spec"]
    assert spec["minReadySeconds"] == 1 and spec["revisionHistoryLimit"] == 3
    assert sorted(container["name"] for container in spec["template"]["spec"]["containers"]) == ["cart", "side"]
    shop("scale", "deployment/cart", "--replicas=5")
    shop("rollout", "status", "deployment/cart", "--timeout=60s")
    assert shop("get", "deployment", "cart", "-o", "jsonpath={.status.availableReplicas}") == "5"
    assert "maxActive" in shop("patch", "deploymentcoordination", "shop", "--type=merge", "-p", '{"spec":{"maxActive":0}}', fails=True)


def test_apply_server_side_meets_another_manager(shop):
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, "data": {"a": "1"}})
    shop("apply", "--server-side", "--validate=false", "-f", "-", stdin=manifest)
    shop("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"a":"2"}}')
    assert "conflict" in shop("apply", "--server-side", "--validate=false", "-f", "-", stdin=manifest, fails=True)
    shop("apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-", stdin=manifest)
    assert shop("get", "configmap", "c", "-o", "jsonpath={.data.a}") == "1"


def test_describe_and_events(shop):
    said = shop("describe", "deployment", "cart")
    assert "3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in said and "MinimumReplicasAvailable" in said
    assert "ScalingReplicaSet" in said and "deployment-controller  Scaled up replica set cart-" in said
    assert "Created pod: cart-" in shop("get", "events", "--field-selector", "reason=SuccessfulCreate")
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "shop"}, "type": "Warning", "reason": "Trying",
             "message": "only a test", "count": 2, "involvedObject": {"kind": "Deployment", "namespace": "shop", "name": "cart"}}
    shop("create", "--validate=false", "-f", "-", stdin=json.dumps(event))
    table = shop("get", "events", "--field-selector", "involvedObject.name=cart")
    assert rows(table)[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "Trying" in table and "deployment/cart" in table and "only a test" in table


def test_apply_with_the_validation_that_is_on_by_default(shop):
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}})
    assert "created" in shop("apply", "-f", "-", stdin=manifest)
    assert "unchanged" in shop("apply", "-f", "-", stdin=manifest)


def test_drain_waits_for_the_budget(shop):
    budget = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "cart"},
              "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app.kubernetes.io/name": "cart"}}}}
    shop("apply", "-f", "-", stdin=json.dumps(budget))
    until(lambda: shop("get", "pdb", "cart", "-o", "jsonpath={.status.desiredHealthy}") == "3", "the budget is counted")
    node = shop("get", "pods", "-l", "app.kubernetes.io/name=cart", "-o", "jsonpath={.items[0].spec.nodeName}")
    assert "would violate the pod's disruption budget" in shop("drain", node, "--ignore-daemonsets", "--timeout=1s", fails=True)
    shop("patch", "pdb", "cart", "--type=merge", "-p", '{"spec":{"minAvailable":2}}')
    until(lambda: shop("get", "pdb", "cart", "-o", "jsonpath={.status.disruptionsAllowed}") == "1", "one may go")
    shop("drain", node, "--ignore-daemonsets", "--timeout=120s")
    assert node not in shop("get", "pods", "-o", "jsonpath={.items[?(@.status.phase=='Running')].spec.nodeName}").split()


def test_a_namespace_goes_with_all_that_is_in_it(shop, kubectl):
    kubectl("delete", "namespace", "shop", "--timeout=60s")
    assert "shop" not in kubectl("get", "namespaces")
    assert rows(kubectl("get", "pods", "--all-namespaces", "-o", "name")) == []
