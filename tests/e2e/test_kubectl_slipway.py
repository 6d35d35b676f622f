# SPDX-License-Identifier: Apache-2.0
"""kubectl slipway, each command as a person uses it, on a cluster on which slipway works."""

import base64
import datetime
import json
import os
import re
import signal
import subprocess

import pytest
import yaml

from harness.cluster import SERVICE_ACCOUNT, TOP, api, only_real
from harness.kubectl_slipway import DONE, FAILED, FINDINGS, FOLDER, NOT_FOUND, PROGRAM, USAGE, environment, facts, run
from harness.scene import RBAC
from harness.wait import until

only_sim = pytest.mark.skipif(os.environ.get("SLIPWAY_E2E_CLUSTER") != "sim", reason="only on slipway-sim: the cluster matters little to it")


def reason(scene, name):
    return facts(scene, "why", name)["reason"]


def steps(scene):
    """[(step, name)] of the one coordination, and who is left."""
    plan = facts(scene, "plan")["items"][0]
    return [(turn["step"], turn["name"]) for turn in plan["turns"]], [left["name"] for left in plan["left"]]


@pytest.fixture
def queue(scene):
    """a rolls and stalls, b and c wait."""
    scene.slipway()
    scene.group("a", "b", "c", replicas=2)
    scene.roll_and_stall("a", "b", "c")
    until(lambda: scene.status().get("pending") == 2, "b and c wait")
    return scene


def test_who_rolls_who_waits_and_why(queue):
    table = run(queue, "status").splitlines()
    assert re.fullmatch(r"COORDINATION +STATE +TURN +DEPLOYMENT +PROGRESS +TIME +NOTE", table[0])
    assert re.fullmatch(r"web +Rolling +now +a +\S+ 0/2 +\d+s", table[1]), table
    assert re.fullmatch(r" +1 +b +░+ 0/2 +\d+s", table[2]) and re.fullmatch(r" +2 +c +░+ 0/2 +\d+s", table[3]), table
    assert "\033" not in "".join(table)
    everywhere = run(queue, "status", "-A", namespace=False)
    assert re.search(r"^%s +web +Rolling" % queue.namespace, everywhere, re.M), everywhere
    found = facts(queue, "status")["items"][0]
    assert [one["name"] for one in found["active"]] == ["a"] and [(one["position"], one["name"]) for one in found["waiting"]] == [(1, "b"), (2, "c")]
    as_yaml = yaml.safe_load(run(queue, "status", "-o", "yaml"))["items"][0]
    assert as_yaml["waiting"][0]["name"] == "b" and as_yaml["pending"] == 2 and isinstance(as_yaml["active"][0]["since"], str)
    assert steps(queue) == ([(0, "a"), (1, "b"), (2, "c")], [])
    why = run(queue, "why", "c")
    assert why.startswith("c waits for its turn in web: position 2 of 2, since ") and "  a has the turn, for " in why and "before it in the queue: b" in why
    assert "held by coordination/web" in why
    assert (reason(queue, "a"), reason(queue, "deploy/b")) == ("Rolling", "WaitsForTurn")
    # Through kubectl itself, as a plugin on the PATH.
    env = environment(queue)
    through = subprocess.run([env.get("SLIPWAY_KUBECTL", "kubectl"), "slipway", "status", "-n", queue.namespace], env=env, text=True, capture_output=True, timeout=60)
    assert through.returncode == 0 and "Rolling" in through.stdout, through.stderr
    queue.let_pods_go()
    queue.until_runs("a", "b", "c")
    queue.until_ready()
    assert "3 at rest" in run(queue, "status") and reason(queue, "a") == "AtRest"


@only_sim
def test_the_order_of_the_plan_is_the_order_of_the_turns(queue):
    run(queue, "skip", "b")
    until(lambda: queue.state_of("c").get("position") == 1, "c goes before b")
    assert steps(queue)[0] == [(0, "a"), (1, "c"), (2, "b")]
    turns = len(queue.observer.turns())
    queue.let_pods_go()
    queue.until_runs("a", "b", "c")
    queue.observer.catch_up()
    assert queue.observer.turns()[turns:] == ["c", "b"]


