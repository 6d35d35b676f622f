# SPDX-License-Identifier: Apache-2.0
"""Keys that wait to be looked at, now or at a time; each by one worker at a time.

A key that is added while a worker has it comes again when that worker is done, so that no change
is missed and no two workers ever write the same Pod.
"""

import collections
import heapq
import threading
import time


class Queue:
    def __init__(self):
        self._condition = threading.Condition()
        self._ready = collections.deque()
        self._waiting = set()
        self._taken = set()
        self._again = set()
        self._later = []
        # The time at which a key comes again; an entry of the heap with another time is stale.
        self._due = {}

    def add(self, key):
        with self._condition:
            self._add(key)

    def _add(self, key):
        if key in self._taken:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self._condition.notify()

    def add_after(self, key, seconds):
        """Comes after so many seconds; a key has one such time, the last one said."""
        with self._condition:
            due = time.monotonic() + max(0.0, seconds)
            self._due[key] = due
            heapq.heappush(self._later, (due, key))
            self._condition.notify()

    def get(self):
        """The next key, waited for; give it back with done()."""
        with self._condition:
            while True:
                timeout_s = self._bring_due()
                if self._ready:
                    key = self._ready.popleft()
                    self._waiting.discard(key)
                    self._taken.add(key)
                    return key
                self._condition.wait(timeout_s)

    def _bring_due(self):
        now = time.monotonic()
        while self._later:
            due, key = self._later[0]
            if self._due.get(key) == due:
                if due > now:
                    return due - now
                del self._due[key]
                self._add(key)
            heapq.heappop(self._later)
        return None

    def done(self, key):
        with self._condition:
            self._taken.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._add(key)
