# SPDX-License-Identifier: Apache-2.0
"""Crowds, slow clients and a stop, as the webhook's port sees them."""

import http.client
import itertools
import signal
import socket
import threading
import time

from harness.reviewer import Refused, Reviewer, ask_once
from harness.storm import Askers
from harness.wait import until


def open_slipway(scene, **options):
    slipway = scene.slipway(webhook=False, **options)
    scene.coordinate()
    until(lambda: scene.status().get("observedGeneration"), "the coordination is seen")
    return slipway


# So long a connection without a request is left open by who is told to stop: time for one that is on its way.
QUIET_S = 1


class ReviewersUntilTheEnd(Askers):
    """On each thread one review after the other, until nobody listens any more. With a connection each, or on the one that there
    is until the server says that it closes it."""

    def __init__(self, slipway, namespace, keep_alive):
        super().__init__(keep_alive)
        self._slipway, self._namespace = slipway, namespace
        self.is_refused = threading.Event()

    def ask_on(self, keeps_alive):
        reviewer = None
        while not self.is_over:
            try:
                if not reviewer:
                    reviewer, since = Reviewer(self._slipway, self._namespace), time.monotonic()
            except Refused as refused:
                # Whoever stood in the queue of the listener when it closed hears it a moment before all others do.
                self.until_nobody_listens(refused)
                return
            quiet_s = 0
            try:
                rest, quiet_s = reviewer.begin(), time.monotonic() - since
                is_over = reviewer.end(rest)
                since = time.monotonic()
                self.answered += 1
                if is_over or not keeps_alive:
                    reviewer = reviewer.close()
            except (AssertionError, OSError, ValueError, http.client.HTTPException) as error:
                if quiet_s < 0.9 * QUIET_S:  # else the machine has let this thread wait for too long
                    self.failed.append(repr(error))
                reviewer = reviewer.close()

    def until_nobody_listens(self, refused):
        try:
            Reviewer(self._slipway, self._namespace).close()
            self.failed.append("refused, and the next one was not: %r" % refused)
        except Refused:
            self.is_refused.set()


def test_every_review_that_has_begun_is_answered_when_slipway_is_told_to_stop(scene):
    """Under load, until nobody listens; those who were in the middle of theirs then, too."""
    slipway = open_slipway(scene, settings="stopDelay: 1s\n")
    half = [Reviewer(slipway, scene.namespace) for _ in range(3)]
    rests = [reviewer.begin() for reviewer in half]
    with ReviewersUntilTheEnd(slipway, scene.namespace, [False, False, True, True]) as reviewers:
        until(lambda: reviewers.answered > 20, "they are answered")
        slipway.signal(signal.SIGTERM)
        until(lambda: slipway.get(slipway.health_port, "/readyz")[0] == 500, "it is not ready any more")
        before = reviewers.answered
        until(lambda: reviewers.answered > before + 4 or reviewers.is_refused.is_set(), "it answers on")
        until(reviewers.is_refused.is_set, "nobody listens any more", every_s=0.005)
        assert all(reviewer.end(rest) for reviewer, rest in zip(half, rests)), "the connections end behind their answers"
    slipway.until_ended(0)
    assert not reviewers.failed, reviewers.failed[:3]
    print("%d reviews" % reviewers.answered)


def test_a_thousand_silent_connections_keep_no_reviewer_out(scene):
    """More than are held at once; the last of them stands before the reviewer in the kernel's queue."""
    slipway = open_slipway(scene)
    silent = []
    try:
        for _ in range(1000):
            silent.append(socket.create_connection(("127.0.0.1", slipway.webhook_port), 60))
        began = time.monotonic()
        ask_once(slipway, scene.namespace)
        print("a reviewer behind 1000 silent connections was answered after %.2f s" % (time.monotonic() - began))
        assert slipway.get(slipway.health_port, "/readyz")[0] == 200
    finally:
        for plain in silent:
            plain.close()
    ask_once(slipway, scene.namespace)


class Dripper:
    """Sends one byte of something endless now and then, until it is closed."""

    def __init__(self, name, connection, text):
        self.name, self._connection, self._bytes = name, connection, itertools.cycle(text)
        self._connection.settimeout(0.5)
        self.is_closed = threading.Event()
        self.answer = b""
        self._thread = threading.Thread(target=self.drip)
        self._thread.start()

    def drip(self):
        while not self.is_closed.is_set():
            try:
                self._connection.sendall(bytes([next(self._bytes)]))
                part = self._connection.recv(4096)
                self.answer += part
                if not part:
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.is_closed.set()
        self._connection.close()

    def stop(self):
        self.is_closed.set()
        self._thread.join()


def test_clients_that_send_a_byte_now_and_then_are_closed_and_hold_up_nobody(scene):
    """In the middle of the handshake, and of a head; a body has 30 s, which tests of the server see to in virtual time."""
    slipway = open_slipway(scene)
    drippers = []
    try:
        for _ in range(5):
            plain = socket.create_connection(("127.0.0.1", slipway.webhook_port), 60)
            plain.sendall(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03")  # of a ClientHello of 16 KiB
            drippers.append(Dripper("handshake", plain, b"\x00"))
            head = Reviewer(slipway, scene.namespace).socket
            head.sendall(b"POST /mutate-apps-v1-deployment HTTP/1.1\r\nHost: ")
            drippers.append(Dripper("head", head, b"x"))

        def are_closed():
            ask_once(slipway, scene.namespace)
            return all(dripper.is_closed.is_set() for dripper in drippers)
        until(are_closed, "they are closed after 10 s, and others are answered meanwhile", 20, 0.2)
        for dripper in drippers:
            if dripper.name == "head":
                assert dripper.answer.startswith(b"HTTP/1.1 408 "), dripper.answer
    finally:
        for dripper in drippers:
            dripper.stop()
    ask_once(slipway, scene.namespace)
