# SPDX-License-Identifier: Apache-2.0
"""A wall clock that is wrong, and is put right or wrong while a process runs; all its other clocks stay as they are."""

import contextlib
import os

from .slipway import BUILD

DAY_S = 24 * 3600


class WallClock:
    """Of the processes that are started with environment(). tests/e2e/wall_clock.c says how."""

    def __init__(self, path, ahead_s=0):
        self._path = path
        path.write_bytes(bytes(8))
        self.set(ahead_s)

    def set(self, ahead_s):
        """From now on so many seconds ahead of the machine's; less than 0 is behind it."""
        with open(self._path, "r+b") as file:
            file.write(int(ahead_s).to_bytes(8, "little", signed=True))

    def environment(self):
        return {"LD_PRELOAD": str(BUILD / "tests" / "e2e" / "libwall_clock.so"), "SLIPWAY_TEST_WALL_CLOCK": str(self._path)}

    @contextlib.contextmanager
    def of_children(self):
        """All that this process starts meanwhile is started so: openssl, for certificates that were made yesterday."""
        ours = self.environment()
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@contextlib.contextmanager
def yesterday(folder):
    """For certificates that are valid also to who is an hour behind."""
    with WallClock(folder / "yesterday", -DAY_S).of_children():
        yield
