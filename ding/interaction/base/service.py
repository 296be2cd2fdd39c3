"""What masters and slaves have in common: a server whose every request is checked first."""

import hmac
import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from .network import HttpEngine, get_host_ip, get_http_engine_class
from .server import HttpServer

_logger = logging.getLogger(__name__)

#: The header that carries the run key.
KEY_HEADER = "Run-Key"


@dataclass(frozen=True)
class CheckCodes:
    """The error codes that a kind of service gives for failed checks."""

    shutting_down: int
    channel_missing: int
    channel_invalid: int
    self_token_missing: int
    self_token_invalid: int
    peer_token_missing: int
    peer_token_invalid: int


@dataclass(frozen=True)
class Route:
    """What one address does.

    Attributes:
        method: HTTP method.
        path: Path of the address.
        check: Raises `ResponsibleException` unless the caller may; what it returns is handed on.
        handle: Does the work with what `check` returned; returns the answer's message or its data.
        public: Whether anybody may ask, without channel and token.
    """

    method: str
    path: str
    check: Callable[[], Any]
    handle: Callable[[Any], str | Mapping[str, Any]]
    public: bool = False


class HttpService(ControllableService):
    """A service that listens, knows itself by a token and its peers by theirs.

    Args:
        host: Address to listen on, the loopback address if ``None``.
        port: Port to listen on, 0 for any free one.
        request_retries: How often requests to peers are tried again.
        request_retry_waiting: Seconds between the tries.
        channel: Number that both sides of a connection have to agree on.
        key: The run's key. If given, nobody without it may connect, and it is shown to peers.
        request_timeout: Seconds that a peer may take for an answer.
        max_body: Greatest size of a request's body in bytes.
    """

    _codes: CheckCodes

    def __init__(
        self,
        host: str | None,
        port: int,
        request_retries: int | None,
        request_retry_waiting: float | None,
        channel: int | None,
        key: str | None,
        request_timeout: float | None,
        max_body: int | None,
    ) -> None:
        if key is not None and not key:
            raise ValueError("the run key is empty; give None to work without one")
        self._host = LOCAL_HOST if host is None else host
        self._port = port
        self._retries = _or(request_retries, DEFAULT_REQUEST_RETRIES)
        self._retry_waiting = _or(request_retry_waiting, DEFAULT_REQUEST_RETRY_WAITING)
        self._timeout = _or(request_timeout, DEFAULT_REQUEST_TIMEOUT)
        self._max_body = _or(max_body, DEFAULT_MAX_BODY)
        self._channel = _or(channel, DEFAULT_CHANNEL)
        self._key = key
        self._self_token = random_token()
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
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

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
            self._make_app(), self._host, self._port, self._max_body, self._on_stop
        )
        self._on_start()
        self._server.start()

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
        engine = self._engine(host, self.port, token=self._self_token)
        try:
            return engine.request("GET", "ping", retries=0).ok
        except requests.RequestException:
            return False
        finally:
            engine.close()

    def _on_start(self) -> None:
        """Begin what else has to run; called when the port is there."""

    def _on_stop(self) -> None:
        """End what else runs; called while requests are still answered, with a refusal."""

    @abstractmethod
    def _routes(self) -> list[Route]:
        """The addresses that it serves besides those of every service."""

    def _engine(
        self,
        host: str,
        port: int,
        https: bool = False,
        path: str = "",
        *,
        token: str,
        errors: Callable[[requests.HTTPError], Exception] | None = None,
    ) -> HttpEngine:
        """A client that shows channel, token and key."""
        headers = {"Channel": str(self._channel), "Token": token, KEY_HEADER: self._key}
        return make_engine(headers, (host, port, https, path), self._timeout, errors)

    def _make_app(self) -> flask.Flask:
        app = flask.Flask(type(self).__name__, static_folder=None)
        app.url_map.strict_slashes = app.url_map.merge_slashes = False
        app.register_error_handler(HTTPException, _answer_http_error)
        app.register_error_handler(Exception, _answer_bug)
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
            if not route.public:
                self._check_channel()
            answer = route.handle(route.check())
            if isinstance(answer, str):
                return success_response(message=answer)
            return success_response(answer)

        return view

    def _handle_shutdown(self, _: None) -> str:
        self.shutdown()
        return "shutting down"

    def _check_open(self) -> None:
        if self._shutting_down.is_set():
            raise refusal(self._codes.shutting_down, "shutting down", HTTPStatus.UNAUTHORIZED)

    def _check_channel(self) -> None:
        channel = flask.request.headers.get("Channel")
        if channel is None:
            raise refusal(self._codes.channel_missing, "header 'Channel' is missing")
        if channel.strip() != str(self._channel):
            raise refusal(self._codes.channel_invalid, "wrong channel", HTTPStatus.FORBIDDEN)

    def _check_self(self) -> None:
        missing, invalid = self._codes.self_token_missing, self._codes.self_token_invalid
        token = self._given("Token", missing)
        if not same_secret(token, self._self_token):
            raise refusal(invalid, "not the token of this service itself", HTTPStatus.FORBIDDEN)

    def _peer_token(self) -> str:
        """The token of a caller that has shown the run's key."""
        missing, invalid = self._codes.peer_token_missing, self._codes.peer_token_invalid
        if self._key is not None and not same_secret(self._given(KEY_HEADER, missing), self._key):
            raise refusal(invalid, "wrong run key", HTTPStatus.FORBIDDEN)
        return self._given("Token", missing)

    @staticmethod
    def _given(header: str, code: int) -> str:
        value = flask.request.headers.get(header)
        if not value:
            raise refusal(code, f"header {header!r} is missing")
        return value


def make_engine(
    headers: Mapping[str, str | None],
    address: tuple[str, int, bool, str],
    timeout: float,
    errors: Callable[[requests.HTTPError], Exception] | None,
) -> HttpEngine:
    """A client with fixed headers."""
    getters = {name: (lambda value=value: value) for name, value in headers.items()}
    engine = get_http_engine_class(getters, http_error_gene=errors)()(*address)
    engine.timeout = timeout
    return engine


def refusal(code: int, message: str, status: int = HTTPStatus.BAD_REQUEST) -> ResponsibleException:
    """What a view raises to answer with an error."""
    return ResponsibleException(code, message, status_code=int(status))


def same_secret(given: str, expected: str) -> bool:
    """Compare in a time that tells nothing about where they differ."""
    encoded = (text.encode(errors="backslashreplace") for text in (given, expected))
    return hmac.compare_digest(*encoded)


def _answer_http_error(error: HTTPException) -> tuple[flask.Response, int]:
    return failure_response(message=error.description), error.code or HTTPStatus.BAD_REQUEST


def _answer_bug(error: Exception) -> tuple[flask.Response, int]:
    _logger.exception("a request failed", exc_info=error)
    message = f"{type(error).__name__}: {error}"
    return failure_response(message=message), HTTPStatus.INTERNAL_SERVER_ERROR


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
