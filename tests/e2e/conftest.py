# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the scenarios: one cluster for the whole run, one scene for each scenario.

The first that needs the cluster starts it; with pytest-xdist the workers share it. Tests of the harness itself need none.
"""

import contextlib
import fcntl
import itertools
import os
import pathlib
import re

import pytest

from harness.cluster import KINDS, TOP
from harness.scene import Scene

CLUSTER = KINDS[os.environ.get("SLIPWAY_E2E_CLUSTER") or "real"]
FOLDER = pathlib.Path(os.environ.get("SLIPWAY_E2E_DIR") or TOP / "build" / "e2e" / CLUSTER.kind)
OWN = FOLDER.with_name("own-" + FOLDER.name)
# Deployments are then watched in etcd itself, which forgets what is compacted.
OWN_OPTIONS = ("--apiserver-arg=--watch-cache-sizes=deployments.apps#0",)
serial = itertools.count()


def is_worker(config):
    return hasattr(config, "workerinput")


def pytest_unconfigure(config):
    for folder in (FOLDER, OWN):
        if not is_worker(config) and folder.exists() and not os.environ.get("SLIPWAY_E2E_KEEP"):
            CLUSTER.stop(folder)


@contextlib.contextmanager
def locked(folder):
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def cluster():
    with locked(FOLDER):
        return CLUSTER.start(FOLDER)


@pytest.fixture
def own_cluster():
    """One whose parts the scenario may stop, and whose kinds it may remove: scenarios that do so take turns with it."""
    with locked(OWN):
        yield CLUSTER.start(OWN, *OWN_OPTIONS)


@pytest.fixture
def namespace_name(request):
    short = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:40].strip("-")
    return "%s-%d-%d" % (short, os.getpid(), next(serial))


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
