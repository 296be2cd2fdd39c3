"""What masters and slaves have in common: a server whose every request is checked first."""

import hmac
import logging
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from http import HTTPStatus
from typing import Any

import flask
import requests
from werkzeug.exceptions import HTTPException

from ding.interaction.config import (
    DEFAULT_CHANNEL,
    DEFAULT_MAX_BODY,
    DEFAULT_REQUEST_RETRIES,
    DEFAULT_REQUEST_RETRY_WAITING,
    DEFAULT_REQUEST_TIMEOUT,
    GLOBAL_HOST,
    LOCAL_HOST,
)
from ding.utils.errors import InteractionError

from .app import ResponsibleException, failure_response, responsible, success_response
from .common import ControllableService, random_token
from .network import HttpEngine, get_host_ip, is_loopback, is_own_name, joined
from .server import AUTHENTIC_KEY, HttpServer
from .tls import server_context

_logger = logging.getLogger(__name__)

#: Hosts of strangers that are logged, each once.
LOGGED_HOSTS = 100


class CheckCode(IntEnum):
    """Error codes that masters and slaves have in common, of failed checks."""

    SHUTTING_DOWN = 101
    CHANNEL_MISSING = 201
    CHANNEL_INVALID = 202
    SELF_TOKEN_MISSING = 401
    SELF_TOKEN_INVALID = 402


@dataclass(frozen=True)
class Route:
    """What one address does.

    Attributes:
        method: HTTP method.
        path: Path of the address.
        check: Raises `ResponsibleException` unless the caller may; what it returns is handed on.
        handle: Does the work with what `check` returned; returns the answer's message or its data,
            or ``None`` for success with neither.
        public: Whether anybody may ask, without channel and token. Only under an address of this
            server: a page in a browser whose name was pointed here may not.
        max_body: Greatest size of the request's body in bytes; that of the service if not given.
    """

    method: str
    path: str
    check: Callable[[], Any]
    handle: Callable[[Any], str | Mapping[str, Any]]
    public: bool = False
    max_body: int | None = None


