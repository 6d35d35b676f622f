# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the client's tests: one real API server for the run, a namespace and a proxy for each test."""

import os
import pathlib
import shutil
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "e2e"))

from harness.cluster import RealCluster  # noqa: E402
from harness.fault_proxy import FaultProxy  # noqa: E402
from harness.shared import locked, new_namespace_name, stop_at_the_end  # noqa: E402

from probes import Probe  # noqa: E402

FOLDER = TOP / "build" / "e2e" / "kube"


def pytest_unconfigure(config):
    stop_at_the_end(config, RealCluster, FOLDER)


@pytest.fixture(scope="session")
def cluster():
    with locked(FOLDER):
        return RealCluster.start(FOLDER)


@pytest.fixture
def namespace(cluster, request):
    name = new_namespace_name(request)
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def new_proxy(cluster, tmp_path):
    """Makes proxies that end with the test."""
    made = []

    def make():
        folder = tmp_path / ("proxy-%d" % len(made))
        folder.mkdir()
        made.append(FaultProxy(cluster, folder))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def proxy(new_proxy):
    return new_proxy()


@pytest.fixture
def new_probe(cluster, namespace, tmp_path):
    """Starts probes: new_probe(proxy, "--watch"). At the end each must close everything and exit with 0."""
    made = []

    def make(proxy, *arguments, user=None, **kubeconfig):
        folder = tmp_path / ("probe-%d" % len(made))
        folder.mkdir()
        made.append(Probe(cluster, proxy, namespace, folder, arguments, user, kubeconfig))
        return made[-1]
    yield make
    failed = [problem for problem in (one.close() for one in made) if problem]
    assert not failed, "\n".join(failed)


def pytest_configure(config):
    build = os.environ.get("SLIPWAY_BUILD")
    if not build or not shutil.which(str(pathlib.Path(build) / "tests" / "kube" / "probe")):
        raise pytest.UsageError("SLIPWAY_BUILD must name a build folder; ./tools/test kube does all that is needed")
