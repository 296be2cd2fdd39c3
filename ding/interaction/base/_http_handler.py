"""Turns what comes on one connection into calls of a WSGI application."""

import io
import json
import logging
import ssl
import sys
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from ding.utils import durations

from ._deadline_socket import DeadlineSocket
from .tls import HANDSHAKE_BYTE

_logger = logging.getLogger(__name__)

#: In the environment of a request: call it when the caller is known.
AUTHENTIC_KEY = "ding.authentic"
#: Bytes of a request's head.
MAX_HEAD = 64 * 1024
MAX_HEAD_LINES = 100
#: Bytes of a body that nobody wanted which are read away: to keep the connection, and so that
#: its sender sees the answer before the connection is closed.
KEEP_LIMIT = 64 * 1024
#: Bytes of an answer that are sent in one piece; a longer one is sent as the application makes it.
MAX_PIECE = 256 * 1024
DISCARD_LIMIT = 8 * 1024 * 1024


class Server(Protocol):
    """What a handler needs of its server."""

    app: Callable[..., Iterable[bytes]]
    max_body: int
    server_address: Any


class HttpHandler(BaseHTTPRequestHandler):
    """Serves one connection, request after request.

    Args:
        has_certificate: Whether the client has shown one, on a connection with TLS.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server  # type: ignore[assignment]

    def __init__(
        self,
        connection: DeadlineSocket | ssl.SSLSocket,
        client_address: tuple[str, int],
        server: Any,
        has_certificate: bool = False,
    ) -> None:
        # The base class would serve at once, and close.
        self.request, self.client_address, self.server = connection, client_address, server
        self._scheme = "https" if has_certificate else "http"
        self._authentic = has_certificate
        self._tell_authentic: Callable[[], object] = lambda: None
        self._tell_busy: Callable[[bool], object] = lambda busy: None

    def serve(self, on_authentic: Callable[[], object], on_busy: Callable[[bool], object]) -> None:
        """Answer requests until the connection ends.

        Args:
            on_authentic: Called when the client is known.
            on_busy: Called when the head of a request is complete, and when it was answered.
        """
        self._tell_authentic, self._tell_busy = on_authentic, on_busy
        self.setup()
        self._stream = self.rfile
        try:
            self.handle()
        finally:
            self.finish()
            self._stream.close()

    def handle_one_request(self) -> None:
        self.close_connection = True  # unless there is a request that can be followed by another
        rest = durations.IDLE_TIMEOUT if self._authentic else durations.HEAD_TIMEOUT
        self.connection.settimeout(rest)
        begin = self._stream.peek(1)[:1]  # type: ignore[attr-defined]
        if begin == HANDSHAKE_BYTE:  # at once: a client that wants TLS waits for an answer to it
            self.requestline = self.request_version = self.command = ""
            self.send_error(400, "There is no TLS here")
        if begin in (b"", HANDSHAKE_BYTE):
            return
        self.connection.settimeout(durations.HEAD_TIMEOUT)
        self.raw_requestline = self._stream.readline(MAX_HEAD + 1)
        self.requestline = self.request_version = self.command = ""
        if len(self.raw_requestline) > MAX_HEAD:
            self.send_error(414)
        elif self._read_fields() and self.parse_request():
            self._tell_busy(True)
            self._handle()
            self._tell_busy(False)
        self.wfile.flush()

    def _read_fields(self) -> bool:
        """Read the lines of the head, for `parse_request`; whether they are not too many."""
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

    def handle_expect_100(self) -> bool:
        return True  # the body tells its sender to go on when it is wanted

    def _handle(self) -> None:
        length = self._body_length()
        if length is None:
            return
        expects = self.headers.get("Expect", "").lower() == "100-continue"
        body = _Body(self._stream, length, self.connection, self.wfile if expects else None)
        status, headers = "", []

        def start_response(line: str, fields: list[tuple[str, str]], _exc: object = None) -> None:
            nonlocal status, headers
            status, headers = line, fields

        chunks = self.server.app(self._environ(body, length), start_response)
        try:
            if body.left > KEEP_LIMIT or body.is_broken:
                self.close_connection = True
            self._reply(status, headers, chunks)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        if not body.discard(KEEP_LIMIT if not self.close_connection else DISCARD_LIMIT):
            self.close_connection = True

    def _body_length(self) -> int | None:
        """Bytes of the body, or ``None`` if there was an answer already."""
        lengths = set(self.headers.get_all("Content-Length", ["0"]))
        text = lengths.pop().strip()
        if self.headers.get("Transfer-Encoding"):
            self.send_error(411)
        elif lengths or not (text.isascii() and text.isdigit()) or len(text) > 18:
            self.send_error(400, "Bad Content-Length")
        elif int(text) > self.server.max_body:
            self.send_error(413, f"The body may have {self.server.max_body} bytes")
            _Body(self._stream, int(text), self.connection, None).discard(DISCARD_LIMIT)
        else:
            return int(text)
        return None

    def _environ(self, body: "_Body", length: int) -> dict[str, Any]:
        path, _, query = self.path.partition("?")
        environ = {
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": self._scheme,
            "wsgi.input": io.BufferedReader(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            AUTHENTIC_KEY: self._note_authentic,
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "RAW_PATH": self.path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(length),
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

    def _note_authentic(self) -> None:
        if not self._authentic:
            self._authentic = True
            self._tell_authentic()

    def _reply(self, status: str, headers: list[tuple[str, str]], chunks: Iterable[bytes]) -> None:
        pieces = iter(chunks)
        length = next((int(v) for name, v in headers if name.lower() == "content-length"), None)
        begin = b""
        while length is None or len(begin) < min(length, MAX_PIECE):
            piece = next(pieces, None)
            if piece is None:
                break
            begin += piece
        if length is None:
            length = len(begin)
        lines = [f"HTTP/1.1 {status}"]
        lines += [f"{name}: {value}" for name, value in headers if name != "Content-Length"]
        lines.append(f"Content-Length: {length}")
        if self.close_connection:
            lines.append("Connection: close")
        elif self.request_version == "HTTP/1.0":
            lines.append("Connection: keep-alive")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        if self.command == "HEAD":
            self._send(head)
            return
        self._send(head + begin)  # one write, so that a small answer leaves in one packet
        sent = len(begin)
        for piece in pieces:
            self._send(piece)
            sent += len(piece)
        if sent != length:  # a file that was cut meanwhile: the peer must not wait for the rest
            self.close_connection = True

    def _send(self, piece: bytes) -> None:
        # What is left of the request's time may be little.
        self.connection.settimeout(durations.HEAD_TIMEOUT)
        self.wfile.write(piece)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that is not HTTP; whatever follows on the connection has no sense."""
        self.close_connection = True
        code = code if code < 500 else 400  # the fault is the client's
        reason, _ = self.responses.get(code, ("Bad Request", ""))
        body = {"success": False, "code": 1, "message": message or reason, "data": None}
        headers = [("Content-Type", "application/json")]
        self._reply(f"{int(code)} {reason}", headers, [json.dumps(body).encode()])

    def log_message(self, format: str, *args: object) -> None:
        _logger.debug(format, *args)


class _Body(io.RawIOBase):
    """The body of a request, read from its connection when the application wants it.

    Attributes:
        left: Bytes that were not read.
        is_broken: Whether its sender has gone, or is too slow.
    """

    def __init__(
        self,
        stream: Any,
        length: int,
        connection: DeadlineSocket | ssl.SSLSocket,
        waiting: io.BufferedIOBase | None,
    ) -> None:
        self.left, self.is_broken = length, False
        self._stream, self._connection, self._waiting = stream, connection, waiting
        self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.left <= 0 or self.is_broken:
            return 0
        if not self._begun:
            self._begun = True
            self._connection.settimeout(durations.BODY_TIMEOUT)
            if self._waiting is not None:
                self._waiting.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        piece = self._read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def discard(self, limit: int) -> bool:
        """Read away what is left, as much as `limit` bytes; whether nothing is left."""
        if self.left and not self.is_broken and self._waiting is None:
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