class HttpService(ControllableService):
    """A service that listens, knows itself by a token and its peers by theirs.

    With a key, peers speak TLS, and both sides need a certificate of the run. In plain HTTP, only
    what is public is answered, and only to this machine. For the arguments see `Master`.
    """

    #: Error codes of a peer's token that is missing, and of one that is wrong.
    _peer_codes: tuple[int, int]
    #: What its certificate calls it: ``master`` or ``slave``.
    _role: str

    def __init__(
        self,
        host: str | None = None,
        port: int = 0,
        request_retries: int | None = None,
        request_retry_waiting: float | None = None,
        channel: int | None = None,
        key: str | None = None,
        request_timeout: float | None = None,
        max_body: int | None = None,
        on_death: Callable[[str], object] | None = None,
    ) -> None:
        if key is not None and not key:
            raise ValueError("the run key is empty; give None to work without one")
        self._host = LOCAL_HOST if host is None else host
        self._port = port
        self._retries, self._retry_waiting = request_retries, request_retry_waiting
        self._timeout = request_timeout
        self._max_body = _or(max_body, DEFAULT_MAX_BODY)
        self._on_death = _or(on_death, _logger.error)
        self._channel = _or(channel, DEFAULT_CHANNEL)
        self._key = key
        self._self_token = random_token()
        self._counts: Counter[str] = Counter()  # requests that had no good end, by the reason
        self._count_lock = threading.Lock()
        self._server: HttpServer | None = None
        self._shutting_down = threading.Event()

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        """The real port once it was started, what was asked for before."""
        return self._port if self._server is None else self._server.port

    @property
    def my_address(self) -> str:
        """``host:port`` for others to reach it.

        Raises:
            InteractionError: Its port is chosen when it starts, and it was not started.
        """
        if self.port == 0:
            raise InteractionError("the port (0: any free one) is known after start(); start first")
        host = self._host
        if host in (GLOBAL_HOST, "::", ""):
            host = get_host_ip() or LOCAL_HOST
        return joined(host, self.port)

    def start(self) -> None:
        """Listen and begin to work.

        Raises:
            PortTakenError: Another program listens on the port.
            InteractionError: It cannot listen there, or it runs already.
        """
        if self._server is not None and not self._server.join(0):
            raise InteractionError(f"the service at {self.my_address} runs already")
        self._shutting_down.clear()
        self._server = HttpServer(
            self._make_app(),
            self._host,
            self._port,
            self._max_body,
            self._end,
            self._die,
            self._on_warning,
        )
        if self._key is not None:
            context = server_context(self._key, self._role, self._ports())
            self._server.secure(context, self._note_stranger)
        self._on_start()
        self._server.start()

    def _ports(self) -> set[int]:
        """The ports that peers dial."""
        return {self.port}

    def shutdown(self) -> None:
        """Ask it to end; does not wait. From here on requests are refused."""
        self._shutting_down.set()
        if self._server is not None:
            self._server.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Whether it has ended within `timeout` seconds; ``None`` waits for ever."""
        return self._server is None or self._server.join(timeout)

    def ping(self) -> bool:
        """Whether it answers requests."""
        if self._server is None:
            return False
        host = {GLOBAL_HOST: LOCAL_HOST, "": LOCAL_HOST, "::": "::1"}.get(self._host, self._host)
        headers = {"Channel": str(self._channel), "Token": self._self_token}
        address = (host, self.port, False, "")
        engine = make_engine(
            headers, address, self._timeout, retries=0, key=self._key, role=self._role
        )
        try:
            return engine.request("GET", "ping").ok
        except requests.RequestException:
            return False
        finally:
            engine.close()

    def _on_start(self) -> None:
        """Begin what else has to run; called when the port is there."""

    def _end(self) -> None:
        with self._count_lock:
            repeated = {reason: count for reason, count in self._counts.items() if count > 1}
        for reason, count in repeated.items():
            _logger.info("the %s at port %d: %d requests %s", self._role, self.port, count, reason)
        self._on_stop()

    def _on_stop(self) -> None:
        """End what else runs; called while requests are still answered, with a refusal."""

    def _die(self, cause: str) -> None:
        self._shutting_down.set()
        self._on_death(cause)

    def _on_warning(self, line: str) -> None:
        """Told what hinders it; once for each host, of callers without a certificate of the run."""
        _logger.warning("%s", line)

    @abstractmethod
    def _routes(self) -> list[Route]:
        """The addresses that it serves besides those of every service."""

    def _make_app(self) -> flask.Flask:
        app = flask.Flask(type(self).__name__, static_folder=None)
        app.url_map.strict_slashes = app.url_map.merge_slashes = False
        app.register_error_handler(HTTPException, _answer_http_error)
        app.register_error_handler(Exception, self._answer_bug)
        app.before_request(self._check_connection)
        own = [
            Route("GET", "/ping", self._check_self, lambda _: "PONG"),
            Route("DELETE", "/shutdown", self._check_self, self._handle_shutdown),
        ]
        for route in own + self._routes():
            app.add_url_rule(
                route.path,
                f"{route.method} {route.path}",
                self._view(route),
                methods=[route.method],
                provide_automatic_options=False,
            )
        return app

    def _view(self, route: Route) -> Callable[[], flask.Response]:
        @responsible()
        def view() -> flask.Response:
            self._check_open()
            if route.public:
                self._check_host()
            else:
                self._check_certificate()
                self._check_channel()
            checked = route.check()
            size = flask.request.content_length or 0
            if route.max_body is not None and size > route.max_body:
                message = f"the body may have {route.max_body} bytes here, this one has {size}"
                status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                raise refusal(CheckCode.CHANNEL_INVALID, message, status)
            answer = route.handle(checked)
            # Without a key, anybody may come as far as this; what was accepted is not hostile.
            if not route.public:
                flask.request.environ[AUTHENTIC_KEY]()
            if isinstance(answer, str):
                return success_response(message=answer)
            return success_response(answer)

        return view

    def _answer_bug(self, error: Exception) -> tuple[flask.Response, int]:
        if self._is_first(f"failed: {_place(error)}"):
            _logger.exception("a request failed; further ones are counted", exc_info=error)
        if isinstance(error, MemoryError):
            self._on_death("there is no memory left for answering requests")
        message = f"{type(error).__name__}: {error}"
        return failure_response(message=message), HTTPStatus.INTERNAL_SERVER_ERROR

    def _handle_shutdown(self, _: None) -> str:
        self.shutdown()
        return "shutting down"

    def _check_open(self) -> None:
        if self._shutting_down.is_set():
            raise refusal(CheckCode.SHUTTING_DOWN, "shutting down", HTTPStatus.UNAUTHORIZED)

    def _check_channel(self) -> None:
        channel = flask.request.headers.get("Channel")
        if channel is None:
            raise refusal(CheckCode.CHANNEL_MISSING, "header 'Channel' is missing")
        if channel.strip() != str(self._channel):
            raise refusal(CheckCode.CHANNEL_INVALID, "wrong channel", HTTPStatus.FORBIDDEN)

    def _check_host(self) -> None:
        """Refuse a request that was sent to a name which is not this server's."""
        header = flask.request.headers.get("Host", "")
        if not is_own_name(header, self.my_address, self._host):
            message = f"header 'Host' is {header[:100]!r}; ask under the server's address"
            raise refusal(CheckCode.CHANNEL_INVALID, message, HTTPStatus.FORBIDDEN)

    def _check_self(self) -> None:
        token = self._given("Token", CheckCode.SELF_TOKEN_MISSING)
        if not same_secret(token, self._self_token):
            message = "not the token of this service itself"
            raise refusal(CheckCode.SELF_TOKEN_INVALID, message, HTTPStatus.FORBIDDEN)

    def _check_connection(self) -> flask.Response | None:
        """Answer a caller on another machine who has no certificate of the run."""
        if self._is_certified() or is_loopback(flask.request.remote_addr):
            return None
        return self._uncertified().get_response()

    def _check_certificate(self) -> None:
        if not self._is_certified():
            raise self._uncertified()

    def _is_certified(self) -> bool:
        return self._key is None or flask.request.scheme == "https"

    def _uncertified(self) -> ResponsibleException:
        message = "this side has a run key: it needs TLS, and a certificate of the run"
        self._note_stranger(str(flask.request.remote_addr), "it does not use TLS")
        return refusal(self._peer_codes[0], message, HTTPStatus.FORBIDDEN)

    def _peer_token(self) -> str:
        """The token of a caller that has a certificate of the run, if this side has a key."""
        return self._given("Token", self._peer_codes[0])

    def _note_stranger(self, host: str, cause: str) -> None:
        if len(self._counts) >= LOGGED_HOSTS and f"from {host} refused" not in self._counts:
            host = "other hosts"
        if self._is_first(f"from {host} refused"):
            self._on_warning(
                f"the {self._role} at {self.my_address} refuses a connection from {host}, which "
                f"has no proof of the run key: {cause}"
            )

    def _is_first(self, reason: str) -> bool:
        """Count a request that had no good end; whether it is the first for this reason."""
        with self._count_lock:
            self._counts[reason] += 1
            return self._counts[reason] == 1

    @staticmethod
    def _given(header: str, code: int) -> str:
        value = flask.request.headers.get(header)
        if not value:
            raise refusal(code, f"header {header!r} is missing")
        return value


