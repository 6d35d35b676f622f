# SPDX-License-Identifier: Apache-2.0
"""The fault proxy itself, against a little server: each fault is what it says, and without one nothing is changed."""

import contextlib
import errno
import http.client
import http.server
import json
import re
import socket
import ssl
import threading
import time
import types

import pytest

from harness.fault_proxy import FaultProxy, make_certificate
from harness.wait import until


class LittleServer:
    """Answers what the path asks for; records what it got; streams events that the test sends."""

    def __init__(self, folder):
        make_certificate(folder)
        self.ca_file = folder / "ca.crt"
        self.got = []  # (method, path, headers, body)
        self.streams = []
        self.connections = set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                outer.connections.add(self.client_address)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.got.append((self.command, self.path, dict(self.headers), body))
                if "watch=true" in self.path:
                    return self.stream()
                size = re.search("size=([0-9]+)", self.path)
                data = b"x" * int(size[1]) if size else b'{"echo":%s}' % (body or b"null")
                self.send_response(200)
                if "chunked" in self.path:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for at in range(0, len(data), 1000):
                        self.chunk(data[at:at + 1000])
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

            def chunk(self, data):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def stream(self):
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                outer.streams.append(self)
                self.ended = threading.Event()
                self.ended.wait()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.server_url = "https://127.0.0.1:%d" % self.server.server_port

    def close(self):
        for stream in self.streams:
            stream.ended.set()
        self.server.shutdown()
        self.server.server_close()


class Client(http.client.HTTPSConnection):
    """One keep-alive connection to the proxy."""

    def __init__(self, proxy, timeout=60):
        port = int(proxy.url.rpartition(":")[2])
        super().__init__("127.0.0.1", port, timeout=timeout, context=ssl.create_default_context(cafile=str(proxy.ca_file)))

    def ask(self, method, path, body=None, headers=None):
        self.request(method, path, body=body, headers=headers or {})
        answer = self.getresponse()
        return answer.status, answer.read()

    def watch(self, path="/apis/x?watch=true"):
        self.request("GET", path)
        return self.getresponse()


BROKEN = (OSError, http.client.HTTPException)


@pytest.fixture
def server(tmp_path):
    found = LittleServer(tmp_path / "server")
    yield found
    found.close()


@pytest.fixture
def proxy(server, tmp_path):
    cluster = types.SimpleNamespace(server=server.server_url, ca_file=server.ca_file)
    found = FaultProxy(cluster, tmp_path / "proxy")
    yield found
    found.close()


@pytest.fixture
def client(proxy):
    with contextlib.closing(Client(proxy)) as found:
        yield found


def event(stream, text):
    stream.chunk(json.dumps({"type": text}).encode() + b"\n")


def read_event(answer):
    return json.loads(answer.readline())["type"]


def in_background(function, *arguments):
    """Returns a function that waits for its result, or its error."""
    box = []

    def run():
        try:
            box.append((function(*arguments), None))
        except BROKEN as error:
            box.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result():
        thread.join(60)
        assert box, "it did not return"
        if box[0][1]:
            raise box[0][1]
        return box[0][0]

    result.is_done = lambda: bool(box)
    return result


def test_passes_everything_on_over_one_kept_connection(server, proxy, client):
    for number in range(5):
        body = json.dumps({"n": number, "text": "\u00e4\u2603"}).encode()
        assert client.ask("PATCH", "/a/b?c=d%20e", body, {"Authorization": "Bearer secret", "X-Odd": "1"}) == (200, b'{"echo":%s}' % body)
    assert len(server.connections) == 1
    method, path, headers, body = server.got[-1]
    assert (method, path, headers["Authorization"], headers["X-Odd"]) == ("PATCH", "/a/b?c=d%20e", "Bearer secret", "1")
    assert [(r.method, r.status, r.json["n"]) for r in proxy.writes] == [("PATCH", 200, n) for n in range(5)]
    assert client.ask("GET", "/x?size=3000000") == (200, b"x" * 3000000)
    assert client.ask("GET", "/chunked?size=150000") == (200, b"x" * 150000)
    assert client.ask("GET", "/x?size=0") == (200, b"")


