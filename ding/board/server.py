"""``ding board``: the page of all runs below a folder, until Ctrl-C."""

import secrets
import signal
import socket
import threading
from types import FrameType

import flask
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from ding.board.pages import TOKEN, AskStatus, BoardPages, plotly_script
from ding.interaction.base.network import joined
from ding.interaction.config import LOCAL_HOST
from ding.utils import durations
from ding.utils.errors import ConfigError

DEFAULT_PORT = 6007
_LOOPBACK = (LOCAL_HOST, "localhost", "::1")


class _QuietHandler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: object) -> None:
        """A page that asks every other second says nothing new."""


class BoardServer:
    """Serves the page from `start` until `close`.

    Args:
        folder: Of the runs.
        ask: See `BoardPages`.
        host: Where to listen. On any but the loopback address, a token is asked for.
        port: 0 for any free one.

    Raises:
        ConfigError: It cannot listen there, or plotly is not installed.
    """

    def __init__(
        self, folder: str, ask: AskStatus, host: str = LOCAL_HOST, port: int = DEFAULT_PORT
    ) -> None:
        if plotly_script() is None:
            raise ConfigError("the page draws with plotly: pip install 'ding[board]'")
        self._host = host
        self._token = None if host in _LOOPBACK else secrets.token_urlsafe(16)
        app = flask.Flask(__name__, static_folder=None)
        pages = BoardPages(lambda: folder, ask, self._token)
        app.register_blueprint(pages.blueprint())
        self._server = _listen(host, port, app)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.1},
            name="board",
            daemon=True,
        )
        self._first_look = threading.Thread(target=pages.look, name="board-look", daemon=True)

    @property
    def url(self) -> str:
        """What to open, with the token."""
        host = self._host if self._host not in ("0.0.0.0", "::", "") else "localhost"
        query = f"?{TOKEN}={self._token}" if self._token else ""
        return f"http://{joined(host, self._server.port)}/{query}"

    def start(self) -> None:
        self._thread.start()
        self._first_look.start()  # whoever opens the page takes longer than this

    def close(self) -> None:
        """Stop to listen."""
        self._server.shutdown()
        self._thread.join(durations.SERVER_STOP)
        self._first_look.join(durations.SERVER_STOP)
        self._server.server_close()


def serve_until_signal(server: BoardServer) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    asked = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    server.start()
    try:
        asked.wait()
    finally:
        server.close()


def _listen(host: str, port: int, app: flask.Flask) -> BaseWSGIServer:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {joined(host, port)}: {error.strerror or error}; choose another "
            "with --port (0: any free one)"
        ) from error
    with listening:  # the server has its own
        server = make_server(
            *(host, port, app),
            threaded=True,
            request_handler=_QuietHandler,
            fd=listening.fileno(),
        )
    server.daemon_threads = True  # type: ignore[attr-defined]
    return server
