# SPDX-License-Identifier: Apache-2.0
"""Calls and credentials against the real API server, with a proxy in between."""

import base64
import itertools
import json
import pathlib
import threading
import time

import pytest

from probes import FAST, Objects, Reply
from harness.wait import until
from story.certificate import make_certificate


@pytest.fixture
def objects(cluster, namespace):
    found = Objects(cluster, namespace)
    found.create("a", "start")
    return found


def value_of(objects, name="a"):
    return objects.get(name)["data"]["value"]


# ---- answers ----

def test_a_write_with_a_precondition(objects, proxy, new_probe):
    probe = new_probe(proxy)
    version = objects.get("a")["metadata"]["resourceVersion"]
    reply = probe.call("put a one %s" % version)
    assert reply.status == 200 and reply.text == objects.get("a")["metadata"]["resourceVersion"]
    reply = probe.call("put a two %s" % version)
    assert reply.status == 409 and "has been modified" in reply.text
    assert value_of(objects) == "one"
    reply = probe.call("get nowhere")
    assert reply.status == 404 and "not found" in reply.text


@pytest.mark.parametrize("after", ["0", "1", "1 s", "date", "garbage"])
def test_429_is_tried_again(objects, proxy, new_probe, after):
    probe = new_probe(proxy)
    assert probe.call("get a").status == 200
    value = {"1 s": "1", "garbage": "in a while"}.get(after, after)
    not_before = time.monotonic() + {"1 s": 1.0, "1": 1.0, "garbage": 1.0}.get(after, 0.0)
    if after == "date":
        date = int(time.time() + 2)
        value = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(date))
        not_before = time.monotonic() + date - time.time()
    rule = proxy.answer(429, retry_after=value, method="PATCH", times=1)
    assert probe.call("put a tried").status == 200
    refused, taken = proxy.writes
    assert refused is rule.hits[0] and taken.began >= not_before - 0.01 and value_of(objects) == "tried"
    assert "asks for patience" in probe.said()


def test_5xx_is_tried_again_only_where_the_server_asks_for_it(objects, proxy, new_probe):
    probe = new_probe(proxy)
    proxy.answer(503, retry_after=0, method="PATCH", times=3)
    assert probe.call("put a one").status == 200
    proxy.answer(503, method="PATCH", times=1)
    assert probe.call("put a two").status == 503
    proxy.answer(500, method="PATCH", times=1)
    assert probe.call("put a two").status == 500
    assert value_of(objects) == "one"


def test_an_endless_429_is_given_up(objects, proxy, new_probe):
    rule = proxy.answer(429, retry_after=0, method="PATCH")
    assert new_probe(proxy).call("put a one").status == 429
    assert len(rule.hits) == 11


def test_a_lost_answer_is_told_as_such(objects, proxy, new_probe):
    probe = new_probe(proxy)
    rule = proxy.lose_answer(method="PATCH", times=1)
    reply = probe.call("put a applied")
    assert reply.code < 0 and reply.was_sent and len(rule.hits) == 1
    assert value_of(objects) == "applied"


def test_a_guarded_write_whose_answer_is_lost_has_one_effect(objects, proxy, new_probe):
    probe = new_probe(proxy)
    assert probe.call("get a").status == 200  # now there is a connection to be used again
    version = objects.get("a")["metadata"]["resourceVersion"]
    proxy.lose_answer(method="PATCH", times=1)
    reply = probe.call("put a once %s" % version)
    # Sent once more on a new connection, where the precondition catches it.
    assert reply.status == 409
    assert value_of(objects) == "once"


