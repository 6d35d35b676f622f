# SPDX-License-Identifier: Apache-2.0
"""tools/control-plane: up, down, env, status, token, kubeconfig, on the real programs."""

import base64
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

from planes import CONTROL_PLANE, Plane, clean_env, run, wait, workload
from control_plane import build, instance, process


def test_up_twice_is_up_once(plane):
    before = plane.pids()
    answer = plane.up().stdout
    assert "up already" in answer
    assert plane.pids() == before
    assert all(before.values()) and len(before) == 4


def test_two_ups_at_once_make_one_instance(own_plane):
    both = [subprocess.Popen([CONTROL_PLANE, "up", "--dir", own_plane.dir], env=clean_env(),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for _ in range(2)]
    said = [one.communicate(timeout=600)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert sum("up already" in text for text in said) == 1, said
    assert sorted(member.pid for member in process.members(own_plane.dir)) == \
        sorted(own_plane.pids().values())


def test_up_with_other_options_says_so(plane):
    refused = plane.up("--nodes", "7", ok=False)
    assert refused.returncode == 1
    assert "is up with nodes not given, not 7" in refused.stderr
    assert "down --dir" in refused.stderr


def test_env_is_for_the_shell(plane):
    said = run(["bash", "-c", 'eval "$("$0" env --dir "$1")"; "$SLIPWAY_KUBECTL" get nodes -o name;'
                'curl -sS --cacert "$SLIPWAY_CONTROL_PLANE_CA" -H "Authorization: Bearer '
                '$(cat "$SLIPWAY_CONTROL_PLANE_TOKEN_FILE")" "$SLIPWAY_CONTROL_PLANE_SERVER/version"',
                CONTROL_PLANE, plane.dir]).stdout
    assert said.splitlines()[:3] == ["node/node-1", "node/node-2", "node/node-3"]
    assert '"gitVersion": "%s"' % build.asked() in said


def test_the_folder_may_come_from_the_environment(plane):
    env = clean_env(SLIPWAY_CONTROL_PLANE=plane.dir)
    assert json.loads(run([CONTROL_PLANE, "status", "--json"], env=env).stdout)["dir"] == plane.dir


def test_the_certificate_is_verified_strictly(plane):
    server = plane.env()["SLIPWAY_CONTROL_PLANE_SERVER"]
    for name in ("ca.crt", "client-ca.crt"):
        context = ssl.create_default_context(cafile=os.path.join(plane.dir, "pki", name))
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        try:
            with urllib.request.urlopen(server + "/readyz", context=context) as answer:
                assert answer.read() == b"ok"
            verified = True
        except urllib.error.URLError:
            verified = False
        assert verified == (name == "ca.crt"), name


def test_a_custom_resource_is_served(plane, namespace):
    plane.apply({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.test.slipway.dev"},
        "spec": {"group": "test.slipway.dev", "scope": "Namespaced",
                 "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
                 "versions": [{"name": "v1", "served": True, "storage": True,
                               "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {
                                   "type": "object",
                                   "x-kubernetes-preserve-unknown-fields": True}}}]}})
    plane.kubectl("wait", "--for=condition=Established", "--timeout=180s",
                  "crd/boats.test.slipway.dev")
    plane.apply({"apiVersion": "test.slipway.dev/v1", "kind": "Boat",
                 "metadata": {"name": "one"}, "spec": {"mast": 2}}, namespace)
    assert plane.get("boat", "one", "-n", namespace)["spec"] == {"mast": 2}


def test_a_serviceaccount_may_what_rbac_allows(plane, namespace, tmp_path):
    plane.kubectl("create", "serviceaccount", "worker", "-n", namespace)
    plane.kubectl("create", "role", "reader", "-n", namespace, "--verb=get,list",
                  "--resource=configmaps")
    plane.kubectl("create", "rolebinding", "reader", "-n", namespace, "--role=reader",
                  "--serviceaccount=%s:worker" % namespace)
    for more in ([], ["--embed"]):
        config = tmp_path / "worker.kubeconfig"
        config.write_text(plane.control("kubeconfig", "worker", "-n", namespace, *more).stdout)
        assert ("certificate-authority-data" in config.read_text()) == bool(more)
        wait("the RBAC caches", lambda: plane.kubectl(
            "get", "configmaps", kubeconfig=str(config), ok=False).returncode == 0)
        refused = plane.kubectl("get", "secrets", kubeconfig=str(config), ok=False)
        assert refused.returncode != 0
        assert 'User "system:serviceaccount:%s:worker" cannot list' % namespace in refused.stderr


def test_a_token_says_whose_it_is_and_how_long(plane, namespace):
    plane.kubectl("create", "serviceaccount", "worker", "-n", namespace)
    token = plane.control("token", "worker", "-n", namespace, "--duration", "20m").stdout.strip()
    middle = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    assert claims["sub"] == "system:serviceaccount:%s:worker" % namespace
    assert claims["exp"] - claims["iat"] == 1200
    refused = plane.control("token", "nobody", "-n", namespace, ok=False)
    assert refused.returncode == 1
    assert "there is no ServiceAccount nobody in namespace " + namespace in refused.stderr


