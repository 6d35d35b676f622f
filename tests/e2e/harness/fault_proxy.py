# SPDX-License-Identifier: Apache-2.0
"""A proxy between slipway and the API server that does to their connections what networks and overloaded servers do.

It ends TLS with a certificate of its own, verifies that of the API server, and passes requests and answers on byte by
byte; a watch goes through event by event. What else it shall do is said while it runs, from any thread:

    proxy = FaultProxy(cluster, folder)             slipway gets proxy.url and proxy.ca_file
    rule = proxy.answer(429, retry_after=1, method="PATCH", path="/deployments/", times=3)
    rule.remove()
    hole = proxy.black_hole(); hole.heal()

Of several rules that match a request the oldest acts. What can be matched:

    method    "PATCH", or several: ("PATCH", "PUT")
    path      a regular expression, found somewhere in path and query
    watch     True or False; a list that comes as the beginning of a watch is one too
    list      True: lists, in pages or as the beginning of a watch
    when      a function of the request (see wire.Request)
    skip      so many matching requests pass first
    every     of the rest, each n-th one (the n-th, 2n-th, ...)
    times     so many at most
    for_s     so many seconds from now on

A proxy belongs to one slipway process, so that its faults are that process's alone. What was asked, and what became
of it, stays in `requests`. Connections that are "cut" end by a reset, or as a killed peer's do, without close_notify.
"""

import asyncio
import ctypes
import json
import pathlib
import re
import socket
import ssl
import struct
import threading
import time
import urllib.parse

from . import wire
from .cluster import TOP  # puts tools/ on the path
from story.certificate import make_certificate  # noqa: E402
from .wait import until

REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
           429: "TooManyRequests", 500: "InternalError", 502: "", 503: "ServiceUnavailable", 504: "Timeout"}

HANDOVER = r"/(deployments|deploymentcoordinations)/"  # the writes that decide who rolls


class Cut(Exception):
    """This connection shall end now."""

    def __init__(self, is_reset=False):
        self.is_reset = is_reset


class Match:
    def __init__(self, method=None, path=None, watch=None, list=None, when=None, skip=0, every=1, times=None, for_s=None):
        self._methods = (method,) if isinstance(method, str) else method
        self._path = re.compile(path) if path else None
        self._watch, self._list, self._when = watch, list, when
        self._skip, self._every, self._times = skip, every, times
        self._end = None if for_s is None else time.monotonic() + for_s
        self._met = 0
        self.hits = []  # the requests that it acted on

    def covers(self, request):
        """What kind of request it is; without counting."""
        return ((self._methods is None or request.method in self._methods)
                and (self._path is None or self._path.search(request.target) is not None)
                and (self._watch is None or request.is_watch == self._watch)
                and (self._list is None or (request.is_stream or not request.is_watch) == self._list)
                and (self._when is None or bool(self._when(request))))

    def takes(self, request):
        """Whether it acts on this one: counts it."""
        if (self._end is not None and time.monotonic() > self._end) or (self._times is not None and len(self.hits) >= self._times):
            return False
        if not self.covers(request):
            return False
        self._met += 1
        if self._met <= self._skip or (self._met - self._skip) % self._every:
            return False
        self.hits.append(request)
        return True


class Rule:
    """Something that is done to matching requests, until removed."""

    def __init__(self, proxy, match, act):
        self._proxy, self.match, self.act = proxy, match, act  # act(rule, connection, request): whether the connection goes on

    @property
    def hits(self):
        return list(self.match.hits)

    def until_hit(self, count=1, timeout_s=30):
        until(lambda: len(self.match.hits) >= count, lambda: "%d requests met a rule; there were %s" % (
            count, "\n".join(map(str, self._proxy.requests[-20:]))), timeout_s, 0.01)
        return self

    def remove(self):
        self._proxy._call(self._proxy._remove, self)


class Held(Rule):
    """Requests, or answers, that wait here."""

    def __init__(self, proxy, match, act):
        super().__init__(proxy, match, act)
        self.waiting = []  # events, one for each that waits

    async def wait(self):
        event = asyncio.Event()
        self.waiting.append(event)
        await event.wait()

    def until_waiting(self, count=1, timeout_s=30):
        until(lambda: len(self.waiting) >= count, "%d wait in the proxy" % count, timeout_s, 0.01)
        return self

    def release(self, newest_first=False):
        """Lets all go that wait, in that order, and catches no more."""
        self.remove()

        def go():
            for event in reversed(self.waiting) if newest_first else self.waiting:
                event.set()
        self._proxy._call(go)


