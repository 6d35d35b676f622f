# SPDX-License-Identifier: Apache-2.0
"""How large the image is that a node has to fetch: its layers as they are compressed, and what names them."""

import os
import pathlib
import tarfile

from benchmarks.figures import Figure
from benchmarks.stand import TOP
from container_image.layout import Archive, Problem

SUMMARY = "size of the image, compressed, where tools/image build has made it; SLIPWAY_IMAGE names another archive"


def measure(bench):
    path = pathlib.Path(os.environ.get("SLIPWAY_IMAGE") or TOP / "build-image" / "slipway.oci.tar")
    if not path.exists():
        bench.say("there is no %s" % path)
        yield Figure("image_mib", None, "not measured: there is no %s; tools/image build makes one" % path.name)
        return
    try:
        archive = Archive(path)
        plain = sum(map(len, archive.layers()))
    except (Problem, tarfile.TarError) as problem:
        yield Figure("image_mib", None, "not measured: %s" % problem)
        return
    yield Figure("image_mib", archive.size() / 2**20, "manifest, configuration and layers (gzip) of %s; unpacked %.1f MiB" % (path.name, plain / 2**20))
