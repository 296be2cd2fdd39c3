"""Hostile requests against a coordinator and a worker that are at work: how many they survive.

    python benchmarks/floods.py --count 1000 --seed 0
    python benchmarks/floods.py --half-open 20

A process with 1,024 descriptors runs a coordinator, a collector and a learner, which have a key.
This one sends what a stranger may: connections that say nothing, TLS handshakes, heads and bodies
that do not end, wrong certificates, recorded messages again and changed, what is no HTTP, and heads
that are too long; up to 1,200 connections stay open. After each, the coordinator has to report its
status and the collector to answer a client that has the key, within 5 seconds. At the end the run
must continue, memory must be flat, and no stranger must have been let in; else the exit status
is 1. ``--half-open`` does one thing, for as many seconds: it opens 1,200 connections whose TLS
handshake goes on by a byte each half second, while new clients with a certificate ask.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import requests
from easydict import EasyDict

from ding.interaction.base import HttpEngine
from ding.interaction.base.tls import client_context, server_name
from ding.worker.collector.comm import NaiveCollector
from ding.worker.coordinator import Coordinator
from ding.worker.learner.comm import NaiveLearner

KEY = "the key of the run, which no stranger has"
DESCRIPTORS = 1024
#: Connections that stay open, and the bytes of bodies that are announced.
KEPT = 1200
BODY = 15_000_000
#: Seconds for an answer to clients with the key, and to others.
LIMIT = 5.0
STRANGER_LIMIT = 15.0
MEMORY_LIMIT = 64 * 1024**2


# ---------------------------------------------------------------------- who is attacked


def serve() -> None:
    """Run a coordinator and its workers in this folder until the standard input is closed."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    workers = {
        "collector": NaiveCollector(port=0, prefix="data", key=KEY),
        "learner": NaiveLearner(port=0, key=KEY),
    }
    for worker in workers.values():
        worker.start()
    tables = {kind: {f"{kind}0": [kind, w.host, w.port]} for kind, w in workers.items()}
    other = {
        "commander": {"type": "naive"},
        "replay_buffer": {"type": "naive", "replay_buffer_size": 100},
    }
    system = {"path_data": "data", "path_policy": "policy", "port": 0, "run_key": KEY, **tables}
    main = {"exp_name": "exp", "policy": {"other": other}}
    coordinator = Coordinator(EasyDict(main=main, system={"coordinator": system}))
    coordinator.start()
    print(json.dumps([coordinator.port, workers["collector"].port]), flush=True)
    sys.stdin.read()
    print(json.dumps(coordinator.verdict), flush=True)
    coordinator.close()
    for worker in workers.values():
        worker.close()