@only_sim
def test_hold_and_release(queue):
    assert "held" in run(queue, "hold", "b", "c", "--reason", "the database")
    until(lambda: reason(queue, "b") == "HeldByPerson" and not queue.status().get("pending"), "b and c are out of line")
    assert "b is held by a person: the database" in run(queue, "why", "b") and steps(queue)[1] == ["b", "c"]
    assert "held by user: the database" in run(queue, "status")
    assert "already" in run(queue, "hold", "b", "--reason", "the database")
    assert "dry run" in run(queue, "release", "b", "--dry-run=server") and queue.annotation("b", "hold") == "the database"
    assert "released: it rolls in its turn" in run(queue, "release", "b")
    queue.let_pods_go()
    queue.until_runs("a", "b")
    queue.until_ready()
    assert queue.is_held("c") and not queue.runs("c", "2")
    run(queue, "release", "c")
    queue.until_runs("c")
    assert "no person holds it" in run(queue, "release", "c")


def test_suspend_says_who_will_put_it_back(queue):
    path = "/apis/apps.containerinfra.nl/v1/namespaces/%s/deploymentcoordinations/web" % queue.namespace
    assert "server dry run" in run(queue, "suspend", "web", "--dry-run") and not queue.coordination()["spec"].get("suspend")
    assert "if GitOps or Helm applies this object, it will put spec.suspend back" in run(queue, "suspend", "web")
    until(lambda: reason(queue, "b") == "Suspended", "b knows")
    managers = {entry["manager"] for entry in queue.coordination()["metadata"].get("managedFields") or []}
    assert "kubectl-slipway" in managers
    queue.let_pods_go()
    queue.until_runs("a")
    until(lambda: queue.condition("Progressing").get("reason") == "Suspended", "nobody follows")
    assert "Suspended" in run(queue, "status") and steps(queue) == ([], ["b", "c"])
    assert "already" in run(queue, "suspend", "web")
    queue.api.patch(path, {"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}}})
    assert "Flux Kustomization shop applies this object and will put spec.suspend back: set it to false" in run(queue, "resume", "web")
    queue.until_runs("b", "c")


def test_restart_of_one_that_is_paused_which_kubectl_refuses(scene):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    refused = scene.cluster.kubectl("rollout", "restart", "deployment/a", "-n", scene.namespace, check=False)
    assert refused.returncode != 0 and "paused" in refused.stderr
    turns = len(scene.observer.turns())
    assert "restarted: in its turn" in run(scene, "restart", "a", "deployment/b")
    until(lambda: len(scene.observer.turns()) == turns + 2, "both rolled")
    scene.until_ready()
    for name in "ab":
        assert scene.get(name)["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"]


@only_sim
def test_release_of_all_asks_and_lets_go(scene):
    slipway = scene.slipway(webhook=False)
    scene.group("a", "b", replicas=1)
    scene.suspend()
    scene.update("a", "b")
    until(lambda: scene.status().get("pending") == 2, "both wait")
    slipway.stop()
    assert "--yes" in run(scene, "release", "--all", status=USAGE)
    assert "would be: 2 resumed" in run(scene, "release", "--all", "--dry-run") and scene.is_held("a")
    scene.observer.excuse("a", "b")
    assert "done: 2 resumed, 0 unmarked, 0 failed" in run(scene, "release", "--all", "--yes")
    scene.until_runs("a", "b")
    assert "slipway holds nothing here" in run(scene, "release", "--all", "--yes")


@only_sim
def test_a_watch_tells_each_change_in_a_line_until_it_is_interrupted(scene, tmp_path):
    scene.slipway()
    scene.group("a", "b", replicas=1)
    out = tmp_path / "out"
    with open(out, "w") as file:
        process = subprocess.Popen([str(PROGRAM), "status", "-w", "-n", scene.namespace], env=environment(scene), stdout=file, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: "web: Idle" in out.read_text(), "it begins with what is there")
        scene.roll_and_stall("a", "b")
        until(lambda: re.search(r"^\S+Z %s/web: Rolling: a 0/1; then b$" % scene.namespace, out.read_text(), re.M), lambda: "it tells of the turn: " + out.read_text())
        scene.let_pods_go()
        scene.until_ready()
        until(lambda: out.read_text().rstrip().endswith("web: Idle"), lambda: "it tells of the end: " + out.read_text())
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == 0 and said == ""


def test_mistakes_have_words_and_an_exit_status(scene):
    scene.slipway()
    scene.group("a", replicas=1)
    assert "no Deployment x in namespace" in run(scene, "why", "x", status=NOT_FOUND)
    assert "no Deployment x in namespace" in run(scene, "hold", "x", "a", status=NOT_FOUND) and scene.annotation("a", "hold")
    assert "no coordination x in" in run(scene, "status", "x", status=NOT_FOUND)
    assert "there is no DeploymentCoordination x" in run(scene, "suspend", "x", status=NOT_FOUND)
    assert "did you mean status?" in run(scene, "stat", status=USAGE)
    assert "is not a name that an object can have" in run(scene, "hold", "A b", status=USAGE)
    assert "does not answer" in run(scene, "status", status=FAILED, KUBECONFIG=nowhere(scene))
    assert "kubeconfig" in run(scene, "status", "--kubeconfig", "/nonexistent", status=FAILED)
    nobody = scene.folder / "nobody"
    nobody.write_text(scene.cluster.at.kubeconfig({"token": "invalid"}))
    if scene.cluster.kind == "real":
        assert "does not know who we are (401)" in run(scene, "status", "--kubeconfig", str(nobody), status=FAILED)
        stranger = scene.folder / "stranger"
        scene.api.post("/api/v1/namespaces/%s/serviceaccounts" % scene.namespace, {"metadata": {"name": "stranger"}})
        stranger.write_text(scene.cluster.at.kubeconfig({"token": scene.cluster.token(scene.namespace, "stranger")}))
        assert "forbidden" in run(scene, "status", "--kubeconfig", str(stranger), status=FAILED)
        assert "forbidden" in run(scene, "hold", "a", "--kubeconfig", str(stranger), status=FAILED)


def nowhere(scene):
    path = scene.folder / "nowhere"
    path.write_text(scene.cluster.at.kubeconfig({"token": "x"}, server="https://127.0.0.1:1"))
    return str(path)


@only_sim
def test_completion_of_names_and_in_bash(scene):
    scene.slipway()
    scene.group("cart", "catalog", replicas=1)
    assert run(scene, "__complete", "why", "-n", scene.namespace, "cat", namespace=False) == "catalog\n:4\n"
    done = subprocess.run([str(FOLDER / "kubectl_complete-slipway"), "hold", "cart", "-n", scene.namespace, ""], env=environment(scene), text=True,
                          capture_output=True, timeout=60)
    assert done.stdout == "catalog\n:4\n", done.stderr
    script = run(scene, "completion", "bash", namespace=False) + "\n".join((
        "COMP_WORDS=(kubectl slipway suspend -n %s ''); COMP_CWORD=5; _kubectl_or_slipway; echo \"${COMPREPLY[@]}\"" % scene.namespace,
        "COMP_WORDS=(kubectl-slipway sta); COMP_CWORD=1; _kubectl_slipway_alone; echo \"${COMPREPLY[@]}\""))
    done = subprocess.run(["bash", "-c", script], env=environment(scene), text=True, capture_output=True, timeout=60)
    assert done.stdout.splitlines() == ["web", "status"], done.stderr
    # Names from a cluster that does not answer: none, and no noise in the middle of a line.
    assert run(scene, "__complete", "why", "", namespace=False, KUBECONFIG=nowhere(scene)) == ":4\n"


@only_sim
def test_contexts_and_lists_of_kubeconfigs(scene):
    scene.slipway()
    scene.group("a", replicas=1)
    good = json.loads(scene.cluster.at.kubeconfig({"token": "admin"}))
    for plural, singular in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
        good[plural][0]["name"] = "good"
    good["contexts"][0]["context"] = {"cluster": "good", "user": "good", "namespace": scene.namespace}
    del good["current-context"]
    path = scene.folder / "good"
    path.write_text(json.dumps(good))
    both = nowhere(scene) + os.pathsep + str(path)
    assert "web" in run(scene, "status", "--context", "good", namespace=False, KUBECONFIG=both), "the namespace is the context's, too"
    assert "does not answer" in run(scene, "status", status=FAILED, KUBECONFIG=both)
    assert "nobody" in run(scene, "status", "--context", "nobody", status=FAILED, KUBECONFIG=both)


# ---- doctor ----

def findings(scene):
    """[(check, message)] of what is bad; the exit status says whether there is any."""
    argv = [str(PROGRAM), "doctor", "-o", "json", "-n", scene.namespace]
    done = subprocess.run(argv, env=environment(scene), text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    bad = [(item["check"], item["message"]) for item in json.loads(done.stdout)["items"] if item["result"] == "bad"]
    assert done.returncode == (FINDINGS if bad else DONE) and done.stderr == "", done.stderr
    return bad


def own_deployment(scene, replicas, image="example.org/slipway:0.1.0"):
    return scene.api.post("/apis/apps/v1/namespaces/%s/deployments" % scene.namespace, {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "slipway", "labels": {"app.kubernetes.io/name": "slipway"}, "annotations": {"slipway.dev/ignore": "true"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"name": "slipway"}},
                 "template": {"metadata": {"labels": {"name": "slipway"}},
                              "spec": {"serviceAccountName": "slipway", "containers": [{"name": "slipway", "image": image}]}}}})


def lease(scene, name, holder, renewed):
    scene.api.post("/apis/coordination.k8s.io/v1/namespaces/%s/leases" % scene.namespace, {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}})


