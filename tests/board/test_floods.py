"""Clients of the page that say nothing, too much, or wait: the others get their answers."""

import contextlib
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time

import pytest
import requests

from ding.board.server import BoardServer
from ding.interaction.base.server import MAX_STRANGERS
from ding.utils import durations

from .run_folders import make_run


@pytest.fixture
def server(tmp_path):
    folder = make_run(tmp_path / "runs" / "run")
    (folder / "long.mp4").write_bytes(bytes(range(256)) * 40_000)
    server = BoardServer(str(folder.parent), lambda folder: None, port=0)
    server.start()
    yield server
    server.close()


def address_of(url):
    return "127.0.0.1", int(re.search(r":(\d+)/", url)[1])


def half_open(address, count, content=b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "):
    for _ in range(count):
        client = socket.create_connection(address, timeout=10)
        with contextlib.suppress(OSError):
            client.sendall(content)
        yield client


def test_half_open_connections_are_few_and_others_are_answered(server):
    before = threading.active_count()
    clients = list(half_open(address_of(server.url), 300))
    try:
        assert threading.active_count() - before <= MAX_STRANGERS + 20
        for _ in range(5):
            answer = requests.get(f"{server.url}api/runs", timeout=5)
            assert answer.json()["runs"][0]["id"] == "run"
    finally:
        for client in clients:
            client.close()


def test_an_answer_under_way_outlives_a_flood(server):
    with socket.create_connection(address_of(server.url), timeout=10) as player:
        head = "GET /api/video?id=run&path=long.mp4 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        player.sendall(head.encode())
        content = player.recv(1000)
        assert b"Content-Length: 10240000" in content
        clients = list(half_open(address_of(server.url), 200))
        body = content.partition(b"\r\n\r\n")[2]
        while len(body) < 10_240_000:
            piece = player.recv(1 << 20)
            assert piece
            body += piece
        assert body == bytes(range(256)) * 40_000
        for client in clients:
            client.close()


def test_a_head_that_does_not_end_is_given_up(server, monkeypatch):
    monkeypatch.setattr(durations, "HEAD_TIMEOUT", 0.2)
    (client,) = half_open(address_of(server.url), 1)
    with client:
        assert client.recv(1) == b""


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /api/runs HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n", b"413"),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
    ],
)
def test_too_much_is_refused(server, head, status):
    with socket.create_connection(address_of(server.url), timeout=5) as client:
        answer = b""
        with contextlib.suppress(ConnectionError):  # it may be closed with bytes unread
            client.sendall(head)
            answer = client.recv(1000)
        assert answer[9:12] in (status, b"")
    assert requests.get(f"{server.url}api/runs", timeout=5).status_code == 200


def test_a_file_that_is_cut_meanwhile_ends_the_connection(server, tmp_path):
    path = tmp_path / "runs" / "run" / "long.mp4"
    os.truncate(path, 1 << 30)
    with socket.create_connection(address_of(server.url), timeout=5) as client:
        client.sendall(b"GET /api/video?id=run&path=long.mp4 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"Content-Length: 1073741824" in client.recv(1000)
        os.truncate(path, 100)
        while client.recv(1 << 20):
            pass


@pytest.mark.slow
def test_with_few_descriptors_it_neither_ends_nor_burns_a_core(tmp_path):
    make_run(tmp_path / "runs" / "run")

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

    command = [sys.executable, "-m", "ding", "board", str(tmp_path / "runs"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=limit) as process:
        try:
            url = re.search(r"http://\S+", process.stdout.readline())[0]
            clients = list(half_open(address_of(url), 400))
            assert requests.get(f"{url}api/runs", timeout=5).status_code == 200
            begin = _cpu_seconds(process.pid)
            time.sleep(2)
            assert _cpu_seconds(process.pid) - begin < 0.5
            assert len(os.listdir(f"/proc/{process.pid}/task")) < 60
            assert requests.get(f"{url}api/runs", timeout=5).status_code == 200
            for client in clients:
                client.close()
        finally:
            process.kill()


def _cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
