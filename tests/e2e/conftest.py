# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the scenarios: one cluster for the whole run, one scene for each scenario.

The first that needs the cluster starts it; with pytest-xdist the workers share it. Tests of the harness itself need none.
"""

import fcntl
import itertools
import os
import pathlib
import re

import pytest

from harness.cluster import TOP, RealCluster
from harness.scene import Scene

FOLDER = pathlib.Path(os.environ.get("SLIPWAY_E2E_DIR") or TOP / "build" / "e2e" / "control-plane")
serial = itertools.count()


def is_worker(config):
    return hasattr(config, "workerinput")


def pytest_unconfigure(config):
    if not is_worker(config) and FOLDER.exists() and not os.environ.get("SLIPWAY_E2E_KEEP"):
        RealCluster.stop(FOLDER)


@pytest.fixture(scope="session")
def cluster():
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with open(FOLDER.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return RealCluster.start(FOLDER)


@pytest.fixture
def scene(cluster, request, tmp_path):
    """An empty namespace with an observer. The scenario starts its slipway itself."""
    short = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:40].strip("-")
    found = Scene(cluster, "%s-%d-%d" % (short, os.getpid(), next(serial)), tmp_path)
    yield found
    found.close()