class Hole:
    """Where bytes vanish, both ways, while all connections stay open."""

    def __init__(self, proxy, match):
        self._proxy, self.match = proxy, match
        self.only = None  # the connections concerned; None: all
        self.healed = asyncio.Event()

    @property
    def is_total(self):
        return self.match is None and self.only is None

    def swallows(self, connection):
        return ((self.only is None or connection in self.only)
                and (self.match is None or (connection.request is not None and self.match.covers(connection.request))))

    def heal(self):
        self._proxy._call(self._proxy._heal, self)


class Freeze:
    """Watches that matches begin, and go on, but say nothing until thawed; then they say all."""

    def __init__(self, proxy, match):
        self._proxy, self.match = proxy, match
        self.thawed = asyncio.Event()

    def thaw(self):
        self._proxy._call(self._proxy._thaw, self)


# A packet filter for a socket that takes nothing: not even the kernel acknowledges what the peer sends then.
class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
TAKE_NOTHING = (_Instruction * 1)(_Instruction(0x06, 0, 0, 0))  # BPF_RET, 0 bytes


def deafen(sock):
    program = struct.pack("HL", 1, ctypes.addressof(TAKE_NOTHING))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def undeafen(sock):
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, struct.pack("i", 0))
    except OSError:
        pass  # closed, or never deaf


class Upstream:
    """A connection to the API server."""

    @staticmethod
    async def open(proxy):
        self = Upstream()
        self.reader, self.writer = await asyncio.open_connection(
            proxy.upstream_host, proxy.upstream_port, ssl=proxy.upstream_tls, limit=wire.LIMIT_BYTES)
        return self

    async def send(self, request):
        request.forwarded = time.monotonic()
        self.writer.write(request.head + request.body)
        await self.writer.drain()

    def close(self):
        self.writer.transport.abort()


async def settle(request, status):
    """The API server has answered: from now on, what was written is true."""
    request.status, request.ended = status, time.monotonic()
    for gate in request.gates:
        if gate.after and await asyncio.to_thread(gate.after, request) is False:
            raise Cut()


class Stream:
    """A watch that is running: what came from the API server and what was injected, in the order to send it."""

    def __init__(self, request, connection):
        self.request, self.connection = request, connection
        self.queue = asyncio.Queue()


