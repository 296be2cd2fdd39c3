import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from ding.utils import durations
from ding.utils.errors import ConfigError, DingError
from ding.worker.coordinator.operator_server import (
    OperatorLink,
    OperatorServer,
    OperatorServerError,
    wants_operator,
)
from tests.worker.coordinator.fake_workers import FakeCollector, FakeLearner, Run, eventually

LONG = 20


class FakeOperator:
    """Serves lists of workers, and notes what it is asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict]] = []
        self.workers = {"collectors": [], "learners": []}
        self.failures: list[bytes | int] = []
        self.refusal: str | None = None
        self.changed = threading.Condition()
        operator = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                address = urlsplit(self.path)
                length = int(self.headers.get("Content-Length", 0))
                fields = json.loads(self.rfile.read(length)) if length else {}
                fields |= dict(parse_qsl(address.query))
                status, body = operator.answer(self.command, address.path, fields)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = do

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def answer(self, method, path, fields):
        with self.changed:
            self.seen.append((method, path, fields))
            self.changed.notify_all()
            if self.failures:
                failure = self.failures.pop(0)
                return (failure, b"") if isinstance(failure, int) else (200, failure)
            message, success = self.refusal or "", self.refusal is None
            body = {
                "success": success,
                "code": 0 if success else 10,
                "message": message,
                "data": self.workers if method == "GET" else {},
            }
        return (200 if success else 400), json.dumps(body).encode()

    def wait_for(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, LONG), self.seen

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def operator():
    operator = FakeOperator()
    yield operator
    operator.close()


@pytest.fixture
def client(operator, monkeypatch):
    monkeypatch.setattr(durations, "OPERATOR_RETRY", 0.01)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    client = OperatorServer("127.0.0.1", operator.port, namespace="team", name="job-coordinator")
    yield client
    client.close()


ASKER = {"namespace": "team", "coordinator": "job-coordinator"}


def test_asks_for_workers_and_which_there_are(operator, client):
    operator.workers = {"collectors": ["10.0.0.1:22270"], "learners": []}
    request = {"collectors": {"replicas": 2, "cpu": "1"}, "learners": {"replicas": 1}}
    assert client.post_replicas(request) == (True, 0, "", {})
    assert client.get_replicas() == (True, 0, "", operator.workers)
    assert client.delete_replicas(n_collectors=1)[0]
    assert client.post_replicas_failed(collectors=["10.0.0.1:22270"])[0]
    assert operator.seen == [
        ("POST", "/v1alpha1/replicas", {**request, **ASKER}),
        ("GET", "/v1alpha1/replicas", ASKER),
        (
            "DELETE",
            "/v1alpha1/replicas",
            {"collectors": {"replicas": 1}, "learners": {"replicas": 0}, **ASKER},
        ),
        (
            "POST",
            "/v1alpha1/replicas/failed",
            {"collectors": ["10.0.0.1:22270"], "learners": [], **ASKER},
        ),
    ]


def test_asks_for_others_and_as_another(operator, client):
    client.get_replicas("other-coordinator")
    client.set_worker_type("aggregator")
    client.get_replicas()
    assert [fields for _, _, fields in operator.seen] == [
        {"namespace": "team", "coordinator": "other-coordinator"},
        {"namespace": "team", "aggregator": "job-coordinator"},
    ]
    with pytest.raises(ConfigError, match="'collector'; expected coordinator or aggregator"):
        client.set_worker_type("collector")


def test_api_version(operator):
    client = OperatorServer("127.0.0.1", operator.port, api_version="v2")
    assert client.api_version == "v2"
    client.get_replicas()
    assert operator.seen == [("GET", "/v2/replicas", {})]
    client.close()


def test_a_refusal_is_told(operator, client):
    operator.refusal = "no more GPUs"
    assert client.post_replicas({}) == (False, 10, "no more GPUs", {})


def test_tries_again_when_a_gateway_says_that_the_operator_is_away(operator, client):
    operator.failures = [503, 502]
    assert client.get_replicas()[0]
    assert len(operator.seen) == 3


def test_gives_up_after_some_tries(operator, client):
    operator.failures = [503] * 10
    with pytest.raises(OperatorServerError, match="status 503 and no JSON object"):
        client.get_replicas()
    assert len(operator.seen) == 3


@pytest.mark.parametrize("nonsense", [b"<html>", b"[1]", b""])
def test_nonsense_is_an_error(operator, client, nonsense):
    operator.failures = [nonsense]
    with pytest.raises(OperatorServerError, match="no JSON object"):
        client.get_replicas()


def test_nobody_there(monkeypatch):
    monkeypatch.setattr(durations, "OPERATOR_RETRY", 0.01)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = OperatorServer("127.0.0.1", port)
        with pytest.raises(DingError, match=f"GET http://127.0.0.1:{port}/v1alpha1/replicas,"):
            client.get_replicas()
        client.close()


def linked(operator, **cfg):
    events: list[tuple] = []

    def note(what):
        def call(*args):
            with operator.changed:
                events.append((what, *args))
                operator.changed.notify_all()

        return call

    cfg = {"system_addr": f"127.0.0.1:{operator.port}", "check_span": 0.05, **cfg}
    return OperatorLink(cfg, note("come"), note("go")), events


def test_the_link_asks_for_workers_and_tells_of_them(operator):
    request = {"collectors": {"replicas": 1}, "learners": {"replicas": 1}}
    link, events = linked(operator, init_replicas_request=request)
    link.start()
    operator.wait_for(lambda: any(method == "POST" for method, _, _ in operator.seen))
    operator.workers = {"collectors": ["10.0.0.1:22270"], "learners": ["learner-0"]}
    operator.wait_for(lambda: len(events) == 2)
    operator.workers = {"collectors": ["10.0.0.2:22270"], "learners": ["learner-0"]}
    operator.wait_for(lambda: len(events) == 4)
    link.close()
    assert events == [
        ("come", "collector", "10.0.0.1:22270", "10.0.0.1", 22270),
        ("come", "learner", "learner-0", "learner-0", 22271),
        ("go", "collector", "10.0.0.1:22270", "10.0.0.1", 22270),
        ("come", "collector", "10.0.0.2:22270", "10.0.0.2", 22270),
    ]
    posts = [fields for method, _, fields in operator.seen if method == "POST"]
    assert [{key: fields[key] for key in request} for fields in posts] == [request]


def test_the_link_reports_failed_workers_once(operator):
    operator.workers = {"collectors": ["a:1", "b:2"], "learners": ["c:3"]}
    link, events = linked(operator)
    link.start()
    operator.wait_for(lambda: len(events) == 3)
    operator.failures = [b"nonsense"]
    link.report_failed("collector", "a:1")
    link.report_failed("collector", "a:1")
    link.report_failed("collector", "unknown:1")

    def reports():
        return [fields for _, path, fields in operator.seen if path.endswith("failed")]

    operator.wait_for(reports)
    asked = len(operator.seen)
    operator.wait_for(lambda: len(operator.seen) > asked + 2)
    link.close()
    assert len(reports()) <= 2  # twice if the nonsense was the answer to it
    assert all(report["collectors"] == ["a:1"] for report in reports())
    assert all(report["learners"] == [] for report in reports())


def test_the_link_goes_on_after_failures_and_tells_each_once(operator, caplog):
    operator.failures = [b"nonsense"] * 3 + [b'{"success": true, "data": 3}']
    operator.workers = {"collectors": ["a:1"], "learners": []}
    link, events = linked(operator)
    link.start()
    operator.wait_for(lambda: events)
    link.close()
    assert [record.message for record in caplog.records if "no JSON" in record.message] == [
        record.message for record in caplog.records[:1]
    ]
    assert "lists workers as 3" in caplog.text


def test_a_failing_callback_does_not_end_the_link(operator, caplog):
    def fail(*args):
        raise RuntimeError("no such worker")

    operator.workers = {"collectors": ["a:1"], "learners": []}
    cfg = {"system_addr": f"127.0.0.1:{operator.port}", "check_span": 0.01}
    link = OperatorLink(cfg, fail, fail)
    link.start()
    operator.wait_for(lambda: len(operator.seen) > 3)
    link.close()
    assert "no such worker" in caplog.text


def test_closing_a_link_that_was_never_started(operator):
    linked(operator)[0].close()


def test_who_wants_an_operator(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVER_URL", raising=False)
    assert not wants_operator({})
    assert wants_operator({"system_addr": "operator:80"})
    monkeypatch.setenv("KUBERNETES_SERVER_URL", "operator:80")
    assert wants_operator({})


def test_a_coordinator_works_with_what_the_operator_starts(operator):
    request = {"collectors": {"replicas": 1}, "learners": {"replicas": 1}}
    cfg = {"system_addr": f"127.0.0.1:{operator.port}", "check_span": 0.05}
    cfg["init_replicas_request"] = request
    workers = [FakeCollector(chunks=1), FakeLearner(iterations=1e9), FakeCollector(chunks=1)]
    for worker in workers:
        worker.start()
    first, learner, second = (f"127.0.0.1:{worker.port}" for worker in workers)
    with Run(operator_server=cfg) as run:
        operator.wait_for(lambda: ("POST", "/v1alpha1/replicas") in [a[:2] for a in operator.seen])
        operator.workers = {"collectors": [first], "learners": [learner]}
        eventually(lambda: run.commander.finished["collector"])
        workers[0].fall_silent()

        def reported():
            return [fields["collectors"] for _, path, fields in operator.seen if "failed" in path]

        operator.wait_for(reported)
        assert reported()[0] == [first]
        operator.workers = {"collectors": [second], "learners": [learner]}
        eventually(lambda: workers[2].asked)
        assert set(run.coordinator.status()["workers"]) == {second, learner}
    for worker in workers:
        worker.close()
