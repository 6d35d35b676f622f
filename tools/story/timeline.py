# SPDX-License-Identifier: Apache-2.0
"""What happened to each Deployment and when, from the versions that a watch delivers; and pictures of it."""

import shutil
import time

RESTS, WAITS, ROLLS, DONE = "rests", "waits", "rolls", "done"
GLYPHS = {RESTS: " ", WAITS: "·", ROLLS: "█", DONE: "─"}
COLOURS = {RESTS: "", WAITS: "\033[33m", ROLLS: "\033[36m", DONE: "\033[32m"}


class Track:
    """One Deployment. Times are seconds since the change of all of them."""

    def __init__(self, name):
        self.name = name
        self.state = RESTS
        self.updated = self.replicas = 0
        self.released = self.complete = None
        self.spans = []  # (from, state)

    def is_complete(self, deployment):
        status, want = deployment.get("status", {}), deployment["spec"].get("replicas", 1)
        numbers = [status.get(key) or 0 for key in ("updatedReplicas", "replicas", "availableReplicas")]
        return status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and numbers == [want] * 3

    def see(self, deployment, version, at):
        status = deployment.get("status", {})
        self.replicas = deployment["spec"].get("replicas", 1)
        is_new = deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith(version)
        self.updated = (status.get("updatedReplicas") or 0) if is_new else 0
        if not is_new:
            return
        is_paused = deployment["spec"].get("paused", False)
        if self.released is None and not is_paused:
            self.released = at
        if self.complete is None and self.released is not None and self.is_complete(deployment):
            self.complete = at
        state = DONE if self.complete is not None else WAITS if self.released is None else ROLLS
        if state != self.state:
            self.state = state
            self.spans.append((at, state))

    def state_at(self, at):
        state = RESTS
        for begin, name in self.spans:
            if begin <= at:
                state = name
        return state


class Timeline:
    def __init__(self, names, version):
        self.tracks = {name: Track(name) for name in names}
        self.version = version
        self.begin = None

    def changed(self):
        """Now all of them are being changed."""
        self.begin = time.monotonic()

    def now(self):
        return time.monotonic() - self.begin

    def see(self, deployment):
        track = self.tracks.get(deployment["metadata"]["name"])
        if track and self.begin is not None:
            track.see(deployment, self.version, self.now())

    def is_over(self):
        return all(track.complete is not None for track in self.tracks.values())

    def in_order(self):
        return sorted(self.tracks.values(), key=lambda track: (track.released is None, track.released, track.name))

    def handovers(self):
        """Seconds from the completion of each to the release of the one after it."""
        tracks = self.in_order()
        return [(before, after, after.released - before.complete) for before, after in zip(tracks, tracks[1:])
                if before.complete is not None and after.released is not None]

    def most_at_once(self):
        """How many rolled at the same moment, at the worst."""
        moments = [track.released for track in self.tracks.values() if track.released is not None]
        return max((sum(1 for track in self.tracks.values()
                        if track.released is not None and track.released <= at and (track.complete is None or at < track.complete))
                    for at in moments), default=0)

    # ---- pictures ----

    def rows(self, colour, span=None):
        width = max(20, min(72, shutil.get_terminal_size().columns - 40))
        span = span or max(self.now(), 5.0)
        for track in self.in_order():
            bar, last = "", None
            for column in range(width):
                at = (column + 0.5) * span / width
                state = track.state_at(at) if at <= self.now() else RESTS
                if colour and state != last:
                    bar += "\033[0m" + COLOURS[state]
                bar += GLYPHS[state]
                last = state
            if colour:
                bar += "\033[0m"
            yield "  %-10s %s %d/%d  %s" % (track.name, bar, track.updated, track.replicas, track.state)
        yield "  %-10s %s" % ("", ("0 s" + "%.1f s" % span).replace("s", "s" + " " * max(1, width - 9), 1))

    def table(self):
        yield "  %-10s  %9s  %9s  %s" % ("deployment", "waited", "rolled", "hand-over to it")
        handovers = {after.name: seconds for _, after, seconds in self.handovers()}
        for track in self.in_order():
            waited = "%.2f s" % track.released if track.released is not None else "-"
            rolled = "%.2f s" % (track.complete - track.released) if track.complete is not None else "-"
            handover = "%.0f ms" % (1000 * handovers[track.name]) if track.name in handovers else "first"
            yield "  %-10s  %9s  %9s  %s" % (track.name, waited, rolled, handover)
