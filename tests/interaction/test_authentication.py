"""What a stranger can do who hears everything, answers in place of a peer, or passes it on."""

import base64
import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable

import pytest
import requests

from ding.interaction import Master
from ding.interaction.base import authentication
from ding.interaction.base.authentication import KeyClient, KeyServer, NotAuthenticError
from ding.interaction.base.network import HttpEngine
from ding.interaction.exception import ResponseException
from ding.interaction.master.task import TaskStatus
from ding.utils import durations
from tests.interaction.peers import MASTER, DoingSlave, eventually, pair

KEY = "the key of the run, which nobody else knows"


class Relay:
    """Listens between two peers: records what they send, and may change it.

    Attributes:
        requests, answers: What came from either side, whole messages as far as they came at once.
        change_request, change_answer: Applied to each piece.
    """

    def __init__(self, port: int | None = None, target: int | None = None) -> None:
        self._server = socket.create_server(("127.0.0.1", port or 0))
        self.port, self.target = self._server.getsockname()[1], target
        self.requests: list[bytes] = []
        self.answers: list[bytes] = []
        self.change_request: Callable[[bytes], bytes] = lambda piece: piece
        self.change_answer: Callable[[bytes], bytes] = lambda piece: piece
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                self._sockets += [client, server]
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


@pytest.fixture
def slave():
    with DoingSlave(key=KEY) as slave:
        yield slave
        slave.release.set()


@contextlib.contextmanager
def relayed(slave: DoingSlave, **master):
    """A master and its connection to a slave with a stranger between.

    The slave takes the stranger's port for its own, as behind a forwarded port.
    """
    with Relay(target=slave.port) as relay, Master(**{**MASTER, "key": KEY, **master}) as one:
        mine = slave._is_mine
        slave._key_server._is_mine = lambda target: mine(target) or str(relay.port) in target
        yield relay, one, one.new_connection("worker", "127.0.0.1", relay.port)


def raw(port: int, content: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(content)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer


def test_the_key_does_not_travel(slave):
    with relayed(slave) as (relay, master, connection), Relay(target=master.port) as other:
        master._given_address = f"http://127.0.0.1:{other.port}"
        connection = master.new_connection("other", "127.0.0.1", relay.port)
        connection.connect()
        assert connection.new_task({"n": 1}).start().join(10).result == {"echo": {"n": 1}}
        connection.disconnect()
        heard = b"".join(relay.requests + relay.answers + other.requests + other.answers)
    assert b"/task/new" in heard
    assert b"/slave/task/complete" in heard
    assert KEY.encode() not in heard


def test_nothing_that_was_heard_can_be_sent_again(slave):
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        for n in range(3):
            connection.new_task({"n": n}).start().join(10)
        connection.disconnect()
        seen = list(slave.seen)
        heard = re.split(rb"(?=(?:POST|DELETE) /)", b"".join(relay.requests))[1:]
        assert len(heard) == 6
        for request in heard[1:]:
            assert raw(slave.port, request).startswith(b"HTTP/1.1 403 ")
        assert slave.seen == seen
    with DoingSlave(key=KEY) as again:  # another process with the same key
        for request in heard[1:]:
            assert raw(again.port, request).startswith(b"HTTP/1.1 401 ")
        assert again.seen == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"do":"sleep"', b'"do":"raise"'),
        (b"POST /task/new", b"POST /task/old"),
        (b"Auth-Count: 2", b"Auth-Count: 9"),
        (b"Token: ", b"Token: 0"),
    ],
)
def test_who_passes_a_request_on_cannot_change_it(slave, old, new):
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        changed = []

        def change(piece):
            if old in piece:
                changed.append(piece)
            return piece.replace(old, new)

        relay.change_request = change
        with pytest.raises((ResponseException, requests.RequestException)):
            connection.new_task({"do": "sleep", "seconds": 0}).start()
        assert changed
        assert [what for what, _ in slave.seen] == ["connect"]
        relay.change_request = lambda piece: piece


