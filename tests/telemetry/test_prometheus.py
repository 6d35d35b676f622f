# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a real slipway during rollouts: every expression of the dashboard and of the alerts is evaluated."""

import json
import math
import pathlib
import re
import subprocess
import time

import pytest
import yaml

from harness.prometheus import Prometheus
from harness.wait import until

TOP = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = TOP / "manifests" / "grafana" / "slipway.json"
ALERTS = TOP / "manifests" / "prometheus" / "alerts.yaml"
RULES = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
PANELS = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def promtool(*args):
    return subprocess.run(["promtool", *map(str, args)], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)


@pytest.fixture
def prometheus(whole, stepped, tmp_path):
    targets = ["127.0.0.1:%d" % slipway.metrics_port for slipway in (whole, stepped.slipway)]
    found = Prometheus(tmp_path, {"job_name": "slipway", "static_configs": [{"targets": targets}]}, [ALERTS])
    yield found
    found.stop()


def plain(expr):
    """As Grafana would send it, with all that can be chosen chosen."""
    expr = re.sub(r"\$__rate_interval|24h", "60s", expr)
    expr = expr.replace("$job", "slipway").replace("$namespace", ".*")
    assert "$" not in expr, expr
    return expr


def test_the_rules_are_what_prometheus_takes_and_each_fires_when_it_should():
    for command in (["check", "rules", ALERTS], ["test", "rules", TOP / "tests" / "telemetry" / "alerts_test.yaml"]):
        done = promtool(*command)
        assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr
    tried = {test["name"] for test in yaml.safe_load((TOP / "tests" / "telemetry" / "alerts_test.yaml").read_text())["tests"]}
    assert tried == {rule["alert"] for rule in RULES} | {"an ordinary hour"}


def test_each_alert_is_explained():
    text = (TOP / "docs" / "alerts.md").read_text()
    explained = re.findall(r"^## (\w+)$", text, re.M)
    assert explained == [rule["alert"] for rule in RULES]
    for rule in RULES:
        assert rule["annotations"]["runbook"] == "docs/alerts.md#" + rule["alert"].lower()
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        assert "What to do" in section, section


def test_the_dashboard_can_be_imported():
    dashboard = json.loads(DASHBOARD.read_text())
    assert {variable["name"] for variable in dashboard["templating"]["list"]} == {"datasource", "job", "namespace"}
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(numbers) == len(set(numbers))
    taken = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
    for panel in PANELS:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"] and all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_every_panel_has_data_and_every_alert_can_be_evaluated(scene, whole, stepped, prometheus):
    until(lambda: prometheus.targets() == [("up", "")] * 2, lambda: "Prometheus scrapes slipway\n" + prometheus.log(), 60)
    began = time.time()
    scene.group("a", "b", "c", replicas=1, spec={"minReadySeconds": 1})
    scene.coordinate("nothing-yet", selector={"matchLabels": {"nobody": "bears-it"}})
    for version in ("2", "3"):
        scene.update("a", "b", "c", version=version)
        scene.until_runs("a", "b", "c", version=version)
        stepped.update(version)
    scene.until_ready()

    def empty():
        """Panels of which an expression has no number."""
        return [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]
                if not any(math.isfinite(number) for number in prometheus.numbers(plain(target["expr"]), began))]
    until(lambda: not empty(), lambda: "each panel has data: %s" % empty(), 30, 1)
    for rule in RULES:
        answer = prometheus.evaluate("query", query=rule["expr"])
        assert answer["status"] == "success", "%s: %s" % (rule["alert"], answer)

    def states():
        return {rule["name"]: (rule["health"], rule["state"]) for group in prometheus.evaluate("rules")["data"]["groups"] for rule in group["rules"]}
    until(lambda: all(health == "ok" for health, _ in states().values()), lambda: "the rules are evaluated: %s" % states())
    assert set(states()) == {rule["alert"] for rule in RULES}
    assert not [name for name, (_, state) in states().items() if state == "firing"], "nothing is wrong"
    assert max(prometheus.numbers("slipway_overlap_seconds_total", began)) == 0
