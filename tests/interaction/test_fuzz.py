"""Malformed requests: each gets an answer that blames the sender, and nothing changes."""

import contextlib
import http.client
import json
import random
import socket
from uuid import uuid4

import pytest

from ding.interaction import Master
from ding.interaction.master.task import TaskStatus
from tests.interaction.peers import MASTER, DoingSlave

METHODS = ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW", "get"]
PATHS = ["/connect", "/disconnect", "/task/new", "/ping", "/shutdown", "/slave/heartbeat"]
PATHS += ["/slave/task/complete", "/slave/task/fail"]
ODD_PATHS = ["/", "//", "/../etc/passwd", "/%00", "/%ff%fe", "/task/new/", "/task//new", "/?a=%zz"]
ODD_PATHS += ["*", "http://else.where/ping", "/connect;x", "/" + "a" * 3000]
ODD_TEXT = ["", " ", "0", "-1", "1e3", "\u00fc", "a" * 5000, "None", "null", "'", "../..", "%s%n"]


class Fuzzer:
    """Sends one malformed request after the other over connections that stay open.

    Args:
        tokens: Headers that are right, of which a request may have some, but never all with a body
            that is right as well.
    """

    def __init__(self, port: int, right: dict[str, str], seed: int) -> None:
        self._right, self._random = right, random.Random(seed)
        self._client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def send(self) -> int:
        """HTTP status of the answer; 0 if the connection was closed without one."""
        pick = self._random
        path = pick.choice(PATHS) if pick.random() < 0.8 else pick.choice(ODD_PATHS)
        headers = self._headers()
        authentic = all(headers.get(name) in (v, v.encode()) for name, v in self._right.items())
        method = pick.choice(METHODS)
        if authentic and (method, path) in {("DELETE", "/disconnect"), ("DELETE", "/shutdown")}:
            method = "GET"
        try:
            self._client.request(method, path, body=self._body(), headers=headers)
            response = self._client.getresponse()
            content = response.read()
        except (http.client.HTTPException, OSError):
            self._client.close()
            return 0
        if content:
            assert json.loads(content)["success"] is (response.status == 200)
        return response.status

    def send_noise(self) -> None:
        """Bytes that are not HTTP get no answer, or one that blames the sender."""
        address = self._client.host, self._client.port
        with socket.create_connection(address, timeout=20) as client:
            noise = self._random.randbytes(self._random.randrange(500))
            client.sendall(self._random.choice([b"", b"GET ", b"POST / HTTP/1.1\r\n"]) + noise)
            client.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                assert not client.recv(65536).startswith(b"HTTP/1.1 5")

    def close(self) -> None:
        self._client.close()

    def _headers(self) -> dict[str, str | bytes]:
        pick, headers = self._random, {}
        for name, value in self._right.items():
            if pick.random() < 0.9:
                right = pick.random() < 0.8
                headers[name] = value if right else pick.choice(ODD_TEXT).encode()
        if pick.random() < 0.05:
            headers["Content-Length"] = pick.choice(["-5", "abc", "1, 2", "9" * 30])
        if pick.random() < 0.03:
            headers["Transfer-Encoding"] = "chunked"
        if pick.random() < 0.2:
            headers["Content-Type"] = pick.choice(["text/plain", "application/json; charset=bad"])
        return headers

    def _body(self) -> bytes | None:
        pick = self._random
        kind = pick.choice([0, 1, 2, 3, *[4, 5] * 4])
        if kind == 0:
            return None
        if kind == 1:
            return pick.randbytes(pick.randrange(200))
        if kind == 2:
            return b'{"task":' * pick.choice([1, 10, 5000])
        if kind == 3:
            return b"[" * pick.choice([10, 100000])
        # Known fields with values that they must not have; unknown ids.
        task = {"id": self._value(), "result": self._value(), "data": pick.choice([1, [], "x"])}
        body = {"task": pick.choice([task, self._value()]), "master": self._value()}
        content = json.dumps(body).encode()
        return content if kind == 4 else content[: pick.randrange(len(content) + 1)]

    def _value(self) -> object:
        odd = [None, True, 0, -1, 1e308, [], {}, [[]], {"address": 5}, {"address": "x:y:z"}]
        return self._random.choice([*odd, str(uuid4()), *ODD_TEXT])


def attack(port: int, right: dict[str, str], count: int, seed: int) -> None:
    fuzzer = Fuzzer(port, right, seed)
    statuses = [fuzzer.send() for _ in range(count)]
    for _ in range(count // 20):
        fuzzer.send_noise()
    fuzzer.close()
    assert max(statuses) < 500
    assert statuses.count(0) < count / 5  # some are no HTTP at all
    refused = sum(400 <= status < 500 for status in statuses)
    assert refused > count / 2


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_nothing_malformed_has_an_effect(count):
    with DoingSlave() as slave, Master(**{**MASTER, "heartbeat_tolerance": 30.0}) as master:
        connection = master.new_connection("worker", "127.0.0.1", slave.port)
        right = {"Channel": "0", "Token": master["worker"].connection.token}
        attack(slave.port, right, count // 4, seed=1)  # not connected
        connection.connect()
        slave.seen.clear()
        task = connection.new_task({"do": "wait"}).start()
        attack(slave.port, right, count - count // 4, seed=2)
        attack(master.port, right, count, seed=3)
        assert task.status is TaskStatus.STARTED
        assert connection.is_connected
        assert [what for what, _ in slave.seen] == ["task"]
        assert not slave.lost
        slave.release.set()
        assert task.join(10).status is TaskStatus.COMPLETED
        assert connection.new_task({"n": 1}).start().join(10).result == {"echo": {"n": 1}}
