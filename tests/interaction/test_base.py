"""The parts that masters and slaves are made of."""

import io
import threading

import flask
import pytest
import requests

from ding.interaction.base import (
    CommonErrorCode,
    ControllableService,
    DblEvent,
    HttpEngine,
    ResponsibleException,
    default_func,
    failure_response,
    get_host_ip,
    get_http_engine_class,
    get_values_from_response,
    random_token,
    responsible,
    split_http_address,
    success_response,
    translate_dict_func,
)
from ding.interaction.base.server import HttpServer
from ding.interaction.base.threading import SerialExecutor
from ding.interaction.exception import (
    MasterErrorCode,
    MasterResponseException,
    MasterTaskDataInvalid,
    ResponseException,
    SlaveErrorCode,
    SlaveResponseException,
    SlaveTaskRefused,
    get_master_exception_by_error,
    get_master_exception_class_by_error_code,
    get_slave_exception_by_error,
    get_slave_exception_class_by_error_code,
)
from ding.utils.errors import NotJsonError


class TestResponses:
    def test_success_and_failure_have_one_shape(self):
        assert get_values_from_response(success_response({"a": 1}, "fine")) == (
            *(200, True, 0, "fine"),
            {"a": 1},
        )
        assert get_values_from_response(failure_response(233, "bad")) == (
            200,
            False,
            233,
            "bad",
            None,
        )
        assert get_values_from_response(success_response())[4] is None
        assert get_values_from_response(success_response({}))[4] == {}
        assert get_values_from_response(failure_response())[2] == CommonErrorCode.COMMON_FAILURE

    def test_responsible_turns_its_classes_into_answers(self):
        class Mine(ResponsibleException):
            pass

        app = flask.Flask("test")

        @app.route("/mine")
        @responsible(classes=(Mine,))
        def mine():
            raise Mine(7, "no", {"x": 1}, 418)

        @app.route("/status")
        def status():
            return failure_response(404, "nothing"), 404

        client = app.test_client()
        assert get_values_from_response(client.get("/mine")) == (418, False, 7, "no", {"x": 1})
        assert get_values_from_response(client.get("/status")) == (404, False, 404, "nothing", None)

    def test_responsible_leaves_other_exceptions(self):
        class Mine(ResponsibleException):
            pass

        @responsible(classes=(Mine,))
        def view():
            raise ResponsibleException()

        with pytest.raises(ResponsibleException):
            view()

    def test_an_answer_that_is_no_object_is_an_error(self):
        with pytest.raises(ValueError, match="list"):
            get_values_from_response(flask.Response("[1]"))


class TestCommon:
    def test_tokens_differ_and_have_the_length_asked_for(self):
        assert len(random_token()) == 64
        assert len(random_token(7)) == 7
        assert random_token() != random_token()
        with pytest.raises(ValueError):
            random_token(0)

    def test_a_service_is_a_context(self):
        calls = []

        class Service(ControllableService):
            def start(self):
                calls.append("start")

            def shutdown(self):
                calls.append("shutdown")

            def join(self):
                calls.append("join")

        with Service() as service:
            assert isinstance(service, Service)
        assert calls == ["start", "shutdown", "join"]

    def test_functional_helpers(self):
        sums = translate_dict_func({"sum": lambda a, b: a + b, "first": lambda a, b: a})
        assert sums(1, b=2) == {"sum": 3, "first": 1}
        assert default_func(5)(None)(1, 2, x=3) == 5
        assert default_func(5)(len)("four") == 4


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "parts"),
        [
            ("1.2.3.4", ("1.2.3.4", 80, False, "")),
            ("http://1.2.3.4:777/here", ("1.2.3.4", 777, False, "/here")),
            ("https://host/here", ("host", 443, True, "/here")),
            ("host:7235", ("host", 7235, False, "")),
            ("[::1]:80", ("::1", 80, False, "")),
        ],
    )
    def test_split(self, address, parts):
        assert split_http_address(address) == parts

    def test_default_port(self):
        assert split_http_address("host", 99)[1] == 99

    @pytest.mark.parametrize("address", ["", "ftp://host", "host:port", "http://"])
    def test_nonsense_is_an_error(self, address):
        with pytest.raises(ValueError):
            split_http_address(address)

    def test_host_ip(self):
        assert get_host_ip() is None or get_host_ip().count(".") == 3

    def test_url(self):
        assert HttpEngine("host", 80, True, "root/").get_url("/a/b") == "https://host:80/root/a/b"
        assert HttpEngine("::1", 80).get_url() == "http://[::1]:80"


@pytest.fixture
def echo_server():
    """Answers with the status in the header ``Want`` and what it received; counts requests."""
    app = flask.Flask("echo")
    app.hits = 0

    @app.route("/<path:path>", methods=["GET", "POST"])
    def view(path):
        app.hits += 1
        wanted = flask.request.headers.get("Want", "200").split(",")
        status = int(wanted[min(app.hits, len(wanted)) - 1])
        seen = {"headers": dict(flask.request.headers), "args": flask.request.args.to_dict()}
        if flask.request.content_length:
            seen["body"] = flask.request.get_json()
        return failure_response(602, "reported", seen), status

    server = HttpServer(app, "127.0.0.1", 0, 1000)
    server.start()
    app.port = server.port
    yield app
    server.stop()
    assert server.join(10)


