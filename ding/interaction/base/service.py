"""Base class of masters and slaves: a server that passes all requests to `HttpService.handle`."""

import hmac
import logging
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import flask
import requests
from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException

from ding.interaction.config import (
    DEFAULT_CHANNEL,
    DEFAULT_MAX_BODY,
    GLOBAL_HOST,
    LOCAL_HOST,
)

# Masters and slaves have the same codes for failed checks.
from ding.interaction.exception.master import MasterErrorCode as Code
from ding.utils.errors import InteractionError
from ding.utils.json_fields import BadMessageError

from .app import ResponsibleException, success_response
from .common import ControllableService, random_token
from .network import HttpEngine, get_host_ip, is_loopback, is_own_name, joined
from .server import AUTHENTIC_KEY, HttpServer
from .tls import server_context

_logger = logging.getLogger(__name__)

#: Maximum number of hosts of unauthenticated clients that are logged, once each.
LOGGED_HOSTS = 100

Message = TypeVar("Message")
#: Checks the caller of a request and handles it. Returns the answer's message or data.
Handler = Callable[[Request], str | Mapping[str, Any]]


class HttpService(ControllableService):
    """An HTTP service that authenticates its own requests and its peers by tokens.

    With a key, peers use TLS, and both sides need a certificate of the run. In plain HTTP, only
    public requests from this host are answered. For the arguments see `Master`.
    """

    #: Error codes for a missing and for a wrong token of a peer.
    _peer_codes: tuple[int, int]
    #: The role in its certificate: ``master`` or ``slave``.
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
        on_warning: Callable[[str], object] | None = None,
    ) -> None:
        if key is not None and not key:
            raise ValueError("the run key is empty; give None to work without one")
        self._host = LOCAL_HOST if host is None else host
        self._port = port
        self._timeout, self._retries = request_timeout, request_retries
        self._retry_waiting = request_retry_waiting
        self._max_body = DEFAULT_MAX_BODY if max_body is None else max_body
        self._on_death = on_death or _logger.error
        self._on_warning = on_warning or _logger.warning
        self._channel = DEFAULT_CHANNEL if channel is None else channel
        self._key = key
        self._self_token = random_token()
        self._noted: set[str] = set()  # logged hosts of unauthenticated clients, and places of bugs
        self._note_lock = threading.Lock()
        self._server: HttpServer | None = None
        self._handlers: Mapping[str, Handler] = {}
        self._shutting_down = threading.Event()

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        """The actual port once the service was started; before, the given one."""
        return self._port if self._server is None else self._server.port

    @property
    def my_address(self) -> str:
        """``host:port`` at which peers reach the service.

        Raises:
            InteractionError: The port is chosen at the start, and the service was not started.
        """
        if self.port == 0:
            raise InteractionError("the port (0: any free one) is known after start(); start first")
        host = self._host
        if host in (GLOBAL_HOST, "::", ""):
            host = get_host_ip() or LOCAL_HOST
        return joined(host, self.port)

    def start(self) -> None:
        """Listen, and start the threads of the service.

        Raises:
            PortTakenError: Another program listens on the port.
            InteractionError: The service cannot listen at this address, or is running.
        """
        if self._server is not None and not self._server.join(0):
            raise InteractionError(f"the service at {self.my_address} runs already")
        self._shutting_down.clear()
        self._handlers = {**self._routes(), **self._public_routes()}
        hooks = self._on_stop, self._die, self._on_warning
        self._server = HttpServer(self._app, self._host, self._port, self._max_body, *hooks)
        if self._key is not None:
            context = server_context(self._key, self._role, self._ports())
            self._server.secure(context, self._note_stranger)
        # Before the server accepts requests, which may need the threads that this starts.
        self._on_start()
        self._server.start()

    def _ports(self) -> set[int]:
        """The ports to which peers connect."""
        return {self.port}

    def shutdown(self) -> None:
        """Request the end of the service; does not wait. From now on, requests are refused."""
        self._shutting_down.set()
        if self._server is not None:
            self._server.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; returns whether the service ended within `timeout` seconds."""
        return self._server is None or self._server.join(timeout)

    def ping(self) -> bool:
        """Whether the service answers requests."""
        if self._server is None:
            return False
        host = {GLOBAL_HOST: LOCAL_HOST, "": LOCAL_HOST, "::": "::1"}.get(self._host, self._host)
        engine = self._client((host, self.port, False, ""), self._role, self._self_token)
        try:
            return engine.request("GET", "ping", retries=0).ok
        except requests.RequestException:
            return False
        finally:
            engine.close()

    def _client(
        self,
        address: tuple[str, int, bool, str],
        role: str,
        token: str,
        errors: Callable[[requests.HTTPError], Exception] | None = None,
    ) -> HttpEngine:
        """A client for a ``master`` or ``slave``, with this service's channel, key and timeouts."""
        return HttpEngine(
            *address,
            key=self._key,
            role=role,
            headers={"Channel": str(self._channel), "Token": token},
            error_of=errors,
            timeout=self._timeout,
            retries=self._retries,
            retry_waiting=self._retry_waiting,
        )

    def _on_start(self) -> None:
        """Start the threads of a subclass; called when the port is open."""

    def _on_stop(self) -> None:
        """End the threads of a subclass; called while requests are still answered, by refusals."""

    def _die(self, cause: str) -> None:
        self._shutting_down.set()
        self._on_death(cause)

    # Requests

    def _routes(self) -> Mapping[str, Handler]:
        """Handlers of requests of peers, by method and path."""

        def shutdown(request: Request) -> str:
            self._check_self(request)
            self.shutdown()
            return "shutting down"

        return {"GET /ping": self._check_self, "DELETE /shutdown": shutdown}

    def _public_routes(self) -> Mapping[str, Handler]:
        """Handlers of requests without channel and token; with a key, only from this host."""
        return {}

    def handle(self, request: Request) -> str | Mapping[str, Any]:
        """Answer one request.

        Raises:
            ResponsibleException: The request is refused.
        """
        path = request.environ["PATH_INFO"]
        name = f"{'GET' if request.method == 'HEAD' else request.method} {path}"
        if name not in self._handlers:
            is_known = path in (known.split()[1] for known in self._handlers)
            status = HTTPStatus.METHOD_NOT_ALLOWED if is_known else HTTPStatus.NOT_FOUND
            raise ResponsibleException(message=status.phrase, status_code=status)
        self._check_open()
        if name in self._public_routes():
            header = request.headers.get("Host", "")
            if not is_own_name(header, self.my_address, self._host):  # DNS rebinding
                message = f"header 'Host' is {header[:100]!r}; ask under the server's address"
                raise refusal(Code.CHANNEL_INVALID, message, HTTPStatus.FORBIDDEN)
            return self._handlers[name](request)
        self._check_certificate(request)
        channel = request.headers.get("Channel")
        if channel is None:
            raise refusal(Code.CHANNEL_NOT_GIVEN, "header 'Channel' is missing")
        if channel.strip() != str(self._channel):
            raise refusal(Code.CHANNEL_INVALID, "wrong channel", HTTPStatus.FORBIDDEN)
        answer = self._handlers[name](request)
        # Also without a key: a caller whose request was accepted counts as authenticated.
        request.environ[AUTHENTIC_KEY]()
        return answer

    def _app(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        try:
            # Check this first: unauthenticated remote clients must not learn which paths exist.
            if not is_loopback(request.remote_addr):
                self._check_certificate(request)
            response = self._reply(request)
        except ResponsibleException as error:
            response = error.get_response()
        except HTTPException as error:  # for instance a truncated body
            response = http_error_response(error)
        except Exception as error:
            response = self._answer_bug(error)
        return response(environ, start_response)

    def _reply(self, request: Request) -> Response:
        answer = self.handle(request)
        if isinstance(answer, str):
            return success_response(message=answer)
        return success_response(answer)

    def _answer_bug(self, error: Exception) -> flask.Response:
        place = traceback.extract_tb(error.__traceback__)[-1]
        if self._is_first(f"{type(error).__name__} at {place.filename}:{place.lineno}"):
            _logger.exception("a request failed; others like it are not logged", exc_info=error)
        if isinstance(error, MemoryError):
            self._on_death("there is no memory left for answering requests")
        message, status = f"{type(error).__name__}: {error}", HTTPStatus.INTERNAL_SERVER_ERROR
        return ResponsibleException(message=message, status_code=status).get_response()

    def _check_open(self) -> None:
        if self._shutting_down.is_set():
            raise refusal(Code.SYSTEM_SHUTTING_DOWN, "shutting down", HTTPStatus.UNAUTHORIZED)

    def _check_self(self, request: Request) -> str:
        if not same_secret(given(request, "Token", Code.SELF_TOKEN_NOT_GIVEN), self._self_token):
            message = "not the token of this service itself"
            raise refusal(Code.SELF_TOKEN_INVALID, message, HTTPStatus.FORBIDDEN)
        return "PONG"

    def _check_certificate(self, request: Request) -> None:
        if self._key is not None and request.scheme != "https":
            self._note_stranger(str(request.remote_addr), "it does not use TLS")
            message = "this side has a run key: it needs TLS, and a certificate of the run"
            raise refusal(self._peer_codes[0], message, HTTPStatus.FORBIDDEN)

    def _peer_token(self, request: Request) -> str:
        """The token of a caller, whose certificate was checked if this side has a key."""
        return given(request, "Token", self._peer_codes[0])

    def _note_stranger(self, host: str, cause: str) -> None:
        # Attempts from many addresses must fill neither memory nor log.
        if len(self._noted) >= LOGGED_HOSTS and host not in self._noted:
            host = "other hosts"
        if self._is_first(host):
            self._on_warning(
                f"the {self._role} at {self.my_address} refuses a connection from {host}, which "
                f"has no proof of the run key: {cause}"
            )

    def _is_first(self, reason: str) -> bool:
        with self._note_lock:
            is_first = reason not in self._noted
            self._noted.add(reason)
        return is_first


def given(request: Request, header: str, code: int) -> str:
    """The value of a header; refuses a request without it."""
    value = request.headers.get(header)
    if not value:
        raise refusal(code, f"header {header!r} is missing")
    return value


def parsed(
    request: Request,
    parse: Callable[[bytes], Message],
    code: int,
    status: int = HTTPStatus.BAD_REQUEST,
    max_body: int | None = None,
) -> Message:
    """Parse the message in the body of a request; refuses an invalid one with `code`."""
    if max_body is not None and (request.content_length or 0) > max_body:
        message = f"the body may have {max_body} bytes here, this one has {request.content_length}"
        raise refusal(Code.CHANNEL_INVALID, message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        return parse(request.get_data())
    except BadMessageError as err:
        raise refusal(code, str(err), status) from err


def refusal(code: int, message: str, status: int = HTTPStatus.BAD_REQUEST) -> ResponsibleException:
    """The exception that a handler raises to answer with an error."""
    return ResponsibleException(code, message, status_code=int(status))


def http_error_response(error: HTTPException) -> flask.Response:
    """The answer to a request that Flask or Werkzeug refused."""
    status = error.code or HTTPStatus.BAD_REQUEST
    return ResponsibleException(message=error.description, status_code=status).get_response()


def same_secret(given: str, expected: str) -> bool:
    """Compare two secrets in constant time."""
    encoded = (text.encode(errors="backslashreplace") for text in (given, expected))
    return hmac.compare_digest(*encoded)
