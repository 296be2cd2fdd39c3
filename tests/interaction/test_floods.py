"""Strangers that take connections, threads, memory or time do not stop known peers."""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import requests
from urllib3.util.wait import wait_for_read

from ding.interaction.base import network, server
from ding.interaction.base.network import AnswerTooLargeError, HttpEngine
from ding.interaction.master.task import TaskStatus
from ding.utils import durations
from tests.interaction.peers import DoingSlave, eventually, pair

KEYS = {"key": "the key of the run"}


@contextlib.contextmanager
def half_open(
    port: int, count: int, content: bytes = b"", source: str = "127.0.0.1"
) -> Iterator[list[socket.socket]]:
    """Connections that send this and nothing more."""
    clients = []
    try:
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", port), 10, (source, 0))
            clients.append(client)
            with contextlib.suppress(ConnectionError):  # it had to make room already
                client.sendall(content)
        yield clients
    finally:
        for client in clients:
            client.close()


def client_threads() -> int:
    return sum(thread.name == "http-client" for thread in threading.enumerate())


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"GET /pi", b"GET /ping HTTP/1.1\r\nA: "])
def test_half_open_connections_make_room(content):
    with pair(KEYS, KEYS) as (slave, master, connection):
        for port in (slave.port, master.port):
            with half_open(port, 400, content):
                assert connection.new_task({"n": 1}).start().join(20).result == {"echo": {"n": 1}}
                eventually(lambda: client_threads() < server.MAX_STRANGERS + 20)
        other = master.new_connection("other", "127.0.0.1", slave.port)
        with half_open(slave.port, 300, content):
            connection.disconnect()
            other.connect()
            assert other.new_task().start().join(20).status is TaskStatus.COMPLETED
            other.disconnect()


def test_who_was_refused_is_not_known(monkeypatch):
    monkeypatch.setattr(server, "MAX_STRANGERS", 3)
    head = b"POST /connect HTTP/1.1\r\nChannel: 0\r\nToken: x\r\nContent-Length: 2\r\n\r\n{}"
    with DoingSlave() as slave, half_open(slave.port, 20, head):
        eventually(lambda: client_threads() <= 3)
        assert slave.ping()


def connections_to(port: int, caplog: pytest.LogCaptureFixture) -> int:
    """How many connections this process opened to a server, or opened again."""
    opened = ("Starting new", "Resetting dropped")
    return sum(line.startswith(opened) and str(port) in line for line in caplog.messages)


def test_those_who_are_known_do_not_make_room(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, "urllib3.connectionpool")
    monkeypatch.setattr(server, "MAX_STRANGERS", 3)
    with pair(KEYS, KEYS) as (slave, _, connection):
        connection.new_task({"do": "nothing"}).start().join(10)
        before = connections_to(slave.port, caplog)
        with half_open(slave.port, 50):
            connection.new_task({"do": "nothing"}).start().join(10)
        assert connections_to(slave.port, caplog) == before


def test_who_has_the_key_is_known_even_where_a_request_is_refused(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, "urllib3.connectionpool")
    monkeypatch.setattr(server, "MAX_STRANGERS", 3)
    with (
        DoingSlave(**KEYS) as slave,
        contextlib.closing(HttpEngine("127.0.0.1", slave.port, **KEYS, role="slave")) as engine,
    ):
        headers = {"Channel": "0", "Token": "not the master's"}
        request = dict(headers=headers, raise_for_status=False)
        assert not engine.request("DELETE", "disconnect", **request).json()["success"]
        with half_open(slave.port, 50):
            eventually(lambda: client_threads() == 4)  # those of three strangers, and its own
            assert not engine.request("DELETE", "disconnect", **request).json()["success"]
        assert connections_to(slave.port, caplog) == 1


def still_open(clients: list[socket.socket]) -> list[bool]:
    """Which of these connections, which await no answer, the server has not closed."""
    return [not wait_for_read(client, timeout=0) for client in clients]