def test_who_passes_an_answer_on_cannot_change_it(slave):
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        relay.change_answer = lambda piece: piece.replace(b"accepted", b"rejected")
        with pytest.raises(NotAuthenticError, match="not signed"):
            connection.new_task({"do": "wait"}).start()


def test_an_answer_of_before_is_no_answer(slave):
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        assert connection.new_task({"n": 0}).start().join(10).status is TaskStatus.COMPLETED
        old = next(answer for answer in relay.answers if b"accepted" in answer)
        relay.change_answer = lambda piece: old
        with pytest.raises(NotAuthenticError):
            connection.new_task({"do": "wait"}).start()


def test_who_passes_messages_on_cannot_give_tasks(slave):
    """He has every token, and a connection on which somebody has authenticated."""
    with relayed(slave) as (relay, master, connection):
        connection.connect()
        token = master._slaves["worker"][0].token
        session = next(r for r in relay.requests if b"POST /connect" in r)
        head = dict(
            line.split(": ", 1) for line in session.decode().split("\r\n") if line[:5] == "Auth-"
        )
        headers = {"Channel": "0", "Token": token, **head}
        body = {"task": {"id": "d458feb5-e919-495d-a379-e73589df6244"}, "data": {"do": "x"}}
        for count in ("1", "2", "99"):
            headers["Auth-Count"] = count
            url = f"http://127.0.0.1:{slave.port}/task/new"
            answer = requests.post(url, json=body, headers=headers, timeout=10)
            assert answer.status_code == 403
        assert [what for what, _ in slave.seen] == ["connect"]


def test_who_listens_in_place_of_a_peer_learns_nothing_and_gets_nothing():
    with Relay() as stranger, Master(**{**MASTER, "key": KEY}) as master:
        with DoingSlave() as keyless:  # he may answer as he likes, but not with the key
            stranger.target = keyless.port
            connection = master.new_connection("worker", "127.0.0.1", stranger.port)
            with pytest.raises(NotAuthenticError, match=f"127.0.0.1:{stranger.port}"):
                connection.connect()
            assert keyless.seen == []
        with DoingSlave(key="another key of the same length") as other:
            stranger.target = other.port
            with pytest.raises(NotAuthenticError):
                connection.connect()
    heard = b"".join(stranger.requests)
    assert heard.count(b"POST /authenticate") == 2
    assert b"POST /connect" not in heard
    assert KEY.encode() not in heard


def test_a_greeting_that_is_sent_back_proves_nothing():
    """A master that dials a stranger who dials that very master."""
    with Master(**{**MASTER, "key": KEY}) as master, Relay(target=master.port) as mirror:
        mine = master._is_mine
        master._key_server._is_mine = lambda target: mine(target) or str(mirror.port) in target
        with pytest.raises(NotAuthenticError, match="proof is wrong"):
            master.new_connection("worker", "127.0.0.1", mirror.port).connect()


def test_what_was_meant_for_one_worker_is_refused_by_another(slave):
    with Relay(target=slave.port) as relay, Master(**{**MASTER, "key": KEY}) as master:
        with pytest.raises(NotAuthenticError, match="not the address"):
            master.new_connection("worker", "127.0.0.1", relay.port).connect()
        assert slave.seen == []


@pytest.mark.parametrize(
    ("host", "target", "mine"),
    [
        ("127.0.0.1", "127.0.0.1:7", True),
        ("127.0.0.1", "localhost:7", True),
        ("127.0.0.1", "127.0.0.2:7", False),
        ("127.0.0.1", "127.0.0.1:8", False),
        ("0.0.0.0", "10.1.2.3:7", True),
        ("0.0.0.0", "10.1.2.3:8", False),
        ("node7", "node7:7", True),
        ("10.1.2.3", "node7:7", True),
        ("::1", "[::1]:7", True),
        ("127.0.0.1", "x:y:z", False),
    ],
)
def test_own_addresses(host, target, mine):
    assert DoingSlave(host=host, port=7)._is_mine(target) is mine


