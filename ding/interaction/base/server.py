"""The HTTP server of runs and boards, with limits on connections, heads, bodies and time.

The project has its own server because no library's server passed these tests, with mutual TLS 1.3
and 1,024 descriptors. Half-open: 1,200 connections begin a handshake and send a byte every half
second, while new clients with a certificate send requests for 20 s. Flood: the messages of
``benchmarks/floods.py``; requests answered, and growth of memory. Round trip: time of a request,
also with a computing thread in the server's process. (Two cores, shared with other programs.)

=================  =================  =====================  ==========  ==========
server             half-open          flood                  round trip  computing
=================  =================  =====================  ==========  ==========
this one           31 of 31 answered  1,000 of 1,000, 53 MB  1.1 ms      6.9 ms
tornado 6.6        18 of 20           1,000 of 1,000, 49 MB  2.6 ms      12.1 ms
hypercorn 0.18     10 of 13           1,000, 532 MB          2.0 ms      15.8 ms
uvicorn, a2wsgi    0                  997, 351 MB            1.3 ms      14.5 ms
aiohttp 3.14       0                  997, 328 MB            1.6 ms      8.5 ms
cheroot 11.1       0                  not measured           0.9 ms      8.6 ms
werkzeug 3.1       0                  not measured           25 ms       72 ms
=================  =================  =====================  ==========  ==========

Cheroot and werkzeug do the handshake in the thread that accepts connections, uvicorn has no
deadline for a head, waitress has no TLS, and gunicorn cannot be embedded. None of them answers
plain HTTP (a run's board) on a port with TLS, or keeps connections of authenticated clients open
in a flood.

The limits: the number of connections of unauthenticated clients is small, and a new one replaces
the oldest one of the host that has most of them. TLS handshakes and requests have a deadline, in
the connection's thread. The body of a request is read after the application has accepted its head.
"""

import contextlib
import errno
import logging
import selectors
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ding.interaction.config import MAX_CONNECTIONS, MAX_STRANGERS, MIN_STRANGERS
from ding.utils import durations
from ding.utils.errors import InteractionError, PortTakenError

from ._http_handler import AUTHENTIC_KEY, HttpHandler
from .tls import HANDSHAKE_BYTE, DeadlineSocket, cause_of, is_strangers

__all__ = ["AUTHENTIC_KEY", "HttpServer"]

_logger = logging.getLogger(__name__)


