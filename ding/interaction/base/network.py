"""Addresses, and an HTTP client with persistent connections and retries."""

import errno
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError, HTTPError, SSLError, Timeout
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from ding.utils import durations
from ding.utils.errors import InteractionError, NotJsonError
from ding.utils.system_helper import NO_NETWORK, get_ip

from .common import translate_dict_func
from .tls import (
    DeadlineSocket,
    DeadlineTlsSocket,
    cause_of,
    client_context,
    is_strangers,
    server_name,
)

DEFAULT_RETRIES = 5
DEFAULT_RETRY_WAITING = durations.REQUEST_RETRY
#: Maximum size in bytes of an answer's body, and of its head.
MAX_ANSWER = 16 * 1024 * 1024
MAX_HEAD = 256 * 1024
#: Statuses of a gateway whose peer is temporarily unavailable.
TRANSIENT_STATUS = frozenset({502, 503, 504})
#: Maximum number of prepared requests that an engine caches.
MAX_BLANKS = 64
_PORTS = {False: 80, True: 443}


def get_host_ip() -> str | None:
    """The address at which other hosts probably reach this one, ``None`` without a network."""
    address = get_ip()
    return None if address == NO_NETWORK else address


def split_http_address(address: str, default_port: int | None = None) -> tuple[str, int, bool, str]:
    """Host, port, whether HTTPS, and path of ``[http[s]://]host[:port][/path]``.

    Args:
        default_port: Port if the address has none; by default 80 or 443.

    Raises:
        ValueError: The address has another form.
    """
    parts = urlsplit(with_scheme(address))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"{address!r} is not an HTTP address; expected [http[s]://]host[:port][/path]"
        )
    https = parts.scheme == "https"
    port = parts.port
    if port is None:
        port = _PORTS[https] if default_port is None else default_port
    return parts.hostname, port, https, parts.path


def with_scheme(address: str) -> str:
    """The address, with ``http://`` prepended if it has no scheme."""
    return address if "://" in address else f"http://{address}"


class AnswerTooLargeError(InteractionError, requests.RequestException):
    """A peer's answer has more than `MAX_ANSWER` bytes."""


class NotAuthenticError(InteractionError, requests.RequestException):
    """The server at an address has no certificate of the run."""


class _Distrust(Exception):
    """Carries a `NotAuthenticError` through ``urllib3``, which wraps every `OSError`."""


def _adapter(key: str | None, role: str) -> HTTPAdapter:
    """An adapter whose connections have limits and, with a key, use TLS between parts of a run.

    For ``urllib3`` the scheme stays ``http``: for ``https`` it would add the public certificate
    authorities to the TLS context, and thus trust peers outside the run.
    """

    class Connection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            made: DeadlineSocket | DeadlineTlsSocket = DeadlineSocket.of(super()._new_conn())
            if key is not None:
                name = server_name(role, int(self.port or 0))
                try:
                    made = client_context(key).wrap_socket(made, server_hostname=name)  # type: ignore[assignment]
                except OSError as error:
                    made.close()
                    if is_strangers(error):
                        raise _Distrust(cause_of(error)) from error
                    if isinstance(error, ConnectionError):
                        # `urllib3` ignores broken pipes and resets, to read an early answer.
                        raise ConnectionAbortedError(errno.ECONNABORTED, str(error)) from error
                    raise
            made.allow(MAX_ANSWER + MAX_HEAD)
            return made

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    adapter = HTTPAdapter()
    pools = {"http": Pool, "https": HTTPSConnectionPool}
    adapter.poolmanager.pool_classes_by_scheme = pools
    return adapter


