# SPDX-License-Identifier: Apache-2.0
"""tools/kubelets on the real programs: what workloads see of Pods that nobody runs."""

import datetime
import json
import ssl
import time
import urllib.error
import urllib.request

from planes import container, is_ready, wait, workload

PREFIX = "kubelets.slipway.dev/"


def only_pod(plane, namespace):
    pods = plane.pods(namespace)
    return pods[0] if len(pods) == 1 else None


def wait_pod(plane, namespace, what, function):
    """The only Pod of the namespace, once `function` says yes to it."""
    def look():
        pod = only_pod(plane, namespace)
        return pod if pod and function(pod) else None
    return wait(what, look)


def waiting_reason(pod):
    return container(pod)["state"].get("waiting", {}).get("reason")


def test_a_deployment_becomes_available_and_rolls(plane, namespace):
    plane.apply(workload("Deployment", "web", 3), namespace)
    plane.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=180s")
    plane.kubectl("wait", "--for=condition=Available", "deployment/web", "-n", namespace,
                  "--timeout=180s")
    plane.kubectl("set", "image", "deployment/web", "app=app:2", "-n", namespace)
    plane.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=180s")
    pods = wait("three Pods", lambda: (lambda found: len(found) == 3 and found)(
        plane.pods(namespace)))
    assert {container(pod)["image"] for pod in pods} == {"app:2"}
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"node-1", "node-2", "node-3"}
    assert len({pod["status"]["podIP"] for pod in pods}) == 3


def test_statefulsets_and_daemonsets_roll(plane, namespace):
    plane.apply(workload("StatefulSet", "db", 3), namespace)
    plane.apply(workload("DaemonSet", "agent"), namespace)
    for image in ("app:1", "app:2"):
        plane.kubectl("set", "image", "statefulset/db", "daemonset/agent", "app=" + image, "-n",
                      namespace)
        for name in ("statefulset/db", "daemonset/agent"):
            plane.kubectl("rollout", "status", name, "-n", namespace, "--timeout=180s")
    daemons = plane.get("pods", "-n", namespace, "-l", "app=agent")["items"]
    assert sorted(pod["spec"]["nodeName"] for pod in daemons) == ["node-1", "node-2", "node-3"]


def started(pod):
    """When the kubelet saw it first; whole seconds."""
    then = datetime.datetime.strptime(pod["status"]["startTime"], "%Y-%m-%dT%H:%M:%SZ")
    return then.replace(tzinfo=datetime.timezone.utc).timestamp()


def test_start_delays_readiness(plane, namespace):
    plane.apply(workload("Deployment", "web", 1, {PREFIX + "start": "1h"}), namespace)
    pod = wait_pod(plane, namespace, "ContainerCreating",
                   lambda pod: waiting_reason(pod) == "ContainerCreating")
    assert pod["status"]["phase"] == "Pending" and not is_ready(pod)
    began = time.time()
    plane.kubelets("set", namespace, "-n", namespace, "start=%ds" % (began - started(pod) + 4))
    try:
        wait_pod(plane, namespace, "readiness", is_ready)
        assert time.time() - began > 3
    finally:
        plane.kubelets("unset", namespace)


def test_a_crashing_container_counts_its_restarts(plane, namespace):
    plane.apply(workload("Deployment", "web", 1, {PREFIX + "fail": "CrashLoopBackOff"}), namespace)
    pod = wait_pod(plane, namespace, "two restarts",
                   lambda pod: container(pod)["restartCount"] >= 2)
    assert pod["status"]["phase"] == "Running" and not is_ready(pod)
    assert waiting_reason(pod) == "CrashLoopBackOff"
    assert container(pod)["lastState"]["terminated"]["exitCode"] == 1


def test_an_image_that_is_not_there_never_runs(plane, namespace):
    plane.apply(workload("Deployment", "web", 1, {PREFIX + "fail": "ImagePullBackOff"}), namespace)
    pod = wait_pod(plane, namespace, "ImagePullBackOff",
                   lambda pod: waiting_reason(pod) == "ImagePullBackOff")
    assert pod["status"]["phase"] == "Pending" and container(pod)["restartCount"] == 0


def test_a_pod_told_not_to_be_ready_runs(plane, namespace):
    plane.apply(workload("Deployment", "web", 1, {PREFIX + "ready": "false"}), namespace)
    pod = wait_pod(plane, namespace, "Running", lambda pod: pod["status"]["phase"] == "Running")
    assert not is_ready(pod) and "running" in container(pod)["state"]