def is_gone(scene, path):
    try:
        scene.api.get(path)
    except api.ApiError as error:
        return error.status == 404
    return False


def test_doctor_finds_nothing_where_all_is_well(own_scene):
    own_scene.slipway()
    own_scene.group("a", replicas=1)
    until(lambda: findings(own_scene) == [], "nothing is found")
    text = run(own_scene, "doctor")
    assert "the API server reaches the webhook and trusts it" in text and "0 to be mended" in text, text


def test_doctor_finds_a_webhook_that_nobody_reaches(own_scene):
    slipway = own_scene.slipway(failure_policy="Ignore")
    name = "slipway-" + own_scene.namespace
    labels = {"slipway.test/namespace": own_scene.namespace}
    own_scene.cluster.register_webhook(name, labels, slipway.webhook_url, b"garbled", "Ignore")
    found = findings(own_scene)
    assert any("caBundle cannot be used" in message for check, message in found), found
    # One of another authority: well formed, and not that of the certificate.
    other = (TOP / "tests" / "data" / "webhook" / "one.crt").read_bytes()
    own_scene.cluster.register_webhook(name, labels, slipway.webhook_url, other, "Ignore")

    def is_found():
        return any("does not get answers from the webhook" in message and "certificate" in message
                   for check, message in findings(own_scene))
    until(is_found, "doctor says that the certificate is not of that authority", 30)
    own_scene.webhook_of(slipway)
    assert findings(own_scene) == []
    own_scene.no_webhook()
    assert any("no webhook configuration names slipway" in message for check, message in findings(own_scene))