class HttpEngine:
    """JSON client for one peer with persistent connections; ignores proxy settings. Thread-safe.

    Args:
        https: Whether the peer has a certificate of a public authority.
        key: The run's key; requests are only sent to peers with a certificate of the run.
        role: Role of the peer, if there is a key: ``master`` or ``slave``.
        headers, error_of, timeout, retries, retry_waiting: The attributes; ``None`` for the class's
            defaults.

    Attributes:
        timeout: Time limit for the complete answer in seconds.
        retries: Number of retries of a request.
        retry_waiting: Seconds between tries.
        headers: Headers of each request; ``None`` values are left out.
        process_data: Applied to each body.
        error_of: Converts an `HTTPError` to the exception to raise; ``None`` raises it unchanged.
    """

    timeout: float = durations.REQUEST_TIMEOUT
    retries: int = DEFAULT_RETRIES
    retry_waiting: float = DEFAULT_RETRY_WAITING
    headers: Mapping[str, object] = {}
    process_data: Callable[[Mapping[str, object]], Mapping[str, object]] | None = None
    error_of: Callable[[HTTPError], Exception] | None = None

    def __init__(
        self,
        host: str,
        port: int,
        https: bool = False,
        path: str | None = None,
        *,
        key: str | None = None,
        role: str = "",
        headers: Mapping[str, object] | None = None,
        error_of: Callable[[HTTPError], Exception] | None = None,
        timeout: float | None = None,
        retries: int | None = None,
        retry_waiting: float | None = None,
    ) -> None:
        given = dict(headers=headers, error_of=error_of, timeout=timeout, retries=retries)
        for name, value in {**given, "retry_waiting": retry_waiting}.items():
            if value is not None:
                setattr(self, name, value)
        path = "/" + path.strip("/") if path and path.strip("/") else ""
        self._peer = joined(host, port)
        scheme = "https" if https and key is None else "http"
        self._base = f"{scheme}://{self._peer}{path}"
        self._has_key = key is not None
        self._closed = threading.Event()
        # No session: it would add cookies, redirects and settings of the environment.
        self._adapter = _adapter(key, role)
        self._blanks: dict[tuple[str, str], requests.PreparedRequest] = {}

    def get_url(self, path: str | None = None) -> str:
        return f"{self._base}/{path.lstrip('/')}" if path else self._base

    def request(
        self,
        method: str,
        path: str,
        data: Mapping[str, object] | None = None,
        headers: Mapping[str, object] | None = None,
        params: Mapping[str, object] | None = None,
        raise_for_status: bool = True,
        retries: int | None = None,
        retry_waiting: float | None = None,
        *,
        timeout: float | None = None,
    ) -> requests.Response:
        """Send a request; transient failures are retried.

        Args:
            data: Body, sent as JSON.
            raise_for_status: Whether to raise for a status of 400 and above.
            retries: Number of retries if the peer cannot be reached, is too slow, or is reported
                unavailable by a gateway; by default the attribute.
            retry_waiting: Overrides the attribute; `close` ends the wait.
            timeout: Overrides the attribute.

        Raises:
            NotJsonError: `data` cannot be converted to JSON.
            NotAuthenticError: The peer has no certificate of the run.
            requests.RequestException: There was no answer, or the answer was an error.
        """
        request = self._prepare(method, path, data, headers, params)
        left = self.retries if retries is None else retries
        waiting = self.retry_waiting if retry_waiting is None else retry_waiting
        span = self.timeout if timeout is None else timeout
        while True:
            try:
                response = self._send(request, span)
                if raise_for_status:
                    response.raise_for_status()
                return response
            except (HTTPError, requests.ConnectionError, Timeout, ChunkedEncodingError) as err:
                if left <= 0 or not self._is_transient(err) or self._closed.wait(waiting):
                    if isinstance(err, HTTPError) and self.error_of is not None:
                        raise self.error_of(err) from err
                    raise  # not `from err`: a reference cycle would keep the connection open
            left -= 1

    def close(self) -> None:
        """Close idle connections and end all retries."""
        self._closed.set()
        self._adapter.close()

    def _is_transient(self, err: requests.RequestException) -> bool:
        if isinstance(err, HTTPError):
            return err.response is not None and err.response.status_code in TRANSIENT_STATUS
        # With a key, certificate errors are handled before; the rest is data damaged in transit.
        return self._has_key or not isinstance(err, SSLError)

    def _send(self, request: requests.PreparedRequest, span: float) -> requests.Response:
        """Send a request once, and read its answer."""
        deadline = time.monotonic() + durations.CONNECT_TIMEOUT + span
        limits = (durations.CONNECT_TIMEOUT, span)
        try:
            response = self._adapter.send(request, stream=True, timeout=limits)
        except _Distrust as error:
            raise NotAuthenticError(
                f"what listens at {self._peer} does not prove that it has the run's key ({error}): "
                "another program has that port, the two have different keys, or it is another port "
                "of the run that is forwarded to this address"
            ) from error
        try:
            content = bytearray()
            # By default, `requests` reads answers of any size.
            for piece in response.iter_content(65536):
                content += piece
                if len(content) > MAX_ANSWER:
                    raise AnswerTooLargeError(
                        f"the answer of {request.url} has more than {MAX_ANSWER} bytes"
                    )
                # Over HTTPS, each byte restarts the timeout of the socket.
                if time.monotonic() > deadline:
                    raise requests.ReadTimeout(f"{request.url} takes too long for its answer")
            response._content = bytes(content)
        except BaseException:
            response.close()
            raise
        return response

    def _prepare(
        self,
        method: str,
        path: str,
        data: Mapping[str, object] | None,
        headers: Mapping[str, object] | None,
        params: Mapping[str, object] | None,
    ) -> requests.PreparedRequest:
        content = {} if data is None else {"Content-Type": "application/json"}
        merged = {**content, **self.headers, **(headers or {})}
        # Preparing method and address takes `requests` as long as an answer: cache the result.
        blank = self._blanks.get((method, path)) if params is None else None
        if blank is None:
            blank = requests.Request(method, self.get_url(path), params=params).prepare()
            if params is None and len(self._blanks) < MAX_BLANKS:
                self._blanks[method, path] = blank
        request = blank.copy()
        request.headers.update({n: str(v) for n, v in merged.items() if v is not None})
        if data is not None:
            request.body = to_json(data if self.process_data is None else self.process_data(data))
            # The cached request was prepared without a body, so its length is not set.
            request.headers["Content-Length"] = str(len(request.body))
        return request


