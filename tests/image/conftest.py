# SPDX-License-Identifier: Apache-2.0
"""The image is built once for all tests, where `tools/bench image` finds it too. SLIPWAY_BUILD is the folder of slipway-sim."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
sys.path.insert(0, str(TOP / "manifests" / "container"))
sys.dont_write_bytecode = True

from container_image.layout import Archive  # noqa: E402

ARCHIVE = TOP / "build-image" / "slipway.oci.tar"
SBOM = TOP / "build-image" / "slipway.spdx.json"


def run(*argv):
    done = subprocess.run([str(arg) for arg in argv], cwd=TOP, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, "%s:\n%s" % (" ".join(map(str, argv)), done.stdout)
    return done.stdout


@pytest.fixture(scope="session")
def archive():
    """The path of it."""
    assert os.geteuid() == 0, "these tests mount and chroot: run them as root, or with ./tools/test image"
    run("tools/image", "build")
    return ARCHIVE


@pytest.fixture(scope="session")
def image(archive):
    return Archive(archive)


@pytest.fixture(scope="session")
def sbom(archive):
    return json.loads(SBOM.read_text())


@pytest.fixture(scope="session")
def layout(archive, tmp_path_factory):
    """As skopeo unpacks the archive."""
    folder = tmp_path_factory.mktemp("layout") / "oci"
    run("skopeo", "copy", "oci-archive:%s" % archive, "oci:%s:test" % folder)
    return folder


def unpack(layout, folder):
    run("umoci", "unpack", "--image", "%s:test" % layout, folder / "bundle")
    return folder / "bundle" / "rootfs"


@pytest.fixture(scope="session")
def root(layout, tmp_path_factory):
    """The root file system, as umoci unpacks the layers; with the mount points of those who have run it."""
    return unpack(layout, tmp_path_factory.mktemp("root"))


@pytest.fixture
def own_root(layout, tmp_path):
    """One that the test may change."""
    return unpack(layout, tmp_path)
