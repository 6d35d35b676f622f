# SPDX-License-Identifier: Apache-2.0
"""The charts: rendered by the real helm, and installed on the real control plane.

Without helm these tests fail: what nobody has rendered has not been tested.
"""

import os
import pathlib
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "e2e"))

from harness.cluster import RealCluster  # noqa: E402
from harness.shared import locked, new_namespace_name, stop_at_the_end  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("SLIPWAY_CHARTS_DIR") or TOP / "build" / "charts" / "control-plane")


def pytest_unconfigure(config):
    stop_at_the_end(config, RealCluster, FOLDER)


@pytest.fixture(scope="session")
def cluster():
    """One on which nothing of slipway is: no kind, no permission."""
    with locked(FOLDER):
        RealCluster.up(FOLDER, "--controller-manager-arg=--controllers=job")  # beside the others
    return RealCluster(FOLDER)


@pytest.fixture
def namespace_name(request):
    return new_namespace_name(request)
