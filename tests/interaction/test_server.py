"""Start and end of masters and slaves, and their server."""

import http.client
import socket
import subprocess
import sys
import threading
import time

import pytest
import requests

from ding.interaction import Master
from ding.interaction.base.server import HttpServer
from ding.interaction.master.task import TaskStatus
from ding.utils import durations
from ding.utils.errors import InteractionError, PortTakenError
from tests.interaction.peers import ELSEWHERE, MASTER, ROOT, DoingSlave, pair


def test_a_taken_port_is_named():
    with DoingSlave() as slave:
        other = DoingSlave(port=slave.port)
        with pytest.raises(PortTakenError, match=f"127.0.0.1:{slave.port}"):
            other.start()
        other.close()
        assert slave.ping()
    with other:  # it is free now
        assert other.ping()


def test_a_coordinator_may_have_more_connections_than_its_shell_allows():
    pytest.importorskip("resource")
    code = """if True:
        from resource import RLIMIT_NOFILE, getrlimit, setrlimit
        from ding.interaction.base.server import allow_most_descriptors
        most = getrlimit(RLIMIT_NOFILE)[1]
        setrlimit(RLIMIT_NOFILE, (64, most))
        allow_most_descriptors()
        assert getrlimit(RLIMIT_NOFILE) == (most, most)"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_host_of_others_is_named():
    with pytest.raises(InteractionError, match=r"192\.0\.2\.1:0"):
        DoingSlave(host="192.0.2.1").start()


def test_only_the_loopback_address_is_listened_on():
    with DoingSlave() as slave:
        assert slave.host == "127.0.0.1"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((ELSEWHERE, slave.port))


def test_connections_are_kept():
    with DoingSlave() as slave:
        client = http.client.HTTPConnection("127.0.0.1", slave.port, timeout=10)
        client.request("GET", "/ping")
        client.getresponse().read()
        socket_before = client.sock
        client.request("POST", "/nowhere", body=b"x" * 5000)
        assert client.getresponse().read()
        assert client.sock is socket_before
        client.close()


@pytest.mark.parametrize("kind", ["slave", "master"])
def test_stops_at_once_while_clients_are_connected(kind, monkeypatch):
    monkeypatch.setattr(durations, "SERVER_STOP", 30.0)
    service = DoingSlave() if kind == "slave" else Master(**MASTER)
    service.start()
    clients = [http.client.HTTPConnection("127.0.0.1", service.port, timeout=10) for _ in range(20)]
    for client in clients:
        client.request("GET", "/ping")
        client.getresponse().read()
    silent = socket.create_connection(("127.0.0.1", service.port))
    begin = time.monotonic()
    service.close()
    assert time.monotonic() - begin < 15
    service.close()
    for client in clients:
        assert client.sock.recv(1) == b""
        client.close()
    silent.close()
    assert not [t for t in threading.enumerate() if t.name == "http-client"]


def test_threads_end_with_the_services():
    before = set(threading.enumerate())
    with pair() as (_, _, connection):
        connection.new_task().on_complete(lambda *_: None).start().join(10)
    assert set(threading.enumerate()) <= before


def test_starts_again_after_its_end():
    with DoingSlave() as slave:
        pass
    with slave:
        assert slave.ping()
    slave.close()


def test_close_without_start():
    DoingSlave().close()
    Master(**MASTER).close()


def test_join_waits_for_shutdown():
    with DoingSlave() as slave:
        assert not slave.join(0.05)
        timer = threading.Timer(0.1, slave.shutdown)
        timer.start()
        assert slave.join(10)
        timer.join()


def test_slave_shut_down_while_it_works_fails_the_task():
    with pair() as (slave, _, connection):
        task = connection.new_task({"do": "wait"}).start()
        slave.shutdown()
        assert task.join(10).status is TaskStatus.FAILED
        assert "shut down" in task.cause
        slave.release.set()
        assert slave.join(10)


def test_master_shut_down_lets_slaves_go_and_fails_tasks(monkeypatch):
    monkeypatch.setattr(durations, "MASTER_STOP", 30.0)
    with pair() as (slave, master, connection):
        task = connection.new_task({"do": "wait"}).start()
        begin = time.monotonic()
        master.close()
        assert time.monotonic() - begin < 15
        assert task.join(10).status is TaskStatus.FAILED
        assert slave.seen[-1] == ("disconnect", {})
        assert not slave.in_touch(60.0)
        assert not slave.lost


class TestRequests:
    """Requests that are not quite HTTP."""

    @pytest.fixture
    def port(self):
        with DoingSlave(max_body=1000) as slave:
            yield slave.port

    def send(self, port: int, raw: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(raw)
            client.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := client.recv(65536):
                answer += piece
        return answer

    @pytest.mark.parametrize(
        ("raw", "status"),
        [
            (b"POST /connect HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" + b"x" * 1001, 413),
            (b"POST /connect HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 999, 413),
            (b"POST /connect HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST /connect HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400),
            (b"POST /connect HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
            (b"POST /connect HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
            (b"GET /ping HTTP/7.3\r\n\r\n", 400),
            (b"GET\r\n\r\n", 400),
            (b"GET /nowhere HTTP/1.1\r\n\r\n", 404),
            (b"BREW /ping HTTP/1.1\r\n\r\n", 405),
            (b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\n\r\n", 414),
            (b"GET /ping HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
        ],
    )
    def test_is_refused(self, port, raw, status):
        head, _, body = self.send(port, raw).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status)
        assert body.startswith(b'{"success": false')

    def test_half_a_body_is_refused(self, port):
        head = b"POST /connect HTTP/1.1\r\nChannel: 0\r\nToken: x\r\nContent-Length: 10\r\n\r\n"
        assert self.send(port, head + b"half").startswith(b"HTTP/1.1 400 ")


def test_a_failure_of_the_application_is_logged(caplog):
    server = HttpServer(lambda *_: 1 / 0, "127.0.0.1", 0, 10)
    server.start()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{server.port}", timeout=10)
    server.stop()
    assert server.join(10)
    assert "ZeroDivisionError" in caplog.text
