"""The HTTP server of runs and of the page of runs: limits on connections, heads, bodies and time.

It serves a WSGI application in a thread, keeps HTTP/1.1 connections and is woken to stop; files
are sent in pieces. Werkzeug's server has a thread for each connection, however many there are, and
none of these limits. Strangers cannot take what others need: connections of unknown clients are
few, and the oldest makes room; a handshake and a request have a deadline, in the connection's own
thread; a request's body is read when the application asks for it, which it does after it has judged
the head.
"""

import contextlib
import errno
import logging
import selectors
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ding.utils import durations
from ding.utils.errors import InteractionError, PortTakenError

from ._deadline_socket import DeadlineSocket
from ._http_handler import AUTHENTIC_KEY, HttpHandler
from .tls import HANDSHAKE_BYTE, cause_of, is_strangers

__all__ = ["AUTHENTIC_KEY", "HttpServer"]

_logger = logging.getLogger(__name__)

#: Connections that may be open, at most half of the descriptors that the process may have.
MAX_CONNECTIONS = 2048
#: Those of them whose clients are not known (yet).
MAX_STRANGERS = 128
#: What is left of these where descriptors, threads or memory are short.
MIN_STRANGERS = 4


class HttpServer:
    """Serves a WSGI application from `start` until `stop`.

    The application may call ``environ[AUTHENTIC_KEY]()`` to tell that a caller is known. One with a
    certificate is, see `secure`.

    Args:
        port: 0 for any free one.
        max_body: Greatest size of a request's body in bytes.
        on_stop: Called in the server's thread after its end, while open connections still get
            answers.
        on_death: Told why it ends, if nobody has stopped it.
        on_warning: Told what hinders it.
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
        self._server = _bind(host, port)
        self._server.app, self._server.max_body = app, max_body
        self._on_stop, self._on_death, self._on_warning = on_stop, on_death, on_warning
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"http-{host}:{self.port}", daemon=True
        )

    @property
    def port(self) -> int:
        """The real one, also where 0 was asked for."""
        return self._server.server_address[1]

    def secure(self, context: ssl.SSLContext, on_stranger: Callable[[str, str], object]) -> None:
        """Speak TLS to those who begin with it; call this before `start`.

        Requests in plain HTTP reach the application, too: ``environ["wsgi.url_scheme"]`` tells.

        Args:
            context: Demands certificates of clients.
            on_stranger: Called with host and cause if a client has none that is valid.
        """
        self._server.tls, self._server.on_stranger = context, on_stranger

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; does not wait."""
        if not self._stopping.is_set():
            self._stopping.set()
            with contextlib.suppress(OSError):  # it has ended by itself
                self._wake_writer.send(b"x")

    def join(self, timeout: float | None = None) -> bool:
        """Whether it has ended within `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            try:
                self._accept()
            except Exception as err:
                cause = f"the server at port {self.port} cannot go on: {type(err).__name__}: {err}"
                self._on_death(cause)
            self._server.server_close()
            self._on_stop()
        except Exception:
            _logger.exception("the end of the server at port %d failed", self.port)
        finally:
            self._server.server_close()
            self._server.close_connections(durations.SERVER_STOP)
            self._wake_reader.close()
            self._wake_writer.close()

    def _accept(self) -> None:
        short_since = failed = -durations.SHORTAGE_CALM
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            while True:
                try:
                    ready = selector.select()
                    if self._stopping.is_set():
                        return
                    if ready:
                        self._server.process_request(*self._server.get_request())
                except Exception as err:  # no descriptor, thread or memory: it may come back
                    now = time.monotonic()
                    if now - failed > durations.SHORTAGE_CALM:
                        short_since = now
                        self._on_warning(f"a connection at port {self.port} was refused: {err!r}")
                    failed = now
                    if self._server.fileno() < 0 or now - short_since > durations.SHORTAGE_LIMIT:
                        raise
                    self._server.shrink()
                    self._stopping.wait(durations.SHORTAGE_PAUSE)


def _bind(host: str, port: int) -> "_Server":
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return _Server(family, (host, port))
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


class _OpenConnection:
    """One client, and the thread that serves it."""

    def __init__(self, plain: DeadlineSocket, host: str) -> None:
        self.socket: DeadlineSocket | ssl.SSLSocket = plain
        self.host = host
        self.thread: threading.Thread | None = None
        self.is_busy = False  # with a request whose head is complete

    def set_busy(self, busy: bool) -> None:
        self.is_busy = busy


class _Server(socketserver.TCPServer):
    """One thread per connection, all of them known."""

    allow_reuse_address = sys.platform != "win32"
    request_queue_size = 1024  # in a flood, a full queue costs others a second
    app: Callable[..., Iterable[bytes]]
    max_body: int
    tls: ssl.SSLContext | None = None
    on_stranger: Callable[[str, str], object]

    def __init__(self, family: int, address: tuple[str, int]) -> None:
        self.address_family = family
        self._lock = threading.Lock()
        self._open: set[_OpenConnection] = set()
        self._strangers: dict[_OpenConnection, None] = {}  # oldest first
        self._limit = min(MAX_CONNECTIONS, _descriptors() // 2)
        self._stranger_limit = min(MAX_STRANGERS, self._limit // 2)
        super().__init__(address, HttpHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        connection = _OpenConnection(DeadlineSocket.of(request), client_address[0])
        connection.thread = threading.Thread(
            target=self._serve, args=(connection, client_address), name="http-client", daemon=True
        )
        with self._lock:
            if not self._make_room():
                _logger.warning("%d connections are open; another was closed", self._limit)
                self.shutdown_request(connection.socket)
                return
            self._open.add(connection)
            self._strangers[connection] = None
        try:
            connection.thread.start()
        except BaseException:
            self._forget(connection)
            raise

    def shrink(self) -> None:
        """Let there be half as many connections of unknown clients."""
        with self._lock:
            self._stranger_limit = max(MIN_STRANGERS, len(self._strangers) // 2)
            while len(self._strangers) > self._stranger_limit:
                self._drop_stranger()

    def close_connections(self, timeout: float) -> None:
        """Let requests under way end, and close all connections."""
        for how in (socket.SHUT_RD, socket.SHUT_RDWR):
            with self._lock:
                left = list(self._open)
                for connection in left:
                    _shut(connection.socket, how)
            deadline = time.monotonic() + timeout / 2
            for connection in left:
                assert connection.thread is not None
                connection.thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            if self._open:
                _logger.warning("%d requests are still being worked on", len(self._open))

    def _make_room(self) -> bool:
        if len(self._strangers) >= self._stranger_limit:
            self._drop_stranger()
        if len(self._open) < self._limit + self._stranger_limit:  # those dropped end soon
            return True
        return self._drop_stranger()

    def _drop_stranger(self) -> bool:
        if not self._strangers:
            return False
        # Rather one that has yet to ask for something than one that is being answered; and of the
        # host that has most of them: one cannot crowd out the others.
        idle = [one for one in self._strangers if not one.is_busy] or list(self._strangers)
        host, _ = Counter(one.host for one in idle).most_common(1)[0]
        oldest = next(one for one in idle if one.host == host)
        del self._strangers[oldest]
        _shut(oldest.socket, socket.SHUT_RDWR)
        return True

    def _serve(self, connection: _OpenConnection, client_address: Any) -> None:
        try:
            has_certificate = self._has_certificate(connection)
            if has_certificate:
                self._greet(connection)
            handler = HttpHandler(connection.socket, client_address, self, has_certificate)
            handler.serve(lambda: self._greet(connection), connection.set_busy)
        except OSError as err:
            _logger.debug("connection to %s: %s", client_address, err)
        except Exception:
            _logger.exception("connection to %s failed", client_address)
        finally:
            self._forget(connection)

    def _has_certificate(self, connection: _OpenConnection) -> bool:
        """Whether the client begins with a TLS handshake, which is then complete.

        Raises:
            OSError: The handshake failed.
        """
        if self.tls is None:
            return False
        connection.socket.settimeout(durations.HEAD_TIMEOUT)
        if connection.socket.recv(1, socket.MSG_PEEK) != HANDSHAKE_BYTE:
            return False
        with self._lock:  # else another thread might close the descriptor that moves
            secured = self.tls.wrap_socket(
                connection.socket, server_side=True, do_handshake_on_connect=False
            )
            connection.socket = secured
        try:
            secured.settimeout(durations.HEAD_TIMEOUT)
            secured.do_handshake()
        except OSError as error:
            if is_strangers(error):
                self.on_stranger(connection.host, cause_of(error))
            raise
        return True

    def _greet(self, connection: _OpenConnection) -> None:
        """A connection's client is known now."""
        with self._lock:
            self._strangers.pop(connection, None)

    def _forget(self, connection: _OpenConnection) -> None:
        with self._lock:
            self._open.discard(connection)
            self._strangers.pop(connection, None)
            self.shutdown_request(connection.socket)


def _descriptors() -> int:
    """How many files and connections this process may have open."""
    if sys.platform == "win32":
        return 2 * MAX_CONNECTIONS
    import resource  # Windows has none

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * MAX_CONNECTIONS if limit == resource.RLIM_INFINITY else limit


def _shut(connection: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):  # its peer may have closed it
        connection.shutdown(how)