def test_the_host_with_most_connections_makes_room(monkeypatch):
    monkeypatch.setattr(server, "MAX_STRANGERS", 8)
    with (
        DoingSlave() as slave,
        half_open(slave.port, 1, source="127.0.0.2") as other,
        half_open(slave.port, 7) as crowd,
    ):
        eventually(lambda: client_threads() == 8)
        with half_open(slave.port, 3):
            eventually(lambda: still_open(crowd) == [False] * 3 + [True] * 4)
            assert still_open(other) == [True]


def test_a_shortage_of_threads_halves_the_strangers_down_to_a_few(monkeypatch):
    with DoingSlave() as slave, half_open(slave.port, 11) as crowd:
        eventually(lambda: client_threads() == 11)
        for left in (5, 4, 4):
            failing(monkeypatch, RuntimeError("can't start new thread"), 1)
            with half_open(slave.port, 1):
                eventually(lambda left=left: sum(still_open(crowd)) == left)


@pytest.mark.parametrize("content", [b"", b"GET /ping HTTP/1.1\r\n"], ids=["silent", "half a head"])
def test_requests_that_do_not_come_are_given_up(monkeypatch, content):
    monkeypatch.setattr(durations, "HEAD_TIMEOUT", 0.2)
    with DoingSlave() as slave, half_open(slave.port, 1, content) as (client,):
        assert client.recv(1) == b""


def test_a_head_that_drips_is_given_up(monkeypatch):
    monkeypatch.setattr(durations, "HEAD_TIMEOUT", 0.5)
    with DoingSlave() as slave, half_open(slave.port, 1, b"GET /ping HTTP/1.1\r\n") as (client,):
        begin = time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() < begin + 20:
                client.sendall(b"A: b\r\n"[:1])
                time.sleep(0.05)


def test_a_body_that_drips_is_given_up(monkeypatch):
    monkeypatch.setattr(durations, "BODY_TIMEOUT", 0.3)
    head = b"POST /connect HTTP/1.1\r\nChannel: 0\r\nToken: x\r\nContent-Length: 1000\r\n\r\n"
    with DoingSlave() as slave, half_open(slave.port, 1, head + b"{") as (client,):
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
        assert slave.seen == []


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (b"connect", b"", 403),
        (b"connect", b"Channel: 0\r\nToken: x\r\n", 403),
        (b"task/new", b"Channel: 0\r\nToken: x\r\n", 403),
        (b"nowhere", b"", 404),
    ],
)
def test_heads_are_judged_before_bodies_come(path, headers, status):
    head = b"POST /%s HTTP/1.1\r\n%sContent-Length: 15000000\r\n\r\n" % (path, headers)
    with DoingSlave(**KEYS) as slave, half_open(slave.port, 100, head) as clients:
        for client in clients:
            assert client.recv(100).startswith(b"HTTP/1.1 %d " % status)
        assert slave.ping()


def test_who_asks_first_whether_to_send_a_body_may():
    head = b"POST /connect HTTP/1.1\r\nChannel: 0\r\nToken: x\r\nContent-Length: 2\r\n"
    with (
        DoingSlave() as slave,
        half_open(slave.port, 1, head + b"Expect: 100-continue\r\n\r\n") as (client,),
    ):
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"{}")
        assert client.recv(1000).startswith(b"HTTP/1.1 400 ")


# ---------------------------------------------------------------------- shortage


def failing(monkeypatch, error: Exception, times: float) -> None:
    """Make the first ``times`` starts of client threads fail."""
    start, left = threading.Thread.start, [times]

    def fail(thread: threading.Thread) -> None:
        if thread.name == "http-client" and left[0] > 0:
            left[0] -= 1
            raise error
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", fail)


SHORTAGES = [RuntimeError("can't start new thread"), MemoryError(), OSError(24, "too many files")]


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_a_shortage_passes(monkeypatch, error):
    with pair(KEYS, KEYS) as (slave, _, connection):
        connection.disconnect()
        failing(monkeypatch, error, 3)
        eventually(lambda: connects(connection))
        assert connection.new_task().start().join(10).status is TaskStatus.COMPLETED
        monkeypatch.undo()
        assert slave.ping()


def connects(connection) -> bool:
    try:
        connection.connect()
    except requests.RequestException:
        return False
    return True


