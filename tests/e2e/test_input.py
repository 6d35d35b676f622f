# SPDX-License-Identifier: Apache-2.0
"""Input that nobody should send, or that is as large as it may be: from the API server, from files, at our own ports."""

import json
import os
import socket
import ssl
import subprocess

import pytest

from harness import observer as look
from harness.cluster import only_real
from harness.scene import COORDINATION_PATH, DEPLOYMENT_PATH, deployment
from harness.slipway import BUILD, Slipway
from harness.wait import until

JSON = {"Content-Type": "application/json"}


# ---- what the API server, or somebody in front of it, answers ----

def html(proxy):
    return proxy.answer(200, body=b"<html><body>Welcome to the Wifi</body></html>")


def html_502(proxy):
    return proxy.answer(502, body=b"<html><body><h1>502 Bad Gateway</h1></body></html>")


def torn_json(proxy):
    return proxy.answer(200, body=b'{"kind":"DeploymentList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"na', headers=JSON)


def other_json(proxy):
    return proxy.answer(200, body=b'[{"kind":7,"metadata":[],"status":{"allowed":{}}},null]', headers=JSON)


def no_http(proxy):
    return proxy.speak(b"220 mail.example.com ESMTP\r\n\x00\xff" * 5)


@pytest.mark.parametrize("rubbish", [html, html_502, torn_json, other_json, no_http], ids=lambda rubbish: rubbish.__name__)
def test_an_api_server_that_answers_rubbish(scene, rubbish):
    """While slipway starts: it waits. While it runs: it stays ready, and goes on afterwards."""
    slipway, proxy = scene.slipway_behind_proxy(start=False, webhook=False)
    rule = rubbish(proxy)
    slipway.start(wait=False)
    rule.until_hit(2)
    until(lambda: slipway.get(slipway.health_port, "/healthz")[0] == 200, "it lives")
    assert slipway.get(slipway.health_port, "/readyz")[0] == 500
    rule.remove()
    slipway.wait_ready()
    scene.webhook_of(slipway)
    scene.group("a", "b", replicas=1)
    rule = rubbish(proxy)
    proxy.cut_now()
    scene.update("a", "b")
    rule.until_hit(2)
    assert slipway.get(slipway.health_port, "/readyz")[0] == 200
    rule.remove()
    scene.until_runs("a", "b")
    scene.until_ready()


def test_a_server_that_speaks_no_tls(scene):
    port = scene.cluster.kubelets_port
    slipway = scene.slipway(server="https://127.0.0.1:%d" % port, start=False, webhook=False)
    slipway.start(wait=False)
    until(lambda: "TLS handshake failed" in slipway.log(), lambda: "it says what is wrong\n" + slipway.log_tail())
    assert slipway.is_running and slipway.get(slipway.health_port, "/readyz")[0] == 500


@only_real("slipway-sim stores roles, and lets everybody do everything")
def test_missing_permissions_are_named_in_one_message_at_the_start(scene):
    def kubectl(*args):
        scene.cluster.kubectl(*args, "-n", scene.namespace)
    kubectl("create", "serviceaccount", "poor")
    kubectl("create", "role", "poor", "--verb=list,watch", "--resource=deployments.apps")
    kubectl("create", "rolebinding", "poor", "--role=poor", "--serviceaccount=%s:poor" % scene.namespace)
    slipway = Slipway(scene.cluster, scene.namespace, scene.folder, leader_elect=True, token=scene.cluster.token(scene.namespace, "poor"))
    scene.processes.append(slipway)
    slipway.start(wait=False)

    def said():
        return [json.loads(line) for line in slipway.log().splitlines() if "permissions are missing" in line]

    until(said, lambda: "it says so\n" + slipway.log_tail())
    assert len(said()) == 1
    where = " in namespace " + scene.namespace
    missing = [entry.removesuffix(where).rpartition(" ") for entry in said()[0]["missing"].split("; ")]
    # What is allowed, to list and watch Deployments, is not complained about.
    assert {resource: set(verbs.split(", ")) for verbs, _, resource in missing} == {
        "deployments.apps": {"get", "patch"}, "deploymentcoordinations.apps.containerinfra.nl": {"get", "list", "watch"},
        "deploymentcoordinations/status.apps.containerinfra.nl": {"patch"}, "events": {"create", "patch"},
        "leases.coordination.k8s.io": {"create", "get", "update", "watch"}}
    kubectl("create", "rolebinding", "rich", "--clusterrole=slipway", "--serviceaccount=%s:poor" % scene.namespace)
    scene.let_lead((scene.namespace, "poor"), "slipway")
    slipway.wait_ready()
    scene.webhook_of(slipway)
    scene.group("a", "b", replicas=1)
    scene.update("a", "b")
    scene.until_runs("a", "b")


