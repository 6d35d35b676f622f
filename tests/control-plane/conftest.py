# SPDX-License-Identifier: Apache-2.0
"""Instances for the tests of tools/control-plane: one that they share, and one each."""

import pytest

from planes import Plane


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    """An instance that the tests share; each works in a namespace of its own."""
    shared = Plane(tmp_path_factory.mktemp("shared") / "plane")
    shared.up()
    yield shared
    shared.down()


@pytest.fixture
def own_plane(tmp_path):
    """An instance that the test may break; not up yet."""
    own = Plane(tmp_path / "plane")
    yield own
    own.down(ok=False)


@pytest.fixture
def namespace(plane, request):
    name = request.node.name.replace("_", "-")[:50].rstrip("-")
    plane.kubectl("create", "namespace", name)
    yield name
    plane.kubectl("delete", "namespace", name, "--wait=false")
