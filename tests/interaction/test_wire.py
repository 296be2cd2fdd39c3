"""What a foreign master or slave sees: requests by hand, every code with its HTTP status."""

import re
from uuid import uuid4

import pytest
from flask import Flask, jsonify, request

from ding.interaction import Master
from ding.interaction.base.server import HttpServer
from ding.interaction.master.task import TaskStatus
from tests.interaction.peers import MASTER, DoingSlave, Wire, eventually, pair, works

ROUTES = {
    "slave": [("POST", "connect"), ("DELETE", "disconnect"), ("POST", "task/new")],
    "master": [
        ("GET", "slave/heartbeat"),
        ("PUT", "slave/task/complete"),
        ("PUT", "slave/task/fail"),
    ],
}
OWN = [("GET", "ping"), ("DELETE", "shutdown")]
#: The code for a missing token of a peer.
NO_TOKEN = {"slave": 301, "master": 501}


class ForeignMaster:
    """A third-party master: it records what slaves report."""

    def __init__(self) -> None:
        app = Flask("foreign")
        self.received: list[tuple[str, str, dict | None]] = []

        @app.route("/slave/<path:what>", methods=["GET", "PUT"])
        def slave(what):
            token = request.headers["Token"]
            self.received.append((what, token, request.get_json(silent=True)))
            return jsonify(success=True, code=0, message="", data=None)

        self.server = HttpServer(app, "127.0.0.1", 0, 10000)
        self.address = {"master": {"address": f"127.0.0.1:{self.server.port}"}}

    def __enter__(self) -> "ForeignMaster":
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        assert self.server.join(10)

    def answers(self) -> list[tuple[str, dict]]:
        return [(what, body) for what, _, body in self.received if what != "heartbeat"]


@pytest.fixture
def slave():
    with DoingSlave(channel=7) as slave:
        yield slave
        slave.clinging = False
        slave.release.set()


@pytest.fixture
def wire(slave):
    return Wire(slave.port, Channel="7", Token="mine")


@pytest.mark.parametrize("kind", ROUTES)
class TestBoth:
    """What slaves and masters check before they look at a request."""

    @pytest.fixture
    def service(self, kind):
        make = DoingSlave if kind == "slave" else Master
        with make(**{**(MASTER if kind == "master" else {}), "channel": 7}) as service:
            yield service

    def test_channel(self, service, kind):
        wire = Wire(service.port, Token="mine")
        for method, path in ROUTES[kind] + OWN:
            assert wire(method, path) == (400, 201)
            for wrong in ("8", "no"):
                headers = {"Channel": wrong, "Token": "mine"}
                assert wire(method, path, headers=headers) == (403, 202)

    def test_peers_token_is_missing(self, service, kind):
        wire = Wire(service.port, Channel="7")
        for method, path in ROUTES[kind]:
            assert wire(method, path) == (400, NO_TOKEN[kind])
            headers = {"Channel": "7", "Token": ""}
            assert wire(method, path, headers=headers) == (400, NO_TOKEN[kind])

    def test_own_token(self, service, kind):
        wire = Wire(service.port, Channel="7", Token="mine")
        for method, path in OWN:
            assert wire(method, path, headers={"Channel": "7"}) == (400, 401)
            assert wire(method, path) == (403, 402)
            own = {"Channel": "7", "Token": service._self_token}
            assert wire(method, path, headers=own) == (200, 0)
        assert service.join(10)  # it was asked to shut down

    def test_shutting_down(self, service, kind):
        wire = Wire(service.port, Channel="7", Token="mine")
        service._shutting_down.set()
        for method, path in ROUTES[kind] + OWN:
            assert wire(method, path) == (401, 101)

    def test_run_key(self, kind):
        make = DoingSlave if kind == "slave" else Master
        with make(port=0, key="secret") as service:
            wire = Wire(service.port, Channel="0", Token="mine")
            for method, path in ROUTES[kind]:
                assert wire(method, path) == (403, NO_TOKEN[kind])


