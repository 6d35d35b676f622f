# SPDX-License-Identifier: Apache-2.0
"""Reviews without a pause while something happens to the webhook."""

import threading

from . import observer as look
from .cluster import api
from .scene import DEPLOYMENT_PATH, deployment
from .wait import until


class Storm:
    """Reviews without a pause, on several connections; what was not answered well stays in `failed`."""

    def __init__(self, scene, workers=3):
        self._scene, self._stop = scene, threading.Event()
        self.answered, self.failed = 0, []
        self._threads = [threading.Thread(target=self._run) for _ in range(workers)]

    def _run(self):
        probe = deployment("storm", replicas=1)
        while not self._stop.is_set():
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

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