# ---- objects ----

def test_names_and_labels_as_long_as_they_may_be(scene):
    prefix = ".".join(["p" * 63, "q" * 63, "r" * 63, "s" * 61])
    key, value = prefix + "/" + "k" * 63, "v" * 63
    assert len(prefix) == 253
    scene.slipway()
    web = "w" * 253
    scene.coordinate(web, {"matchLabels": {key: value}, "matchExpressions": [{"key": key, "operator": "In", "values": [value, "u" * 63]}]})
    names = [letter * 230 for letter in "ab"]  # as ReplicaSets are named after them
    for name in names:
        made = deployment(name, replicas=1, labels={key: value})
        made["spec"]["selector"] = {"matchLabels": {key: name[:63]}}
        made["spec"]["template"]["metadata"]["labels"] = {key: name[:63]}
        scene.api.post(DEPLOYMENT_PATH % scene.namespace, made)
    scene.until_runs(*names, version="1")
    scene.until_ready(web)
    scene.update(*names)
    scene.until_runs(*names)
    scene.until_ready(web)
    assert scene.status(web)["deployments"] == ["%s/%s" % (scene.namespace, name) for name in names]
    assert all(scene.annotation(name, "held-by") == "coordination/" + web for name in names)
    scene.until_event("DeploymentActivated", web)
    scene.until_event("RolloutReleased", names[0])


def test_objects_of_a_mebibyte(scene):
    """Near what etcd takes at most; a review carries two of them. Of a selector 64 KiB are read: one with more is left out, which
    is said, and the rest goes on."""
    slipway = scene.slipway()
    for name, count in (("large", 16000), ("web", 1000)):
        values = ["%s-%05d" % ("x" * 50, number) for number in range(count)]
        scene.coordinate(name, {"matchExpressions": [{"key": "app", "operator": "In", "values": [*values, "web"]}]})
    until(lambda: scene.status().get("observedGeneration"), "the coordination is seen")
    assert "%s/large: /spec/labelSelector: more text than is accepted here" % scene.namespace in slipway.log()
    assert slipway.metric("slipway_bad_objects_total") == 1
    made = deployment("a", replicas=1)
    made["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "LARGE", "value": "y" * 1_000_000}]
    scene.api.post(DEPLOYMENT_PATH % scene.namespace, made)
    scene.create("b", replicas=1)
    scene.until_runs("a", "b", version="1")
    scene.until_ready()
    scene.update("a", "b")
    scene.until_runs("a", "b")
    scene.until_ready()
    assert len(json.dumps(scene.get("a"))) > 1_000_000 and len(json.dumps(scene.coordination("large"))) > 900_000


def test_objects_without_most_of_what_is_read(scene):
    scene.slipway()
    bare = {"apiVersion": "apps.containerinfra.nl/v1", "kind": "DeploymentCoordination"}
    scene.api.post(COORDINATION_PATH % scene.namespace, dict(bare, metadata={"name": "bare"}))
    scene.until_condition("Degraded", "True", "InvalidSelector", name="bare")
    scene.api.post(COORDINATION_PATH % scene.namespace, dict(bare, metadata={"name": "web"}, spec={"labelSelector": {}}))
    until(lambda: scene.status().get("observedGeneration"), "the coordination is seen")
    for name in "ab":
        scene.api.post(DEPLOYMENT_PATH % scene.namespace, {"metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": {"x": name}},
            "template": {"metadata": {"labels": {"x": name}}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}}})
    until(lambda: all(look.is_complete(scene.get(name)) for name in "ab"), "both run")
    scene.until_ready()
    scene.update("a", "b")
    scene.until_runs("a", "b")
    scene.until_ready()
    assert scene.status()["selected"] == 2


# ---- at our own ports, and in our files ----