def test_verifies_the_server(server, tmp_path):
    make_certificate(tmp_path / "other")
    cluster = types.SimpleNamespace(server=server.server_url, ca_file=tmp_path / "other" / "ca.crt")
    proxy = FaultProxy(cluster, tmp_path / "proxy")
    with contextlib.closing(Client(proxy)) as client, pytest.raises(BROKEN):
        client.ask("GET", "/x")
    proxy.close()
    assert not server.got


def test_streams_a_watch_event_by_event_and_ends_it_with_either_side(server, proxy, client):
    answer = client.watch()
    stream = until(lambda: server.streams, "the watch has begun")[0]
    for number in range(3):
        event(stream, "E%d" % number)
        assert read_event(answer) == "E%d" % number
    stream.wfile.write(b"0\r\n\r\n")
    assert answer.read() == b""
    stream.ended.set()
    assert client.ask("GET", "/y")[0] == 200
    client.watch()
    until(lambda: proxy.count_watches() == 1, "a second watch runs")
    client.close()
    until(lambda: proxy.count_watches() == 0, "the proxy has noticed its end")


@pytest.mark.parametrize("after", [0, 1, 60, 2000, 149000])
@pytest.mark.parametrize("reset", [False, True])
def test_cuts_an_answer_after_so_many_bytes(server, proxy, client, after, reset):
    rule = proxy.cut_answer(after=after, reset=reset, path="size", times=1)
    client.connect()
    client.sock.sendall(b"GET /x?size=150000 HTTP/1.1\r\nHost: x\r\n\r\n")
    got = b""
    with contextlib.suppress(OSError):
        while data := client.sock.recv(65536):
            got += data
    assert len(got) <= after if reset else len(got) == after, "a reset may overtake the last of them"
    assert len(rule.hits) == 1 and rule.hits[0].status == 200
    assert Client(proxy).ask("GET", "/x?size=10") == (200, b"x" * 10)


def test_rules_match_by_method_path_count_and_time(server, proxy):
    def codes(count, method="PATCH", path="/deployments/a"):
        with contextlib.closing(Client(proxy)) as client:
            return [client.ask(method, path, b"1")[0] for _ in range(count)]

    second = proxy.answer(409, method="PATCH", path="/deployments/", every=2)
    assert codes(5) == [200, 409, 200, 409, 200]
    assert codes(2, method="PUT") == [200, 200] and codes(2, path="/pods/a") == [200, 200]
    second.remove()
    proxy.answer(500, method=("PATCH", "PUT"), skip=1, times=2)
    assert codes(5, method="PUT") == [200, 500, 500, 200, 200]
    with contextlib.closing(Client(proxy)) as client:
        assert client.ask("PATCH", "/deployments/a", b"1")[0] == 200
        proxy.answer(503, for_s=3)
        assert client.ask("PATCH", "/deployments/a", b"1")[0] == 503
    until(lambda: codes(1) == [200], "its time is over")
    proxy.answer(403, when=lambda request: request.json == 1)
    assert codes(1) == [403] and codes(1, method="GET") == [403]


def test_answers_instead_of_the_server(server, proxy, client):
    proxy.answer(429, retry_after=7, times=1)
    client.request("GET", "/x")
    answer = client.getresponse()
    status = json.loads(answer.read())
    assert answer.status == 429 and answer.headers["Retry-After"] == "7"
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 429, "TooManyRequests")
    proxy.answer(502, body=b"<html>bad gateway</html>", times=1)
    assert client.ask("GET", "/x") == (502, b"<html>bad gateway</html>")
    assert not server.got


def test_delays_requests_and_answers(server, proxy, client):
    proxy.delay_request(0.3, times=1)
    assert client.ask("GET", "/x")[0] == 200
    request = proxy.requests[-1]
    assert request.forwarded - request.began >= 0.3
    proxy.delay_answer(0.3, times=1)
    assert client.ask("GET", "/y")[0] == 200
    answered, request = time.monotonic(), proxy.requests[-1]
    assert answered - request.ended >= 0.3, "the API server had answered long before"