def test_a_forwarded_address_is_a_masters_own():
    master = Master(port=7, my_address="http://gate.example:9000")
    assert master._is_mine("gate.example:9000")
    assert not master._is_mine("gate.example:9001")


def test_it_authenticates_again_when_the_peer_was_started_anew():
    slave = DoingSlave(key=KEY)
    with slave:
        engine = HttpEngine("127.0.0.1", slave.port)
        engine.key_client = KeyClient(KEY, "slave", f"127.0.0.1:{slave.port}")
        headers = {"Channel": "0", "Token": "mine"}

        def ask():
            answer = engine.request(
                "DELETE", "disconnect", headers=headers, raise_for_status=False, retries=0
            )
            return answer.status_code, answer.json()["code"]

        assert ask() == (400, 502)
        slave._key_server = slave._make_key_server(KEY)
        assert ask() == (400, 502)
        slave._key_server = slave._make_key_server("another key")
        with pytest.raises(NotAuthenticError):
            ask()
        engine.close()


def spellings(text: str) -> list[str]:
    """Other texts that say, or nearly say, what the header of a session says."""
    nonce, own, target = json.loads(text)
    parts = [nonce, own, target]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in own)
    stamp, rest = own.split(".", 1)
    return [
        json.dumps(parts, separators=(",", ":")),
        json.dumps(parts, indent=1).replace("\n", " "),
        text.replace(", ", ",\t"),
        text.replace(", ", ",\r\n "),  # a folded header
        f"[ {text[1:]}",
        f"{text[:-1]} ]",
        text.replace(own, escaped),
        text.replace(target, "".join(f"\\u{ord(letter):04X}" for letter in target)),
        text.replace(nonce[0], f"\\u{ord(nonce[0]):04x}", 1),
        text.replace(":", "\\u003a"),
        text.replace("[", '["x", ', 1),
        json.dumps([*parts, "x"]),
        json.dumps([*parts, []]),
        json.dumps([parts]),
        json.dumps(parts[::-1]),
        json.dumps({"nonce": nonce, "own": own, "target": target}),
        f'{{"nonce": "x", "nonce": "{nonce}", "own": "{own}", "target": "{target}"}}',
        json.dumps([nonce, own.upper(), target]),
        json.dumps([nonce, f"0{own}", target]),
        json.dumps([nonce, f"0x{own}", target]),
        json.dumps([nonce, f"{stamp[0]}_{stamp[1:]}.{rest}", target]),
        json.dumps([nonce, f" {own}", target]),
        json.dumps([nonce, f"{own} ", target]),
        json.dumps([nonce + " ", own, target]),
        json.dumps([nonce.upper(), own, target]),
        json.dumps([nonce, own, target.upper() + "."]),
        json.dumps([nonce, own, target.replace("127.0.0.1", "localhost")]),
        json.dumps(json.dumps(parts)),
        text + " x",
        text + ",",
        text + text,
        f"{text}, {text}",
        "\ufeff".encode().decode("latin-1") + text,
        base64.b64encode(text.encode()).decode(),
        base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
        text.replace('"', "'"),
    ]