def test_a_client_certificate_is_an_admin_too(plane):
    config = plane.env()["SLIPWAY_CONTROL_PLANE_CERT_KUBECONFIG"]
    with open(config) as file:
        text = file.read()
    assert "client-certificate" in text and "token" not in text
    allowed = plane.kubectl("auth", "can-i", "*", "*", "--all-namespaces", kubeconfig=config)
    assert allowed.stdout.strip() == "yes"


def test_another_instance_stands_beside_the_first(plane, own_plane):
    own_plane.up("--nodes", "1", "--kubelets=on")
    assert not set(own_plane.pids().values()) & set(plane.pids().values())
    own_plane.kubectl("create", "namespace", "only-here")
    assert plane.kubectl("get", "namespace", "only-here", ok=False).returncode != 0
    assert own_plane.kubectl("get", "nodes", "-o", "name").stdout.split() == ["node/node-1"]
    own_plane.down()
    assert plane.status()["running"]


def test_flags_of_the_apiserver_are_passed_on(own_plane):
    own_plane.up("--kubelets=off", "--apiserver-arg=--max-requests-inflight=123")
    assert set(own_plane.pids()) == {"etcd", "kube-apiserver", "kube-controller-manager"}
    with open("/proc/%d/cmdline" % own_plane.pids()["kube-apiserver"]) as file:
        assert "--max-requests-inflight=123" in file.read().split("\0")


def test_a_flag_that_is_none_is_told_with_the_end_of_the_log(own_plane):
    refused = own_plane.up("--apiserver-arg=--no-such-flag=1", ok=False)
    assert refused.returncode == 1
    assert "unknown flag: --no-such-flag" in refused.stderr
    assert "kube-apiserver ended with status" in refused.stderr
    assert os.path.join(own_plane.dir, "logs", "kube-apiserver.log") in refused.stderr
    assert process.members(own_plane.dir) == []


def test_up_repairs_what_died_and_keeps_the_data(own_plane):
    own_plane.up()
    own_plane.apply(workload("Deployment", "web", 2))
    wait("the Deployment", lambda: own_plane.get("deployment", "web")["status"].get(
        "availableReplicas") == 2)
    before = own_plane.pids()
    server = own_plane.env()["SLIPWAY_CONTROL_PLANE_SERVER"]
    for name in ("etcd", "kube-apiserver", "kubelets"):
        os.kill(before[name], signal.SIGKILL)
    wait("their end", lambda: sum(pid is None for pid in own_plane.pids().values()) == 3)
    table = own_plane.control("status", ok=False)
    assert table.returncode == 3
    assert "ended" in table.stdout and "start again what has ended" in table.stdout
    own_plane.up()
    after = own_plane.pids()
    assert all(after.values())
    assert all(after[name] != before[name] for name in ("etcd", "kube-apiserver", "kubelets"))
    assert after["kube-controller-manager"] == before["kube-controller-manager"]
    assert own_plane.env()["SLIPWAY_CONTROL_PLANE_SERVER"] == server
    own_plane.kubectl("scale", "deployment", "web", "--replicas=4")
    wait("the Deployment", lambda: own_plane.get("deployment", "web")["status"].get(
        "availableReplicas") == 4)


def test_a_port_that_was_taken_meanwhile_is_given_up(own_plane):
    own_plane.up()
    before = own_plane.pids()
    server = own_plane.env()["SLIPWAY_CONTROL_PLANE_SERVER"]
    port = int(server.rpartition(":")[2])
    os.kill(before["kube-apiserver"], signal.SIGKILL)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def bind():
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                return False
            return True
        wait("the port", bind)
        taken.listen()
        own_plane.up()
    assert own_plane.env()["SLIPWAY_CONTROL_PLANE_SERVER"] != server
    after = own_plane.pids()
    assert after["etcd"] == before["etcd"]
    # They were told the old address.
    assert after["kube-controller-manager"] != before["kube-controller-manager"]
    assert after["kubelets"] != before["kubelets"]
    own_plane.apply(workload("Deployment", "web", 1))
    wait("the Deployment", lambda: own_plane.get("deployment", "web")["status"].get(
        "availableReplicas") == 1)


def test_a_port_that_is_taken_at_the_last_moment_is_another_next_time(own_plane, monkeypatch):
    free_port = instance.free_port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        taken_port = taken.getsockname()[1]
        answers = []

        def every_third_is_taken():
            answers.append(taken_port if len(answers) % 3 == 0 else free_port())
            return answers[-1]
        monkeypatch.setattr(instance, "free_port", every_third_is_taken)
        assets = os.environ.get("KUBEBUILDER_ASSETS") or build.cache_dir()
        started = instance.Instance(own_plane.dir).up({"assets": assets})
    assert started == list(instance.PARTS)
    assert answers.count(taken_port) >= 2
    with open(os.path.join(own_plane.dir, "state.json")) as file:
        assert taken_port not in json.load(file)["ports"].values()
    assert own_plane.status()["running"]