def test_a_shortage_that_comes_again_and_again_ends_the_server(monkeypatch):
    monkeypatch.setattr(durations, "SHORTAGE_LIMIT", 0.5)
    start, tries = threading.Thread.start, []

    def fail(thread: threading.Thread) -> None:
        if thread.name == "http-client":
            tries.append(thread)
            if len(tries) % 3:
                raise RuntimeError("can't start new thread")
        start(thread)

    causes: list[str] = []
    with DoingSlave(on_death=causes.append) as slave:
        monkeypatch.setattr(threading.Thread, "start", fail)
        eventually(lambda: causes or knock(slave.port))
    assert "can't start new thread" in causes[0]


def knock(port: int) -> None:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_a_server_that_cannot_go_on_reports_why(monkeypatch, error):
    monkeypatch.setattr(durations, "SHORTAGE_LIMIT", 0.2)
    causes: list[str] = []
    with DoingSlave(on_death=causes.append) as slave:
        failing(monkeypatch, error, float("inf"))
        eventually(lambda: causes or knock(slave.port))
        assert slave.join(10)
    (cause,) = causes
    assert type(error).__name__ in cause
    assert str(slave.port) in cause


def test_a_server_without_memory_for_requests_reports_why():
    def fail(data):
        raise MemoryError

    causes: list[str] = []
    slave = DoingSlave(on_death=causes.append)
    slave._handle_connect = fail
    with slave:
        headers = {"Channel": "0", "Token": "x"}
        url = f"http://127.0.0.1:{slave.port}/connect"
        assert requests.post(url, headers=headers, timeout=10).status_code == 500
    assert "memory" in causes[0]


# ---------------------------------------------------------------------- answers


@pytest.fixture
def answering():
    """Makes a server that sends what a function yields to each client; returns its engine."""
    ends: list[Callable[[], object]] = []

    def make(pieces: Callable[[], Iterator[bytes]], timeout: float = 0.5) -> HttpEngine:
        listener = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with client, contextlib.suppress(OSError):
                        client.recv(65536)
                        for piece in pieces():
                            client.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        engine = HttpEngine("127.0.0.1", listener.getsockname()[1])
        engine.timeout = timeout

        def end() -> None:
            engine.close()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            listener.close()

        ends.append(end)
        return engine

    yield make
    for end in ends:
        end()


def dripping(head: bytes, piece: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield head
        for _ in range(400):
            time.sleep(0.05)
            yield piece

    return pieces


def endless(head: bytes, piece: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield head
        while True:
            yield piece

    return pieces


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"", b"H"),
        (OK, b"A"),
        (OK, b"A: b\r\n"),
        (OK + b"Content-Length: 1000\r\n\r\n", b"x"),
        (OK + b"\r\n", b"x"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["status", "header", "headers", "body", "body without end", "chunks", "continue"],
)
def test_an_answer_that_drips_is_given_up(answering, head, piece):
    engine = answering(dripping(head, piece))
    begin = time.monotonic()
    with pytest.raises(requests.RequestException):
        engine.request("GET", "ping", retries=0)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (OK + b"\r\n", b"x" * 65536),
        (OK + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65536),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1" * 65536),
        (OK + b"A: ", b"b" * 65536),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    ],
    ids=["body", "length", "chunks", "size of a chunk", "header", "continue"],
)
def test_an_answer_without_end_is_given_up(answering, monkeypatch, head, piece):
    monkeypatch.setattr(network, "MAX_ANSWER", 1 << 20)
    received = []
    recv_into = network.DeadlineSocket.recv_into

    def counting(self, *args, **kwargs):
        received.append(recv_into(self, *args, **kwargs))
        return received[-1]

    monkeypatch.setattr(network.DeadlineSocket, "recv_into", counting)
    engine = answering(endless(head, piece), timeout=60.0)
    with pytest.raises(requests.RequestException):
        engine.request("GET", "ping", retries=0)
    assert sum(received) < 2 << 20


def test_an_answer_that_is_too_long_is_named(answering, monkeypatch):
    monkeypatch.setattr(network, "MAX_ANSWER", 1000)
    engine = answering(lambda: iter([OK + b"Content-Length: 1001\r\n\r\n" + b"x" * 1001]))
    with pytest.raises(AnswerTooLargeError, match="1000 bytes"):
        engine.request("GET", "ping", retries=3)