def test_another_spelling_of_a_session_is_no_new_session(slave):
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        connection.new_task({"n": 1}).start().join(10)
        heard = re.split(rb"(?=(?:POST|DELETE) /)", b"".join(relay.requests))[1:]
        task = next(one for one in heard if one.startswith(b"POST /task/new"))
        text = re.search(rb"Auth-Session: ([^\r]+)\r", task)[1].decode()
        seen = list(slave.seen)
        variants = spellings(text)
        assert text not in variants
        for variant in [text, f"  {text}\t", *variants]:
            again = task.replace(text.encode(), variant.encode("latin-1"))
            answer = raw(slave.port, again)
            assert re.match(rb"HTTP/1.1 40[0134] ", answer), (variant, answer)
            assert (
                re.match(rb"HTTP/1.1 400 ", answer)
                or variant in (text, f"  {text}\t")
                or (re.fullmatch(r'\["[^"\\]*", "[0-9a-f.]*", "[^"\\]*"\]', variant))
            ), (variant, answer)
        for name in ("Auth-Session", "Auth-Count", "Auth-Digest", "Auth-Proof"):
            for again in (
                task.replace(f"{name}:".encode(), name.upper().encode() + b":"),
                task.replace(f"{name}:".encode(), name.replace("-", "_").encode() + b":"),
                re.sub(rf"({name}: )([^\r]+)".encode(), rb"\1\2\r\n\1\2", task),
                re.sub(rf"({name}: )([^\r]+)".encode(), rb"\g<1>0\2", task),
                re.sub(rf"({name}: )([^\r]+)".encode(), rb"\1+\2", task),
            ):
                assert re.match(rb"HTTP/1.1 40[03] ", raw(slave.port, again)), again
        assert slave.seen == seen
        assert len(slave._key_server._sessions) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Auth-Session", "x"),
        ("Auth-Session", "[" * 30_000),
        ("Auth-Session", '["a", "' + "f" * 30_000 + '.0.0", "c"]'),
        ("Auth-Session", "[1, 2, 3]"),
        ("Auth-Session", "[" + "9" * 5000 + ", 1, 2]"),
        ("Auth-Session", "[NaN, NaN, NaN]"),
        ("Auth-Session", '["\\ud800", "\\ud800", "\\ud800"]'),
        ("Auth-Session", "null"),
        ("Auth-Count", "0"),
        ("Auth-Count", "-1"),
        ("Auth-Count", "1e3"),
        ("Auth-Count", "9" * 5000),
        ("Auth-Count", "\xb2"),
        ("Auth-Digest", "F" * 64),
        ("Auth-Proof", "0" * 63),
        ("Auth-Proof", "\xfc" * 64),
    ],
)
def test_a_malformed_head_is_the_senders_fault_and_logged_once(slave, caplog, name, value):
    caplog.set_level("INFO")
    parts = json.dumps(["n" * 64, f"1.{'0' * 32}.{'0' * 64}", f"127.0.0.1:{slave.port}"])
    headers = {"Auth-Session": parts, "Auth-Count": "1"}
    headers.update(dict.fromkeys(("Auth-Digest", "Auth-Proof"), "0" * 64))
    headers.update({"Channel": "0", "Token": "x", name: value})
    lines = "".join(f"{key}: {text}\r\n" for key, text in headers.items())
    request = f"POST /connect HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}Content-Length: 0\r\n\r\n"
    for _ in range(5):
        assert raw(slave.port, request.encode("latin-1")).startswith(b"HTTP/1.1 400 ")
    slave.close()
    told = [record.getMessage() for record in caplog.records if record.name.startswith("ding.")]
    assert len([line for line in told if "malformed" in line]) == 1
    assert len([line for line in told if "5 requests from 127.0.0.1 refused" in line]) == 1
    assert sum(map(len, told)) < 500


def test_a_bug_in_a_view_is_logged_once_and_counted(caplog, monkeypatch):
    caplog.set_level("INFO")
    with DoingSlave() as slave:
        monkeypatch.setattr(slave, "_peer_token", lambda: {}["nothing"])
        slave._server._server.app = slave._make_app()
        for _ in range(4):
            url = f"http://127.0.0.1:{slave.port}/connect"
            headers = {"Channel": "0", "Token": "x"}
            assert requests.post(url, headers=headers, timeout=10).status_code == 500
    assert len([record for record in caplog.records if record.exc_info]) == 1
    assert any("4 requests failed: KeyError at " in r.getMessage() for r in caplog.records)


def test_strangers_are_logged_once(slave, caplog):
    for _ in range(3):
        requests.post(
            f"http://127.0.0.1:{slave.port}/connect",
            headers={"Channel": "0", "Token": "x"},
            timeout=10,
        )
    lines = [r.getMessage() for r in caplog.records if "refuses a request from" in r.getMessage()]
    assert len(lines) == 1
    assert "127.0.0.1" in lines[0]
    assert "run key" in lines[0]