def test_an_interrupted_up_leaves_no_process(own_plane):
    child = subprocess.Popen([CONTROL_PLANE, "up", "--dir", own_plane.dir], env=clean_env(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait("a kube-apiserver", lambda: len(process.members(own_plane.dir)) >= 2)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=120)
    assert child.returncode == 143
    assert process.members(own_plane.dir) == []


def test_down_leaves_nothing(own_plane):
    own_plane.up()
    pids = own_plane.pids().values()
    assert len(process.members(own_plane.dir)) == 4
    own_plane.down()
    assert process.members(own_plane.dir) == []
    assert [pid for pid in pids if process.start_ticks(pid) is not None] == []
    assert not os.path.exists(own_plane.dir)
    assert "nothing is up" in own_plane.down().stdout
    for command in ("env", "status"):
        refused = own_plane.control(command, ok=False)
        assert refused.returncode == 1
        assert "no control plane in" in refused.stderr and "up --dir" in refused.stderr


def test_down_can_keep_the_logs_and_up_begins_anew(own_plane):
    own_plane.up("--kubelets=off")
    own_plane.kubectl("create", "namespace", "before")
    own_plane.down("--keep")
    assert os.listdir(own_plane.dir) == ["logs"]
    assert "etcd.log" in os.listdir(os.path.join(own_plane.dir, "logs"))
    own_plane.up("--kubelets=off")
    assert own_plane.kubectl("get", "namespace", "before", ok=False).returncode != 0


def test_a_foreign_folder_is_neither_taken_nor_emptied(tmp_path):
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "precious").write_text("mine")
    foreign = Plane(tmp_path)
    refused = foreign.up(ok=False)
    assert refused.returncode == 1
    assert "is not empty (pki) and holds no control plane" in refused.stderr
    foreign.down()
    assert (tmp_path / "pki" / "precious").read_text() == "mine"


def test_what_somebody_put_into_the_folder_stays(own_plane):
    own_plane.up("--kubelets=off")
    note = os.path.join(own_plane.dir, "note")
    with open(note, "w") as file:
        file.write("mine")
    assert "left: " + note in own_plane.down().stdout
    assert os.listdir(own_plane.dir) == ["note"]


def test_a_stranger_with_a_written_down_number_lives(own_plane):
    own_plane.up("--kubelets=off")
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        file = os.path.join(own_plane.dir, "state.json")
        with open(file) as source:
            state = json.load(source)
        real = state["processes"]["kube-controller-manager"]["pid"]
        state["processes"]["kube-controller-manager"]["pid"] = stranger.pid
        with open(file, "w") as target:
            json.dump(state, target)
        assert own_plane.pids()["kube-controller-manager"] is None
        own_plane.down()
        assert stranger.poll() is None
        # And the one whose number was lost is found all the same.
        assert process.start_ticks(real) is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_removed_folder_does_not_hide_the_processes(own_plane):
    own_plane.up("--kubelets=off")
    pids = own_plane.pids().values()
    os.rename(own_plane.dir, own_plane.dir + ".moved")
    own_plane.down()
    assert [pid for pid in pids if process.start_ticks(pid) is not None] == []


def test_a_damaged_state_is_told_and_taken_down(own_plane):
    own_plane.up("--kubelets=off")
    with open(os.path.join(own_plane.dir, "state.json"), "w") as file:
        file.write('{"ports": {')
    refused = own_plane.control("status", ok=False)
    assert refused.returncode == 1
    assert "state.json is damaged" in refused.stderr and "down --dir" in refused.stderr
    own_plane.down()
    assert process.members(own_plane.dir) == []
    assert not os.path.exists(own_plane.dir)


def test_assets_of_ones_own_are_used_as_they_are(plane, own_plane, tmp_path):
    built = os.path.dirname(plane.env()["SLIPWAY_KUBECTL"])
    assets = tmp_path / "assets"
    assets.mkdir()
    env = clean_env(KUBEBUILDER_ASSETS=str(assets), XDG_CACHE_HOME=str(tmp_path / "no-cache"))
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (assets / name).symlink_to(os.path.join(built, name))
    refused = own_plane.up(ok=False, env=env)
    assert refused.returncode == 1
    assert "lacks kube-controller-manager" in refused.stderr
    (assets / "kube-controller-manager").symlink_to(
        os.path.join(built, "kube-controller-manager"))
    assert "nothing to build" in run([CONTROL_PLANE, "build"], env=env).stdout
    own_plane.up("--kubelets=off", env=env)
    assert own_plane.env()["SLIPWAY_KUBECTL"] == str(assets / "kubectl")
    assert not (tmp_path / "no-cache").exists()