def test_holds_answers_and_turns_their_order_round(server, proxy):
    held = proxy.hold_answer(method="PUT")
    clients = [Client(proxy) for _ in range(2)]
    results = [in_background(one.ask, "PUT", "/x", b"1") for one in clients]
    held.until_waiting(2)
    assert len(server.got) == 2 and not any(result.is_done() for result in results)
    held.release(newest_first=True)
    assert [result()[0] for result in results] == [200, 200]


def test_a_held_request_outlives_who_sent_it(server, proxy, client):
    held = proxy.hold_request(method="PATCH")
    result = in_background(client.ask, "PATCH", "/late", b"1")
    held.until_waiting()
    client.sock.shutdown(socket.SHUT_RDWR)
    with pytest.raises(BROKEN):
        result()
    assert Client(proxy).ask("GET", "/x")[0] == 200
    assert [path for _, path, _, _ in server.got] == ["/x"]
    held.release()
    until(lambda: [path for _, path, _, _ in server.got] == ["/x", "/late"], "it is delivered")
    until(lambda: proxy.writes[0].status == 200, "its answer is recorded")


def test_speaks_in_the_place_of_the_server(server, proxy, client):
    proxy.speak(b"no HTTP\r\n", times=1)
    with pytest.raises(http.client.BadStatusLine):
        client.ask("GET", "/x")
    client.close()
    assert not server.got and client.ask("GET", "/x")[0] == 200


def test_loses_answers_and_applies_later(server, proxy, client):
    proxy.lose_answer(method="PATCH", times=1)
    with pytest.raises(BROKEN):
        client.ask("PATCH", "/lost", b"1")
    assert server.got[0][1] == "/lost" and proxy.writes[0].status == 200
    proxy.apply_later(0.2, times=1)
    with contextlib.closing(Client(proxy)) as other:
        status, body = other.ask("PATCH", "/later", b"1")
        assert status == 504 and json.loads(body)["reason"] == "Timeout" and len(server.got) == 1
    until(lambda: len(server.got) == 2, "it was applied after all")


def test_injects_errors_into_streams(server, proxy, client):
    answer = client.watch()
    stream = until(lambda: server.streams, "the watch has begun")[0]
    event(stream, "ADDED")
    assert read_event(answer) == "ADDED"
    half, rest = b'{"type":', b'"MODIFIED"}\n'
    stream.chunk(half)  # an event that comes in pieces is not torn
    assert answer.read(len(half)) == half
    assert proxy.inject_error(410, path="/nothing") == 0 and proxy.inject_error(410) == 1
    stream.chunk(rest)
    assert answer.readline() == rest
    error = json.loads(answer.readline())
    assert error["type"] == "ERROR" and error["object"]["code"] == 410 and error["object"]["reason"] == "Expired"
    assert answer.read() == b"", "the stream ends in good order"
    assert client.ask("GET", "/x")[0] == 200, "and the connection goes on"
    proxy.begin_with_error(500)
    answer = client.watch()
    assert answer.status == 200 and json.loads(answer.readline())["object"]["code"] == 500 and answer.read() == b""


def test_a_frozen_watch_says_all_when_it_thaws(server, proxy, client):
    answer = client.watch("/deployments?watch=true")
    until(lambda: server.streams, "the watch has begun")
    frozen = proxy.freeze(path="/deployments")
    for number in range(3):
        event(server.streams[0], "E%d" % number)
    result = in_background(read_event, answer)
    other = Client(proxy)
    assert other.ask("PATCH", "/deployments/a", b"1")[0] == 200, "writes go through"
    elsewhere = other.watch("/pods?watch=true")
    until(lambda: len(server.streams) == 2, "another watch has begun")
    event(server.streams[1], "POD")
    assert read_event(elsewhere) == "POD"
    assert not result.is_done()
    frozen.thaw()
    assert result() == "E0" and [read_event(answer) for _ in range(2)] == ["E1", "E2"]


