# SPDX-License-Identifier: Apache-2.0
"""What /metrics shows: it is what docs/metrics.md says; overlaps; series of coordinations that come and go."""

import contextlib
import pathlib
import re
import signal
import ssl
import urllib.request

import pytest

from harness import observer as look
from harness.scene import COORDINATION_PATH
from harness.wait import stays, until

TOP = pathlib.Path(__file__).resolve().parents[2]
MANAGER = "kube-controller-manager"
OVERLAP = "slipway_overlap_seconds_total"


# ---- the document ----

def documented():
    """name: (type, labels)"""
    found = {}
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram) \|([^|]*)\|", (TOP / "docs" / "metrics.md").read_text(), re.M):
        assert name not in found, name
        found[name] = (kind, frozenset(re.findall(r"`(\w+)`", labels)))
    return found


def secured_text(slipway, token):
    """Of one that shows its metrics over HTTPS."""
    request = urllib.request.Request("https://127.0.0.1:%d/metrics" % slipway.metrics_port, headers={"Authorization": "Bearer " + token})
    with urllib.request.urlopen(request, timeout=30, context=ssl._create_unverified_context()) as answer:  # noqa: S323
        return answer.read().decode()


def shown(text):
    """The same, of what it prints."""
    kinds, labels = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        elif not line.startswith("#"):
            series = re.match(r"(\w+)(?:\{(.*)\})? ", line)
            name = series.group(1)
            family = name if name in kinds else re.sub("_(bucket|sum|count)$", "", name)
            found = set(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', series.group(2) or "")) - {"le"}
            assert labels.setdefault(family, found) == found, "%s has the same labels in all series" % family
    return {name: (kind, frozenset(labels[name])) for name, kind in kinds.items()}



def test_the_document_names_what_is_shown_and_nothing_else(scene, whole, stepped):
    scene.cluster.kubelets("PUT", "/faults/busy", {"method": "PATCH", "path": "/namespaces/%s/deployments" % scene.namespace, "status": 429, "times": 1})
    scene.group("a", "b", replicas=1)
    scene.api.post(COORDINATION_PATH % scene.namespace, {"apiVersion": "apps.containerinfra.nl/v1", "kind": "DeploymentCoordination",
                                                         "metadata": {"name": "selects-nothing"}, "spec": {}})
    scene.until_condition("Degraded", "True", "InvalidSelector", name="selects-nothing")
    scene.update("a", "b")
    scene.until_runs("a", "b")
    secured = scene.slipway("secured", webhook=False, metrics_secure=True, leader_elect=True, lease_id="other")
    stepped.update("2")
    found = dict(shown(secured_text(secured, scene.cluster.token())), **shown(stepped.slipway.get(stepped.slipway.metrics_port, "/metrics")[1]))
    found.update(shown(whole.get(whole.metrics_port, "/metrics")[1]))
    said = documented()
    missing = sorted(set(found) - set(said))
    assert not missing, "docs/metrics.md does not name %s" % missing
    for name in found:
        assert found[name] == said[name], name
    vain = sorted(set(said) - set(found))
    assert not vain, "docs/metrics.md names what is not shown: %s" % vain


# ---- overlaps ----

@contextlib.contextmanager
def controllers_stopped(cluster):
    cluster.signal(MANAGER, signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.signal(MANAGER, signal.SIGCONT)


def until_counted(slipways, seconds=0.5):
    until(lambda: all(slipway.metric(OVERLAP) > seconds for slipway in slipways),
          lambda: "overlaps are counted: %s" % [slipway.metric(OVERLAP) for slipway in slipways])


def until_over(scene, slipways):
    """One of a and b rolls, the other is held, and nothing more is counted."""
    until(lambda: sorted(look.is_rolling(scene.get(name)) for name in "ab") == [False, True], "one of them rolls")
    until(lambda: all("no more Deployments roll at once than may" in slipway.log() for slipway in slipways), "all have seen the end of it")
    counted = [slipway.metric(OVERLAP) for slipway in slipways]
    stays(lambda: [slipway.metric(OVERLAP) for slipway in slipways] == counted, "no more is counted", 1)
    scene.let_pods_go()
    scene.until_runs("a", "b", version=scene.get("a")["spec"]["template"]["metadata"]["annotations"]["version"])
    assert [slipway.metric(OVERLAP) for slipway in slipways] == counted


def test_several_that_roll_at_first_sight_are_an_overlap(scene):
    scene.observer.excuse("a", "b")
    scene.stall_pods()
    scene.coordinate()
    for name in "ab":
        scene.create(name, replicas=1)
        scene.until_rolling(name)
    with controllers_stopped(scene.cluster):  # who is paused is not observed so, and rolls on
        slipway = scene.slipway(webhook=False)
        until_counted([slipway])
        assert '"msg":"more Deployments roll at once than may"' in slipway.log()
    until_over(scene, [slipway])


def test_templates_changed_past_the_webhook_are_an_overlap_to_every_replica(scene):
    leader = scene.slipway("leader", leader_elect=True, failure_policy="Ignore")
    leader.until_leading()
    follower = scene.slipway("follower", leader_elect=True, webhook=False)
    scene.group("a", "b", replicas=1, spec={"atRest": "Running"})
    until(lambda: not any(scene.is_paused(name) for name in "ab"), "at rest they run")
    assert leader.metric(OVERLAP) == follower.metric(OVERLAP) == 0
    scene.observer.excuse("a", "b")
    scene.stall_pods()
    leader.suspend()  # not for so long that the lease runs out
    scene.update("a", "b")
    for name in "ab":
        scene.until_rolling(name)
    with controllers_stopped(scene.cluster):
        leader.resume()
        until_counted([leader, follower])
    until_over(scene, [leader, follower])


# ---- series ----

def own(slipway, name):
    """Of slipway_coordination_...: {coordination: number}"""
    text = slipway.get(slipway.metrics_port, "/metrics")[1]
    return {coordination: float(value) for coordination, value in
            re.findall(r'^slipway_coordination_%s\{namespace="[^"]*",coordination="([^"]*)"[^}]*\} (\S+)$' % name, text, re.M)}


def test_a_coordination_shows_what_it_does_and_takes_its_series_with_it(scene):
    slipway = scene.slipway()
    scene.group("a", "b", "c", replicas=1)
    scene.roll_and_stall("a", "b", "c")
    until(lambda: own(slipway, "waiting") == {"web": 2}, "two wait")
    assert own(slipway, "active") == {"web": 1}
    until(lambda: own(slipway, "oldest_wait_seconds")["web"] > 1 and own(slipway, "turn_seconds")["web"] > 1, "time passes")
    scene.settle_coordination(suspend=True)
    assert own(slipway, "suspended") == {"web": 1}
    scene.settle_coordination(suspend=False)
    scene.let_pods_go()
    scene.until_runs("a", "b", "c")
    scene.until_ready()
    assert own(slipway, "waiting") == own(slipway, "active") == own(slipway, "suspended") == {"web": 0}
    assert own(slipway, "oldest_wait_seconds") == own(slipway, "turn_seconds") == {"web": 0}
    # Three first rollouts and three updates; of each three the first follows nobody.
    assert own(slipway, "turns_total") == {"web": 6}
    assert 2 <= own(slipway, "handovers_total")["web"] <= 5 and own(slipway, "handover_seconds_total")["web"] > 0
    assert slipway.metric("slipway_handover_seconds_count") == own(slipway, "handovers_total")["web"]
    assert own(slipway, "wait_seconds_total")["web"] > 1
    scene.delete_coordination()
    until(lambda: 'coordination="web"' not in slipway.get(slipway.metrics_port, "/metrics")[1], "its series are gone")


@pytest.mark.parametrize("limit", [1, 0])
def test_beyond_the_limit_coordinations_are_summed(scene, limit):
    slipway = scene.slipway(config={"coordination": "seriesLimit: %d\n" % limit})
    for name in ("x", "y", "z"):
        scene.coordinate(name, selector={"matchLabels": {"app": name}})
        scene.create("member-of-" + name, replicas=1, labels={"app": name})
        until(lambda name=name: scene.status(name).get("observedGeneration"), "%s is seen" % name)
    until(lambda: slipway.metric("slipway_coordinations_without_series") == 3 - limit, "the rest have none")
    assert sorted(own(slipway, "waiting")) == sorted(["(other)", "x"][:1 + limit])
    scene.until_runs(*("member-of-" + name for name in ("x", "y", "z")), version="1")
    scene.roll_and_stall("member-of-z")
    scene.update("member-of-y")
    scene.until_rolling("member-of-y")
    until(lambda: own(slipway, "active").get("(other)") == 2, "two of the rest are active: they are two coordinations")
    scene.let_pods_go()
    scene.until_runs("member-of-z", "member-of-y")
    if limit:
        scene.delete_coordination("x")
        until(lambda: slipway.metric("slipway_coordinations_without_series") == 1, "the place is taken by another")
        assert len(own(slipway, "waiting")) == 2 and "x" not in own(slipway, "waiting")
    slipway.modules.publish({"coordination.yaml": "seriesLimit: 5\n"})
    until(lambda: slipway.metric("slipway_coordinations_without_series") == 0, "the limit is raised at run time")
    assert "(other)" not in own(slipway, "waiting")