@only_sim
def test_doctor_looks_behind_the_service_of_a_webhook(own_scene):
    """Nobody listens there, and failurePolicy hides it: what the objects tell has to do."""
    ca = (TOP / "tests" / "data" / "webhook" / "one.crt").read_bytes()
    name, namespace = "slipway-" + own_scene.namespace, own_scene.namespace
    own_scene.cluster.register_webhook(name, {"slipway.test/namespace": namespace}, "https://x/", ca, "Ignore")
    service = {"namespace": namespace, "name": "hook", "path": "/mutate-apps-v1-deployment"}
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/" + name
    webhook = own_scene.api.get(path)["webhooks"][0]
    webhook["clientConfig"] = {"service": service, "caBundle": webhook["clientConfig"]["caBundle"]}
    own_scene.api.patch(path, {"webhooks": [webhook]})

    def said():
        return " ".join(message for check, message in findings(own_scene) if check == "webhook")
    until(lambda: "no ready Pod is behind the Service %s/hook" % namespace in said(), lambda: "nobody is behind it: " + said())
    own_scene.api.post("/api/v1/namespaces/%s/endpoints" % namespace, {
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "hook"},
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 9443}]}]})
    until(lambda: said().endswith("does not get answers from the webhook"), lambda: "somebody is behind it: " + said())
    other = (TOP / "tests" / "data" / "webhook" / "two.crt").read_bytes()
    own_scene.api.post("/api/v1/namespaces/%s/secrets" % namespace, {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"}, "data": {"ca.crt": base64.b64encode(other).decode()}})
    until(lambda: "caBundle does not have the authority of the Secret %s/hook" % namespace in said(), lambda: "another authority: " + said())
    own_scene.no_webhook()


def test_doctor_finds_no_crd_no_replicas_and_an_old_lease(own_scene):
    own_scene.slipway()
    own_deployment(own_scene, 2, image="example.org/slipway:9.9.9")
    slipway_namespace = ("--slipway-namespace", own_scene.namespace)
    lease(own_scene, "another-id", "slipway-5d9f-x2x", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    assert "slipway-5d9f-x2x leads" in [item["message"] for item in facts(own_scene, "doctor", *slipway_namespace, status=None)["items"]]
    lease(own_scene, "slipway", "gone", "2020-01-01T00:00:00.000000Z")
    own_scene.stall_pods()
    own_scene.api.patch("/apis/apps/v1/namespaces/%s/deployments/slipway" % own_scene.namespace, {"spec": {"replicas": 0}})
    items = facts(own_scene, "doctor", *slipway_namespace, status=FINDINGS)["items"]
    bad = {item["check"]: item["message"] for item in items if item["result"] == "bad"}
    assert "is scaled to zero" in bad["replicas"] and "by gone: no slipway leads" in bad["lease"], bad
    assert any(item["check"] == "version" and item["result"] == "warning" and "9.9.9" in item["message"] for item in items), items
    own_scene.api.delete("/apis/apps/v1/namespaces/%s/deployments/slipway" % own_scene.namespace, {"propagationPolicy": "Foreground"})
    for process in own_scene.processes:
        process.stop()
    own_scene.no_webhook()
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/deploymentcoordinations.apps.containerinfra.nl"
    own_scene.api.delete(crd)
    try:
        until(lambda: is_gone(own_scene, crd), "the CRD is gone")
        assert ("crd", "the CRD of DeploymentCoordination is missing") in findings(own_scene)
        assert "kubectl slipway doctor" in run(own_scene, "status", status=FAILED)
    finally:
        own_scene.cluster.install()


@only_real("slipway-sim lets everybody do everything")
def test_doctor_finds_a_permission_that_is_missing(own_scene):
    own_scene.slipway()
    path = "/apis/%s/clusterroles/slipway" % RBAC
    role = own_scene.api.get(path)
    rules = [rule for rule in role["rules"] if rule["resources"] != ["deploymentcoordinations/status"]]
    own_scene.api.patch(path, {"rules": rules})
    try:
        expected = "ServiceAccount %s/%s may not patch deploymentcoordinations/status.apps.containerinfra.nl" % SERVICE_ACCOUNT
        until(lambda: any(message.startswith(expected) for check, message in findings(own_scene)), "doctor names what is missing")
    finally:
        own_scene.api.patch(path, {"rules": role["rules"]})
    until(lambda: findings(own_scene) == [], "and nothing afterwards")
