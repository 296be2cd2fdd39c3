"""Attacks by a stranger that eavesdrops, impersonates a peer, or is a man in the middle."""

import contextlib
import errno
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import datetime

import pytest
import requests

from ding.interaction import Master
from ding.interaction.base import tls
from ding.interaction.base._certificates import Authority
from ding.interaction.base.network import HttpEngine, NotAuthenticError
from ding.interaction.base.server import HttpServer
from ding.interaction.master.task import TaskStatus
from ding.utils import durations
from tests.interaction.peers import MASTER, SLAVE, DoingSlave, Relay, eventually, flipped, pair

KEY = "the key of the run, which no stranger knows"
OTHER_KEY = "the key of another run, which is as long!!!"
HEADERS = {"Channel": "0", "Token": "0" * 64}


@pytest.fixture
def slave() -> Iterator[DoingSlave]:
    with DoingSlave(key=KEY) as slave:
        yield slave
        slave.release.set()


@contextlib.contextmanager
def relayed(slave: DoingSlave) -> Iterator[tuple]:
    """A master and its connection to a slave, with a stranger between them."""
    with Relay(slave.port) as relay, Master(**{**MASTER, "key": KEY}) as master:
        yield relay, master, master.new_connection("worker", relay.host, relay.port)


@contextlib.contextmanager
def dialled(port: int, context: ssl.SSLContext, name: str = "") -> Iterator[ssl.SSLSocket]:
    """A TLS connection to a server of this machine."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=name or None) as secured,
    ):
        yield secured


def asked(connection: socket.socket, path: str = "/ping") -> bytes:
    """A server's answer to a request; empty if it ends the connection."""
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {text}" for name, text in HEADERS.items())]
    with contextlib.suppress(ConnectionError):
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.recv(65536)
    return b""


