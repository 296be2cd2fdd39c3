import json
import socket

import pytest
import requests

from ding.utils.json_fields import BadMessageError
from ding.worker.engines.http_worker import JoinMessage
from ding.worker.engines.run_master import RunMaster
from tests.board.run_folders import make_run

GOOD = {"kind": "collector", "name": "collector0", "host": "127.0.0.1", "port": 8000, "pid": 7}


def _parsed(**changes):
    return JoinMessage.parse(json.dumps({"worker": {**GOOD, **changes}}).encode())


def test_a_worker_that_joins():
    assert _parsed() == JoinMessage(**GOOD)
    assert _parsed(name="a-b.c_9").name == "a-b.c_9"


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "coordinator"},
        *({"name": name} for name in ("", "../x", ".hidden", "a/b", "a b", "\n", "x" * 65, 7)),
        *({"host": host} for host in ("", "x" * 300, "\0", 7)),
        *({"port": port} for port in (0, -1, 65536, "8000", 1.5, True)),
        {"pid": "7"},
    ],
)
def test_a_damaged_message_is_refused_by_its_field(changes):
    with pytest.raises(BadMessageError, match=next(iter(changes))):
        _parsed(**changes)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"{}", b'{"worker": []}', b"[" * 5000])
def test_a_body_that_is_no_message_is_refused(body):
    with pytest.raises(BadMessageError):
        JoinMessage.parse(body)


@pytest.fixture
def master():
    with RunMaster(
        port=0,
        key="the key of the run",
        on_join=print,
        on_lost=print,
        status=lambda: {"state": "running"},
    ) as master:
        yield master


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:80", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:1", 200),
        ("10.1.2.3", 200),  # an address cannot be rebound, unlike a name
        (socket.gethostname(), 200),
        ("rebound.example", 403),
        ("127.0.0.1.rebound.example", 403),
        ("localhost.rebound.example:80", 403),
        ("", 403),
        (":80", 403),
        ("a b", 403),
    ],
)
def test_pages_of_browsers_may_not_ask_for_the_status(master, host, status):
    url = f"http://127.0.0.1:{master.port}/status"
    answer = requests.get(url, headers={"Host": host}, timeout=10)
    assert answer.status_code == status
    assert answer.json()["data"] == ({"state": "running"} if status == 200 else None)


def test_status_under_the_name_that_it_listens_at():
    master = RunMaster(
        "0.0.0.0",
        0,
        my_address="http://gate.example:9",
        on_join=print,
        on_lost=print,
        status=lambda: {"state": "running"},
    )
    with master:
        url = f"http://127.0.0.1:{master.port}/status"
        for host, status in (("gate.example", 200), ("other.example", 403)):
            assert requests.get(url, headers={"Host": host}, timeout=10).status_code == status


def test_strangers_are_reported(master, monkeypatch):
    lines = []
    monkeypatch.setattr(master, "_on_warning", lines.append)
    url = f"http://127.0.0.1:{master.port}/worker/join"
    for _ in range(2):
        requests.post(url, headers={"Channel": "0", "Token": "x"}, timeout=10)
    (line,) = lines
    assert "127.0.0.1" in line


def test_the_run_has_a_page(tmp_path):
    make_run(tmp_path / "run", status="running")
    facts = {"exp_name": "run", "waits": "no worker waits"}
    with RunMaster(port=0, on_join=print, on_lost=print, status=lambda: facts) as master:
        url = f"http://127.0.0.1:{master.port}"
        assert "<title>ding board</title>" in requests.get(f"{url}/", timeout=5).text
        answer = requests.get(f"{url}/api/runs", timeout=5).json()
        assert (answer["single"], [run["id"] for run in answer["runs"]]) == (True, ["."])
        assert requests.get(f"{url}/api/run?id=.", timeout=5).json()["live"] == facts
        strange = {"Host": "evil.example"}
        assert requests.get(f"{url}/api/runs", headers=strange, timeout=5).status_code == 403
        assert requests.post(f"{url}/", timeout=5).status_code == 405
