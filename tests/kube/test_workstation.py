# SPDX-License-Identifier: Apache-2.0
"""What a kubeconfig of a workstation may ask for, against the real API server: credential plugins, several files,
impersonation, proxies."""

import base64
import json
import os
import pathlib
import shutil
import socket
import ssl
import stat
import subprocess
import threading

import pytest

from control_plane.ports import free_port
from harness.wait import until
from story.certificate import make_certificate
from probes import FAST, Objects


@pytest.fixture
def objects(cluster, namespace):
    found = Objects(cluster, namespace)
    found.create("a", "start")
    return found


@pytest.fixture
def new_token(cluster, namespace):
    """Tokens of an account that may read here; each is another."""
    cluster.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    cluster.kubectl("create", "role", "reader", "-n", namespace, "--verb=get,list,watch", "--resource=configmaps")
    cluster.kubectl("create", "rolebinding", "reader", "-n", namespace, "--role=reader", "--serviceaccount=%s:reader" % namespace)
    lives = iter(range(3600, 100000, 60))

    def make():
        path = "/api/v1/namespaces/%s/serviceaccounts/reader/token" % namespace
        about = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": next(lives)}}
        return cluster.api.post(path, about)["status"]["token"]
    return make


# ---- credential plugins ----

class Plugin:
    """A script that prints what is in a file, and counts how often it did."""

    def __init__(self, folder):
        self.path, self._answer, self._runs, self._fails = (folder / name for name in ("plugin", "answer", "runs", "fails"))
        self.path.write_text("#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO\" >>%s\n[ ! -e %s ] || { echo 'log in first' >&2; exit 3; }\ncat %s\n"
                             % (self._runs, self._fails, self._answer))
        self.path.chmod(stat.S_IRWXU)

    def gives(self, lives_s=None, **status):
        expiry = "" if lives_s is None else "date -u -d '+%d seconds' +%%Y-%%m-%%dT%%H:%%M:%%SZ" % lives_s
        document = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", "status": status}
        text = json.dumps(document)
        if expiry:  # counted from the moment of the run
            status["expirationTimestamp"] = "@EXPIRY@"
            text = json.dumps(document)
            self.path.write_text(self.path.read_text().replace("cat %s" % self._answer, "sed \"s/@EXPIRY@/$(%s)/\" %s" % (expiry, self._answer)))
        new = self._answer.with_suffix(".new")
        new.write_text(text)
        new.rename(self._answer)

    def fails(self, is_on):
        self._fails.touch() if is_on else self._fails.unlink()

    @property
    def runs(self):
        return self._runs.read_text().splitlines() if self._runs.exists() else []

    def user(self, **more):
        about = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": str(self.path)}
        return {"exec": dict(about, **more)}


@pytest.fixture
def plugin(tmp_path):
    return Plugin(tmp_path)


def test_a_plugins_token_is_replaced_when_it_is_refused(objects, proxy, new_probe, new_token, plugin):
    first, second = new_token(), new_token()
    plugin.gives(token=first)
    probe = new_probe(proxy, "--watch", *FAST, user=plugin.user(provideClusterInfo=True))
    probe.until_listed(1)
    # The refusals come to requests: a watch that is refused would have asked for the new one already.
    until(lambda: any(request.is_watch and request.status == 200 for request in proxy.requests), "it watches")
    plugin.gives(token=second)
    proxy.answer(401, when=lambda request: request.headers["authorization"] == "Bearer " + first)
    since = len(probe.lines)
    for _ in range(10):
        probe.say("get a")
    until(lambda: sum(line.startswith("reply ") for line in probe.lines[since:]) == 10, "10 answers")
    assert {line.split(" ")[2] for line in probe.lines[since:] if line.startswith("reply ")} == {"200"}
    assert len(plugin.runs) == 2
    spec = json.loads(plugin.runs[0])["spec"]
    assert spec["interactive"] is False and spec["cluster"]["server"] == proxy.url
    assert base64.b64decode(spec["cluster"]["certificate-authority-data"]) == proxy.ca_file.read_bytes()
    proxy.cut_now()
    objects.change("a", "after")
    probe.until_state(objects.state())
    assert first not in probe.said() and second not in probe.said()


def test_a_plugins_token_is_replaced_before_it_expires(objects, proxy, new_probe, new_token, plugin):
    tokens = [new_token() for _ in range(2)]
    plugin.gives(lives_s=6, token=tokens[0])
    probe = new_probe(proxy, user=plugin.user())
    assert probe.call("get a").status == 200
    plugin.gives(lives_s=6, token=tokens[1])
    until(lambda: len(plugin.runs) >= 2, "another run, for nobody's request")
    until(lambda: probe.call("get a").status == 200 and proxy.requests[-1].headers["authorization"] == "Bearer " + tokens[1], "the new token")
    assert {request.status for request in proxy.requests} == {200}


