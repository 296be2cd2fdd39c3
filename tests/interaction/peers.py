"""Masters and slaves for tests, in this process and in others.

python peers.py slave              prints its port, serves until it is killed
python peers.py master PORT TASK   connects to a slave and gives it a task, prints its end
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import requests

from ding.interaction import ConnectionRefuse, DisconnectionRefuse, Master, Slave, TaskFail
from ding.interaction.exception import ResponseException
from ding.interaction.master.task import TaskStatus
from ding.interaction.slave import TaskRefuse

ROOT = Path(__file__).resolve().parents[2]
#: An address of this machine: a relay there has the same port as the server behind it.
ELSEWHERE = "127.0.0.2"
QUICK = dict(request_retries=1, request_retry_waiting=0.05, request_timeout=3.0)
SLAVE = dict(port=0, heartbeat_span=0.2, **QUICK)
MASTER = dict(port=0, heartbeat_tolerance=1.2, heartbeat_check_span=0.1, **QUICK)


class DoingSlave(Slave):
    """Does what a task's ``do`` says, and records the calls of its hooks."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**{**SLAVE, **kwargs})
        self.release = threading.Event()
        self.lost: list[tuple[str, Exception]] = []
        self.noticed = threading.Event()
        self.seen: list[tuple[str, dict]] = []

    def _before_connection(self, data):
        self.seen.append(("connect", data))
        if data.get("unwanted"):
            raise ConnectionRefuse({"reason": "unwanted"})

    def _before_disconnection(self, data):
        self.seen.append(("disconnect", data))
        if getattr(self, "clinging", False):
            raise DisconnectionRefuse({"reason": "not yet"})

    def _before_task(self, task):
        self.seen.append(("task", task))
        if task.get("do") == "refuse":
            raise TaskRefuse({"reason": "no"})
        if task.get("do") == "break hook":
            raise KeyError("bug in a hook")

    def _lost_connection(self, master_address, err):
        self.lost.append((master_address, err))
        self.noticed.set()

    def _process_task(self, task):
        match task.get("do"):
            case "raise":
                raise ValueError("boom")
            case "fail":
                raise TaskFail({"reason": 42}, "as foreseen")
            case "array":
                return {"array": object()}
            case "fail with array":
                raise TaskFail({"array": object()}, "as foreseen")
            case "exit":
                raise SystemExit(3)
            case "wait":
                self.release.wait(300)
            case "sleep":
                time.sleep(task["seconds"])
            case "list":
                return [1, {"two": 2}]
            case "nothing":
                return None
        return {"echo": dict(task)}


@contextlib.contextmanager
def pair(slave: dict | None = None, master: dict | None = None, connect: bool = True) -> Iterator:
    """A running slave, a running master, and the connection between them."""
    with DoingSlave(**(slave or {})) as one, Master(**{**MASTER, **(master or {})}) as other:
        connection = other.new_connection("worker", "127.0.0.1", one.port)
        if connect:
            connection.connect()
        try:
            yield one, other, connection
        finally:
            one.release.set()
            one.clinging = False


class Wire:
    """A foreign peer's view: plain requests with chosen headers."""

    def __init__(self, port: int, **headers: str) -> None:
        self._url = f"http://127.0.0.1:{port}/"
        self.headers = headers

    def __call__(self, method: str, path: str, body=None, headers: dict | None = None) -> tuple:
        """HTTP status, and code, of the answer."""
        headers = self.headers if headers is None else headers
        content = None if body is None else json.dumps(body)  # DI-engine sends no content type
        url = self._url + path
        answer = requests.request(method, url, data=content, headers=headers, timeout=10)
        self.body = answer.json()
        assert set(self.body) == {"success", "code", "message", "data"}
        assert self.body["success"] is (answer.status_code == 200)
        return answer.status_code, self.body["code"]


class Relay:
    """Listens between two peers: records what they send, and may change it.

    Attributes:
        requests, answers: What came from either side, connection after connection.
        change_request, change_answer: Applied to each piece.
    """

    def __init__(self, target: int, host: str = ELSEWHERE, port: int | None = None) -> None:
        self._server = socket.create_server((host, target if port is None else port))
        self.host, self.port, self.target = host, self._server.getsockname()[1], target
        self.requests: list[bytes] = []
        self.answers: list[bytes] = []
        self.change_request: Callable[[bytes], bytes] = lambda piece: piece
        self.change_answer: Callable[[bytes], bytes] = lambda piece: piece
        self.sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for one in self.sockets:
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                self.sockets += [client, server]
                for arguments in (
                    (client, server, self.requests, lambda piece: self.change_request(piece)),
                    (server, client, self.answers, lambda piece: self.change_answer(piece)),
                ):
                    thread = threading.Thread(target=self._pump, args=arguments)
                    self._threads.append(thread)
                    thread.start()

    def _pump(self, source, sink, heard, change) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 20):
                heard.append(piece)
                sink.sendall(change(piece))
            sink.shutdown(socket.SHUT_WR)


def flipped(piece: bytes) -> bytes:
    """Flips a bit in the middle, which is within encrypted content."""
    changed = bytearray(piece)
    changed[len(piece) // 2] ^= 1
    return bytes(changed)


@contextlib.contextmanager
def process(*args: str) -> Iterator[subprocess.Popen]:
    """Runs this script in a separate process, which is killed at the end."""
    child = subprocess.Popen(
        [sys.executable, __file__, *args],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield child
    finally:
        child.kill()
        child.stdout.close()
        child.wait(10)


def works(connection) -> bool:
    """Whether a task is done; its predecessor may still be running."""
    try:
        return connection.new_task().start().join(30).status is TaskStatus.COMPLETED
    except ResponseException:
        return False


def eventually(condition, timeout: float = 40.0) -> None:
    """Wait until something outside this process's reach has happened."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def main(role: str, *args: str) -> None:
    if role == "slave":
        with DoingSlave() as slave:
            print(slave.port, flush=True)
            slave.join()
    else:
        port, task = args
        with (
            Master(**MASTER) as master,
            master.new_connection("w", "127.0.0.1", int(port)) as slave,
        ):
            started = slave.new_task(json.loads(task)).start()
            print("started", flush=True)
            print(started.join().status.name, started.cause, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
