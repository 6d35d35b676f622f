# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 on asyncio streams, as far as a proxy needs it that passes on the very bytes it got.

Requests are read whole; answers are a head, and then pieces of the body as they come. Each piece keeps its bytes on
the wire beside the payload in them. Nothing here decides anything.
"""

import asyncio
import json
import time
import urllib.parse

LIMIT_BYTES = 1 << 20  # of a head; bodies may be larger
BROKEN = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)


class Request:
    """One request, and what became of it: a record that stays after the connection is gone."""

    def __init__(self, head, body, payload):
        self.head, self.body, self.payload = head, body, payload
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.headers = fields(lines[1:])
        self.path, _, query = self.target.partition("?")
        self.query = urllib.parse.parse_qs(query)
        self.is_watch = self.query.get("watch") in (["true"], ["1"])
        self.is_stream = "sendInitialEvents" in self.query  # a list that comes as the beginning of a watch
        self.is_write = self.method in ("POST", "PUT", "PATCH", "DELETE")
        self.began = time.monotonic()
        self.forwarded = None  # when it was sent to the API server; None: never was
        self.ended = None  # when the API server, or a rule, had answered
        self.status = None  # of that answer
        self.gates = []  # of the proxy, which it must pass

    @property
    def json(self):
        return json.loads(self.payload) if self.payload else None

    @property
    def name(self):
        """The last part of the path that is a name: of the Deployment in .../deployments/a/status."""
        parts = self.path.rstrip("/").split("/")
        return parts[-2] if parts[-1] in ("status", "scale") else parts[-1]

    def __repr__(self):
        return "%s %s -> %s %s" % (self.method, self.target, self.status, self.payload[:300].decode(errors="replace"))


class Piece:
    """Of a body: its bytes on the wire, and the payload in them. A last chunk has no payload."""

    def __init__(self, raw, payload, is_last=False):
        self.raw, self.payload, self.is_last = raw, payload, is_last


class Head:
    def __init__(self, raw, method):
        self.raw = raw
        lines = raw.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ", 2)[1])
        self.headers = fields(lines[1:])
        self.is_empty = method == "HEAD" or self.status in (204, 304) or self.status < 200
        self.is_chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        self.length = int(self.headers["content-length"]) if "content-length" in self.headers else None
        self.closes = (self.headers.get("connection", "").lower() == "close"
                       or not (self.is_empty or self.is_chunked or self.length is not None))


def fields(lines):
    """Names in lower case; of a repeated one the last."""
    found = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip().lower()] = value.strip()
    return found


async def read_chunk(reader):
    line = await reader.readuntil(b"\r\n")
    size = int(line.split(b";")[0], 16)
    if size:
        data = await reader.readexactly(size + 2)
        return Piece(line + data, data[:-2])
    raw = line
    while True:
        trailer = await reader.readuntil(b"\r\n")
        raw += trailer
        if trailer == b"\r\n":
            return Piece(raw, b"", is_last=True)


async def read_request(reader, before=b""):
    """None where the peer has closed between two requests. `before` are bytes that were read already."""
    try:
        head = before + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial or before:
            raise
        return None
    found = fields(head.decode("latin-1").split("\r\n")[1:])
    body = payload = b""
    if found.get("transfer-encoding", "").lower() == "chunked":
        piece = None
        while piece is None or not piece.is_last:
            piece = await read_chunk(reader)
            body += piece.raw
            payload += piece.payload
    elif found.get("content-length"):
        body = payload = await reader.readexactly(int(found["content-length"]))
    return Request(head, body, payload)


async def read_head(reader, method):
    while True:
        head = Head(await reader.readuntil(b"\r\n\r\n"), method)
        if head.status >= 200:
            return head


async def pieces(reader, head):
    """The body piece by piece, as soon as each is there."""
    if head.is_empty:
        return
    if head.is_chunked:
        while True:
            piece = await read_chunk(reader)
            yield piece
            if piece.is_last:
                return
    left = head.length
    while left is None or left > 0:
        data = await reader.read(65536 if left is None else min(left, 65536))
        if not data:
            if left:
                raise asyncio.IncompleteReadError(data, left)
            return
        left = None if left is None else left - len(data)
        yield Piece(data, data)


def chunk(payload):
    return b"%x\r\n%s\r\n" % (len(payload), payload)


def status_object(code, reason, message="said by the proxy of the tests", **details):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "code": code, **({"details": details} if details else {})}


def answer(code, body, headers):
    """The bytes of a whole answer; `body` is bytes."""
    lines = ["HTTP/1.1 %d Injected" % code, "Content-Length: %d" % len(body)]
    lines += ["%s: %s" % pair for pair in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