def test_flapping_is_ready_and_not_ready_in_turn(plane, namespace):
    plane.apply(workload("Deployment", "web", 1, {PREFIX + "flap": "500ms"}), namespace)
    for wanted in (True, False, True, False):
        wait_pod(plane, namespace, "ready: %s" % wanted, lambda pod: is_ready(pod) == wanted)


def test_a_mistake_in_an_annotation_is_seen_on_the_pod(plane, namespace):
    plane.apply(workload("Deployment", "web", 1, {PREFIX + "start": "3x"}), namespace)
    pod = wait_pod(plane, namespace, "the mistake",
                   lambda pod: waiting_reason(pod) == "BadKubeletSettings")
    message = container(pod)["state"]["waiting"]["message"]
    assert message == ('annotation kubelets.slipway.dev/start: "3x" is not a time such as 3s, '
                       '200ms or 1m30s')


def test_a_deleted_pod_stays_until_it_has_stopped(plane, namespace):
    plane.apply(workload("StatefulSet", "db", 1, {PREFIX + "stop": "8s"}), namespace)
    before = wait_pod(plane, namespace, "readiness", is_ready)
    plane.kubectl("delete", "pod", "db-0", "-n", namespace, "--wait=false")
    began = time.monotonic()
    ending = wait_pod(plane, namespace, "the deletion",
                      lambda pod: "deletionTimestamp" in pod["metadata"])
    assert ending["metadata"]["uid"] == before["metadata"]["uid"]
    wait_pod(plane, namespace, "the successor",
             lambda pod: pod["metadata"]["uid"] != before["metadata"]["uid"] and is_ready(pod))
    assert time.monotonic() - began > 1.5


def test_a_grace_period_ends_a_slow_stop(plane, namespace):
    plane.apply(workload("StatefulSet", "db", 1, {PREFIX + "stop": "10m"},
                         terminationGracePeriodSeconds=1), namespace)
    before = wait_pod(plane, namespace, "readiness", is_ready)
    plane.kubectl("delete", "pod", "db-0", "-n", namespace, "--wait=false")
    wait_pod(plane, namespace, "the successor",
             lambda pod: pod["metadata"]["uid"] != before["metadata"]["uid"])


def test_rules_are_heard_at_once_and_change_no_template(plane, namespace):
    plane.apply(workload("Deployment", "web", 1), namespace)
    pod = wait_pod(plane, namespace, "readiness", is_ready)
    plane.kubelets("set", namespace, "-n", namespace, "-l", "app=web", "ready=false")
    try:
        same = wait_pod(plane, namespace, "unreadiness", lambda pod: not is_ready(pod))
        assert same["metadata"]["uid"] == pod["metadata"]["uid"]
        shown = plane.kubelets("show").stdout
        assert "rule      %s  for namespace=%s selector=app=web: ready=false" % (
            namespace, namespace) in shown
        plane.kubelets("set", namespace, "--pod", pod["metadata"]["name"], "-n", namespace,
                       "fail=OOMKilled")
        wait_pod(plane, namespace, "OOMKilled", lambda pod: waiting_reason(pod) == "OOMKilled")
    finally:
        plane.kubelets("unset", namespace)
    wait_pod(plane, namespace, "readiness", is_ready)
    assert plane.get("deployment", "web", "-n", namespace)["metadata"]["generation"] == 1


def test_a_crash_restarts_and_becomes_ready_again(plane, namespace):
    plane.apply(workload("Deployment", "web", 1), namespace)
    pod = wait_pod(plane, namespace, "readiness", is_ready)
    name = pod["metadata"]["name"]
    said = plane.kubelets("crash", "%s/%s" % (namespace, name), "--down", "8s").stdout
    assert said == "crashed %s/%s\n" % (namespace, name)
    down = wait_pod(plane, namespace, "unreadiness", lambda pod: not is_ready(pod))
    assert container(down)["restartCount"] == 1
    assert container(down)["lastState"]["terminated"]["exitCode"] == 1
    again = wait_pod(plane, namespace, "readiness", is_ready)
    assert container(again)["restartCount"] == 1
    refused = plane.kubelets("crash", namespace + "/nobody", ok=False)
    assert refused.returncode == 1 and "no running Pod is meant" in refused.stderr


def test_an_image_changed_in_place_restarts_the_container(plane, namespace):
    plane.apply(workload("Deployment", "web", 1), namespace)
    pod = wait_pod(plane, namespace, "readiness", is_ready)
    plane.kubectl("patch", "pod", pod["metadata"]["name"], "-n", namespace, "--type=json", "-p",
                  '[{"op": "replace", "path": "/spec/containers/0/image", "value": "app:2"}]')
    changed = wait_pod(plane, namespace, "the new image", lambda pod: is_ready(pod) and
                       container(pod)["image"] == "app:2")
    assert changed["metadata"]["uid"] == pod["metadata"]["uid"]
    assert container(changed)["restartCount"] == 1


