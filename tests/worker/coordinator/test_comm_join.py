"""A worker finds its coordinator, waits for it, and gives up with a cause."""

import contextlib
import json
import socket
import threading
import time

import pytest
from hypothesis import given, settings, strategies as st

from ding.interaction.base import HttpEngine
from ding.interaction.base.server import HttpServer
from ding.interaction.base.service import refusal
from ding.interaction.base.tls import server_context
from ding.utils.json_fields import BadMessageError
from ding.worker.engines.http_worker import Joiner, JoinMessage
from ding.worker.engines.run_master import RunMaster
from tests.worker.coordinator.fake_workers import eventually

KEY = "the key"


@pytest.fixture
def joined():
    return []


@pytest.fixture
def make_master():
    masters = []

    def make(on_join, port=0):
        master = RunMaster(
            None, port, key=KEY, on_join=on_join, on_lost=lambda *_: None, status=dict
        )
        master.start()
        masters.append(master)
        return master

    yield make
    for master in masters:
        master.close()


@pytest.fixture
def make_joiner():
    joiners = []

    def make(port, **kwargs):
        causes = []
        address = kwargs.pop("address", lambda: "127.0.0.1:7777")
        key = kwargs.pop("key", KEY)
        joiner = Joiner(
            (None, port), "learner", "l0", address, key, on_give_up=causes.append, **kwargs
        )
        joiners.append(joiner)
        joiner.start()
        return joiner, causes

    yield make
    for joiner in joiners:
        joiner.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_it_reports_where_the_worker_listens(make_master, make_joiner, joined):
    make_joiner(make_master(joined.append).port)
    eventually(lambda: joined)
    message = joined[0]
    assert (message.kind, message.name) == ("learner", "l0")
    assert (message.host, message.port) == ("127.0.0.1", 7777)


def test_a_worker_that_has_joined_leaves_no_connection_open(make_master, make_joiner, joined):
    make_joiner(make_master(joined.append).port)
    eventually(lambda: joined)
    served = "http-client"  # the name of the threads of a server's connections
    eventually(lambda: served not in {thread.name for thread in threading.enumerate()})


def test_it_joins_again_when_it_lost_the_coordinator(make_master, make_joiner, joined):
    joiner, _ = make_joiner(make_master(joined.append).port)
    eventually(lambda: joined)
    joiner.lost()
    eventually(lambda: len(joined) == 2)


def test_it_waits_for_a_coordinator_that_comes_later(make_master, make_joiner, joined):
    port = free_port()
    _, causes = make_joiner(port)
    time.sleep(0.2)
    make_master(joined.append, port)
    eventually(lambda: joined)
    assert causes == []


def test_it_tries_again_when_the_coordinator_cannot_connect(make_master, make_joiner):
    tries = []

    def refuse_once(message):
        tries.append(message)
        if len(tries) == 1:
            raise refusal(1, "cannot connect", 503)

    make_joiner(make_master(refuse_once).port)
    eventually(lambda: len(tries) == 2)


NONSENSE = [
    "[" * 100_000,
    '{"data":' * 50_000,
    "9" * 5000,
    "",
    "\ufeff{}",
    '{"data": [], "code": {}}',
]


@pytest.mark.parametrize("status", [200, 400, 403, 500])
@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("answer", NONSENSE)
def test_it_outlives_what_another_program_answers(make_joiner, status, key, answer):
    """The server is not a coordinator, or is hostile: the worker gives up, or asks again."""
    asked = threading.Event()

    def app(environ, start_response):
        asked.set()
        start_response(f"{status} x", [("Content-Type", "application/json")])
        return [answer.encode()]

    server = HttpServer(app, "127.0.0.1", 0, 10000)
    if key is not None:  # with a certificate of the run even
        context = server_context(key, "master", [server.port])
        server.secure(context, lambda host, cause: None)
    server.start()
    try:
        joiner, causes = make_joiner(server.port, key=key, first_patience=0.0, patience=0.0)
        assert asked.wait(10)
        if status == 200:  # that is what accepting looks like
            joiner.close()
        else:
            eventually(lambda: causes)
            assert "failed" not in causes[0]
            assert len(causes[0]) < 500
    finally:
        server.stop()
        assert server.join(10)


def test_an_end_of_its_thread_is_reported(make_joiner):
    def broken():
        raise RecursionError("too deep")

    _, causes = make_joiner(free_port(), address=broken)
    eventually(lambda: causes)
    assert causes == ["the thread join-l0 failed: RecursionError: too deep"]


@pytest.mark.parametrize("key", ["another", None])
def test_it_gives_up_without_the_right_key(make_master, make_joiner, joined, key):
    _, causes = make_joiner(make_master(joined.append).port, key=key)
    eventually(lambda: causes)
    assert "ey" in causes[0]
    assert joined == []


def test_it_gives_up_when_there_is_no_coordinator_for_too_long(make_joiner):
    port = free_port()
    _, causes = make_joiner(port, first_patience=0.3)
    eventually(lambda: causes)
    assert f"no coordinator at 127.0.0.1:{port}" in causes[0]


@pytest.mark.parametrize("worker", [None, {"kind": "cook", "name": "a", "host": "h", "port": 1}])
def test_nonsense_is_refused(make_master, joined, worker):
    port = make_master(joined.append).port
    client = HttpEngine("127.0.0.1", port, key=KEY, role="master")
    answer = client.request(
        "POST", "worker/join", {"worker": worker}, retries=0, raise_for_status=False
    )
    client.close()
    assert answer.status_code == 400
    assert joined == []


def test_closing_ends_it_while_it_tries(make_joiner):
    threads = threading.active_count()
    joiner, causes = make_joiner(free_port())
    joiner.close()
    assert threading.active_count() <= threads
    assert causes == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
FIELDS = ("kind", "name", "host", "port", "pid")
WORKERS = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON))


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=64) | st.builds(json.dumps, JSON | st.builds(dict, worker=WORKERS)))
def test_whatever_comes_is_parsed_or_refused(body):
    content = body if isinstance(body, bytes) else body.encode()
    with contextlib.suppress(BadMessageError):
        assert JoinMessage.parse(content).kind in ("collector", "learner")
