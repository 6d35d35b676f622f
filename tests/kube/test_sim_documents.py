# SPDX-License-Identifier: Apache-2.0
"""The simulated API server's functions on documents (tools/sim) against the real server: the same objects, the same refusals.

Each case goes to the real server and to the program sim_cases. What only the server can know (uid, times, versions) is not
compared, nor what controllers add meanwhile. The simulated one is of one release (api.c), and defaults, columns and sentences
differ from release to release: they are compared with a real server of the same.
"""

import copy
import itertools
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from harness.cluster import TOP, api
from sim_documents import APPLIES, DEFAULTS, PATCHES, REFUSED, TABLES, WIDGET

TYPES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
         "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml"}
# Of the server's own, of another admission plugin's, or a controller's.
OWN = {"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "namespace"}
CONTROLLERS = ("kube-controller-manager", "kubelets")


def simulate(case):
    if case["kind"] == "Widget":
        case = dict(case, crd=WIDGET)
    program = pathlib.Path(os.environ["SLIPWAY_BUILD"]) / "tests" / "kube" / "sim_cases"
    run = subprocess.run([program], input=json.dumps(case) + "\n", capture_output=True, text=True, timeout=60, check=True)
    return json.loads(run.stdout)


def kind_of(given):
    group = given["apiVersion"].rpartition("/")[0]
    return {"group": group, "kind": given["kind"]}


def in_namespace(given, namespace):
    text = json.dumps(given).replace("NAMESPACE", namespace)
    given = json.loads(text)
    if given["kind"] == "Event":
        given["metadata"]["namespace"] = namespace
    return given


class Real:
    def __init__(self, cluster, namespace, given):
        self.api = cluster.api
        version, kind = given["apiVersion"], given["kind"].lower()
        plural = kind if kind.endswith("s") else kind + "s"
        self.path = "%s/%s/namespaces/%s/%s" % ("/apis" if "/" in version else "/api", version, namespace, plural)

    def create(self, given, manager="creator"):
        return self.api.request("POST", "%s?fieldManager=%s" % (self.path, manager), given)

    def patch(self, how, patch, manager="patcher", force=False):
        query = "?fieldManager=" + manager + ("&force=true" if force else "")
        return self.api.request("PATCH", self.path + "/x" + query, patch, TYPES[how])


def without_own(found):
    """The object without what the two cannot agree on."""
    found = copy.deepcopy(found)
    metadata = found["metadata"]
    for name in OWN:
        metadata.pop(name, None)
    metadata.get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
    metadata.get("annotations", {}).pop("deprecated.daemonset.template.generation", None)
    if not metadata.get("annotations", 1):
        del metadata["annotations"]
    if found["kind"] in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
        found.pop("status", None)
    if found["kind"] == "Service":
        found["spec"].pop("clusterIP", None)
        found["spec"].pop("clusterIPs", None)
    managers = [entry for entry in metadata.get("managedFields", []) if entry["manager"] not in CONTROLLERS]
    for entry in managers:
        entry.pop("time")
    metadata["managedFields"] = sorted(managers, key=lambda entry: (entry["operation"], entry["manager"]))
    return found


def without_token(pod):
    """A Pod without the volume of its service account's token, which has a random name."""
    spec = pod["spec"]
    spec["volumes"] = [one for one in spec.get("volumes", []) if "token" not in one["name"]]
    for container in spec["containers"]:
        container["volumeMounts"] = [one for one in container.get("volumeMounts", []) if "token" not in one["name"]]
    return pod


def without_managers(found):
    found = without_own(found)
    del found["metadata"]["managedFields"]
    return without_token(found) if found["kind"] == "Pod" else found


@pytest.fixture(scope="session", autouse=True)
def same_release(cluster):
    imitated = re.search(r'git_version = "(v1\.\d+)\.', (TOP / "tools" / "sim" / "api.c").read_text())[1]
    real = cluster.api.get("/version")["gitVersion"]
    if not real.startswith(imitated + "."):
        pytest.skip("slipway-sim imitates %s, this server is %s" % (imitated, real))


@pytest.fixture(scope="session")
def widgets(cluster):
    cluster.apply(WIDGET)
    cluster.kubectl("wait", "--for=condition=Established", "crd/widgets.sim.slipway.dev", "--timeout=30s")
    end = time.monotonic() + 30
    while True:  # established, and yet not served for a moment
        try:
            cluster.api.get("/apis/sim.slipway.dev/v1/widgets")
            return
        except api.ApiError:
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.fixture
def account(cluster, namespace):
    """Pods are refused until the namespace has one."""
    cluster.kubectl("create", "serviceaccount", "default", "-n", namespace, check=False)


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_same_comes_out_of_a_create(cluster, namespace, widgets, account, name):
    given = in_namespace(DEFAULTS[name], namespace)
    real = Real(cluster, namespace, given).create(given)
    simulated = simulate(dict(kind_of(given), given=given))
    assert "object" in simulated, simulated
    assert without_managers(simulated["object"]) == without_managers(real)


@pytest.mark.parametrize("name", PATCHES)
def test_the_same_comes_out_of_a_patch(cluster, namespace, widgets, name):
    given, how, patch = PATCHES[name]
    real = Real(cluster, namespace, given)
    real.create(given)
    patched = real.patch(how, patch)
    simulated = simulate(dict(kind_of(given), given=given, how=how, patch=patch, manager="patcher", tracked=True))
    assert "object" in simulated, simulated
    assert without_own(simulated["object"]) == without_own(patched)
    cluster.kubectl("patch", given["kind"], "x", "-n", namespace, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))