def to_json(data: object) -> bytes:
    """Encode a body as JSON.

    Raises:
        NotJsonError: JSON cannot represent the data.
    """
    try:
        return json.dumps(data, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as err:
        raise NotJsonError(
            f"{err}; a message between master and slave may hold numbers, strings, booleans, "
            "None, lists and dicts with string keys"
        ) from err


def get_http_engine_class(
    headers: Mapping[str, Callable[..., Any]],
    data_processor: Callable[[Mapping[str, object]], Mapping[str, object]] | None = None,
    http_error_gene: Callable[[HTTPError], Exception] | None = None,
) -> Callable[..., type[HttpEngine]]:
    """A function that creates classes of engines.

    Args:
        headers: Functions that return the headers of each request (``None`` leaves one out); they
            are called with the arguments of the returned function.
        data_processor: Applied to each body.
        http_error_gene: Converts an `HTTPError` to the exception to raise.
    """
    get_headers = translate_dict_func(headers)

    def make(*args: Any, **kwargs: Any) -> type[HttpEngine]:
        attributes: dict[str, object] = {
            "headers": property(lambda engine: get_headers(*args, **kwargs)),
            "process_data": data_processor and staticmethod(data_processor),
            "error_of": http_error_gene and staticmethod(http_error_gene),
        }
        return type("_Engine", (HttpEngine,), attributes)

    return make


def joined(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(address: str | None) -> bool:
    """Whether an address is a loopback address, so that the sender is on this host."""
    try:
        return ipaddress.ip_address((address or "").removeprefix("::ffff:")).is_loopback
    except ValueError:
        return False


def is_own_name(header: str, address: str, host: str) -> bool:
    """Whether a ``Host`` header is an IP address or a name of this server (no DNS rebinding).

    Args:
        address: The address at which peers reach the server.
        host: The host on which it listens.
    """
    try:
        name = split_http_address(header)[0]
    except ValueError:
        return False
    known = {"localhost", host.lower(), socket.gethostname().lower()}
    if name in known | {split_http_address(address)[0]}:
        return True
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False