def test_gates_see_each_write_before_and_after(server, proxy, client):
    seen = []
    gate = proxy.gate(before=lambda request: seen.append(("before", request.name, len(server.got))),
                      after=lambda request: seen.append(("after", request.name, request.status)))
    client.ask("PATCH", "/deployments/a", b"1")
    client.ask("PATCH", "/deploymentcoordinations/web/status", b"1")
    client.ask("PATCH", "/leases/l", b"1")
    client.ask("GET", "/deployments/a")
    assert seen == [("before", "a", 0), ("after", "a", 200), ("before", "web", 1), ("after", "web", 200)]
    gate.remove()
    count = len(server.got)
    gate = proxy.gate(before=lambda request: False)
    with pytest.raises(BROKEN):
        client.ask("PATCH", "/deployments/a", b"1")
    assert len(server.got) == count and proxy.writes[-1].forwarded is None
    gate.remove()
    proxy.gate(after=lambda request: False)
    with contextlib.closing(Client(proxy)) as other, pytest.raises(BROKEN):
        other.ask("PATCH", "/deployments/b", b"1")
    assert server.got[-1][1] == "/deployments/b" and [r.name for r in proxy.handover_writes()] == ["a", "web", "b"]


def test_a_black_hole_swallows_all_and_gives_it_back_when_it_heals(server, proxy, client):
    assert client.ask("GET", "/x")[0] == 200
    hole = proxy.black_hole()
    result = in_background(client.ask, "GET", "/y")
    stranger = socket.socket()
    stranger.settimeout(0.3)
    with pytest.raises(TimeoutError):
        stranger.connect(("127.0.0.1", client.port))
    stranger.close()
    assert not result.is_done() and len(server.got) == 1
    hole.heal()
    assert result()[0] == 200, "TCP sends again what was lost"
    assert Client(proxy).ask("GET", "/z")[0] == 200


def test_packets_into_a_black_hole_are_not_even_acknowledged(proxy, client):
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 500)  # ms
        until(lambda: proxy.count_connections() == 1, "the proxy has it")
        proxy.black_hole()
        peer.sendall(b"nobody hears this")
        with pytest.raises(TimeoutError) as timed_out:
            peer.recv(1)
        assert timed_out.value.errno == errno.ETIMEDOUT


def test_a_black_hole_for_some_connections_only(server, proxy, client):
    answer = client.watch()
    until(lambda: server.streams, "the watch has begun")
    hole = proxy.black_hole(watch=True)
    event(server.streams[0], "E0")
    result = in_background(read_event, answer)
    assert Client(proxy).ask("GET", "/x")[0] == 200
    late = Client(proxy)
    opened = in_background(late.watch)
    time.sleep(0.2)
    assert not result.is_done() and not opened.is_done() and len(server.streams) == 1
    hole.heal()
    assert result() == "E0" and opened().status == 200


def test_a_black_hole_for_the_connections_that_exist(proxy, client):
    assert client.ask("GET", "/x")[0] == 200
    hole = proxy.black_hole(new=False)
    result = in_background(client.ask, "GET", "/y")
    assert Client(proxy).ask("GET", "/z")[0] == 200
    assert not result.is_done()
    hole.heal()
    assert result()[0] == 200


def test_calm_ends_all_faults(server, proxy, client):
    proxy.answer(500, path="/made-up")
    held = proxy.hold_request(path="/held")
    answer = client.watch()
    until(lambda: server.streams, "the watch has begun")
    proxy.freeze()
    event(server.streams[0], "E0")
    results = [in_background(read_event, answer), in_background(Client(proxy).ask, "GET", "/held")]
    held.until_waiting()
    proxy.gate(before=lambda request: False)
    proxy.black_hole()
    proxy.calm()
    assert results[0]() == "E0" and results[1]()[0] == 200
    assert Client(proxy).ask("PATCH", "/deployments/made-up", b"1")[0] == 200


def test_cuts_connections_now(server, proxy, client):
    answer = client.watch()
    until(lambda: proxy.count_watches() == 1, "the watch runs")
    other = Client(proxy)
    other.ask("GET", "/x")
    assert proxy.cut_now(watch=True) == 1
    with pytest.raises(BROKEN):
        if not answer.readline():
            raise OSError
    assert other.ask("GET", "/x")[0] == 200
    until(lambda: proxy.cut_now() == 1, "the other is left")
    with pytest.raises(BROKEN):
        other.ask("GET", "/x")
