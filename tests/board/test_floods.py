"""Clients of the page that ask for too much or wait. Its server is that of runs, whose limits
``tests/interaction/test_floods.py`` tests."""

import contextlib
import os
import re
import socket

import pytest
import requests

from ding.board.server import MAX_BODY, BoardServer

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


def test_a_large_body_is_refused(server):
    answer = requests.post(f"{server.url}api/mean", data=b" " * (MAX_BODY + 1), timeout=5)
    assert answer.status_code == 413


def test_a_file_that_is_cut_meanwhile_ends_the_connection(server, tmp_path):
    path = tmp_path / "runs" / "run" / "long.mp4"
    os.truncate(path, 1 << 30)
    with socket.create_connection(address_of(server.url), timeout=5) as client:
        client.sendall(b"GET /api/video?id=run&path=long.mp4 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"Content-Length: 1073741824" in client.recv(1000)
        os.truncate(path, 100)
        while client.recv(1 << 20):
            pass
