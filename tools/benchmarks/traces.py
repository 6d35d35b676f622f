# SPDX-License-Identifier: Apache-2.0
"""Hand-overs in a trace of slipway-sim (tools/sim/trace.h): which time was ours, and which the server's."""

import json
import math
import re

from benchmarks.stand import SLIPWAY_USER

DEPLOYMENT = re.compile(r"/apis/apps/v1/namespaces/([^/?]+)/deployments/([^/?]+)(\?|$)")
STATUS = re.compile(r"/apis/apps\.containerinfra\.nl/v1/namespaces/([^/?]+)/deploymentcoordinations/([^/?]+)/status(\?|$)")
RELEASED = "slipway.dev/released-by"


class Write:
    """A PATCH by slipway. By the wire, where it tells: came, when it was sent, and heard, when its answer was. By the server: read,
    when it had the whole request, and answered, when it had the answer; these two alone tell what was before what."""

    def __init__(self, peer, came, read, target, body):
        self.peer, self.came, self.read, self.body = peer, came, read, body
        self.answered = self.heard = self.status = None
        self.deployment = self.coordination = None
        found = DEPLOYMENT.match(target)
        if found:
            self.deployment = found.group(1) + "/" + found.group(2)
        found = STATUS.match(target)
        if found:
            self.coordination = found.group(1) + "/" + found.group(2)

    @property
    def is_good(self):
        return self.status is not None and 200 <= self.status < 300

    def sets_released(self):
        """True: gives the right to roll; False: takes it back; None: neither."""
        for key, value in _annotations(self.body):
            if key == RELEASED:
                return value is not None
        return None


def _annotations(body):
    """(key, value) of what a merge patch or a JSON patch says of annotations."""
    if isinstance(body, dict):
        yield from ((body.get("metadata") or {}).get("annotations") or {}).items()
        return
    for step in body if isinstance(body, list) else []:
        path = step.get("path", "")
        if path.startswith("/metadata/annotations/"):
            key = path[len("/metadata/annotations/"):].replace("~1", "/").replace("~0", "~")
            yield key, None if step["op"] == "remove" else step.get("value")
        elif path == "/metadata/annotations" and isinstance(step.get("value"), dict):
            yield from step["value"].items()


def is_complete(deployment):
    status, want = deployment.get("status", {}), deployment["spec"].get("replicas", 1)
    numbers = [status.get(key) or 0 for key in ("updatedReplicas", "replicas", "availableReplicas")]
    return status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and numbers == [want] * 3


def _documents(text):
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(text) and text[at] == " ":
            at += 1
        if at == len(text):
            return
        value, at = decoder.raw_decode(text, at)
        yield value


class Trace:
    """writes: those of slipway, in the order in which they came. seen: (ns, ns by the wire, name, is complete) of each Deployment
    that its watch was told of."""

    def __init__(self, path, wire=None):
        """wire (wire.py): knows when requests, answers and events were sent."""
        self.writes, self.seen, self.wire = [], [], wire
        open_writes, watches = {}, {}
        with open(path) as file:
            for line in file:
                if not line.endswith("\n"):
                    raise ValueError("%s is cut" % path)
                ns, number, what, *rest = line[:-1].split("\t")
                if what == "request":
                    self._take_request(int(ns), number, rest, open_writes, watches)
                elif what == "answer" and number in open_writes:
                    write = open_writes.pop(number)
                    write.answered, write.status = int(ns), int(rest[0])
                    write.heard = self._received(write.peer, write.answered)
                elif what == "piece" and number in watches:
                    self._take_piece(int(ns), self._received(watches[number], int(ns)), rest[0])

    def _received(self, peer, ns):
        """What the server had for the peer at ns went out; what was not seen never did."""
        found = self.wire.received_after(peer, ns) if self.wire else ns
        return math.inf if found is None else found

    def _take_request(self, ns, number, rest, open_writes, watches):
        user, address, method, target, body = rest
        peer = int(address.rpartition(":")[2])
        if user != SLIPWAY_USER:
            return
        if method == "GET" and "watch=" in target and target.startswith("/apis/apps/v1/") and "/deployments?" in target:
            watches[number] = peer
        if method == "PATCH":
            sent = self.wire.sent_before(peer, ns) if self.wire else ns
            write = Write(peer, sent or 0, ns, target, json.loads(body))
            if write.deployment or write.coordination:
                open_writes[number] = write
                self.writes.append(write)

    def _take_piece(self, ns, heard, text):
        for event in _documents(text):
            item = event["object"]
            if event["type"] in ("ADDED", "MODIFIED") and item.get("kind") == "Deployment":
                self._see(ns, heard, item)

    def _see(self, ns, heard, item):
        meta = item["metadata"]
        self.seen.append((ns, heard, meta["namespace"] + "/" + meta["name"], is_complete(item)))

    def handovers(self, since=0):
        """(ns before each of our three writes, ns of all) of each hand-over from then on: the right is taken back from one, the
        next is recorded, and released."""
        for number, release in enumerate(self.writes):
            if release.read < since or not (release.is_good and release.deployment and release.sets_released()):
                continue
            before = [write for write in self.writes[:number] if write.is_good and write.answered <= release.read]
            record = next((write for write in reversed(before) if write.coordination), None)
            takeback = record and next((write for write in reversed(before) if write.deployment and write.sets_released() is False
                                        and write.answered <= record.read), None)
            if not takeback or any(write.coordination == record.coordination and takeback.answered <= write.read < record.read for write in before):
                continue  # nobody waited when it was taken back: the next turn began by itself
            told, heard = self._completed(takeback)
            if not told or takeback.deployment == release.deployment:
                continue
            steps = [takeback.came - heard, record.came - takeback.heard, release.came - record.heard]
            if min(steps) >= 0:  # else the wire has missed a packet, and shows one before or after it
                yield steps, release.answered - told

    def _completed(self, takeback):
        """When slipway was told that the one is complete from which it then took the right, by the server and by the wire: the
        first of the last run of versions that say so."""
        told = None
        for ns, heard, name, complete in self.seen:
            if ns > takeback.read:
                break
            if name == takeback.deployment:
                told = (told or (ns, heard)) if complete else None
        return told or (None, None)
