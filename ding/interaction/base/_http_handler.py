"""Handles one connection of a client: passes its requests to a WSGI application.

The standard library parses requests and implements WSGI. This module adds persistent connections,
bodies that are read on demand, and limits on size and time.
"""

import io
import json
import logging
import ssl
import sys
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from wsgiref.handlers import SimpleHandler
from wsgiref.headers import Headers
from wsgiref.simple_server import WSGIRequestHandler

from ding.interaction.config import MAX_HEAD, MAX_HEAD_LINES
from ding.utils import durations

from .tls import HANDSHAKE_BYTE, DeadlineSocket

_logger = logging.getLogger(__name__)

#: Key in a request's environment of the function to call when the caller is authenticated.
AUTHENTIC_KEY = "ding.authentic"
#: Maximum number of bytes of an unread body that are discarded to keep the connection open, or so
#: that the sender receives the answer before the connection is closed.
KEEP_LIMIT = 64 * 1024
DISCARD_LIMIT = 8 * 1024 * 1024
#: Bytes of an answer that are sent at a time.
PIECE = 256 * 1024


class Server(Protocol):
    """The attributes of a server that handlers use."""

    app: Callable[..., Iterable[bytes]]
    max_body: int
    base_environ: dict[str, Any]


class HttpHandler(WSGIRequestHandler):
    """Answers the requests of one connection until it ends, all within the constructor.

    Args:
        has_certificate: Whether the connection uses TLS, with a verified client certificate.
        on_authentic: Called when the client is authenticated.
        on_busy: Called with True when the head of a request is complete, with False after its
            answer.
    """

    protocol_version = "HTTP/1.1"
    # Otherwise, the end of an answer would wait for an acknowledgement, which clients delay.
    disable_nagle_algorithm = True
    wbufsize = PIECE
    server: Server  # type: ignore[assignment]

    def __init__(
        self,
        connection: DeadlineSocket | ssl.SSLSocket,
        client_address: tuple[str, int],
        server: Server,
        has_certificate: bool,
        on_authentic: Callable[[], object],
        on_busy: Callable[[bool], object],
    ) -> None:
        self.scheme = "https" if has_certificate else "http"
        self._is_authentic = has_certificate
        self._on_authentic, self._on_busy = on_authentic, on_busy
        super().__init__(connection, client_address, server)  # type: ignore[arg-type]

    def setup(self) -> None:
        super().setup()
        self._stream = self.rfile

    def handle(self) -> None:
        BaseHTTPRequestHandler.handle(self)  # `wsgiref` overrides it to answer only one request

    def finish(self) -> None:
        super().finish()
        self._stream.close()

    def handle_one_request(self) -> None:
        self.close_connection = True  # unless a request was complete
        rest = durations.IDLE_TIMEOUT if self._is_authentic else durations.HEAD_TIMEOUT
        self.connection.settimeout(rest)
        # Not `readline`: the time to wait for a request and the time for its head differ.
        begin = self._stream.peek(1)[:1]  # type: ignore[attr-defined]
        self.requestline = self.request_version = self.command = ""
        if begin == HANDSHAKE_BYTE:  # reply at once: the client waits for a TLS handshake
            self.send_error(400, "There is no TLS here")
        if begin in (b"", HANDSHAKE_BYTE):
            return
        self.connection.settimeout(durations.HEAD_TIMEOUT)
        self.raw_requestline = self._stream.readline(MAX_HEAD + 1)
        if len(self.raw_requestline) > MAX_HEAD:
            self.send_error(414)
        elif self._read_fields() and self.parse_request():
            self._on_busy(True)
            self._answer()
            self._on_busy(False)

    def note_authentic(self) -> None:
        if not self._is_authentic:
            self._is_authentic = True
            self._on_authentic()

    def flush(self) -> None:
        """Send the buffered data, with a separate timeout."""
        self.connection.settimeout(durations.HEAD_TIMEOUT)
        self.wfile.flush()

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.flush()  # the sender waits for this answer
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse an invalid request and close the connection, since its rest cannot be parsed."""
        self.close_connection = True
        code = int(code) if code < 500 else 400  # it is an error of the client
        reason, _ = self.responses.get(code, ("Bad Request", ""))
        body = {"success": False, "code": 1, "message": message or reason, "data": None}
        content = b"" if self.command == "HEAD" else json.dumps(body).encode()
        head = f"HTTP/1.1 {code} {reason}\r\nContent-Type: application/json\r\nConnection: close"
        self.wfile.write(f"{head}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        self.flush()

    def log_message(self, format: str, *args: object) -> None:
        _logger.debug(format, *args)

    def address_string(self) -> str:
        return self.client_address[0]

    def _read_fields(self) -> bool:
        """Read the head for `parse_request`; returns whether it is within the limits."""
        head, lines = bytearray(), 0
        while True:
            line = self._stream.readline(MAX_HEAD + 1)
            head, lines = head + line, lines + 1
            if len(head) > MAX_HEAD or lines > MAX_HEAD_LINES:
                self.send_error(431)
                return False
            if line in (b"\r\n", b"\n", b""):
                self.rfile = io.BytesIO(bytes(head))
                return True

    def _answer(self) -> None:
        """Call the application, unless the length of the body is refused."""
        lengths = set(self.headers.get_all("Content-Length", ["0"]))
        text = lengths.pop().strip()
        # Ambiguous lengths would permit request smuggling (RFC 9112, 11.2).
        if self.headers.get("Transfer-Encoding"):
            return self.send_error(411)
        if lengths or not (text.isascii() and text.isdigit()) or len(text) > 18:
            return self.send_error(400, "Bad Content-Length")
        length = int(text)
        if length > self.server.max_body:
            self.send_error(413, f"The body may have {self.server.max_body} bytes")
            _Body(self._stream, length, self.connection).discard(DISCARD_LIMIT)
            return None
        body = _Body(self._stream, length, self.connection)
        _Call(self, body).run(self.server.app)  # type: ignore[arg-type]
        self.flush()
        if not body.discard(KEEP_LIMIT if not self.close_connection else DISCARD_LIMIT):
            self.close_connection = True
        return None


class _Call(SimpleHandler):
    """One call of the application; the answer is written to the client's buffer."""

    os_environ: dict[str, str] = {}  # applications do not need the environment of the process
    http_version = "1.1"
    headers: Headers
    bytes_sent: int

    def __init__(self, client: HttpHandler, body: "_Body") -> None:
        self._client, self._body = client, body
        environ = {**client.get_environ(), AUTHENTIC_KEY: client.note_authentic}
        super().__init__(io.BufferedReader(body), client.wfile, sys.stderr, environ)  # type: ignore[arg-type]

    def get_scheme(self) -> str:
        return self._client.scheme

    def cleanup_headers(self) -> None:
        super().cleanup_headers()
        has_length = "Content-Length" in self.headers
        if self._body.left > KEEP_LIMIT or self._body.is_broken or not has_length:
            self._client.close_connection = True
        if self._client.close_connection:
            self.headers["Connection"] = "close"
        elif self._client.request_version == "HTTP/1.0":
            self.headers["Connection"] = "keep-alive"

    def finish_content(self) -> None:
        super().finish_content()
        is_whole = self.headers["Content-Length"] == str(self.bytes_sent)
        if not is_whole and self._client.command != "HEAD":
            self._client.close_connection = True  # the answer is incomplete: a file was truncated

    def handle_error(self) -> None:
        raise  # an error of the application ends the connection

    def _write(self, data: bytes) -> None:
        self._client.connection.settimeout(durations.HEAD_TIMEOUT)
        super()._write(data)

    def _flush(self) -> None:
        """Does nothing: the handler flushes when the answer is complete."""


class _Body(io.RawIOBase):
    """The body of a request, read from the connection on demand."""

    def __init__(
        self, stream: Any, length: int, connection: DeadlineSocket | ssl.SSLSocket
    ) -> None:
        self.left = length  # number of unread bytes
        self.is_broken = False  # the sender has disconnected, or is too slow
        self._stream, self._connection = stream, connection
        self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.left <= 0 or self.is_broken:
            return 0
        if not self._begun:
            self._begun = True
            self._connection.settimeout(durations.BODY_TIMEOUT)
        piece = self._read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def discard(self, limit: int) -> bool:
        """Discard at most `limit` bytes of the rest; returns whether the whole body was read."""
        if self.left and not self.is_broken:
            self._connection.settimeout(durations.DISCARD_TIMEOUT)
            while limit > 0 and self.left > 0 and not self.is_broken:
                limit -= len(self._read(min(limit, 65536)))
        return self.left == 0

    def _read(self, most: int) -> bytes:
        try:
            piece: bytes = self._stream.read1(min(most, self.left))
        except OSError:
            piece = b""
        self.is_broken = not piece
        self.left -= len(piece)
        return piece
