# SPDX-License-Identifier: Apache-2.0
"""Reviews without a pause while something happens to the webhook."""

import threading

from . import observer as look
from .cluster import api
from .scene import DEPLOYMENT_PATH, deployment
from .wait import until


class Askers:
    """One for each of `whom`, on a thread of its own while the block lasts: a subclass says in ask_on() what they do until
    `is_over`. They count in `answered`; what was not answered well stays in `failed`."""

    def __init__(self, whom):
        self._over = threading.Event()
        self.answered, self.failed = 0, []
        self._threads = [threading.Thread(target=self.ask_on, args=(one,)) for one in whom]

    @property
    def is_over(self):
        return self._over.is_set()

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()


class Storm(Askers):
    """Through the API server, on several connections."""

    def __init__(self, scene, workers=3):
        super().__init__(range(workers))
        self._scene = scene

    def ask_on(self, _):
        probe = deployment("storm", replicas=1)
        while not self.is_over:
            try:
                answer = self._scene.api.post(DEPLOYMENT_PATH % self._scene.namespace + "?dryRun=All", probe)
                if not look.annotation(answer, look.HELD_BY):
                    self.failed.append("not held: %r" % answer)
            except (api.ApiError, *api.BROKEN) as error:
                self.failed.append(repr(error))
            self.answered += 1

    def until_more(self, count=30):
        begin = self.answered
        until(lambda: self.answered >= begin + count, "%d more reviews are answered" % count)