class HttpServer:
    """Serves a WSGI application in a thread from `start` until `stop`.

    The application may call ``environ[AUTHENTIC_KEY]()`` to report that it has authenticated the
    caller. A caller with a certificate is always authenticated, see `secure`.

    Args:
        port: 0 for a free port.
        max_body: Maximum size of a request's body in bytes.
        on_stop: Called in the server's thread, while open connections are still answered.
        on_death: Called with the cause if the server ends without `stop`.
        on_warning: Called with a line about a problem of the server.

    Raises:
        PortTakenError: Another program listens on the port.
        InteractionError: The server cannot listen at this address.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        host: str,
        port: int,
        max_body: int,
        on_stop: Callable[[], object] = lambda: None,
        on_death: Callable[[str], object] = _logger.error,
        on_warning: Callable[[str], object] = _logger.warning,
    ) -> None:
        self._listener = _listen(host, port)
        self.app, self.max_body = app, max_body
        #: The actual port, also if 0 was given.
        self.port: int = self._listener.getsockname()[1]
        names = {"SERVER_NAME": host, "SERVER_PORT": str(self.port), "SCRIPT_NAME": ""}
        self.base_environ = {**names, "CONTENT_LENGTH": "0"}
        self._tls: ssl.SSLContext | None = None
        self._on_stop, self._on_death, self._on_warning = on_stop, on_death, on_warning
        self._connections = _Connections()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._stopping = threading.Event()
        name = f"http-{host}:{self.port}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def secure(self, context: ssl.SSLContext, on_stranger: Callable[[str, str], object]) -> None:
        """Accept TLS from clients that begin a handshake; call this before `start`.

        Requests in plain HTTP are passed to the application as well; ``environ["wsgi.url_scheme"]``
        distinguishes them.

        Args:
            context: TLS context that requires client certificates.
            on_stranger: Called with host and cause if a client has no valid certificate.
        """
        self._tls, self._on_stranger = context, on_stranger

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Request the end of the server; does not wait."""
        if not self._stopping.is_set():
            self._stopping.set()
            with contextlib.suppress(OSError):  # the server has already ended
                self._wake_writer.send(b"x")

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; returns whether the server ended within `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            try:
                self._accept()
            except Exception as err:
                cause = f"the server at port {self.port} cannot go on: {type(err).__name__}: {err}"
                self._on_death(cause)
            self._listener.close()
            self._on_stop()
        except Exception:
            _logger.exception("the end of the server at port %d failed", self.port)
        finally:
            self._listener.close()
            self._connections.close(durations.SERVER_STOP)
            self._wake_reader.close()
            self._wake_writer.close()

    def _accept(self) -> None:
        short_since = failed = -durations.SHORTAGE_CALM
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            while True:
                try:
                    ready = selector.select()
                    if self._stopping.is_set():
                        return
                    if ready:
                        self._begin(*self._listener.accept())
                except Exception as err:  # no descriptor, thread or memory; may be temporary
                    now = time.monotonic()
                    if now - failed > durations.SHORTAGE_CALM:
                        short_since = now
                        self._on_warning(f"a connection at port {self.port} was refused: {err!r}")
                    failed = now
                    if now - short_since > durations.SHORTAGE_LIMIT:
                        raise
                    self._connections.shrink()
                    self._stopping.wait(durations.SHORTAGE_PAUSE)

    def _begin(self, plain: socket.socket, address: Any) -> None:
        # The timeout applies to the whole handshake or head: single bytes do not extend it.
        connection = _Connection(DeadlineSocket.of(plain), address[0])
        connection.thread = threading.Thread(
            target=self._serve, args=(connection, address), name="http-client", daemon=True
        )
        if self._connections.add(connection):
            try:
                connection.thread.start()
            except BaseException:
                # Without its thread, the connection would never be closed.
                self._connections.remove(connection)
                raise

    def _serve(self, connection: "_Connection", address: Any) -> None:
        try:
            has_certificate = self._has_certificate(connection)
            if has_certificate:
                self._connections.know(connection)
            HttpHandler(
                connection.socket,
                address,
                self,
                has_certificate,
                on_authentic=lambda: self._connections.know(connection),
                on_busy=lambda busy: setattr(connection, "is_busy", busy),
            )
        except OSError as err:
            _logger.debug("connection to %s: %s", address, err)
        except Exception:
            _logger.exception("connection to %s failed", address)
        finally:
            self._connections.remove(connection)

    def _has_certificate(self, connection: "_Connection") -> bool:
        """Whether the client uses TLS; completes the handshake."""
        if self._tls is None:
            return False
        connection.socket.settimeout(durations.HEAD_TIMEOUT)
        if connection.socket.recv(1, socket.MSG_PEEK) != HANDSHAKE_BYTE:
            return False
        secured = self._connections.secure(connection, self._tls)
        try:
            secured.settimeout(durations.HEAD_TIMEOUT)
            secured.do_handshake()
        except OSError as error:
            if is_strangers(error):
                self._on_stranger(connection.host, cause_of(error))
            raise
        return True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # In a flood, or when a thousand workers join, a full queue delays other clients by seconds.
        return socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)
    except OSError as err:
        if err.errno == errno.EADDRINUSE:
            raise PortTakenError(
                f"cannot listen on {host}:{port}: the port is taken by another program; end that "
                "one, or choose another port (0: any free one)"
            ) from err
        raise InteractionError(
            f"cannot listen on {host}:{port}: {err.strerror or err}; the host must be an address "
            "of this machine, and ports below 1024 may need permission"
        ) from err


class _Connection:
    """One client, and the thread that serves it."""

    thread: threading.Thread

    def __init__(self, plain: DeadlineSocket, host: str) -> None:
        self.socket: DeadlineSocket | ssl.SSLSocket = plain
        self.host = host
        self.is_busy = False  # whether it has a request whose head is complete

    def shut(self, how: int) -> None:
        with contextlib.suppress(OSError):  # the peer may have closed it
            self.socket.shutdown(how)


class _Connections:
    """The open connections of a server, and the limits on their number."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[_Connection] = set()
        self._strangers: dict[_Connection, None] = {}  # oldest first
        self._limit = min(MAX_CONNECTIONS, _descriptors() // 2)
        self._stranger_limit = min(MAX_STRANGERS, self._limit // 2)

    def add(self, connection: _Connection) -> bool:
        """Add a connection of an unauthenticated client; close it and return False if full."""
        with self._lock:
            if len(self._strangers) >= self._stranger_limit:
                self._drop_stranger()
            is_full = (
                len(self._open) >= self._limit + self._stranger_limit
            )  # dropped connections end soon
            if is_full and not self._drop_stranger():
                _logger.warning("%d connections are open; another was closed", self._limit)
                connection.socket.close()
                return False
            self._open.add(connection)
            self._strangers[connection] = None
            return True

    def secure(self, connection: _Connection, context: ssl.SSLContext) -> ssl.SSLSocket:
        """Wrap the connection's socket in TLS, before the handshake."""
        with self._lock:  # otherwise, another thread could close the descriptor while it moves
            secured = context.wrap_socket(
                connection.socket, server_side=True, do_handshake_on_connect=False
            )
            connection.socket = secured
        return secured

    def know(self, connection: _Connection) -> None:
        with self._lock:
            self._strangers.pop(connection, None)

    def remove(self, connection: _Connection) -> None:
        with self._lock:
            self._open.discard(connection)
            self._strangers.pop(connection, None)
            connection.shut(socket.SHUT_WR)
            connection.socket.close()

    def shrink(self) -> None:
        """Halve the number of connections of unauthenticated clients."""
        with self._lock:
            self._stranger_limit = max(MIN_STRANGERS, len(self._strangers) // 2)
            while len(self._strangers) > self._stranger_limit:
                self._drop_stranger()

    def close(self, timeout: float) -> None:
        """Wait for open requests, and close all connections."""
        for how in (socket.SHUT_RD, socket.SHUT_RDWR):
            with self._lock:
                left = list(self._open)
                for connection in left:
                    connection.shut(how)
            deadline = time.monotonic() + timeout / 2
            for connection in left:
                connection.thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            if self._open:
                _logger.warning("%d requests are still being worked on", len(self._open))

    def _drop_stranger(self) -> bool:
        if not self._strangers:
            return False
        # Prefer connections without a complete request, of the host that has most of them: no host
        # can crowd out others.
        idle = [one for one in self._strangers if not one.is_busy] or list(self._strangers)
        host, _ = Counter(one.host for one in idle).most_common(1)[0]
        oldest = next(one for one in idle if one.host == host)
        del self._strangers[oldest]
        oldest.shut(socket.SHUT_RDWR)
        return True


def allow_most_descriptors() -> None:
    """Raise the limit on open files and connections to the system's maximum: a coordinator needs
    several per worker, and shells often set a limit of 1,024."""
    if sys.platform != "win32":
        import resource  # Windows has none

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(ValueError, OSError):  # macOS permits fewer than it reports
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _descriptors() -> int:
    """Maximum number of open files and connections of this process."""
    if sys.platform == "win32":
        return 2 * MAX_CONNECTIONS
    import resource  # Windows has none

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * MAX_CONNECTIONS if limit == resource.RLIM_INFINITY else limit
