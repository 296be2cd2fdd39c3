import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from ding.utils import durations
from ding.utils.errors import ConfigError, DingError
from ding.worker.coordinator.operator_server import OperatorServer, OperatorServerError

LONG = 20


class FakeOperator:
    """Serves lists of workers, and records its requests."""

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


def test_a_refusal_is_reported(operator, client):
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


def test_no_server(monkeypatch):
    monkeypatch.setattr(durations, "OPERATOR_RETRY", 0.01)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = OperatorServer("127.0.0.1", port)
        with pytest.raises(DingError, match=f"GET http://127.0.0.1:{port}/v1alpha1/replicas,"):
            client.get_replicas()
        client.close()