class Connection:
    """One connection of slipway, and the one to the API server that stands behind it."""

    def __init__(self, proxy, sock):
        self.proxy, self.sock = proxy, sock
        self.reader = self.writer = self.upstream = None
        self.request = None  # the latest
        self.early = b""  # read while an answer was still being sent
        self.left = None  # of the answer; bytes that may still pass before the cut
        self.is_cut_reset = False

    async def run(self):
        try:
            await self.pass_holes()
            loop = asyncio.get_running_loop()
            self.reader = asyncio.StreamReader(limit=wire.LIMIT_BYTES, loop=loop)
            protocol = asyncio.StreamReaderProtocol(self.reader, loop=loop)
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, self.sock, ssl=self.proxy.tls)
            self.writer = asyncio.StreamWriter(transport, protocol, self.reader, loop)
            while await self.serve():
                pass
            self.writer.close()
            await self.writer.wait_closed()
        except Cut as cut:
            self.abort(cut.is_reset)
        except wire.BROKEN:
            pass
        finally:
            self.abort()

    def abort(self, is_reset=False):
        if is_reset:
            try:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
        if not self.writer:
            self.sock.close()
        elif not self.writer.transport.is_closing():
            self.writer.transport.abort()
        self.drop_upstream()

    def drop_upstream(self):
        if self.upstream:
            self.upstream.close()
            self.upstream = None

    async def pass_holes(self):
        while True:
            hole = self.proxy._hole_of(self)
            if not hole:
                return
            self.deafen()
            await hole.healed.wait()

    def deafen(self):
        try:
            deafen(self.sock)
        except OSError:
            pass  # closed already

    async def serve(self):
        """One request and its answer; False where the connection is at its end."""
        self.request = None
        request = await wire.read_request(self.reader, self.early)
        self.early = b""
        if request is None:
            return False
        self.request = request
        self.left = None
        self.proxy.requests.append(request)
        await self.pass_holes()
        request.gates = [gate for gate in self.proxy._gates if gate.match.covers(request)]
        for gate in request.gates:
            if gate.before and await asyncio.to_thread(gate.before, request) is False:
                raise Cut()
        rule = next((rule for rule in self.proxy._rules if rule.match.takes(request)), None)
        if rule:
            return await rule.act(rule, self, request)
        return await self.forward(request)

    async def forward(self, request, before_answer=None):
        head = await self.begin(request)
        await settle(request, head.status)
        if before_answer:
            await before_answer()
        if request.is_watch and head.status == 200 and head.is_chunked:
            return await self.stream(request, head)
        await self.send(head.raw)
        async for piece in wire.pieces(self.upstream.reader, head):
            await self.send(piece.raw)
        return not head.closes and request.headers.get("connection", "").lower() != "close"

    async def begin(self, request):
        """Sends it, on the kept connection or, where the API server has closed that, on a new one."""
        if self.upstream and self.upstream.reader.at_eof():
            self.drop_upstream()
        if not self.upstream:
            self.upstream = await Upstream.open(self.proxy)
        await self.upstream.send(request)
        return await wire.read_head(self.upstream.reader, request.method)

    async def send(self, data):
        await self.pass_holes()
        if self.left is not None and len(data) > self.left:
            self.writer.write(data[:self.left])
            await self.writer.drain()
            raise Cut(self.is_cut_reset)
        if self.left is not None:
            self.left -= len(data)
        self.writer.write(data)
        await self.writer.drain()

    async def stream(self, request, head):
        """A watch: until the API server ends it, slipway closes it, or it is cut or ended by an injected frame."""
        stream = Stream(request, self)
        self.proxy._streams.add(stream)
        read = asyncio.ensure_future(self._read_stream(stream, head))
        send = asyncio.ensure_future(self._send_stream(stream, head))
        gone = asyncio.ensure_future(self.reader.read(1))
        try:
            await asyncio.wait((send, gone), return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not send.done():
                self.early = gone.result()
                if not self.early:
                    return False
                await send
            elif not gone.done():
                gone.cancel()
                await asyncio.wait((gone,))
            return send.result()
        finally:
            self.proxy._streams.discard(stream)
            for task in (read, send, gone):
                task.cancel()

    async def _read_stream(self, stream, head):
        try:
            async for piece in wire.pieces(self.upstream.reader, head):
                stream.queue.put_nowait(piece)
        except wire.BROKEN:
            stream.queue.put_nowait(None)

    async def _send_stream(self, stream, head):
        await self.send(head.raw)
        is_between_frames, injected = True, []
        while True:
            item = await stream.queue.get()
            if item is None:
                raise Cut()
            await self.proxy._pass_freezes(stream.request)
            if isinstance(item, bytes):
                injected.append(item)
            else:
                await self.send(item.raw)
                if item.is_last:
                    return True
                is_between_frames = item.payload.endswith(b"\n")
            if injected and is_between_frames:
                # An API server ends the stream behind an ERROR, and keeps the connection.
                await self.send(b"".join(map(wire.chunk, injected)) + b"0\r\n\r\n")
                self.drop_upstream()
                return True


class Gate:
    def __init__(self, proxy, match, before, after):
        self._proxy, self.match, self.before, self.after = proxy, match, before, after

    def remove(self):
        self._proxy._call(self._proxy._gates.remove, self)


class FaultProxy:
    def __init__(self, cluster, folder):
        folder = pathlib.Path(folder)
        make_certificate(folder)
        self.ca_file = folder / "ca.crt"
        parts = urllib.parse.urlsplit(cluster.server)
        self.upstream_host, self.upstream_port = parts.hostname, parts.port
        self.upstream_tls = ssl.create_default_context(cafile=str(cluster.ca_file))
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        for context in (self.tls, self.upstream_tls):
            context.set_alpn_protocols(["http/1.1"])
        self.requests = []  # all that was asked, oldest first
        self._rules, self._gates, self._holes, self._freezes = [], [], [], []
        self._connections, self._streams, self._tasks = set(), set(), set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.setblocking(False)
        self.url = "https://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fault proxy", daemon=True)
        self._thread.start()
        self._call(self._start)

    # ---- what was asked ----

    @property
    def writes(self):
        return [request for request in list(self.requests) if request.is_write]

    def handover_writes(self, since=0.0):
        """Writes to Deployments and coordinations, without those that a rule kept from the API server."""
        return [request for request in self.writes if request.forwarded is not None and request.forwarded >= since
                and re.search(HANDOVER, request.path)]

    # ---- requests and answers ----

    def cut_answer(self, after=0, reset=False, **match):
        """Forwarded; of the answer's bytes, head included, so many pass, and the connection is cut. after=0 is an answer that is lost."""
        async def act(rule, connection, request):
            connection.left, connection.is_cut_reset = after, reset
            return await connection.forward(request)
        return self._add(act, match)

    lose_answer = cut_answer

    def cut_request(self, reset=True, **match):
        """Not forwarded: cut as soon as it has been read."""
        async def act(rule, connection, request):
            raise Cut(reset)
        return self._add(act, match)

    def delay_request(self, seconds, **match):
        async def act(rule, connection, request):
            await asyncio.sleep(seconds)
            return await connection.forward(request)
        return self._add(act, match)

    def delay_answer(self, seconds, **match):
        async def act(rule, connection, request):
            return await connection.forward(request, lambda: asyncio.sleep(seconds))
        return self._add(act, match)

    def hold_request(self, **match):
        """Kept here until released, and then forwarded also if the process that sent it has died."""
        async def act(rule, connection, request):
            forwarding = self._spawn(self._forward_alone(request, rule.wait))
            head, body = await asyncio.shield(forwarding)
            await connection.send(head + body)
            return True
        return self._add(act, match, Held)

    def hold_answer(self, **match):
        """Forwarded at once; the answer is kept here until released."""
        async def act(rule, connection, request):
            return await connection.forward(request, rule.wait)
        return self._add(act, match, Held)

    def answer(self, status, reason=None, message="said by the proxy of the tests", retry_after=None, body=None, headers=None, **match):
        """Not forwarded. `body` (bytes) instead of a Status object, as from a proxy that knows no Kubernetes."""
        async def act(rule, connection, request):
            about = wire.status_object(status, REASONS.get(status, "") if reason is None else reason, message)
            lines = {"Content-Type": "application/json" if body is None else "text/html", **(headers or {})}
            if retry_after is not None:
                lines["Retry-After"] = str(retry_after)
            request.status, request.ended = status, time.monotonic()
            await connection.send(wire.answer(status, json.dumps(about).encode() if body is None else body, lines))
            return True
        return self._add(act, match)

    def speak(self, data, **match):
        """Not forwarded: these bytes instead of an answer, and the end of the connection."""
        async def act(rule, connection, request):
            await connection.send(data)
            return False
        return self._add(act, match)

    def apply_later(self, seconds, status=504, **match):
        """Answered at once with an error, and forwarded all the same, so many seconds later."""
        async def act(rule, connection, request):
            self._spawn(self._forward_alone(request, lambda: asyncio.sleep(seconds)))
            about = wire.status_object(status, REASONS.get(status, ""), "request did not complete within the allotted timeout")
            await connection.send(wire.answer(status, json.dumps(about).encode(), {"Content-Type": "application/json"}))
            return True
        return self._add(act, match)

    def gate(self, before=None, after=None, path=HANDOVER, method=("PATCH", "POST", "PUT"), **match):
        """`before` is called with each matching request before it is forwarded, or a rule acts on it; `after` when the API
        server has answered and before slipway learns of it. Where one returns False the connection is cut."""
        gate = Gate(self, Match(method=method, path=path, **match), before, after)
        self._call(self._gates.append, gate)
        return gate

    # ---- watches ----

    def inject_error(self, code, reason=None, **match):
        """An ERROR frame into all running watches that match, which ends them. Returns how many there were."""
        match = Match(**match)

        def inject():
            streams = [stream for stream in self._streams if match.covers(stream.request)]
            for stream in streams:
                stream.queue.put_nowait(self._error_frame(code, reason))
            return len(streams)
        return self._call(inject)

    def begin_with_error(self, code, reason=None, **match):
        """Watches are answered 200, with nothing but an ERROR frame in the stream."""
        async def act(rule, connection, request):
            request.status, request.ended = 200, time.monotonic()
            await connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  + wire.chunk(self._error_frame(code, reason)) + b"0\r\n\r\n")
            return True
        return self._add(act, dict(match, watch=True))

    @staticmethod
    def _error_frame(code, reason):
        reason = REASONS.get(code, "") if reason is None else reason
        return json.dumps({"type": "ERROR", "object": wire.status_object(code, reason)}).encode() + b"\n"

    def freeze(self, **match):
        frozen = Freeze(self, Match(watch=True, **match))
        self._call(self._freezes.append, frozen)
        return frozen

    def count_watches(self, **match):
        match = Match(**match)
        return self._call(lambda: sum(match.covers(stream.request) for stream in self._streams))

    # ---- connections ----

    def count_connections(self):
        return self._call(lambda: len(self._connections))

    def cut_now(self, reset=True, **match):
        """All connections, or those whose request under way matches. Returns how many."""
        match = Match(**match) if match else None

        def cut():
            found = [c for c in self._connections if match is None or (c.request and match.covers(c.request))]
            for connection in found:
                connection.abort(reset)
            return len(found)
        return self._call(cut)

    def black_hole(self, new=True, **match):
        """Packets vanish both ways: on every connection, those to come included; or on those whose latest request matches. With
        new=False on those only that exist now, as where somebody on the way has forgotten them."""
        hole = Hole(self, Match(**match) if match else None)

        def dig():
            if not new:
                hole.only = set(self._connections)
            self._holes.append(hole)
            if hole.is_total:
                deafen(self._listener)
            for connection in self._connections:
                if self._hole_of(connection):
                    connection.deafen()
        self._call(dig)
        return hole

    def calm(self):
        """No faults from now on; what was held is let go."""
        for rule in list(self._rules):
            rule.release() if isinstance(rule, Held) else rule.remove()
        for gate in list(self._gates):
            gate.remove()
        for hole in list(self._holes):
            hole.heal()
        for frozen in list(self._freezes):
            frozen.thaw()

    def close(self):
        if self._thread.is_alive():
            self._call(self._stop)
            self._thread.join(10)
        self._listener.close()

    # ---- inside ----

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        pending = asyncio.all_tasks(self._loop)
        for task in pending:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _start(self):
        self._spawn(self._accept())

    def _stop(self):
        for connection in list(self._connections):
            connection.abort()
        self._loop.call_soon(self._loop.stop)

    def _call(self, function, *arguments):
        """Runs it on the loop's thread and returns what it returns."""
        async def call():
            return function(*arguments)
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(30)

    def _spawn(self, coroutine):
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task):
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(task.exception(), wire.BROKEN + (Cut,)):
            return  # a late write that nobody waits for, whose connection broke
        if not task.cancelled() and task.exception():
            self._loop.call_exception_handler({"message": "in the fault proxy", "exception": task.exception()})

    def _add(self, act, match, kind=Rule):
        rule = kind(self, Match(**match), act)
        self._call(self._rules.append, rule)
        return rule

    def _remove(self, rule):
        if rule in self._rules:
            self._rules.remove(rule)

    async def _accept(self):
        while True:
            sock, _ = await self._loop.sock_accept(self._listener)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, sock)
            self._connections.add(connection)
            task = self._spawn(connection.run())
            task.add_done_callback(lambda _, connection=connection: self._connections.discard(connection))

    async def _forward_alone(self, request, wait):
        """On a connection of its own, so that it outlives who sent it. Returns the answer's bytes."""
        await wait()
        upstream = await Upstream.open(self)
        try:
            await upstream.send(request)
            head = await wire.read_head(upstream.reader, request.method)
            body = b"".join([piece.raw async for piece in wire.pieces(upstream.reader, head)])
            await settle(request, head.status)
            return head.raw, body
        finally:
            upstream.close()

    def _hole_of(self, connection):
        for hole in self._holes:
            if hole.swallows(connection):
                return hole
        return None

    def _heal(self, hole):
        if hole in self._holes:
            self._holes.remove(hole)
        hole.healed.set()
        if not any(other.is_total for other in self._holes):
            undeafen(self._listener)
        for connection in self._connections:
            if not self._hole_of(connection):
                undeafen(connection.sock)

    async def _pass_freezes(self, request):
        for frozen in list(self._freezes):
            if frozen.match.covers(request):
                await frozen.thawed.wait()

    def _thaw(self, frozen):
        if frozen in self._freezes:
            self._freezes.remove(frozen)
        frozen.thawed.set()


__all__ = ["FaultProxy", "HANDOVER", "TOP"]
