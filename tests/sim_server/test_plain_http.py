# SPDX-License-Identifier: Apache-2.0
"""slipway-sim without a certificate: the same API over plain HTTP, for those who only want to look."""

import http.client
import json
import select
import socket
import subprocess
import urllib.parse

import pytest

from conftest import PROGRAM

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def server():
    """(host, port) of its API."""
    process = subprocess.Popen([PROGRAM, "--token", "admin"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert select.select([process.stdout], [], [], 60)[0], "it says where it listens"
        said = json.loads(process.stdout.readline())
        url = urllib.parse.urlsplit(said["server"])
        assert url.scheme == "http", said
        yield url.hostname, url.port
    finally:
        process.terminate()
        code = process.wait(60)
        process.stdout.close()
    assert code == 0


def ask(connection, method, path, body=None, token="admin"):
    """(status, JSON)"""
    headers = {"Content-Type": "application/json", **({"Authorization": "Bearer " + token} if token else {})}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}}


def test_objects_are_made_read_and_deleted_on_one_connection(server):
    connection = http.client.HTTPConnection(*server, timeout=60)
    status, made = ask(connection, "POST", CONFIG_MAPS, config_map("a"))
    assert status == 201 and made["metadata"]["uid"]
    used = connection.sock
    assert ask(connection, "GET", CONFIG_MAPS + "/a") == (200, made)
    status, found = ask(connection, "GET", CONFIG_MAPS)
    assert status == 200 and [item["metadata"]["name"] for item in found["items"]] == ["a"]
    assert ask(connection, "DELETE", CONFIG_MAPS + "/a")[0] == 200
    assert ask(connection, "GET", CONFIG_MAPS + "/a")[0] == 404
    assert connection.sock is used, "the connection stays open"
    connection.close()


def test_a_watch_tells_of_what_happens(server):
    connection, watcher = (http.client.HTTPConnection(*server, timeout=60) for _ in range(2))
    _, found = ask(connection, "GET", CONFIG_MAPS)
    watcher.request("GET", "%s?watch=1&resourceVersion=%s" % (CONFIG_MAPS, found["metadata"]["resourceVersion"]),
                    headers={"Authorization": "Bearer admin"})
    answer = watcher.getresponse()
    assert answer.status == 200
    for name in "ab":
        ask(connection, "POST", CONFIG_MAPS, config_map(name))
        event = json.loads(answer.readline())
        assert (event["type"], event["object"]["metadata"]["name"], event["object"]["data"]) == ("ADDED", name, {"key": "value"})
    watcher.close()
    connection.close()


@pytest.mark.parametrize("token", [None, "", "another"])
def test_nobody_is_let_in_without_the_token(server, token):
    connection = http.client.HTTPConnection(*server, timeout=60)
    status, said = ask(connection, "GET", CONFIG_MAPS, token=token)
    assert status == 401 and said["kind"] == "Status"
    connection.close()


def test_who_speaks_tls_is_told_so_and_others_are_served(server):
    with socket.create_connection(server, timeout=60) as peer:
        peer.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)))
        got = b""
        while part := peer.recv(65536):
            got += part
    assert got.startswith(b"HTTP/1.1 400"), got
    connection = http.client.HTTPConnection(*server, timeout=60)
    assert ask(connection, "GET", CONFIG_MAPS)[0] == 200
    connection.close()


@pytest.mark.parametrize("option", ["--tls-cert-file", "--tls-key-file"])
def test_a_certificate_without_its_key_is_refused(option):
    done = subprocess.run([PROGRAM, option, "/dev/null"], text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "come together" in done.stderr, (done.returncode, done.stderr)