@pytest.mark.parametrize("name", ["event", "new-event"])
@pytest.mark.parametrize("group", ["", "events.k8s.io"])
def test_an_event_is_the_same_through_both_groups(cluster, namespace, name, group):
    given = in_namespace(DEFAULTS[name], namespace)
    Real(cluster, namespace, given).create(given)
    shown = cluster.api.get("%s/v1/namespaces/%s/events/x" % ("/apis/" + group if group else "/api", namespace))
    simulated = simulate(dict(kind_of(given), given=given, how="event", **{"as": group}))
    assert "object" in simulated, simulated
    assert without_managers(simulated["object"]) == without_managers(shown)


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
AGES = ("Age", "Last Seen", "First Seen", "Created At")


@pytest.mark.parametrize("name", TABLES)
def test_the_same_table_is_shown(cluster, namespace, account, name):
    given = in_namespace(DEFAULTS[name], namespace)
    real = Real(cluster, namespace, given)
    created = real.create(given)
    connection = cluster.api._connect(keep=False)
    headers = {"Authorization": "Bearer " + cluster.api._token, "Accept": TABLE}
    status, raw = cluster.api._exchange(connection, "GET", real.path + "/x?includeObject=Object", None, headers)
    assert status == 200
    table = json.loads(raw)
    columns = [[one["name"], one["type"], one["format"], one["priority"]] for one in table["columnDefinitions"]]
    shown = simulate(dict(kind_of(given), given=table["rows"][0]["object"], how="table"))
    assert shown["columns"] == columns
    is_fixed = [column[0] not in AGES for column in columns]
    assert list(itertools.compress(shown["cells"], is_fixed)) == list(itertools.compress(table["rows"][0]["cells"], is_fixed))
    assert created["metadata"]["name"] == "x"


def causes(message):
    """The sentences of a refusal. The server joins them with commas, which may stand in them as well: cut where a field begins."""
    text = re.sub(r"^.*? is invalid: ", "", message, flags=re.S)
    text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return re.split(r", (?=[a-z]\w*(?:\.\w+|\[\d+\])*: (?:Invalid|Required|Unsupported|Duplicate|Forbidden|Not found))", text)


@pytest.mark.parametrize("name", REFUSED)
def test_the_same_is_refused(cluster, namespace, widgets, name):
    given = REFUSED[name]
    with pytest.raises(api.ApiError) as refusal:
        Real(cluster, namespace, given).create(given)
    assert refusal.value.status == 422
    simulated = simulate(dict(kind_of(given), given=given))
    assert "error" in simulated, simulated
    sentences = json.loads(simulated["error"].removeprefix("causes "))
    assert sorted(sentences) == sorted(causes(refusal.value.message))


@pytest.mark.parametrize("name", APPLIES)
def test_the_same_comes_out_of_an_apply(cluster, namespace, widgets, name):
    given, manager, patch, force = APPLIES[name]
    real = Real(cluster, namespace, given or patch)
    if given:
        real.create(given)
    case = dict(kind_of(given or patch), given=given, how="apply", patch=patch, manager=manager, force=force, tracked=True)
    try:
        applied = real.patch("apply", patch, manager, force)
    except api.ApiError as refusal:
        assert simulate(case) == {"error": refusal.message}
        return
    simulated = simulate(case)
    assert "object" in simulated, simulated
    assert without_own(simulated["object"]) == without_own(applied)
    if "finalizers" in json.dumps(applied):
        cluster.kubectl("patch", patch["kind"], "x", "-n", namespace, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))
