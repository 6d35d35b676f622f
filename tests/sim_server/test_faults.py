# SPDX-License-Identifier: Apache-2.0
"""Faults of slipway-sim: from its arguments, and through its admin endpoint."""

import json
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import PROGRAM
from control_plane import api
from story.simulator import Simulator

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def tell(simulator, method, path, body=None):
    request = urllib.request.Request(simulator.kubelets_url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_an_error_instead_of_an_answer(simulator):
    client = simulator.client()
    assert tell(simulator, "PUT", "/faults/busy", {"method": "POST", "path": "/configmaps", "status": 503, "times": 1})[0] == 200
    with pytest.raises(api.ApiError) as error:
        client.post(CONFIG_MAPS, config_map("a"))
    assert error.value.status == 503
    client.post(CONFIG_MAPS, config_map("a"))
    assert tell(simulator, "GET", "/faults")[1]["busy"]["hits"] == 1


def test_a_lost_answer_was_carried_out(simulator):
    client = simulator.client()
    tell(simulator, "PUT", "/faults/lost", {"method": "POST", "path": "/configmaps", "cutAfter": 0})
    with pytest.raises(api.BROKEN):
        client.post(CONFIG_MAPS, config_map("a"))
    tell(simulator, "DELETE", "/faults/lost")
    assert client.get(CONFIG_MAPS + "/a")["metadata"]["name"] == "a"


def test_a_watch_from_a_version_that_was_compacted_away(simulator):
    client = simulator.client()
    version = client.get(CONFIG_MAPS)["metadata"]["resourceVersion"]
    client.post(CONFIG_MAPS, config_map("a"))
    assert [what for what, _ in first(client.watch(CONFIG_MAPS, version))] == ["ADDED"]
    assert tell(simulator, "POST", "/compact", {})[0] == 200
    what, status = first(client.watch(CONFIG_MAPS, version))[0]
    assert what == "ERROR" and status["code"] == 410 and status["reason"] == "Expired"


def first(events):
    return [next(iter(events))]


def test_what_makes_no_sense_is_said(simulator):
    assert tell(simulator, "PUT", "/faults/x", {"statuss": 503}) == (400, {"error": 'fault rule: "statuss" is not known'})
    assert tell(simulator, "DELETE", "/faults/nobody")[0] == 404
    assert tell(simulator, "PUT", "/controllers", {})[0] == 400


def test_a_fault_from_the_command_line(tmp_path):
    simulator = Simulator.start(tmp_path / "sim", PROGRAM, "--fault", '{"path": "/configmaps", "status": 429, "retryAfter": 1, "times": 1}')
    try:
        with pytest.raises(api.ApiError) as error:
            simulator.client().get(CONFIG_MAPS)
        assert error.value.status == 429
        simulator.client().get(CONFIG_MAPS)
    finally:
        assert simulator.stop() == 0


@pytest.mark.parametrize("address, named", [
    ("127.0.0.2:0", "https://127.0.0.2:"),
    ("localhost:0", "https://localhost:"),
    ("[::1]:0", "https://[::1]:"),
    ("0.0.0.0:0", "https://127.0.0.1:"),
    (":0", "https://127.0.0.1:"),
])
def test_its_urls_name_the_address_that_it_listens_on(tmp_path, address, named):
    simulator = Simulator.start(tmp_path / "sim", PROGRAM, "--listen", address, "--admin-listen", "127.0.0.3:0")
    try:
        assert simulator.server.startswith(named) and simulator.kubelets_url.startswith("http://127.0.0.3:")
        assert simulator.client().get("/api/v1/namespaces/default")["metadata"]["name"] == "default"
        assert tell(simulator, "GET", "/healthz")[0] == 200
    finally:
        assert simulator.stop() == 0


@pytest.mark.parametrize("arguments, said", [
    (["--fault", "{"], "--fault {: "),
    (["--fault", '{"status": 1}'], '"status" must be a status from 400 to 599'),
    (["--nodes", "0"], "--nodes 0: a number from 1 to 10000"),
    (["--tls-cert-file", "x"], "--tls-cert-file and --tls-key-file come together"),
    (["--tls-cert-file", "/nonexistent", "--tls-key-file", "/nonexistent"], "/nonexistent"),
    (["--listen", "here"], "here"),
    (["more"], '"more" is no option'),
])
def test_a_mistake_in_the_arguments(arguments, said):
    done = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and said in done.stderr


def test_without_a_token_nobody_is_let_in(simulator):
    client = api.Client(simulator.server, simulator.ca_file, "wrong")
    with pytest.raises(api.ApiError) as error:
        client.get(CONFIG_MAPS)
    assert error.value.status == 401