def test_a_plugin_that_fails_is_quoted_and_tried_again(objects, new_probe, new_token, plugin):
    plugin.fails(True)
    probe = new_probe(None, "--watch", *FAST, user=plugin.user())
    reply = probe.call("get a")
    assert reply.code < 0 and not reply.was_sent and "exit status 3: log in first" in reply.text
    plugin.gives(token=new_token())
    plugin.fails(False)
    probe.until_listed(1)
    assert probe.call("get a").status == 200


def test_a_plugins_certificate(cluster, objects, new_probe, plugin):
    pki = cluster.folder / "pki"
    plugin.gives(clientCertificateData=(pki / "admin.crt").read_text(), clientKeyData=(pki / "admin.key").read_text())
    probe = new_probe(None, "--watch", user=plugin.user())
    probe.until_listed(1)
    assert probe.call("put a by-certificate").status == 200
    assert len(plugin.runs) == 1 and "PRIVATE" not in probe.said()


def test_a_plugin_that_is_not_there(objects, new_probe):
    exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": "nobody-has-this", "interactiveMode": "Never", "installHint": "apt install it"}
    line = new_probe(None, user={"exec": exec_}).until_line("error: .*")
    assert '"nobody-has-this" is not there; apt install it' in line


def test_a_plugin_under_way_is_killed_with_the_process(objects, new_probe, plugin):
    plugin.path.write_text("#!/bin/sh\necho $$ >>%s/pid\nexec sleep 1000\n" % plugin.path.parent)
    probe = new_probe(None, "--watch", user=plugin.user())
    pid = plugin.path.parent / "pid"
    until(lambda: pid.exists() and pid.read_text().endswith("\n"), "it runs")
    assert probe.close() is None
    assert not pathlib.Path("/proc/%d" % int(pid.read_text())).exists()
    probe.kill()


# ---- several files ----

def test_a_list_of_kubeconfigs(cluster, objects, new_probe, new_token, tmp_path, monkeypatch):
    ca = tmp_path / "second" / "ca.crt"
    ca.parent.mkdir()
    shutil.copy(cluster.ca_file, ca)
    first, second = tmp_path / "first", tmp_path / "second" / "config"
    first.write_text(json.dumps({"current-context": "here", "users": [{"name": "me", "user": {"token": new_token()}}],
                                 "contexts": [{"name": "other", "context": {"cluster": "real", "user": "nobody"}}]}))
    second.write_text(json.dumps({
        "current-context": "gone", "users": [{"name": "me", "user": {"token": "wrong"}}, {"name": "nobody", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "real", "user": "me"}}],
        "clusters": [{"name": "real", "cluster": {"server": cluster.server, "certificate-authority": "ca.crt"}}]}))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "missing"), str(first), str(second)]))
    assert new_probe(None, is_written=False).call("get a").status == 200
    reply = new_probe(None, "--context", "other", is_written=False).call("get a")
    assert reply.status in (401, 403)


# ---- impersonation ----

def test_impersonation(cluster, objects, new_probe, namespace):
    as_jane = {"as": "jane", "as-groups": ["dev"], "as-user-extra": {"acme.com/project": ["x"]}}
    admin = {"token": (cluster.folder / "admin.token").read_text().strip()}
    reply = new_probe(None, user=dict(admin, **as_jane)).call("get a")
    assert reply.status == 403 and 'User "jane" cannot get resource "configmaps"' in reply.text
    cluster.kubectl("create", "role", "dev", "-n", namespace, "--verb=get", "--resource=configmaps")
    cluster.kubectl("create", "rolebinding", "dev", "-n", namespace, "--role=dev", "--group=dev")
    probe = new_probe(None, user=dict(admin, **as_jane))
    until(lambda: probe.call("get a").status == 200, "the group's right")


# ---- proxies ----

@pytest.fixture
def new_service(tmp_path):
    """Starts a program that listens, and ends it with the test."""
    running = []

    def start(name, port, *argv):
        log = open(tmp_path / (name + ".log"), "w")
        running.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT))
        log.close()

        def listens():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        until(listens, "%s listens" % name)
        return tmp_path / (name + ".log")
    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def new_tinyproxy(new_service, tmp_path):
    def start(*more):
        port = free_port()
        config = tmp_path / ("tinyproxy-%d" % port)
        config.write_text("\n".join(("Port %d" % port, "Listen 127.0.0.1", "Timeout 600", "MaxClients 50", "LogLevel Connect") + more) + "\n")
        return port, new_service("tinyproxy-%d" % port, port, "tinyproxy", "-d", "-c", str(config))
    return start