class TestServer:
    @pytest.fixture
    def server(self):
        return KeyServer(KEY, "slave", lambda target: True, 301, 302)

    @pytest.mark.parametrize(
        "body",
        [
            None,
            [],
            {},
            {"nonce": "x" * 64},
            {"nonce": 1, "target": "a:1"},
            {"nonce": "x", "target": "a:1"},
            {"nonce": "x" * 64, "target": ["a"]},
            {"nonce": "x" * 10**6, "target": "a:1"},
        ],
    )
    def test_greetings_are_checked(self, server, body):
        with pytest.raises(authentication.ResponsibleException):
            server.greet(body)

    def request(self, server, session=None):
        """The head of a signed request, in the session that is given."""
        if session is None:
            client = KeyClient(KEY, "slave", "a:1")

            def greet(body):
                response = requests.Response()
                response.status_code = 200
                response._content = json.dumps({"data": server.greet(body)}).encode()
                return response

            session = client._open(greet, None)
        prepared = requests.Request("GET", "http://a:1/x", headers={"Channel": "0"}).prepare()
        session.sign(prepared)
        return session, prepared.headers

    def test_numbers_count_once_in_any_order(self, server):
        session, _ = self.request(server)
        heads = [self.request(server, session)[1].copy() for _ in range(50)]
        for head in reversed(heads):
            server.judge(head, "GET", "/x")
        for head in heads:
            with pytest.raises(authentication.ResponsibleException, match="came before"):
                server.judge(head, "GET", "/x")

    def test_numbers_far_behind_are_too_late(self, server):
        session, first = self.request(server)
        first = first.copy()
        for _ in range(authentication.WINDOW + 1):
            server.judge(self.request(server, session)[1], "GET", "/x")
        with pytest.raises(authentication.ResponsibleException, match="came before"):
            server.judge(first, "GET", "/x")
        assert len(next(iter(server._sessions.values()))._seen) <= 2 * authentication.WINDOW

    def test_a_nonce_has_its_time(self, server, monkeypatch):
        _, head = self.request(server)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + durations.NONCE_LIFE + 1)
        with pytest.raises(authentication.ResponsibleException, match="authenticate again"):
            server.judge(head, "GET", "/x")
        assert not server._sessions

    def test_greetings_leave_nothing_behind(self, server):
        for number in range(1000):
            server.greet({"nonce": f"{number:064d}", "target": "a:1"})
        assert not server._sessions

    def test_a_session_is_one_clients(self, server):
        """Another client's nonce, or another address, makes another key: no one may mix them."""
        session, head = self.request(server)
        server.judge(head, "GET", "/x")
        nonce, own, target = json.loads(session._text)
        for text in ([nonce[::-1], own, target], [nonce, own, "b:1"]):
            _, head = self.request(server, session)
            head["Auth-Session"] = json.dumps(text)
            with pytest.raises(authentication.ResponsibleException, match="another client"):
                server.judge(head, "GET", "/x")
        assert len(server._sessions) == 1

    def test_resting_sessions_are_forgotten_and_those_at_work_kept(self, server, monkeypatch):
        monkeypatch.setattr(authentication, "MAX_SESSIONS", 3)
        at_work, head = self.request(server)
        server.judge(head, "GET", "/x")
        for _ in range(4):
            server.judge(self.request(server)[1], "GET", "/x")
        assert len(server._sessions) == 5  # too young to be forgotten
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 3 * durations.NONCE_LIFE)
        server.judge(self.request(server, at_work)[1], "GET", "/x")
        server.judge(self.request(server)[1], "GET", "/x")
        assert len(server._sessions) == 3
        server.judge(self.request(server, at_work)[1], "GET", "/x")


def test_tasks_answers_and_heartbeats_are_authenticated():
    with pair({"key": KEY}, {"key": KEY}) as (slave, master, connection):
        for n in range(5):
            assert connection.new_task({"n": n}).start().join(10).result == {"echo": {"n": n}}
        silent = master._slaves["worker"][0].last_seen
        eventually(lambda: master._slaves["worker"][0].last_seen > silent)
        assert not slave.lost