def test_readiness_gates_are_waited_for(plane, namespace):
    plane.apply(workload("Deployment", "web", 1,
                         readinessGates=[{"conditionType": "slipway.dev/open"}]), namespace)
    pod = wait_pod(plane, namespace, "Running", lambda pod: container(pod)["ready"])
    assert not is_ready(pod)
    server = plane.env()["SLIPWAY_CONTROL_PLANE_SERVER"]
    path = "/api/v1/namespaces/%s/pods/%s/status" % (namespace, pod["metadata"]["name"])
    patch(plane, server + path, {"status": {"conditions": [
        {"type": "slipway.dev/open", "status": "True"}]}})
    wait_pod(plane, namespace, "readiness", is_ready)


def patch(plane, url, body):
    env = plane.env()
    context = ssl.create_default_context(cafile=env["SLIPWAY_CONTROL_PLANE_CA"])
    with open(env["SLIPWAY_CONTROL_PLANE_TOKEN_FILE"]) as file:
        token = file.read()
    request = urllib.request.Request(url, json.dumps(body).encode(), method="PATCH", headers={
        "Content-Type": "application/strategic-merge-patch+json",
        "Authorization": "Bearer " + token})
    with urllib.request.urlopen(request, context=context) as answer:
        assert answer.status == 200


def test_a_drained_node_is_left_and_a_new_one_is_taken(plane, namespace):
    plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "extra-" + namespace, "labels": {"pool": namespace}}})
    plane.apply(workload("Deployment", "web", 3, nodeSelector={"pool": namespace}), namespace)
    plane.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=180s")
    assert {pod["spec"]["nodeName"] for pod in plane.pods(namespace)} == {"extra-" + namespace}
    deleted = plane.kubelets("drain", "extra-" + namespace).stdout
    assert deleted.count("deleted %s/web-" % namespace) == 3
    pods = wait("three Pods without a Node", lambda: (lambda found: len(found) == 3 and all(
        "nodeName" not in pod["spec"] for pod in found) and found)(plane.pods(namespace)))
    wait("being told so", lambda: all(
        any(one["type"] == "PodScheduled" and one["reason"] == "Unschedulable"
            for one in pod["status"].get("conditions", [])) for pod in plane.pods(namespace)))
    assert all(pod["status"]["phase"] == "Pending" for pod in pods)
    plane.kubelets("uncordon", "extra-" + namespace)
    plane.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=180s")
    plane.kubectl("delete", "node", "extra-" + namespace)
    wait("the end of its Pods", lambda: all(
        "nodeName" not in pod["spec"] for pod in plane.pods(namespace)))


def test_hundreds_of_pods_come_and_go(plane, namespace):
    plane.apply(workload("Deployment", "many", 300), namespace)
    wait("300 Pods", lambda: plane.get("deployment", "many", "-n", namespace)["status"].get(
        "availableReplicas") == 300)
    plane.kubectl("delete", "deployment", "many", "-n", namespace)
    wait("none", lambda: not plane.pods(namespace))


def test_the_endpoint_says_what_was_wrong(plane):
    url = plane.env()["SLIPWAY_KUBELETS"]

    def ask(method, path, body):
        request = urllib.request.Request(url + path, body, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["error"]
    assert ask("GET", "/healthz", None) == (200, "ok\n")
    for method, path, body, status, text in (
            ("PUT", "/settings/a", b"{", 400, "the body is not JSON"),
            ("PUT", "/settings/a", b"[]", 400, "the body is not a JSON object"),
            ("PUT", "/settings/a", b"{}", 400, "the rule sets nothing"),
            ("PUT", "/settings/a", b'{"strat": "1s"}', 400, 'there is no setting "strat"'),
            ("PUT", "/settings/a", b'{"start": "soon"}', 400, "start: \"soon\" is not a time"),
            ("PUT", "/settings/a", b'{"selector": "a=(", "start": 1}', 400, "not a label selector"),
            ("DELETE", "/settings/none", None, 404, 'there is no rule "none"'),
            ("POST", "/crash", b"{}", 400, "say which Pods"),
            ("POST", "/nodes", b'{"count": "x"}', 400, "count is a number"),
            ("POST", "/nodes/nobody/drain", None, 502, 'nodes "nobody" not found'),
            ("POST", "/nodes/node-1/explode", None, 404, "not explode"),
            ("GET", "/nothing", None, 404, "GET / tells what there is")):
        got = ask(method, path, body)
        assert got[0] == status and text in got[1], (method, path, body, got)
