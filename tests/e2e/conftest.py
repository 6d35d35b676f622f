# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the scenarios: one cluster for the whole run, one scene for each scenario.

The first that needs the cluster starts it; with pytest-xdist the workers share it. Tests of the harness itself need none.
"""

import os
import pathlib

import pytest

from harness import promise
from harness.cluster import KINDS, TOP
from harness.prometheus import Prometheus
from harness.receiver import Receiver
from harness.scene import Scene
from harness.shared import locked, new_namespace_name, stop_at_the_end
from harness.stepping import Measures, Stage

CLUSTER = KINDS[os.environ.get("SLIPWAY_E2E_CLUSTER") or "real"]
FOLDER = pathlib.Path(os.environ.get("SLIPWAY_E2E_DIR") or TOP / "build" / "e2e" / CLUSTER.kind)
OWN = FOLDER.with_name("own-" + FOLDER.name)
# Deployments are then watched in etcd itself, which forgets what is compacted.
OWN_OPTIONS = ("--apiserver-arg=--watch-cache-sizes=deployments.apps#0",)


def pytest_unconfigure(config):
    stop_at_the_end(config, CLUSTER, FOLDER, OWN)


@pytest.fixture(scope="session")
def cluster():
    with locked(FOLDER):
        return CLUSTER.start(FOLDER)


@pytest.fixture
def own_cluster():
    """One whose parts the scenario may stop, and whose kinds it may remove: scenarios that do so take turns with it."""
    with locked(OWN):
        yield CLUSTER.start(OWN, *OWN_OPTIONS)


@pytest.fixture(autouse=True)
def no_alarm_of_others():
    """A test of the harness that fails may leave a scene open."""
    yield
    promise.forget_all()


@pytest.fixture
def namespace_name(request):
    return new_namespace_name(request)


@pytest.fixture
def scene(cluster, namespace_name, tmp_path):
    """An empty namespace with an observer. The scenario starts its slipway itself."""
    found = Scene(cluster, namespace_name, tmp_path)
    yield found
    found.close()


@pytest.fixture
def own_scene(own_cluster, namespace_name, tmp_path):
    found = Scene(own_cluster, namespace_name, tmp_path)
    yield found
    found.close()


# ---- of module stepping ----

@pytest.fixture
def stages(scene):
    """Makes stages of that scene."""
    made = []

    def make(*words, **how):
        made.append(Stage(scene, *words, **how))
        return made[-1]
    yield make
    for stage in made:
        stage.close()


@pytest.fixture
def receiver():
    found = Receiver()
    yield found
    found.close()


@pytest.fixture(scope="session")
def measures(tmp_path_factory):
    """A real Prometheus, and the exporter that it scrapes: one for each worker."""
    exporter = Receiver()
    prometheus = Prometheus(tmp_path_factory.mktemp("measures"), {
        "job_name": "tests", "static_configs": [{"targets": [exporter.base.partition("//")[2]]}]})
    yield Measures(exporter, prometheus)
    prometheus.stop()
    exporter.close()