class TestEngine:
    def test_class_with_headers_processor_and_errors(self, echo_server):
        make = get_http_engine_class(
            headers={"Token": lambda name: f"of {name}", "Unset": lambda name: None},
            data_processor=lambda data: {**data, "added": 1},
            http_error_gene=get_slave_exception_by_error,
        )
        engine = make("me")("127.0.0.1", echo_server.port, False)
        answer = engine.request("POST", "x", {"a": 0}, headers={"More": 1}, params={"q": "2"})
        seen = get_values_from_response(answer)[4]
        assert seen["body"] == {"a": 0, "added": 1}
        assert seen["args"] == {"q": "2"}
        assert (seen["headers"]["Token"], seen["headers"]["More"]) == ("of me", "1")
        assert "Unset" not in seen["headers"]
        with pytest.raises(SlaveTaskRefused) as caught:
            engine.request("GET", "x", headers={"Want": "403"})
        assert (caught.value.status_code, caught.value.code) == (403, 602)
        assert (caught.value.success, caught.value.message) == (False, "reported")
        assert caught.value.data["args"] == {}
        answer = engine.request("GET", "x", headers={"Want": "403"}, raise_for_status=False)
        assert answer.status_code == 403
        engine.close()

    def test_only_what_may_pass_is_tried_again(self, echo_server):
        engine = HttpEngine("127.0.0.1", echo_server.port)
        trying = dict(retries=3, retry_waiting=0.01)
        assert engine.request("GET", "x", headers={"Want": "503,502,200"}, **trying).ok
        assert echo_server.hits == 3
        with pytest.raises(requests.HTTPError):
            engine.request("GET", "x", headers={"Want": "500"}, **trying)
        assert echo_server.hits == 4
        with pytest.raises(requests.HTTPError):
            engine.request("GET", "x", headers={"Want": "503"}, **trying)
        assert echo_server.hits == 8
        engine.close()

    def test_closing_ends_the_wait_between_tries(self):
        engine = HttpEngine("127.0.0.1", 1)
        failed = threading.Event()

        def ask():
            with pytest.raises(requests.ConnectionError):
                engine.request("GET", "x", retry_waiting=60)
            failed.set()

        thread = threading.Thread(target=ask)
        thread.start()
        engine.close()
        assert failed.wait(10)
        thread.join()

    def test_proxies_of_the_environment_are_ignored(self, echo_server, monkeypatch):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.delenv("no_proxy", raising=False)
        engine = HttpEngine("127.0.0.1", echo_server.port)
        assert engine.request("GET", "x", retries=0).ok
        engine.close()

    @pytest.mark.parametrize("data", [{"a": object()}, {(1, 2): 3}])
    def test_what_is_not_json_is_not_sent(self, data):
        with pytest.raises(NotJsonError, match="may hold numbers"):
            HttpEngine("127.0.0.1", 1).request("POST", "x", data)


class TestExceptions:
    def error(self, content: bytes, status: int = 403) -> requests.HTTPError:
        response = requests.Response()
        response.raw, response.status_code = io.BytesIO(content), status
        return requests.HTTPError(response=response)

    @pytest.mark.parametrize(
        ("codes", "find", "base"),
        [
            (MasterErrorCode, get_master_exception_class_by_error_code, MasterResponseException),
            (SlaveErrorCode, get_slave_exception_class_by_error_code, SlaveResponseException),
        ],
    )
    def test_every_code_has_its_class(self, codes, find, base):
        classes = [find(code) for code in codes]
        assert len(set(classes)) == len(codes)
        assert all(issubclass(cls, base) and cls is not base for cls in classes)
        for code, cls in zip(codes, classes):
            assert cls.__name__.lower().endswith(code.name.replace("_", "").lower())
        assert find(999) is base

    def test_made_from_an_answer(self):
        err = get_master_exception_by_error(self.error(failure_response(601, "bad").get_data()))
        assert isinstance(err, MasterTaskDataInvalid)
        assert "bad" in str(err)

    @pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"code": [1]}', b"null", b"{}"])
    def test_made_from_an_answer_that_makes_no_sense(self, content):
        err = get_slave_exception_by_error(self.error(content, 502))
        assert type(err) is SlaveResponseException
        assert isinstance(err, ResponseException)
        assert (err.status_code, err.success) == (502, False)


class TestThreading:
    def test_door(self):
        door = DblEvent()
        assert door.is_close()
        assert door.wait_for_close(0)
        assert not door.wait_for_open(0.01)
        thread = threading.Timer(0.02, door.open)
        thread.start()
        assert door.wait_for_open(10)
        assert door.is_open()
        thread.join()
        door.close()
        assert door.wait_for_close(0)
        assert DblEvent(opened=True).is_open()

    def test_executor_keeps_order_and_survives_errors(self):
        executor, seen = SerialExecutor("test"), []
        executor.submit(lambda: seen.append(1))
        executor.submit(lambda: 1 / 0)
        executor.submit(lambda: seen.append(2))
        executor.close().join(10)
        executor.submit(lambda: seen.append(3))
        executor.close().join(10)
        assert seen == [1, 2, 3]
        assert executor.close() is None