def use(probe, objects):
    """A list, a watch and a write."""
    probe.until_listed(1)
    reply = probe.call("put a through")
    assert reply.status == 200, reply.text
    probe.until_state(objects.state())
    assert probe.state() == {"a": "through"}


def test_an_http_proxy(cluster, objects, new_probe, new_tinyproxy):
    port, log = new_tinyproxy()
    probe = new_probe(None, "--watch", "--lease", "lease", "--identity", "me", **{"proxy-url": "http://127.0.0.1:%d" % port})
    probe.until_line("leading .*")
    use(probe, objects)
    place = cluster.server.split("//")[1].rstrip("/")
    # One for requests, one for the watch, one for the Lease.
    until(lambda: log.read_text().count("CONNECT %s" % place) >= 3, "three tunnels in\n" + log.read_text())


def test_an_http_proxy_that_wants_a_password(objects, new_probe, new_tinyproxy):
    port, _ = new_tinyproxy("BasicAuth jane S3CRET")
    use(new_probe(None, "--watch", **{"proxy-url": "http://jane:S3CRET@127.0.0.1:%d" % port}), objects)
    wrong = new_probe(None, **{"proxy-url": "http://jane:WR0NG@127.0.0.1:%d" % port})
    reply = wrong.call("get a")
    assert reply.status == 0 and not reply.was_sent and "wants another user or password" in reply.text
    assert "WR0NG" not in wrong.said() and "S3CRET" not in wrong.said()


def test_the_environments_proxy(cluster, objects, new_probe, new_tinyproxy, monkeypatch):
    """localhost needs none, so the server gets another name, which only the proxy knows to be nowhere."""
    port, log = new_tinyproxy()
    monkeypatch.setenv("HTTPS_PROXY", "127.0.0.1:%d" % port)
    use(new_probe(None, "--watch"), objects)
    assert "CONNECT 127" not in log.read_text()
    where = {"server": "https://api.invalid:6443"}
    reply = new_probe(None, **where).call("get a")
    assert reply.status == 0 and "does not connect to api.invalid:6443: 5" in reply.text
    assert "CONNECT api.invalid:6443" in log.read_text()
    monkeypatch.setenv("NO_PROXY", ".invalid")
    reply = new_probe(None, **where).call("get a")
    assert reply.status == 0 and "cannot look up the address of api.invalid" in reply.text


@pytest.mark.parametrize("login", [None, "jane:word"])
def test_a_socks_proxy(objects, new_probe, new_service, login):
    port = free_port()
    options = ["-u", "jane", "-P", "word"] if login else []
    new_service("microsocks", port, "microsocks", "-i", "127.0.0.1", "-p", str(port), *options)
    use(new_probe(None, "--watch", **{"proxy-url": "socks5://%s127.0.0.1:%d" % (login + "@" if login else "", port)}), objects)


class TlsInFront:
    """Ends TLS in front of a proxy that has none."""

    def __init__(self, folder, port):
        make_certificate(folder)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self._behind = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.taken = self._listener.getsockname()[1], 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near = self._tls.wrap_socket(self._listener.accept()[0], server_side=True)
                far = socket.create_connection(("127.0.0.1", self._behind))
            except ssl.SSLError:
                continue
            except OSError:
                return
            self.taken += 1
            # The two directions of a TLS socket may be used by two threads.
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source, sink):
        try:
            while part := source.recv(65536):
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self._listener.close()


def test_an_https_proxy(cluster, objects, new_probe, new_tinyproxy, tmp_path):
    port, _ = new_tinyproxy()
    front = TlsInFront(tmp_path / "front", port)
    both = tmp_path / "both.crt"
    both.write_bytes(pathlib.Path(cluster.ca_file).read_bytes() + (tmp_path / "front" / "ca.crt").read_bytes())
    where = {"proxy-url": "https://localhost:%d" % front.port}
    use(new_probe(None, "--watch", **{"certificate-authority": str(both)}, **where), objects)
    assert front.taken >= 2
    reply = new_probe(None, **where).call("get a")
    assert reply.status == 0 and not reply.was_sent and "the proxy: " in reply.text and "certificate" in reply.text
    front.close()