class TestSlave:
    def test_without_a_connection(self, wire):
        assert wire("DELETE", "disconnect") == (400, 502)
        assert wire("POST", "task/new", {"task": {"id": str(uuid4()), "data": {}}}) == (400, 502)

    def test_connection(self, slave, wire):
        with ForeignMaster() as master:
            assert wire("POST", "connect", {**master.address, "data": {"unwanted": 1}}) == (
                403,
                503,
            )
            assert wire.body["data"] == {"reason": "unwanted"}
            assert wire("POST", "connect", master.address) == (200, 0)
            assert wire("POST", "connect", master.address) == (400, 501)
            other = Wire(slave.port, Channel="7", Token="other")
            assert other("POST", "connect", master.address) == (400, 501)
            assert other("DELETE", "disconnect") == (403, 302)
            assert other("POST", "task/new") == (403, 302)
            eventually(lambda: ("heartbeat", "mine", None) in master.received)
            slave.clinging = True
            assert wire("DELETE", "disconnect") == (403, 504)
            slave.clinging = False
            assert wire("DELETE", "disconnect") == (200, 0)
            assert wire("DELETE", "disconnect") == (400, 502)
            assert other("POST", "connect", master.address) == (200, 0)

    @pytest.mark.parametrize(
        "body",
        [
            None,
            [],
            "text",
            {},
            {"master": 1},
            {"master": {}},
            {"master": {"address": 5}},
            {"master": {"address": "ftp://x"}},
            {"master": {"address": "x:y"}},
        ],
    )
    def test_malformed_connection(self, slave, wire, body):
        assert wire("POST", "connect", body) == (400, 503)
        assert slave.seen == []

    def test_tasks(self, slave, wire):
        first, second = str(uuid4()), str(uuid4())
        with ForeignMaster() as master:
            wire("POST", "connect", master.address)
            task = {"task": {"id": first, "data": {"do": "wait"}}}
            assert wire("POST", "task/new", task) == (200, 0)
            assert wire("POST", "task/new", task) == (200, 0)  # sent again: its answer was lost
            assert wire("POST", "task/new", {"task": {"id": second, "data": {}}}) == (400, 601)
            slave.release.set()
            eventually(lambda: master.answers())
            refused = {"task": {"id": second, "data": {"do": "refuse"}}}
            assert wire("POST", "task/new", refused) == (403, 602)
            other_task = {"task": {"id": second}, "data": {"do": "fail"}}
            assert wire("POST", "task/new", other_task) == (200, 0)
            eventually(lambda: len(master.answers()) == 2)
        done, failed = master.answers()
        result = {"echo": {"do": "wait"}}
        assert done == ("task/complete", {"task": {"id": first}, "result": result})
        result = {"result": {"reason": 42}, "message": "as foreseen"}
        assert failed == ("task/fail", {"task": {"id": second}, **result})
        assert {token for _, token, _ in master.received} == {"mine"}
        assert (
            len([1 for what, data in slave.seen if (what, data) == ("task", {"do": "wait"})]) == 1
        )

    @pytest.mark.parametrize(
        "task", [None, 5, {}, {"id": 7}, {"id": "7"}, {"id": str(uuid4()), "data": [1]}]
    )
    def test_malformed_task(self, slave, wire, task):
        with ForeignMaster() as master:
            wire("POST", "connect", master.address)
            assert wire("POST", "task/new", {"task": task}) == (400, 602)
            assert [what for what, _ in slave.seen] == ["connect"]

    def test_no_heartbeat_before_its_master_can_know_it(self):
        """DI-engine's masters know a slave when it has answered, or a span after they connected."""
        with ForeignMaster() as master, DoingSlave(heartbeat_span=60.0) as slave:
            wire = Wire(slave.port, Channel="0", Token="mine")
            assert wire("POST", "connect", master.address) == (200, 0)
            assert wire("POST", "task/new", {"task": {"id": str(uuid4()), "data": {}}}) == (200, 0)
            eventually(lambda: master.received)
            assert [what for what, *_ in master.received] == ["task/complete"]

    def test_what_does_not_exist(self, wire):
        assert wire("GET", "nowhere") == (404, 1)
        assert wire("GET", "connect") == (405, 1)


class TestMaster:
    @pytest.fixture
    def parts(self):
        with pair() as (slave, master, connection):
            token = master["worker"].connection.token
            yield slave, master, connection, Wire(master.port, Channel="0", Token=token)

    @pytest.mark.parametrize(("method", "path"), ROUTES["master"])
    def test_slave_token(self, parts, method, path):
        wire = parts[-1]
        assert wire(method, path, headers={"Channel": "0", "Token": "wrong"}) == (403, 502)
        wrong = "wr\u00f6ng".encode()
        assert wire(method, path, headers={"Channel": "0", "Token": wrong}) == (403, 502)
        parts[2].disconnect()
        assert wire(method, path) == (403, 502)

    def test_heartbeat(self, parts):
        assert parts[-1]("GET", "slave/heartbeat") == (200, 0)

    @pytest.mark.parametrize(
        ("path", "status"), [("complete", TaskStatus.COMPLETED), ("fail", TaskStatus.FAILED)]
    )
    def test_answers(self, parts, path, status):
        slave, _, connection, wire = parts
        task = connection.new_task({"do": "wait"}).start()
        answer = {"task": {"id": str(task.id), "result": {"x": 1}}}
        assert wire("PUT", f"slave/task/{path}", answer) == (200, 0)
        assert task.join(5).status is status
        assert task.result == {"x": 1}
        assert wire("PUT", f"slave/task/{path}", answer) == (403, 601)
        slave.release.set()  # its own answer comes too late and changes nothing
        assert task.result == {"x": 1}
        eventually(lambda: works(connection))

    @pytest.mark.parametrize(
        "body",
        [
            None,
            [],
            7,
            {},
            {"task": []},
            {"task": {"id": "x"}},
            {"task": {"id": None}},
            {"task": {"id": str(uuid4()), "result": {}}},
        ],
    )
    def test_data_invalid(self, parts, body):
        _, _, connection, wire = parts
        task = connection.new_task({"do": "wait"}).start()
        for path in ("complete", "fail"):
            assert wire("PUT", f"slave/task/{path}", body) == (403, 601)
        assert task.status is TaskStatus.STARTED

    def test_message_has_to_be_text(self, parts):
        _, _, connection, wire = parts
        task = connection.new_task({"do": "wait"}).start()
        body = {"task": {"id": str(task.id), "result": {}, "message": 5}}
        assert wire("PUT", "slave/task/fail", body) == (403, 601)
        assert re.search("'message'.*expected text", wire.body["message"])
