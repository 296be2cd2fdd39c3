"""A run with a key, and a stranger on a port of it or between two of its parts."""

import contextlib
import json
import socket
import ssl
import uuid
from collections.abc import Iterator

import pytest
from easydict import EasyDict

from ding.interaction.base.tls import client_context
from ding.worker.collector.comm import NaiveCollector
from ding.worker.coordinator import Coordinator
from ding.worker.learner.comm import NaiveLearner
from tests.interaction.peers import Relay, flipped
from tests.worker.coordinator.fake_workers import eventually

KEY = "the key of the run, which no stranger knows"
OTHER_KEY = "the key of another run, which is as long!!!"


class KeyedRun:
    """A coordinator, two collectors and a learner that have a key.

    Attributes:
        relays: Of collectors that the coordinator reaches through a stranger, by name.
    """

    def __init__(self, between: tuple[str, ...] = ()) -> None:
        self.workers = {
            "collector0": NaiveCollector(port=0, prefix="data", key=KEY),
            "collector1": NaiveCollector(port=0, prefix="data", key=KEY),
            "learner0": NaiveLearner(port=0, key=KEY),
        }
        tables: dict[str, dict[str, list]] = {"collector": {}, "learner": {}}
        self.relays: dict[str, Relay] = {}
        for name, worker in self.workers.items():
            worker.start()
            host = worker.host
            if name in between:
                self.relays[name] = Relay(worker.port)
                host = self.relays[name].host
            tables[name[:-1]][name] = [name, host, worker.port]
        other = {
            "commander": {"type": "naive", "collector_task_space": 2},
            "replay_buffer": {"type": "naive", "replay_buffer_size": 100},
        }
        system = {"path_data": "data", "path_policy": "policy", "port": 0, "run_key": KEY}
        system.update(heartbeat_tolerance=3.0, request_retries=1, request_retry_waiting=0.1)
        main = {"exp_name": "exp", "policy": {"other": other}}
        config = EasyDict(main=main, system={"coordinator": {**system, **tables}})
        self.coordinator = Coordinator(config)
        self.coordinator.start()

    def goes_on(self) -> bool:
        """Whether the coordinator and its workers finish further tasks."""
        wanted = self.done() + 3
        eventually(lambda: self.done() >= wanted, 60)
        return self.coordinator.verdict is None

    def done(self) -> int:
        return int(self.coordinator.commander.collector_task_finish_count)

    def close(self) -> None:
        self.coordinator.close()
        for part in self.workers.values():
            part.close()
        for relay in self.relays.values():
            relay.__exit__()


@pytest.fixture
def make_run() -> Iterator:
    runs: list[KeyedRun] = []

    def make(**kwargs) -> KeyedRun:
        runs.append(KeyedRun(**kwargs))
        assert runs[-1].goes_on()
        return runs[-1]

    yield make
    for run in runs:
        run.close()


def request(method: str, path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Channel: 0", f"Token: {'0' * 64}"]
    return "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content


def asked(port: int, content: bytes, key: str | None) -> bytes:
    """What a port answers to a request, sent by TLS if there is a key."""
    with contextlib.ExitStack() as stack, contextlib.suppress(ConnectionError, ssl.SSLError):
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        if key is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if key:
                context = client_context(key)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            client = stack.enter_context(context.wrap_socket(client))
        client.sendall(content)
        return client.recv(65536)
    return b""


#: What takes part in a run, or would end it.
ATTEMPTS = [
    ("POST", "/worker/join", {"worker": dict(kind="learner", name="x", host="h", port=1)}),
    ("POST", "/worker/entry", {"worker": dict(kind="learner")}),
    ("PUT", "/slave/task/complete", {"task": {"id": str(uuid.uuid4())}, "result": {}}),
    ("POST", "/connect", {"master": {"address": "http://127.0.0.1:9"}}),
    ("POST", "/task/new", {"task": {"id": str(uuid.uuid4())}, "data": {"name": "resource"}}),
    ("DELETE", "/disconnect", {}),
    ("DELETE", "/shutdown", {}),
]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("place", ["coordinator", "worker"])
def test_on_a_port_nothing_is_learned_or_executed_and_the_run_goes_on(make_run, caplog, place):
    run = make_run()
    port = run.coordinator.port if place == "coordinator" else run.workers["collector0"].port
    for attempt in ATTEMPTS:
        plain = asked(port, request(*attempt), key=None)
        assert plain.split(b" ")[1] in (b"403", b"404"), plain
        assert KEY.encode() not in plain
        for key in ("", OTHER_KEY):  # without a certificate, and with that of another run
            assert asked(port, request(*attempt), key) == b""
    assert run.goes_on()
    assert set(run.coordinator.status()["workers"]) == set(run.workers)
    lines = [line for line in caplog.messages if "has no proof of the run key" in line]
    assert len(lines) == 1
    assert "127.0.0.1" in lines[0]


@pytest.mark.timeout(180)
def test_in_the_middle_nothing_is_learned_or_changed_and_the_run_goes_on(make_run):
    run = make_run(between=("collector0",))
    relay = run.relays["collector0"]
    for heard in (relay.requests, relay.answers):
        content = b"".join(heard)
        assert len(content) > 1000
        for word in (KEY.encode(), b"HTTP", b"collector", b"Token", b"exp"):
            assert word not in content
    relay.change_request = relay.change_answer = flipped
    eventually(lambda: is_lost(run, "collector0"), 60)
    assert run.goes_on()  # with the other collector
    assert not is_lost(run, "collector1")


def is_lost(run: KeyedRun, name: str) -> bool:
    return run.coordinator.status()["workers"][name]["state"] in ("connecting", "gone")
