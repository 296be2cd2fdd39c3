"""The four documented calls of the operator's client."""

import json
import socket
from urllib.parse import parse_qsl

import pytest

from ding.interaction.base.server import HttpServer
from ding.utils.errors import ConfigError, DingError
from ding.worker.coordinator.operator_server import OperatorServer, OperatorServerError

ASKER = {"namespace": "team", "coordinator": "job-coordinator"}
WORKERS = {"collectors": ["10.0.0.1:22270"], "learners": []}


class Operator:
    """Serves a list of workers, and records its requests."""

    def __init__(self):
        self.seen, self.status, self.body = [], 200, None

    def __call__(self, environ, start_response):
        fields = json.loads(
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or "{}"
        )
        fields |= dict(parse_qsl(environ.get("QUERY_STRING", "")))
        self.seen.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], fields))
        good = {"success": True, "code": 0, "message": "", "data": WORKERS}
        body = json.dumps(good).encode() if self.body is None else self.body
        start_response(f"{self.status} x", [("Content-Type", "application/json")])
        return [body]


@pytest.fixture
def operator():
    return Operator()


@pytest.fixture
def port(operator):
    server = HttpServer(operator, "127.0.0.1", 0, 10000)
    server.start()
    yield server.port
    server.stop()
    assert server.join(10)


@pytest.fixture
def client(port, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    client = OperatorServer("127.0.0.1", port, namespace="team", name="job-coordinator")
    yield client
    client.close()


def test_asks_for_workers_and_which_there_are(operator, client):
    request = {"collectors": {"replicas": 2, "cpu": "1"}, "learners": {"replicas": 1}}
    assert client.post_replicas(request)[:3] == (True, 0, "")
    assert client.get_replicas() == (True, 0, "", WORKERS)
    assert client.delete_replicas(n_collectors=1)[0]
    assert client.post_replicas_failed(collectors=["10.0.0.1:22270"])[0]
    unused = {"collectors": {"replicas": 1}, "learners": {"replicas": 0}}
    failed = {"collectors": ["10.0.0.1:22270"], "learners": []}
    assert operator.seen == [
        ("POST", "/v1alpha1/replicas", {**request, **ASKER}),
        ("GET", "/v1alpha1/replicas", ASKER),
        ("DELETE", "/v1alpha1/replicas", {**unused, **ASKER}),
        ("POST", "/v1alpha1/replicas/failed", {**failed, **ASKER}),
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


def test_api_version(operator, port):
    client = OperatorServer("127.0.0.1", port, api_version="v2")
    assert client.api_version == "v2"
    client.get_replicas()
    assert operator.seen == [("GET", "/v2/replicas", {})]
    client.close()


def test_a_refusal_is_reported(operator, client):
    operator.status = 400
    operator.body = b'{"success": false, "code": 10, "message": "no more GPUs", "data": {}}'
    assert client.post_replicas({}) == (False, 10, "no more GPUs", {})


@pytest.mark.parametrize(("status", "nonsense"), [(200, b"<html>"), (200, b"[1]"), (503, b"")])
def test_nonsense_is_an_error(operator, client, status, nonsense):
    operator.status, operator.body = status, nonsense
    with pytest.raises(OperatorServerError, match=f"status {status} and no JSON object"):
        client.get_replicas()


def test_no_server():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = OperatorServer("127.0.0.1", port)
        with pytest.raises(DingError, match=f"GET http://127.0.0.1:{port}/v1alpha1/replicas,"):
            client.get_replicas()
        client.close()
