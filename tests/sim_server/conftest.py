# SPDX-License-Identifier: Apache-2.0
"""slipway-sim as a process, with the CRD and the sample of the shop on it; kubectl is Debian's."""

import os
import pathlib
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

from story.access import Access  # noqa: E402
from story.simulator import Simulator  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("SLIPWAY_BUILD") or TOP / "build") / "tools" / "sim" / "slipway-sim"


class Kubectl:
    def __init__(self, simulator):
        self._access = Access(simulator)

    def __call__(self, *args, stdin=None, fails=False):
        """What it prints; what it complains of where it fails."""
        done = self._access.kubectl(*args, stdin=stdin, check=False)
        assert (done.returncode != 0) == fails, "kubectl %s: %s%s" % (" ".join(args), done.stdout, done.stderr)
        return done.stderr if fails else done.stdout


@pytest.fixture
def simulator(tmp_path):
    found = Simulator.start(tmp_path / "sim", PROGRAM)
    yield found
    assert found.stop() == 0, (found.folder / "slipway-sim.log").read_text()


@pytest.fixture
def kubectl(simulator):
    return Kubectl(simulator)


@pytest.fixture
def shop(kubectl):
    """kubectl, in the namespace of the shop."""
    kubectl("apply", "--validate=false", "-f", str(TOP / "manifests" / "crds"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    kubectl("apply", "--validate=false", "-f", str(TOP / "manifests" / "samples" / "shop.yaml"))
    for name in ("cart", "catalog", "checkout"):
        kubectl("rollout", "status", "deployment/" + name, "-n", "shop", "--timeout=60s")

    def run(*args, **options):
        return kubectl(*args, "-n", "shop", **options)
    return run