class Victim:
    """The process that is attacked, as seen by a client with the key."""

    def __init__(self, folder: str) -> None:
        command = [sys.executable, os.path.abspath(__file__), "--serve"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )
        assert self._process.stdout is not None
        self.master, self.slave = json.loads(self._process.stdout.readline())
        self._status = HttpEngine("127.0.0.1", self.master)
        self._known = HttpEngine("127.0.0.1", self.slave, key=KEY, role="slave")

    def tasks_done(self) -> int:
        # The oldest connection without a key makes room for new ones, at times for a request on it.
        answer = self._status.request("GET", "status", retries=1, timeout=LIMIT)
        return int(answer.json()["data"]["tasks"]["done"])

    def fault(self) -> str:
        """What is wrong with the answers of both servers; nothing if they come in time."""
        headers = {"Channel": "0", "Token": "not the master's"}
        try:
            self.tasks_done()
            answer = self._known.request(
                *("DELETE", "disconnect"),
                headers=headers,
                raise_for_status=False,
                retries=0,
                timeout=LIMIT,
            )
        except requests.RequestException as error:
            return f"{error.request and error.request.url}: {error!r}"
        return "" if answer.json()["code"] in (302, 502) else answer.text

    def memory(self, kind: str) -> int:
        """Bytes that it has (``VmRSS``), or had at most (``VmHWM``)."""
        with open(f"/proc/{self._process.pid}/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(kind))

    def end(self) -> Any:
        """End it; returns the verdict of its run so far."""
        self._status.close()
        self._known.close()
        verdict, _ = self._process.communicate(timeout=60)
        lines = verdict.splitlines() or ['"the process has ended"']
        return json.loads(lines[-1])  # the coordinator may have printed other lines before


# ---------------------------------------------------------------------- who attacks


def recorded(port: int, role: str, method: str, path: str) -> bytes:
    """What a client with the key sends for a request, as a listener hears it."""
    body = b'{"data": {}}'
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Channel: 0"]
    lines += [f"Token: {'0' * 64}", f"Content-Length: {len(body)}", "", ""]
    heard = b""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = client_context(KEY).wrap_bio(
        incoming, outgoing, server_hostname=server_name(role, port)
    )
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as connection:
        for step in (
            secured.do_handshake,
            lambda: secured.write("\r\n".join(lines).encode() + body),
            lambda: secured.read(1),
        ):
            while True:
                try:
                    step()
                    break
                except ssl.SSLWantReadError:
                    heard += (piece := outgoing.read())
                    connection.sendall(piece)
                    incoming.write(connection.recv(65536))
    return heard


def unfinished() -> bytes:
    """The first message of a TLS handshake."""
    outgoing = ssl.MemoryBIO()
    client = stranger().wrap_bio(ssl.MemoryBIO(), outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def stranger(key: str | None = None) -> ssl.SSLContext:
    """A client's that trusts any server; with a certificate of another run, if there is a key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if key is None else client_context(key)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Attacker:
    """Sends one hostile message after the other.

    Attributes:
        last: The kind of the last message.
        sent: How many messages of each kind were sent.
        let_in: Kinds of messages that were answered as if they were not hostile.
    """

    def __init__(self, victim: Victim, seed: int) -> None:
        self._random = random.Random(seed)
        self._victim = victim
        self._kept: deque[socket.socket] = deque()
        self._heard = {
            port: [recorded(port, role, *what) for what in whats for _ in range(2)]
            for port, role, whats in (
                (victim.master, "master", [("POST", "/worker/join"), ("GET", "/slave/heartbeat")]),
                (victim.slave, "slave", [("POST", "/task/new"), ("DELETE", "/disconnect")]),
            )
        }
        self._kinds: list[Callable[[int], bytes | None]] = [
            *(self._silent, self._half_head, self._half_body, self._plain, self._half_handshake),
            *(self._wrong_key, self._no_certificate, self._replay, self._changed_replay),
            *(self._replay_elsewhere, self._noise, self._long_head, self._bad_head),
            self._foreign_name,
        ]
        self.last = ""
        self.sent: Counter[str] = Counter()
        self.let_in: Counter[str] = Counter()

    def attack(self) -> None:
        kind = self._random.choice(self._kinds)
        port = self._random.choice([self._victim.master, self._victim.slave])
        name = self.last = kind.__name__.strip("_")
        self.sent[name] += 1
        with contextlib.suppress(OSError):
            status = kind(port)
            if status is not None and status.startswith(b"2"):
                self.let_in[name] += 1

    def close(self) -> None:
        for client in self._kept:
            client.close()

    def _keep(self, port: int, content: bytes) -> None:
        client = socket.create_connection(("127.0.0.1", port), timeout=STRANGER_LIMIT)
        self._kept.append(client)
        if len(self._kept) > KEPT:
            self._kept.popleft().close()
        client.settimeout(0.2)  # a server that does not want it need not read it
        client.sendall(content)

    def _ask(self, port: int, content: bytes) -> bytes:
        """The status of the answer; nothing if there is none."""
        with socket.create_connection(("127.0.0.1", port), timeout=STRANGER_LIMIT) as client:
            with contextlib.suppress(ConnectionError):
                client.sendall(content)
                client.shutdown(socket.SHUT_WR)
            return client.recv(4096)[9:12]

    def _silent(self, port: int) -> None:
        for _ in range(10):
            self._keep(port, b"")

    def _half_head(self, port: int) -> None:
        self._keep(port, b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")

    def _half_body(self, port: int) -> None:
        path = self._random.choice(["worker/join", "connect", "task/new", "nowhere", "status"])
        head = f"POST /{path} HTTP/1.1\r\nChannel: 0\r\nToken: x\r\nContent-Length: {BODY}\r\n\r\n"
        self._keep(port, head.encode() + b"x" * self._random.choice([1, 1000, 1_000_000]))

    def _plain(self, port: int) -> bytes:
        line = self._random.choice(["POST /connect", "PUT /slave/task/complete", "POST /task/new"])
        head = f"{line} HTTP/1.1\r\nChannel: 0\r\nToken: {self._random.randbytes(32).hex()}\r\n"
        return self._ask(port, head.encode() + b"Content-Length: 2\r\n\r\n{}")

    def _half_handshake(self, port: int) -> None:
        for _ in range(10):
            content = unfinished()
            self._keep(port, content[: self._random.choice([1, 5, 100, len(content)])])

    def _wrong_key(self, port: int) -> bytes:
        return self._ask_secured(port, stranger("the key of another run, which he has"))

    def _no_certificate(self, port: int) -> bytes:
        return self._ask_secured(port, stranger())

    def _ask_secured(self, port: int, context: ssl.SSLContext) -> bytes:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=STRANGER_LIMIT) as plain,
            context.wrap_socket(plain) as client,
        ):
            client.sendall(b"GET /ping HTTP/1.1\r\nChannel: 0\r\n\r\n")
            return client.recv(4096)[9:12]

    def _replay(self, port: int) -> bytes:
        return self._ask(port, self._random.choice(self._heard[port]))

    def _changed_replay(self, port: int) -> bytes:
        content = bytearray(self._random.choice(self._heard[port]))
        content[self._random.randrange(len(content))] ^= 1 << self._random.randrange(8)
        return self._ask(port, bytes(content))

    def _replay_elsewhere(self, port: int) -> bytes:
        (other,) = set(self._heard) - {port}
        return self._ask(port, self._random.choice(self._heard[other]))

    def _noise(self, port: int) -> bytes:
        begin = self._random.choice([b"", b"GET ", b"POST / HTTP/1.1\r\n", b"\x16\x03\x01"])
        return self._ask(port, begin + self._random.randbytes(self._random.randrange(5000)))

    def _long_head(self, port: int) -> bytes:
        piece = self._random.choice(
            [
                b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n",
                b"GET /status HTTP/1.1\r\n" + b"A: " + b"b" * 200_000 + b"\r\n\r\n",
                b"GET /status HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
            ]
        )
        return self._ask(port, piece)

    def _bad_head(self, port: int) -> bytes:
        line = self._random.choice(
            [
                *(b"Content-Length: -1", b"Content-Length: 99999999999999999999"),
                *(b"Content-Length: 1\r\nContent-Length: 2", b"Transfer-Encoding: chunked"),
                *(b"Expect: 100-continue\r\nContent-Length: 9", b": no name", b"\x00: \xff"),
            ]
        )
        return self._ask(port, b"POST /task/new HTTP/1.1\r\n" + line + b"\r\n\r\n")

    def _foreign_name(self, port: int) -> bytes:
        return self._ask(port, b"GET /status HTTP/1.1\r\nHost: rebound.example\r\n\r\n")


# ---------------------------------------------------------------------- the count


@dataclass
class Report:
    """How it went.

    Attributes:
        survived: Messages after which both servers answered in time.
        slowest: Seconds that both answers took at most.
        grown: Bytes by which memory was greater at most than before.
        done: Tasks that were done meanwhile.
        verdict: How the run ended, if it did.
        faults: What was wrong where it did not survive.
    """

    count: int
    survived: int = 0
    slowest: float = 0.0
    grown: int = 0
    done: int = 0
    verdict: Any = None
    sent: Counter[str] = field(default_factory=Counter)
    let_in: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        whole = self.survived == self.count and not self.let_in and self.verdict is None
        return whole and self.done > 0 and self.grown < MEMORY_LIMIT

    def lines(self) -> Iterator[str]:
        yield f"survived {self.survived:,} of {self.count:,}; slowest answers {self.slowest:.2f} s"
        yield f"tasks done meanwhile: {self.done:,}; memory at most {self.grown / 1e6:+.1f} MB"
        yield "sent: " + ", ".join(f"{count} {kind}" for kind, count in self.sent.most_common())
        yield f"let in: {dict(self.let_in) or 'none'}; the run ended: {self.verdict or 'no'}"
        yield from self.faults


def flood(count: int, seed: int) -> Report:
    """Attack `count` times."""
    report = Report(count)
    with tempfile.TemporaryDirectory() as folder:
        victim = Victim(folder)
        deadline = time.monotonic() + 60
        while victim.tasks_done() < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        attacker = Attacker(victim, seed)
        memory, done = victim.memory("VmRSS"), victim.tasks_done()
        for _ in range(count):
            attacker.attack()
            begin = time.monotonic()
            fault = victim.fault()
            report.survived += not fault
            if fault:
                report.faults.append(f"after {attacker.last}: {fault}")
            report.slowest = max(report.slowest, time.monotonic() - begin)
        report.grown = victim.memory("VmHWM") - memory
        with contextlib.suppress(requests.RequestException):
            report.done = victim.tasks_done() - done
        attacker.close()
        report.sent, report.let_in = attacker.sent, attacker.let_in
        report.verdict = victim.end()
    return report


def half_open(seconds: float) -> bool:
    """Ask while handshakes do not end; whether all questions were answered."""
    with tempfile.TemporaryDirectory() as folder:
        victim = Victim(folder)
        attackers: deque[tuple[socket.socket, Iterator[int]]] = deque()
        over = threading.Event()
        thread = threading.Thread(target=_dribble, args=(victim, attackers, over))
        thread.start()
        answered, times = 0, []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            begin = time.monotonic()
            client = HttpEngine("127.0.0.1", victim.slave, key=KEY, role="slave")
            with contextlib.suppress(requests.RequestException):
                client.request("DELETE", "disconnect", raise_for_status=False, timeout=LIMIT)
                answered += 1
            client.close()
            times.append(time.monotonic() - begin)
            time.sleep(max(0.0, 0.2 - times[-1]))
        opened = len(attackers)
        over.set()
        thread.join()
        verdict = victim.end()
    print(f"{answered} of {len(times)} answered, the slowest after {max(times):.2f} s")
    print(f"{opened} of the other side were open; the run ended: {verdict or 'no'}")
    return answered == len(times) and verdict is None


def _dribble(
    victim: Victim, attackers: deque[tuple[socket.socket, Iterator[int]]], over: threading.Event
) -> None:
    """Open connections, each of which sends its first message byte by byte."""
    content = unfinished()
    for _ in range(KEPT):
        client = socket.create_connection(("127.0.0.1", victim.slave), timeout=STRANGER_LIMIT)
        attackers.append((client, iter(content)))
    while not over.wait(0.5):
        for _ in range(len(attackers)):
            client, left = attackers.popleft()
            byte = next(left, None)
            try:
                if byte is not None:
                    client.sendall(bytes([byte]))
                attackers.append((client, left))
            except OSError:
                client.close()
    for client, _ in attackers:
        client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--half-open", type=float, metavar="SECONDS")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * KEPT if hard == resource.RLIM_INFINITY else min(hard, 2 * KEPT)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    if args.half_open:
        raise SystemExit(not half_open(args.half_open))
    report = flood(args.count, args.seed)
    print("\n".join(report.lines()), flush=True)
    raise SystemExit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
