# SPDX-License-Identifier: Apache-2.0
"""Waiting for something to become true. Nothing sleeps for a set time and hopes; and nobody waits on when a promise is broken."""

import time
from concurrent.futures import ThreadPoolExecutor

from . import promise

# Limits are what an idle machine may need; one that is busy with something else gets more. Waiting ends when it is over.
PATIENCE = 3


class TimedOut(AssertionError):
    pass


def until(condition, what, timeout_s=30.0, every_s=0.05):
    """Calls `condition` until it returns something true, and returns that. `what` says what was waited for; where it
    is a function its result does, with what was seen last."""
    timeout_s *= PATIENCE
    end = time.monotonic() + timeout_s
    while True:
        promise.check()
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimedOut("after %g s still not: %s" % (timeout_s, what() if callable(what) else what))
        time.sleep(every_s)


def stays(condition, what, for_s, every_s=0.05):
    """The opposite: fails as soon as `condition` is not true, within so many seconds."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        promise.check()
        assert condition(), "did not stay so: %s" % (what() if callable(what) else what)
        time.sleep(every_s)


def until_quiet(number, what, for_s=1.5, timeout_s=30.0):
    """Waits until `number` returns the same for so long; returns that. What goes on and on is never quiet."""
    seen = [None, 0.0]

    def is_quiet():
        value = number()
        if value != seen[0]:
            seen[:] = [value, time.monotonic()]
        return time.monotonic() - seen[1] >= for_s
    until(is_quiet, lambda: "%s: %s at last" % (what, seen[0]), timeout_s)
    return seen[0]


def in_parallel(work, items, workers=8):
    """Calls `work` for each item, several at once; the first error is raised when all are done."""
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, items))