def make_engine(
    headers: Mapping[str, str | None],
    address: tuple[str, int, bool, str],
    timeout: float | None = None,
    retries: int | None = None,
    retry_waiting: float | None = None,
    errors: Callable[[requests.HTTPError], Exception] | None = None,
    *,
    key: str | None = None,
    role: str = "",
) -> HttpEngine:
    """A client with fixed headers; see the attributes of `HttpEngine`.

    Args:
        address: Host, port, whether HTTPS, and path.
        key: The run's key, of which both sides need a certificate.
        role: What the server is, if there is a key: ``master`` or ``slave``.
    """
    engine = HttpEngine(*address, key=key, role=role)
    engine.headers, engine.error_of = headers, errors
    engine.timeout = _or(timeout, DEFAULT_REQUEST_TIMEOUT)
    engine.retries = _or(retries, DEFAULT_REQUEST_RETRIES)
    engine.retry_waiting = _or(retry_waiting, DEFAULT_REQUEST_RETRY_WAITING)
    return engine


def refusal(code: int, message: str, status: int = HTTPStatus.BAD_REQUEST) -> ResponsibleException:
    """What a view raises to answer with an error."""
    return ResponsibleException(code, message, status_code=int(status))


def same_secret(given: str, expected: str) -> bool:
    """Compare in a time that tells nothing about where they differ."""
    encoded = (text.encode(errors="backslashreplace") for text in (given, expected))
    return hmac.compare_digest(*encoded)


def _place(error: BaseException) -> str:
    """Type of an error, and the line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "?" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__} at {where}"


def _answer_http_error(error: HTTPException) -> tuple[flask.Response, int]:
    return failure_response(message=error.description), error.code or HTTPStatus.BAD_REQUEST


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
