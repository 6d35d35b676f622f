# SPDX-License-Identifier: Apache-2.0
"""A cluster that the workers of pytest-xdist share: the first that needs it starts it, the run's end stops it."""

import contextlib
import fcntl
import itertools
import os
import re

serial = itertools.count()


def is_worker(config):
    return hasattr(config, "workerinput")


@contextlib.contextmanager
def locked(folder):
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stop_at_the_end(config, kind, *folders):
    """For pytest_unconfigure. SLIPWAY_E2E_KEEP leaves them, to be looked at."""
    for folder in folders:
        if not is_worker(config) and folder.exists() and not os.environ.get("SLIPWAY_E2E_KEEP"):
            kind.stop(folder)


def new_namespace_name(request):
    """That of the test, shortened; no other test of any worker has it."""
    short = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:40].strip("-")
    return "%s-%d-%d" % (short, os.getpid(), next(serial))
