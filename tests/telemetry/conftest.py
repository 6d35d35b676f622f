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