def careless(certificate: tuple[bytes, bytes] | None = None) -> ssl.SSLContext:
    """TLS context of a client that trusts any server, and shows that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        secret, public = certificate
        tls.load_from_memory(context, public, secret)
    return context


def send_all(connection: socket.socket, content: bytes) -> None:
    """Send it and no more, and wait until the server ends the connection."""
    with contextlib.suppress(OSError):
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


# ---------------------------------------------------------------------- who listens in


def test_a_listener_reads_neither_key_nor_messages(slave):
    secret = "what only the two may know"
    with relayed(slave) as (relay, master, _), Relay(master.port) as other:
        master._given_address = f"https://{other.host}:{other.port}"
        connection = master.new_connection("other", relay.host, relay.port)
        connection.connect()
        assert connection.new_task({"n": secret}).start().join(10).result == {"echo": {"n": secret}}
        connection.disconnect()
        for heard in (relay.requests, relay.answers, other.requests, other.answers):
            content = b"".join(heard)
            assert len(content) > 1000
            for word in (KEY.encode(), secret.encode(), b"HTTP", b"task", b"Token"):
                assert word not in content


def test_nothing_that_was_heard_can_be_sent_again(slave):
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        for n in range(3):
            connection.new_task({"n": n}).start().join(10)
        connection.disconnect()
        seen = list(slave.seen)
        heard = b"".join(relay.requests)
        # As a whole, and from the record after the handshake's first on.
        for content in (heard, heard[5 + int.from_bytes(heard[3:5]) :]):
            with socket.create_connection(("127.0.0.1", slave.port), timeout=10) as again:
                send_all(again, content)
        assert slave.ping()
        assert slave.seen == seen


# ---------------------------------------------------------------------- who stands between


@pytest.mark.parametrize("side", ["request", "answer"])
def test_who_passes_messages_on_cannot_change_them(slave, side):
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        seen = list(slave.seen)
        setattr(relay, f"change_{side}", flipped)
        with pytest.raises(requests.ConnectionError):
            connection.new_task({"do": "wait"}).start()
        assert side == "answer" or slave.seen == seen


@pytest.mark.parametrize("side", ["request", "answer"])
def test_a_request_is_sent_again_when_its_connection_was_damaged(slave, side):
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        left = [1]

        def change(piece: bytes) -> bytes:
            left[0] -= 1
            return flipped(piece) if left[0] >= 0 else piece

        setattr(relay, f"change_{side}", change)
        assert connection.new_task().start().join(10).status is TaskStatus.COMPLETED
        assert left[0] < 0


def test_what_was_meant_for_one_port_is_refused_by_another(slave):
    with (
        Relay(slave.port, "127.0.0.1", 0) as relay,
        Master(**{**MASTER, "key": KEY}) as master,
        pytest.raises(NotAuthenticError, match=f"127.0.0.1:{relay.port}.*name mismatch"),
    ):
        master.new_connection("worker", "127.0.0.1", relay.port).connect()
    assert slave.seen == []


def test_a_connection_that_leads_back_to_its_sender_is_refused():
    with (
        Master(**{**MASTER, "key": KEY}) as master,
        Relay(master.port) as mirror,
        pytest.raises(NotAuthenticError, match="name mismatch"),
    ):
        master.new_connection("worker", mirror.host, mirror.port).connect()


def test_a_master_behind_a_forwarded_port_is_found():
    with DoingSlave(key=KEY) as slave, Master(**{**MASTER, "key": KEY}) as probe:
        port = probe.port
        probe.close()
        with (
            Relay(port, "127.0.0.1", 0) as gate,
            Master(
                **{**MASTER, "port": port, "key": KEY}, my_address=f"http://127.0.0.1:{gate.port}"
            ) as master,
            master.new_connection("worker", "127.0.0.1", slave.port) as connection,
        ):
            assert connection.new_task({"n": 1}).start().join(10).result == {"echo": {"n": 1}}
            assert gate.requests


# ---------------------------------------------------------------------- who answers in place


@pytest.mark.parametrize("stranger", [{}, {"key": OTHER_KEY}], ids=["no key", "another key"])
def test_who_listens_in_place_of_a_worker_gets_nothing(stranger):
    with (
        DoingSlave(**stranger) as one,
        Relay(one.port) as relay,
        Master(**{**MASTER, "key": KEY}) as master,
    ):
        with pytest.raises(NotAuthenticError, match=f"{relay.host}:{relay.port}"):
            master.new_connection("worker", relay.host, relay.port).connect()
        assert one.seen == []
        assert b"connect" not in b"".join(relay.requests)


def own_certificate() -> tuple[bytes, bytes]:
    """A stranger's certificate, of an authority with the same name as a run's."""
    return Authority(OTHER_KEY).issue(())


def expired_certificate() -> tuple[bytes, bytes]:
    return Authority(KEY).issue((), datetime(2001, 1, 1), datetime(2002, 1, 1))


def servers_certificate() -> tuple[bytes, bytes]:
    """A certificate of the run that is not for clients."""
    return Authority(KEY).issue(("slave-1.ding.invalid",))


@pytest.mark.parametrize(
    "make", [lambda: None, own_certificate, expired_certificate, servers_certificate]
)
def test_who_has_no_valid_certificate_learns_and_does_nothing(slave, caplog, make):
    for _ in range(3):
        with (
            contextlib.suppress(ssl.SSLError, ConnectionError),
            dialled(slave.port, careless(make())) as connection,
        ):
            assert asked(connection) == b""
    eventually(lambda: "no proof of the run key" in caplog.text)
    assert slave.ping()
    assert caplog.text.count("no proof of the run key") == 1
    assert slave.seen == []


def test_older_versions_of_tls_are_refused(slave):
    context = careless(Authority(KEY).issue())
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)), dialled(slave.port, context):
        pass


def test_an_authority_of_the_web_is_not_trusted(monkeypatch, tmp_path):
    """Even if the environment names one to all programs."""
    stranger = tmp_path / "authority.pem"
    stranger.write_text(Authority(OTHER_KEY).certificate())
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, str(stranger))
    with DoingSlave(key=OTHER_KEY) as other:
        engine = HttpEngine("127.0.0.1", other.port, key=KEY, role="slave")
        with contextlib.closing(engine), pytest.raises(NotAuthenticError):
            engine.request("GET", "ping", headers=HEADERS, retries=0)


def test_plain_requests_are_refused(slave):
    for method, path in (("POST", "connect"), ("GET", "ping"), ("DELETE", "shutdown")):
        url = f"http://127.0.0.1:{slave.port}/{path}"
        answer = requests.request(method, url, headers=HEADERS, timeout=10)
        assert answer.status_code == 403
        assert "certificate" in answer.json()["message"]
    assert slave.seen == []


def test_another_machine_gets_no_answer_without_tls(slave, monkeypatch):
    from ding.interaction.base import service

    monkeypatch.setattr(service, "is_loopback", lambda address: False)
    for path in ("connect", "nowhere"):
        answer = requests.get(f"http://127.0.0.1:{slave.port}/{path}", timeout=10)
        assert answer.status_code == 403


# ---------------------------------------------------------------------- floods


def test_a_handshake_that_is_not_finished_is_given_up_and_delays_no_one(slave, monkeypatch):
    monkeypatch.setattr(durations, "HEAD_TIMEOUT", 0.3)
    hello = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = careless().wrap_bio(*hello)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    whole = hello[1].read()
    for content in (whole[:1], whole[:20], whole):
        with socket.create_connection(("127.0.0.1", slave.port), timeout=20) as one:
            one.sendall(content)
            assert slave.ping()
            with contextlib.suppress(ConnectionError):
                while one.recv(65536):  # until the server ends it
                    pass


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ECONNRESET])
def test_a_server_that_goes_during_a_handshake_is_unreachable(slave, monkeypatch, number):
    def do_handshake(self, *args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tls.DeadlineTlsSocket, "do_handshake", do_handshake)
    engine = HttpEngine("127.0.0.1", slave.port, key=KEY, role="slave", retries=0)
    with pytest.raises(requests.ConnectionError):
        engine.request("GET", "ping")


def test_what_a_server_sends_while_it_stops_stays_encrypted():
    """`ssl.SSLSocket.shutdown` would let another thread go on in plain text."""
    entered, leave, answers = threading.Event(), threading.Event(), []

    def app(environ, start_response):
        entered.set()
        leave.wait(10)
        start_response("200 OK", [])
        return [b"an answer that is under way"]

    server = HttpServer(app, "127.0.0.1", 0, 0)
    server.secure(tls.server_context(KEY, "slave", [server.port]), lambda host, cause: None)
    server.start()
    with Relay(server.port) as relay:
        engine = HttpEngine(relay.host, relay.port, key=KEY, role="slave")
        client = threading.Thread(
            target=lambda: answers.append(engine.request("GET", "x", retries=0).content)
        )
        client.start()
        assert entered.wait(10)
        server.stop()
        time.sleep(0.2)  # it has shut the receiving half by then
        leave.set()
        client.join(10)
        engine.close()
        assert server.join(10)
    assert answers == [b"an answer that is under way"]
    assert b"under way" not in b"".join(relay.answers)


# ---------------------------------------------------------------------- the authority


def test_all_parts_derive_the_same_authority():
    assert Authority(KEY).certificate() == Authority(KEY).certificate()
    assert Authority(KEY).certificate() != Authority(OTHER_KEY).certificate()


def test_certificates_do_not_depend_on_clocks():
    """A host without a clock begins in 1970."""
    from cryptography import x509

    for content in (Authority(KEY).certificate().encode(), Authority(KEY).issue()[1]):
        certificate = x509.load_pem_x509_certificate(content)
        assert certificate.not_valid_before_utc.year == 1970
        assert certificate.not_valid_after_utc.year == 9999


def test_a_process_has_one_context_and_keeps_its_connection(slave):
    assert tls.client_context(KEY) is tls.client_context(KEY)
    with relayed(slave) as (relay, _, connection):
        connection.connect()
        for n in range(20):
            connection.new_task({"n": n}).start().join(10)
        assert len(relay.sockets) == 2  # both ends of one connection
        connection.disconnect()


def test_a_restarted_worker_is_reached_again():
    with DoingSlave(key=KEY) as slave:
        engine = HttpEngine("127.0.0.1", slave.port, key=KEY, role="slave")
        port = slave.port

        def code() -> int:
            answer = engine.request(
                "DELETE", "disconnect", headers=HEADERS, raise_for_status=False, retries=0
            )
            return answer.json()["code"]

        assert code() == 502
    with DoingSlave(key=KEY, port=port):
        assert code() == 502
    with DoingSlave(key=OTHER_KEY, port=port), pytest.raises(NotAuthenticError):
        code()
    engine.close()


def test_tasks_answers_and_heartbeats_go_through():
    with pair({"key": KEY}, {"key": KEY}) as (slave, _, connection):
        for n in range(5):
            assert connection.new_task({"n": n}).start().join(10).result == {"echo": {"n": n}}
        time.sleep(1.5)  # longer than the tolerance
        assert connection.is_connected
        assert not slave.lost


@pytest.fixture
def beats(monkeypatch) -> list[float]:
    """When masters got heartbeats."""
    beats, handle = [], Master._handle_heartbeat

    def handle_heartbeat(*args):
        beats.append(time.monotonic())
        return handle(*args)

    monkeypatch.setattr(Master, "_handle_heartbeat", handle_heartbeat)
    return beats


@pytest.mark.parametrize("key", [KEY, None])
def test_with_a_key_tasks_and_answers_replace_heartbeats(key, beats):
    """A master without a key may be a foreign one, which may count heartbeats alone."""
    span, begin, longest = SLAVE["heartbeat_span"], time.monotonic(), 0.0
    with pair({"key": key}, {"key": key}) as (slave, _, connection):
        ended = begin
        while ended - begin < 5 * span:
            connection.new_task({}).start().join(10)
            before, ended = ended, time.monotonic()
            longest = max(longest, ended - before)
        assert bool(beats) == (key is None) or longest > span
        seen = len(beats)
        eventually(lambda: len(beats) > seen)  # it is silent now
        assert not slave.lost


def test_many_slaves_send_fewer_heartbeats_each_and_are_not_lost(beats, monkeypatch):
    monkeypatch.setattr(durations, "HEARTBEAT", 0.5)
    monkeypatch.setattr(durations, "HEARTBEAT_EACH", 1.5)  # one slave is as 150
    master = {"key": KEY, "heartbeat_tolerance": 0.6, "heartbeat_check_span": 0.1}
    with pair({"key": KEY, "heartbeat_span": 0.2}, master) as (slave, _, connection):
        eventually(lambda: len(beats) == 3)
        assert connection.is_connected
        assert slave.in_touch(0.1)
        assert not slave.lost
    assert beats[2] - beats[1] >= 1.4
    assert not slave.in_touch(60.0)


def test_a_bug_in_a_view_is_logged_once(caplog, monkeypatch):
    caplog.set_level("INFO")
    monkeypatch.setattr(DoingSlave, "_peer_token", lambda *_: {}["nothing"])
    with DoingSlave() as slave:
        for _ in range(4):
            url = f"http://127.0.0.1:{slave.port}/connect"
            assert requests.post(url, headers=HEADERS, timeout=10).status_code == 500
    assert len([record for record in caplog.records if record.exc_info]) == 1