def exchange(port, data, context=None):
    """What is answered until the other side closes."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        peer = context.wrap_socket(plain) if context else plain
        try:
            peer.sendall(data)
            if not context:
                peer.shutdown(socket.SHUT_WR)
            while part := peer.recv(65536):
                got += part
        except OSError:
            pass
        peer.close()
    return got


def review(body, kind="application/json", extra=b""):
    return (b"POST /mutate-apps-v1-deployment HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s"
            % (kind.encode(), extra, len(body), body))


def test_rubbish_at_our_ports_is_refused_and_hurts_nobody(scene):
    slipway = scene.slipway()
    scene.group("a", "b", replicas=1)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    noise = bytes(range(256)) * 20
    for data in (b"", b"\r\n" * 100, noise, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise, b"GET / HTTP/1.1\r\n\r\n"):
        for port in (slipway.webhook_port, slipway.health_port, slipway.metrics_port):
            exchange(port, data)
    for data, status in ((noise, b"400"), (b"GET / HTTP/1.1\r\n\r\n", b"400"), (b"POST / HTTP/9.9\r\n\r\n", b"505")):
        assert exchange(slipway.webhook_port, data, context).startswith(b"HTTP/1.1 " + status), data
    for data, status in (
            (review(b"{"), b"400"), (review(b""), b"400"), (review(b"null"), b"400"), (review(b"[" * 100_000), b"400"),
            (review(b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'), b"400"),
            (review(b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","object":null}}'), b"400"),
            (review(b"{}", "text/html"), b"400"), (review(b"{}", extra=b"Transfer-Encoding: chunked\r\n"), b"400"),
            (b"GET /mutate-apps-v1-deployment HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"405"),
            (b"POST /elsewhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", b"404")):
        answer = exchange(slipway.webhook_port, data, context)
        assert answer.startswith(b"HTTP/1.1 " + status), (data[:200], answer[:300])
    scene.update("a", "b")
    scene.until_runs("a", "b")
    scene.until_ready()


def test_a_review_is_read_up_to_eight_mebibytes_and_not_beyond(scene):
    """Two objects as large as the API server takes them, and more. Also where no length is said, and there is no end."""
    slipway = scene.slipway()
    scene.coordinate()
    until(lambda: scene.status().get("observedGeneration"), "the coordination is seen")
    limit = 8 * 1024 * 1024
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    made = deployment("a", replicas=1)
    made["metadata"]["namespace"] = scene.namespace
    head = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
        "uid": "u", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "name": "a", "namespace": scene.namespace,
        "operation": "CREATE", "userInfo": {"username": "a person"}, "object": made, "oldObject": None}})[:-2]

    def body(length):
        end = '}}'
        filler = ', "options": {"filler": "%s"}'
        return (head + filler % ("x" * (length - len(head) - len(filler % "") - len(end))) + end).encode()

    exact = body(limit)
    assert len(exact) == limit and json.loads(exact)
    answer = exchange(slipway.webhook_port, review(exact), context)
    assert answer.startswith(b"HTTP/1.1 200"), answer[:300]
    response = json.loads(answer.partition(b"\r\n\r\n")[2])["response"]
    assert response["uid"] == "u" and response["allowed"] is True and response["patch"]
    over = review(body(limit + 1))
    answer = exchange(slipway.webhook_port, over, context)
    assert answer.startswith(b"HTTP/1.1 413"), answer[:300]
    chunked = (b"POST /mutate-apps-v1-deployment HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
               + (b"10000\r\n" + b" " * 0x10000 + b"\r\n") * (limit // 0x10000 + 1))
    answer = exchange(slipway.webhook_port, chunked, context)
    assert answer.startswith(b"HTTP/1.1 413"), answer[:300]
    assert slipway.get(slipway.health_port, "/readyz")[0] == 200
    scene.create("a", replicas=1)
    scene.until_runs("a", version="1")


@pytest.mark.parametrize("file, text, said", [
    ("slipway.yaml", "a: [\n", "slipway.yaml:"),
    ("slipway.yaml", "no-such-key: 1\n", "slipway.yaml:1: no-such-key"),
    ("slipway.yaml", "\x00\xff\x01", "slipway.yaml"),
    ("modules.d/coordination.yaml", "at-rest: Paused\n", 'coordination.yaml:1: at-rest: unknown key; did you mean "atRest"?'),
    ("modules.d/coordination.yaml", "atRest: Sleeping\n", "coordination.yaml:1: atRest: "),
    ("kubeconfig", "just text", "kubeconfig:1:"),
    ("kubeconfig", '{"clusters": [{"name": 7}], "contexts": {}, "current-context": []}', "kubeconfig")],
    ids=["torn", "unknown_key", "no_text", "module_unknown_key", "module_bad_value", "kubeconfig_text", "kubeconfig_types"])
def test_a_file_that_cannot_be_used_is_named_and_slipway_ends(tmp_path, file, text, said):
    (tmp_path / "modules.d").mkdir()
    (tmp_path / "slipway.yaml").write_text("")
    (tmp_path / "kubeconfig").write_text("{}")
    (tmp_path / file).write_text(text, encoding="latin-1")
    run = subprocess.run([str(BUILD / "slipway"), "--config", str(tmp_path / "slipway.yaml"), "--kubeconfig", str(tmp_path / "kubeconfig")],
                         text=True, capture_output=True, timeout=120, env=os.environ)
    assert run.returncode == 2 and said in run.stderr + run.stdout, (run.returncode, run.stdout, run.stderr)
    assert "Sanitizer" not in run.stderr
