"""A WSGI server in a thread of its own that keeps connections alive and stops at once.

Werkzeug's own server closes the connection after every answer and looks only twice a second
whether it shall stop; this one keeps HTTP/1.1 connections, reads a body completely and within
bounds before the application sees it, and is woken to stop.
"""

import contextlib
import errno
import io
import json
import logging
import selectors
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote_to_bytes

from ding.utils.errors import InteractionError, PortTakenError

_logger = logging.getLogger(__name__)

#: Seconds after which a silent connection is closed.
IDLE_TIMEOUT = 120.0
#: Connections beyond this are closed at once.
MAX_CONNECTIONS = 2048
#: Bytes of a refused body that are read away so that its sender sees the answer.
DISCARD_LIMIT = 8 * 1024 * 1024
#: Seconds that requests under way have to end when the server stops.
STOP_TIMEOUT = 2.0


class HttpServer:
    """Serves a WSGI application from `start` until `stop`.

    Args:
        port: 0 for any free one.
        max_body: Greatest size of a request's body in bytes.
        on_stop: Called in the server's thread after `stop`, while open connections still get
            answers.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        host: str,
        port: int,
        max_body: int,
        on_stop: Callable[[], object] = lambda: None,
    ) -> None:
        self._server = _bind(host, port)
        self._server.app, self._server.max_body = app, max_body
        self._on_stop = on_stop
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"http-{host}:{self.port}", daemon=True
        )

    @property
    def port(self) -> int:
        """The real one, also where 0 was asked for."""
        return self._server.server_address[1]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; does not wait."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._wake_writer.send(b"x")

    def join(self, timeout: float | None = None) -> bool:
        """Whether it has ended within `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._accept()
            self._server.server_close()
            self._on_stop()
        except Exception:
            _logger.exception("the server at port %d failed", self.port)
        finally:
            self._server.server_close()
            self._server.close_connections(STOP_TIMEOUT)
            self._wake_reader.close()
            self._wake_writer.close()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            while True:
                ready = selector.select()
                if self._stopping.is_set():
                    return
                if not ready:
                    continue
                try:
                    self._server.process_request(*self._server.get_request())
                except OSError as err:  # the client went away, or there are no more descriptors
                    _logger.debug("a connection was not accepted: %s", err)
                    self._stopping.wait(0.05)


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


class _Server(socketserver.TCPServer):
    """One thread per connection, all of them known."""

    allow_reuse_address = sys.platform != "win32"
    request_queue_size = 128
    app: Callable[..., Iterable[bytes]]
    max_body: int

    def __init__(self, family: int, address: tuple[str, int]) -> None:
        self.address_family = family
        self._open: dict[threading.Thread, socket.socket] = {}
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self._serve, args=(request, client_address), name="http-client", daemon=True
        )
        with self._lock:
            if len(self._open) >= MAX_CONNECTIONS:
                _logger.warning("more than %d connections; one was closed", MAX_CONNECTIONS)
                self.shutdown_request(request)
                return
            self._open[thread] = request
        thread.start()

    def close_connections(self, timeout: float) -> None:
        """Let requests under way end, and close all connections."""
        for how in (socket.SHUT_RD, socket.SHUT_RDWR):
            with self._lock:
                left = dict(self._open)
                for connection in left.values():
                    _shut(connection, how)
            deadline = time.monotonic() + timeout / 2
            for thread in left:
                thread.join(max(0.0, deadline - time.monotonic()))
        if stuck := [thread for thread in left if thread.is_alive()]:
            _logger.warning("%d requests are still being worked on", len(stuck))

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError as err:
            _logger.debug("connection to %s: %s", client_address, err)
        except Exception:
            _logger.exception("connection to %s failed", client_address)
        finally:
            with self._lock:
                del self._open[threading.current_thread()]
                self.shutdown_request(request)


def _shut(connection: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):  # its peer may have closed it
        connection.shutdown(how)


class _Handler(BaseHTTPRequestHandler):
    """Turns the requests of one connection into calls of the application."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_TIMEOUT
    server: _Server

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def _handle(self) -> None:
        body = self._read_body()
        if body is None:
            return
        status, headers = "", []

        def start_response(line: str, fields: list[tuple[str, str]], _exc: Any = None) -> None:
            nonlocal status, headers
            status, headers = line, fields

        chunks = self.server.app(self._environ(body), start_response)
        try:
            payload = b"".join(chunks)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        self._reply(status, headers, payload)

    def _read_body(self) -> bytes | None:
        """The body, or ``None`` if there was an answer already."""
        lengths = set(self.headers.get_all("Content-Length", ["0"]))
        text = lengths.pop().strip()
        if self.headers.get("Transfer-Encoding"):
            self.send_error(411)
        elif lengths or not (text.isascii() and text.isdigit()) or len(text) > 18:
            self.send_error(400, "Bad Content-Length")
        elif int(text) > self.server.max_body:
            self._discard(int(text))
            self.send_error(413, f"The body may have {self.server.max_body} bytes")
        else:
            body = self.rfile.read(int(text))
            if len(body) == int(text):
                return body
            self.close_connection = True  # the sender has gone
        return None

    def _discard(self, length: int) -> None:
        left = min(length, DISCARD_LIMIT)
        while left > 0 and (piece := self.rfile.read(min(left, 65536))):
            left -= len(piece)

    def _environ(self, body: bytes) -> dict[str, Any]:
        path, _, query = self.path.partition("?")
        environ = {
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_ADDR": self.client_address[0],
            "SERVER_NAME": str(self.server.server_address[0]),
            "SERVER_PORT": str(self.server.server_address[1]),
            "SERVER_PROTOCOL": self.request_version,
        }
        for name, value in self.headers.items():
            key = name.upper().replace("-", "_")
            if key == "CONTENT_TYPE":
                environ[key] = value
            elif key != "CONTENT_LENGTH" and "_" not in name:
                key = f"HTTP_{key}"
                environ[key] = f"{environ[key]},{value}" if key in environ else value
        return environ

    def _reply(self, status: str, headers: list[tuple[str, str]], payload: bytes) -> None:
        lines = [f"HTTP/1.1 {status}"]
        lines += [f"{name}: {value}" for name, value in headers if name != "Content-Length"]
        lines.append(f"Content-Length: {len(payload)}")
        if self.close_connection:
            lines.append("Connection: close")
        elif self.request_version == "HTTP/1.0":
            lines.append("Connection: keep-alive")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        # One write, so that head and body leave in one packet.
        self.wfile.write(head if self.command == "HEAD" else head + payload)

    def send_error(self, code: int, message: str | None = None, explain: Any = None) -> None:
        """Refuse a request that is not HTTP; whatever follows on the connection has no sense."""
        self.close_connection = True
        code = code if code < 500 else 400  # the fault is the client's
        reason, _ = self.responses.get(code, ("Bad Request", ""))
        body = {"success": False, "code": 1, "message": message or reason, "data": {}}
        headers = [("Content-Type", "application/json")]
        self._reply(f"{int(code)} {reason}", headers, json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:
        _logger.debug(format, *args)
