# SPDX-License-Identifier: Apache-2.0
"""Waiting for something to become true. Nothing sleeps for a set time and hopes."""

import time
from concurrent.futures import ThreadPoolExecutor


class TimedOut(AssertionError):
    pass


def until(condition, what, timeout_s=30.0, every_s=0.05):
    """Calls `condition` until it returns something true, and returns that. `what` says what was waited for; where it
    is a function its result does, with what was seen last."""
    end = time.monotonic() + timeout_s
    while True:
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
        assert condition(), "did not stay so: %s" % (what() if callable(what) else what)
        time.sleep(every_s)


def in_parallel(work, items, workers=8):
    """Calls `work` for each item, several at once; the first error is raised when all are done."""
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, items))
