# SPDX-License-Identifier: Apache-2.0
"""What slipway says of itself, metrics and log, on slipway-sim: one simulator for the run, one scene for each test."""

import os
import pathlib
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "e2e"))
os.environ["SLIPWAY_E2E_CLUSTER"] = "sim"

from harness.cluster import SimulatedCluster  # noqa: E402
from harness.configuration import Configuration  # noqa: E402
from harness.scene import Scene  # noqa: E402
from harness.shared import locked, new_namespace_name, stop_at_the_end  # noqa: E402
from harness.wait import until  # noqa: E402
from story.provider import Provider  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("SLIPWAY_E2E_DIR") or TOP / "build" / "e2e" / "telemetry")


def pytest_unconfigure(config):
    stop_at_the_end(config, SimulatedCluster, FOLDER)


@pytest.fixture(scope="session")
def cluster():
    with locked(FOLDER):
        return SimulatedCluster.start(FOLDER)


@pytest.fixture
def scene(cluster, request, tmp_path):
    found = Scene(cluster, new_namespace_name(request), tmp_path)
    yield found
    found.close()


@pytest.fixture
def whole(scene):
    """A slipway with all that can be switched on: it leads, keeps the webhook configuration, has its certificate in files."""
    configuration = Configuration(scene)
    configuration.permit()
    slipway = scene.slipway(webhook=False, leader_elect=True, settings=configuration.settings)
    configuration.make(slipway)
    until(lambda: slipway.metric("slipway_webhook_configuration_up_to_date") == 1, "the webhook configuration is up to date")
    scene.until_asked(slipway)
    yield slipway
    configuration.delete()
    configuration.forbid()


class Stepped:
    """A Deployment that a slipway of its own steps, analysed by a provider that is always content."""

    PATH = "/apis/slipway.dev/v1alpha1/namespaces/%s/steppedrollouts"

    def __init__(self, scene):
        self.scene, self.provider = scene, Provider(lambda query: 0)
        self.slipway = scene.slipway("stepping", webhook=False, leader_elect=True, lease_id="stepping", settings="modules: [pausing, events, stepping]\n")
        scene.create("stepped", replicas=2, labels={"app": "stepped"})
        scene.api.post(self.PATH % scene.namespace, {
            "apiVersion": "slipway.dev/v1alpha1", "kind": "SteppedRollout", "metadata": {"name": "stepped"},
            "spec": {"targetRef": {"kind": "Deployment", "name": "stepped"}, "steps": [1], "analysis": {"interval": "300ms", "pods": {}, "metrics": [
                {"name": "errors", "thresholdRange": {"max": 1}, "query": "errors", "provider": {"type": "prometheus", "address": self.provider.url}}]}}})
        self.until_phase("Initialized")

    def until_phase(self, phase):
        def status():
            return self.scene.api.get(self.PATH % self.scene.namespace + "/stepped").get("status") or {}
        until(lambda: status().get("phase") == phase, lambda: "the SteppedRollout is %s: %s" % (phase, status()), 60)

    def update(self, version):
        self.scene.update("stepped", version=version)
        self.until_phase("Promoting")
        self.until_phase("Succeeded")


@pytest.fixture
def stepped(scene):
    found = Stepped(scene)
    yield found
    found.provider.stop()