def test_an_answer_cut_anywhere_is_an_error(objects, proxy, new_probe):
    probe = new_probe(proxy)
    size = len(json.dumps(objects.get("a")))
    for part in range(1, 20):
        rule = proxy.cut_answer(after=size * part // 20, method="GET", times=1, reset=part % 2 == 0)
        reply = probe.call("get a")
        if len(rule.hits) and reply.code == 0:
            # The head had not begun on a connection that was used again: GETs are replayed then.
            assert reply.status == 200
        else:
            assert reply.code < 0 and reply.status == 0
        rule.remove()


def test_idle_connections_that_vanish_are_noticed(objects, proxy, new_probe):
    probe = new_probe(proxy)
    for i in range(10):
        version = probe.call("get a").text
        proxy.cut_now(reset=i % 2 == 0)
        assert probe.call("put a n%d %s" % (i, version)).status == 200
    assert value_of(objects) == "n9"


def test_answers_out_of_order_reach_who_asked(objects, proxy, new_probe):
    objects.create("b", "start")
    probe = new_probe(proxy)
    held = proxy.hold_answer(path="/configmaps/")
    probe.say("put a one")
    held.until_waiting(1)
    probe.say("put b two")
    held.until_waiting(2)
    held.release(newest_first=True)
    first = probe.until_line("reply 1 .*")
    second = probe.until_line("reply 2 .*")
    assert " 200 " in first and " 200 " in second
    assert first.endswith(objects.get("a")["metadata"]["resourceVersion"])
    assert second.endswith(objects.get("b")["metadata"]["resourceVersion"])


def test_fenced_writes_do_not_arrive_later(objects, proxy, new_probe):
    probe = new_probe(proxy)
    proxy.answer(429, retry_after=1, method="PATCH", times=1)
    probe.say("put a late")
    until(lambda: proxy.writes, "the first try")
    since = len(probe.lines)
    probe.say("fence")
    line = probe.until_line("reply .*", since)
    assert line.split()[3] == "-125"  # ECANCELED
    assert probe.call("get a").status == 200
    time.sleep(2)  # nothing shall happen
    assert value_of(objects) == "start" and len(proxy.writes) == 1


# ---- credentials ----

@pytest.fixture
def editor(cluster, namespace):
    """Makes tokens of an account that may read here; of different lives, or two made in one second would be the same."""
    cluster.kubectl("create", "serviceaccount", "editor", "-n", namespace)
    cluster.kubectl("create", "role", "editor", "-n", namespace, "--verb=get,list,watch", "--resource=configmaps")
    cluster.kubectl("create", "rolebinding", "editor", "-n", namespace, "--role=editor", "--serviceaccount=%s:editor" % namespace)
    lives = itertools.count(3600, 100)

    def make(audiences=None):
        path = "/api/v1/namespaces/%s/serviceaccounts/editor/token" % namespace
        spec = {"expirationSeconds": next(lives), "audiences": audiences or []}
        about = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return cluster.api.post(path, about)["status"]["token"]
    return make


def test_a_token_file_that_is_replaced(editor, objects, proxy, new_probe, tmp_path):
    first, second = editor(), editor()
    path = tmp_path / "token"
    path.write_text(first + "\n")
    probe = new_probe(proxy, "--watch", *FAST, user={"tokenFile": str(path)})
    probe.until_listed(1)
    # The server begins to refuse the old one. (The file is empty before that: a watch that is refused earlier would
    # read the old token again, and nobody would look a second time before the new one is there.)
    path.write_text("")
    proxy.answer(401, when=lambda request: request.headers["authorization"] == "Bearer " + first)
    assert probe.call("get a").status == 401  # nothing better is there
    path.write_text(second)
    # In vain it was read a moment ago: it is read again when the kernel tells of the change, or after a second.
    until(lambda: probe.call("get a").status == 200, "the new token")
    proxy.cut_now()
    objects.change("a", "after")
    probe.until_state(objects.state())
    said = probe.said()
    assert first not in said and second not in said and "cannot be read again" in said


def claims(token):
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def test_a_token_of_12_kib_is_sent_whole_and_outlives_its_file(editor, objects, proxy, new_probe, tmp_path):
    small = editor()
    big = editor(claims(small)["aud"] + ["audience-%04d.%s.example" % (i, "x" * 40) for i in range(150)])
    assert len(big) >= 12 * 1024
    path = tmp_path / "token"
    path.write_text(small)
    probe = new_probe(proxy, "--watch", *FAST, user={"tokenFile": str(path)})
    probe.until_listed(1)
    path.write_text(big + "\n")
    until(lambda: probe.call("get a").status == 200 and proxy.requests[-1].headers["authorization"] == "Bearer " + big, "the new token")
    for spoil in (lambda: path.write_text(""), path.unlink):
        looks = probe.said().count("cannot be read again")
        spoil()
        until(lambda: probe.said().count("cannot be read again") > looks, "a look at the file")
        proxy.cut_now()
        assert probe.call("get a").status == 200
        objects.change("a", "look-%d" % looks)
        probe.until_state(objects.state())
    assert {request.headers["authorization"] for request in proxy.requests} == {"Bearer " + small, "Bearer " + big}
    assert {request.status for request in proxy.requests if request.status} == {200}
    assert small not in probe.said() and big[:100] not in probe.said()


def test_a_storm_of_401s_reads_the_token_once(editor, objects, proxy, new_probe, tmp_path):
    first, second = editor(), editor()
    path = tmp_path / "token"
    path.write_text(first)
    probe = new_probe(proxy, "--watch", *FAST, user={"tokenFile": str(path)})
    probe.until_listed(1)
    # A watch that is refused would read the old token again, and nobody would look a second time so soon.
    until(lambda: any(request.is_watch and request.status == 200 for request in proxy.requests), "it watches")
    go, since, seen = threading.Event(), len(probe.lines), len(proxy.requests)
    gate = proxy.gate(before=lambda request: go.wait(30), path="configmaps/a", method="GET")
    proxy.answer(401, when=lambda request: request.headers["authorization"] == "Bearer " + first)
    for _ in range(20):
        probe.say("get a")
    until(lambda: len(proxy.requests) > seen + 3, "several of them under way")
    path.write_text(second)
    gate.remove()
    go.set()

    def replies():
        return [Reply(line) for line in probe.lines[since:] if line.startswith("reply ")]
    until(lambda: len(replies()) == 20, "20 answers")
    assert {reply.status for reply in replies()} == {200}
    asked = [request for request in proxy.requests[seen:] if not request.is_watch]
    assert 3 < sum(request.status == 401 for request in asked) <= 20 and sum(request.status == 200 for request in asked) == 20
    assert probe.said().count("credentials read again") <= 1
    assert first not in probe.said() and second not in probe.said()


def test_an_authority_that_is_replaced(objects, proxy, new_probe, tmp_path):
    path = tmp_path / "ca.crt"
    path.write_bytes(proxy.ca_file.read_bytes())
    probe = new_probe(proxy, "--watch", *FAST, **{"certificate-authority": str(path)})
    probe.until_listed(1)

    def serve_with_another(number):
        folder = tmp_path / ("other-%d" % number)
        make_certificate(folder)
        return folder, lambda: proxy.tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")

    # In the order that loses nothing: both authorities first.
    other, switch = serve_with_another(0)
    path.write_bytes(path.read_bytes() + (other / "ca.crt").read_bytes())
    until(lambda: "certificates were replaced" in probe.said(), "the new authority")
    switch()
    proxy.cut_now()
    reply = probe.call("get a")
    assert reply.status == 200, reply.text
    objects.change("a", "with-both")
    probe.until_state(objects.state())
    # Where the file comes alone there is an outage, which ends as soon as it fits.
    other, switch = serve_with_another(1)
    path.write_bytes((other / "ca.crt").read_bytes())
    until(lambda: probe.said().count("certificates were replaced") == 2, "the third authority")
    proxy.cut_now()
    assert probe.call("get a").status != 200
    objects.change("a", "with-the-third")
    switch()
    until(lambda: probe.call("get a").status == 200, "the third certificate")
    probe.until_state(objects.state())


def test_a_client_certificate(cluster, objects, new_probe):
    pki = cluster.folder / "pki"
    files = {"client-certificate": pki / "admin.crt", "client-key": pki / "admin.key"}
    new_probe(None, "--watch", user={key: str(path) for key, path in files.items()}).until_listed(1)
    inline = {key + "-data": base64.b64encode(path.read_bytes()).decode() for key, path in files.items()}
    probe = new_probe(None, "--watch", user=inline)
    probe.until_listed(1)
    assert probe.call("put a by-certificate").status == 200


def test_certificates_that_do_not_fit(cluster, objects, proxy, new_probe, tmp_path):
    wrong_ca = new_probe(proxy, "--watch", *FAST, **{"certificate-authority": str(cluster.ca_file)})
    until(lambda: "certificate" in wrong_ca.said(), "a complaint")
    wrong_name = new_probe(None, "--watch", *FAST, **{"tls-server-name": "elsewhere.example"})
    until(lambda: "elsewhere.example" in wrong_name.said(), "a complaint that names the host")
    assert not wrong_ca.deltas() and not wrong_name.deltas()
    by_name = new_probe(None, "--watch", **{"tls-server-name": "kubernetes.default.svc"})
    by_name.until_listed(1)
    careless = new_probe(None, "--watch", **{"insecure-skip-tls-verify": True, "certificate-authority": None})
    careless.until_listed(1)


def test_a_kubeconfig_that_cannot_be_used_says_so(objects, new_probe):
    probe = new_probe(None, user={"auth-provider": {"name": "gcp"}})
    line = probe.until_line("error: .*")
    assert "auth-provider is not supported: use a credential plugin" in line


def test_inline_authorities_are_taken(cluster, objects, new_probe):
    inline = base64.b64encode(pathlib.Path(cluster.ca_file).read_bytes()).decode()
    probe = new_probe(None, "--watch", **{"certificate-authority": None, "certificate-authority-data": inline})
    probe.until_listed(1)
