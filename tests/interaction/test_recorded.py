"""Replays messages recorded from masters and slaves of DI-engine 0.5.3."""

import json
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import UUID

import pytest
import requests

from ding.interaction import Master
from ding.interaction.exception.slave import SlaveSlaveAlreadyConnected
from ding.interaction.master.task import TaskStatus
from tests.interaction.peers import MASTER, DoingSlave, eventually, pair

#: Tokens are hexadecimal digits of either case; bodies come without a content type.
TOKEN = "5038C9a9b2aaf10E5Cf03B4B76c226713051Ca623d02eCCDef9AeBbfc222e2CE"
HEADERS = {"Channel": "0", "Token": TOKEN}
TASK_ID = "d458feb5-e919-495d-a379-e73589df6244"
PROGRESS = {
    "eval_flag": False,
    "get_info_time": 1795230646.6594124,
    "collector_done": False,
    "cur_episode": 11,
    "cur_sample": 248,
    "cur_step": 274,
    "buffer_id": "buffer_30db246c-e24a-489b-a2bb-bbad23404eed_296696",
    "task_id": "collector_task_31e58d4e-8449-413e-a660-9e5ef9b03cdc_507582",
}


class RecordedMaster(BaseHTTPRequestHandler):
    """Answers a slave as DI-engine's master does: one answer per connection, data ``null``."""

    received: list[tuple[str, str, str]]

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        self.server.received.append((f"{self.command} {self.path}", self.headers["Token"], body))
        self.reply(200, 0, "Result received!")

    do_GET = do_PUT = answer

    def reply(self, status: int, code: int, message: str) -> None:
        body = {"code": code, "data": None, "message": message, "success": status == 200}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


class RecordedSlave(RecordedMaster):
    """Refuses what that slave refuses, with a page instead of JSON where that slave breaks."""

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"] or 0))
        try:
            self.react(json.loads(content or b"null"))
        except (KeyError, TypeError, ValueError):
            self.send_error(500)

    do_POST = do_DELETE = answer

    def react(self, body) -> None:
        server, token = self.server, self.headers["Token"]
        if self.path == "/connect":
            self.connect(body["master"]["address"], token, body["data"])
        elif server.master is None or token != server.master[1]:
            self.reply(403, 302, "Master not match with this endpoint.")
        elif self.path == "/task/new":
            identity, data = UUID(body["task"]["id"]), body["data"]
            threading.Thread(target=self.work, args=(str(identity), data)).start()
            self.reply(200, 0, "Task received!")
        elif self.path == "/disconnect":
            server.disconnected.append(body["data"])
            server.master = None
            self.reply(200, 0, "Disconnect success.")

    def connect(self, address: str, token: str, _: dict) -> None:
        if self.server.master is not None:
            self.reply(400, 501, "This slave already connected.")
        elif not address.startswith("http://"):
            raise ValueError("that slave needs a scheme")
        else:
            self.server.master = (address, token)
            self.reply(200, 0, "Connect success.")

    def work(self, identity: str, data: dict) -> None:
        address, token = self.server.master
        kind = "fail" if "fail" in data else "complete"
        for method, path, body in (
            ("GET", "/slave/heartbeat", {}),
            ("PUT", f"/slave/task/{kind}", {"task": {"id": identity}, "result": data["result"]}),
        ):
            headers = {"Channel": "0", "Token": token}
            answer = requests.request(
                method, address + path, data=json.dumps(body), headers=headers, timeout=10
            )
            self.server.answers.append(answer.json())


@pytest.fixture
def recorded(request):
    server = ThreadingHTTPServer(("127.0.0.1", 0), request.param)
    server.received, server.master, server.disconnected, server.answers = [], None, [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()


def send(port: int, method: str, path: str, body: dict) -> tuple[int, dict]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, json.dumps(body), HEADERS)
    answer = connection.getresponse()
    result = answer.status, json.loads(answer.read())
    connection.close()
    return result


@pytest.mark.parametrize("recorded", [RecordedMaster], indirect=True)
def test_a_slave_works_for_a_recorded_master(recorded):
    address = f"http://127.0.0.1:{recorded.server_port}"
    with DoingSlave() as slave:
        connect = {"master": {"address": address}, "data": {}}
        assert send(slave.port, "POST", "/connect", connect)[0] == 200
        status, body = send(slave.port, "POST", "/connect", connect)
        assert (status, body["code"]) == (400, 501)
        data = {"name": "collector_data_task"}
        task = {"task": {"id": TASK_ID}, "data": data}
        assert send(slave.port, "POST", "/task/new", task)[0] == 200
        eventually(lambda: len({what for what, *_ in recorded.received}) == 2)
        assert send(slave.port, "DELETE", "/disconnect", {"data": {}})[0] == 200
        assert slave.seen == [("connect", {}), ("task", data), ("disconnect", {})]
    answers = [json.loads(body) for what, _, body in recorded.received if "complete" in what]
    assert answers == [{"task": {"id": TASK_ID}, "result": {"echo": data}}]
    assert {what for what, *_ in recorded.received} == {
        "GET /slave/heartbeat",
        "PUT /slave/task/complete",
    }
    assert {token for _, token, _ in recorded.received} == {TOKEN}


@pytest.mark.parametrize("recorded", [RecordedSlave], indirect=True)
def test_a_master_gives_tasks_to_a_recorded_slave(recorded):
    with Master(**MASTER) as master:
        connection = master.new_connection("worker", "127.0.0.1", recorded.server_port)
        with connection:
            again = master.new_connection("again", "127.0.0.1", recorded.server_port)
            with pytest.raises(SlaveSlaveAlreadyConnected):
                again.connect()
            for result in (PROGRESS, {"gpu": 1, "cpu": 20}, [PROGRESS], {}):
                data = {"name": "collector_data_task", "result": result}
                task = connection.new_task(data).start().join(10)
                assert (task.status, task.result) == (TaskStatus.COMPLETED, result)
            task = connection.new_task({"fail": 1, "result": {"why": "x"}}).start().join(10)
            assert (task.status, task.result) == (TaskStatus.FAILED, {"why": "x"})
    assert recorded.disconnected == [{}]
    assert all(answer["success"] and answer["code"] == 0 for answer in recorded.answers)


def test_a_recorded_slave_reports_failures_without_a_message():
    with pair() as (slave, master, connection):
        task = connection.new_task({"do": "wait"}).start()
        token = master["worker"].connection.token
        answer = requests.put(
            f"{master.my_address}/slave/task/fail",
            data=json.dumps({"task": {"id": str(task.id)}, "result": {}}),
            headers={"Channel": "0", "Token": token},
            timeout=10,
        )
        assert answer.json()["success"]
        assert (task.join(10).status, task.result) == (TaskStatus.FAILED, {})
        slave.release.set()


@pytest.mark.parametrize("recorded", [RecordedMaster], indirect=True)
def test_a_slave_does_not_beat_before_its_master_can_know_it(recorded):
    address = f"http://127.0.0.1:{recorded.server_port}"
    with DoingSlave(heartbeat_span=60.0) as slave:
        connect = {"master": {"address": address}, "data": {}}
        assert send(slave.port, "POST", "/connect", connect)[0] == 200
        send(slave.port, "POST", "/task/new", {"task": {"id": TASK_ID}, "data": {}})
        eventually(lambda: recorded.received)
        assert {what for what, *_ in recorded.received} == {"PUT /slave/task/complete"}
