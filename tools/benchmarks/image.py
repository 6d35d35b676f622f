# SPDX-License-Identifier: Apache-2.0
"""How large the image is that a node has to fetch: an archive of it, compressed as registries do."""

import gzip
import os

from benchmarks.figures import Figure
from benchmarks.stand import BUILD

SUMMARY = "size of the image, compressed (SLIPWAY_IMAGE names an archive of it)"


class Counter:
    """A file that keeps nothing but its length."""

    def __init__(self):
        self.length = 0

    def write(self, data):
        self.length += len(data)
        return len(data)

    def flush(self):
        pass


def compressed_bytes(path):
    with open(path, "rb") as archive:
        if archive.read(2) == b"\x1f\x8b":
            return os.path.getsize(path)
        archive.seek(0)
        counter = Counter()
        with gzip.GzipFile(fileobj=counter, mode="wb", compresslevel=6, mtime=0) as packed:
            while piece := archive.read(1 << 20):
                packed.write(piece)
        return counter.length


def measure(bench):
    path = os.environ.get("SLIPWAY_IMAGE")
    if not path:
        bench.say("SLIPWAY_IMAGE does not name an archive of the image")
        program = compressed_bytes(BUILD / "slipway") / 1024 / 1024
        yield Figure("image_mib", None, "not measured: SLIPWAY_IMAGE does not name an archive of it. The executable alone, with its debug "
                     "information: %.1f MiB" % program)
        return
    yield Figure("image_mib", compressed_bytes(path) / 1024 / 1024, "gzip -6 of %s" % os.path.basename(path))
