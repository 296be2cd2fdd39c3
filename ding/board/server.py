"""The board's server; ``ding board`` runs it until Ctrl-C. It is read-only."""

import logging
import mimetypes
import os
import signal
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from types import FrameType

import flask
import numpy as np
from werkzeug.exceptions import HTTPException
from werkzeug.wsgi import wrap_file

from ding.board.run_files import list_files, open_video, read_config, read_log
from ding.board.run_list import Run, RunList
from ding.interaction.base.network import is_loopback, is_own_name
from ding.interaction.base.server import HttpServer
from ding.interaction.config import LOCAL_HOST
from ding.utils import durations, strict_json
from ding.utils.console import printable
from ding.utils.errors import ConfigError, InteractionError, RunError
from ding.utils.run_files import Piece, read_metrics, whole_rows
from ding.utils.seed_statistics import averaged
from ding.utils.types import Json, JsonObject

_logger = logging.getLogger(__name__)

DEFAULT_PORT = 6007
STATIC = os.path.join(os.path.dirname(__file__), "static")
#: Bytes of a video that are read at a time.
_VIDEO_PIECE = 64 << 10
#: Maximum number of curves that are averaged per request.
MAX_CURVES = 100
MAX_BODY = 4 << 20
_HEADERS = {
    # All content is from this server; nothing is sent to other hosts, not even the referrer.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

#: Maps a run's folder to its coordinator's status, ``None`` if no coordinator answers.
AskStatus = Callable[[str], Mapping[str, Json] | None]


class BoardPages:
    """The board as a blueprint, for its own server or that of a coordinator.

    It only answers requests from this host, whose ``Host`` header is an IP address or a name of
    this host (which prevents DNS rebinding).

    Args:
        root: Returns the folder of the runs; called at the first request.
        ask: Returns the status of a running parallel run.
        single: Whether the board shows only the run in ``root``.
    """

    def __init__(
        self,
        root: Callable[[], str],
        ask: AskStatus,
        single: bool = False,
    ) -> None:
        self._root, self._ask, self._single = root, ask, single

    @cached_property
    def _runs(self) -> RunList:
        return RunList(self._root())

    def blueprint(self) -> flask.Blueprint:
        """
        Returns:
            A blueprint whose rules answer ``GET`` and ``HEAD``, and ``POST`` for ``/api/mean``.
        """
        pages = flask.Blueprint("board", __name__)
        pages.before_request(self._check)
        pages.after_request(_harden)
        pages.register_error_handler(HTTPException, _tell)
        pages.register_error_handler(Exception, _tell_bug)
        for path, view in (
            ("/", self._page),
            ("/static/<path:name>", self._static),
            ("/api/runs", self._list),
            ("/api/configs", self._configs),
            ("/api/run", self._run),
            ("/api/metrics", self._metrics),
            ("/api/log", self._log),
            ("/api/video", self._video),
        ):
            pages.add_url_rule(path, view.__name__, view, provide_automatic_options=False)
        pages.add_url_rule("/api/mean", view_func=_mean, methods=["POST"])
        return pages

    def _check(self) -> None:
        request = flask.request
        host = request.headers.get("Host", "")
        if not is_loopback(request.remote_addr) or not is_own_name(host, "localhost", "localhost"):
            flask.abort(HTTPStatus.FORBIDDEN, "only this machine may look at this page")

    def _page(self) -> flask.Response:
        return flask.send_from_directory(STATIC, "index.html")

    def _static(self, name: str) -> flask.Response:
        return flask.send_from_directory(STATIC, name)

    def _list(self) -> flask.Response:
        changes = self._runs.changes(flask.request.args.get("since", ""))
        root = printable(self._runs.root)
        return _json({"root": root, "single": self._single, "cut": self._runs.is_cut, **changes})

    def _configs(self) -> flask.Response:
        return _json(self._runs.configs())

    def _run(self) -> flask.Response:
        run = self._named_run()
        live = self._ask(run.folder) if run.status == "running" else None
        answer: JsonObject = {
            "summary": self._runs.summary(run),
            "record": run.record.facts,
            "live": live,
            **list_files(run.folder),
        }
        if "config" in flask.request.args:
            try:
                answer["config"] = read_config(run.folder)
            except ValueError as error:
                answer["config_error"] = str(error)
        return _json(answer)

    def _metrics(self) -> flask.Response:
        run, offset = self._named_run(), flask.request.args.get("offset", 0, int)
        try:
            piece = read_metrics(run.folder, max(0, offset))
        except OSError:
            flask.abort(HTTPStatus.NOT_FOUND, "there are no metrics yet")
        return _piece_of(piece, whole_rows(piece.content), "application/x-ndjson")

    def _log(self) -> flask.Response:
        args = flask.request.args
        try:
            piece = read_log(
                self._named_run().folder, args.get("path", ""), args.get("offset", type=int)
            )
        except OSError:
            flask.abort(HTTPStatus.NOT_FOUND, "there is no such log")
        return _piece_of(piece, piece.content, "text/plain; charset=utf-8")

    def _video(self) -> flask.Response:
        path = flask.request.args.get("path", "")
        try:
            file = open_video(self._named_run().folder, path)
        except OSError:
            flask.abort(HTTPStatus.NOT_FOUND, "there is no such video")
        response = flask.Response(
            wrap_file(flask.request.environ, file, _VIDEO_PIECE),
            mimetype=mimetypes.guess_type(path)[0],
            direct_passthrough=True,
        )
        response.call_on_close(file.close)
        found = os.fstat(file.fileno())
        response.content_length = found.st_size
        response.last_modified = int(found.st_mtime)  # type: ignore[assignment]
        response.set_etag(f"{found.st_mtime_ns:x}-{found.st_size:x}")
        size = found.st_size
        response.make_conditional(flask.request, accept_ranges=True, complete_length=size)
        return response

    def _named_run(self) -> Run:
        try:
            return self._runs.get(flask.request.args.get("id", ""))
        except KeyError:
            flask.abort(HTTPStatus.NOT_FOUND, "there is no such run")


def run_pages(status: Callable[[], Mapping[str, Json]]) -> flask.Blueprint:
    """The board of one run, for the server of its coordinator.

    Args:
        status: Returns the run's status, including ``exp_name``.
    """

    def folder() -> str:
        return str(status()["exp_name"])

    return BoardPages(folder, lambda _: status(), single=True).blueprint()


def _mean() -> flask.Response:
    """The mean over seeds of the curves in the body, which is too long for a URL."""
    try:
        curves = flask.request.get_json()["curves"][:MAX_CURVES]
        points = [np.column_stack([curve["x"], curve["y"]]).astype(float) for curve in curves]
        x, mean, low, high = averaged(points, [bool(curve["converged"]) for curve in curves])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        flask.abort(HTTPStatus.BAD_REQUEST, f"expected curves with x, y and converged: {error}")
    return _json(
        {"x": x.tolist(), "mean": mean.tolist(), "low": low.tolist(), "high": high.tolist()}
    )


def _json(answer: Mapping[str, Json]) -> flask.Response:
    return flask.Response(strict_json.dumps(answer), mimetype="application/json")


def _piece_of(piece: Piece, content: bytes, kind: str) -> flask.Response:
    response = flask.Response(content, content_type=kind)
    response.headers["X-Offset"] = str(piece.offset)
    response.headers["X-Size"] = str(piece.size)
    response.headers["X-Restarted"] = str(int(piece.restarted))
    return response


def _harden(response: flask.Response) -> flask.Response:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _tell(error: HTTPException) -> tuple[dict[str, str], int]:
    return {"error": error.description or error.name}, error.code or HTTPStatus.BAD_REQUEST


def _tell_bug(error: Exception) -> tuple[dict[str, str], int]:
    _logger.warning("a request for the page of runs failed: %r", error)
    message = f"{type(error).__name__}: {error}"
    return {"error": message}, HTTPStatus.INTERNAL_SERVER_ERROR


class BoardServer:
    """Serves the board from `start` until `close`, with an `HttpServer` and its limits.

    Args:
        folder: Folder of the runs.
        ask: See `BoardPages`.
        port: 0 for a free port.

    Raises:
        ConfigError: The server cannot listen on the port.
    """

    def __init__(self, folder: str, ask: AskStatus, port: int = DEFAULT_PORT) -> None:
        app = flask.Flask(__name__, static_folder=None)
        app.register_blueprint(BoardPages(lambda: folder, ask).blueprint())
        #: Set when the server has stopped.
        self.ended = threading.Event()
        #: Reason why the server stopped without `close`.
        self.cause = ""
        try:
            self._server = HttpServer(
                *(app, LOCAL_HOST, port, MAX_BODY),
                on_stop=self.ended.set,
                on_death=self._note_death,
            )
        except InteractionError as error:
            hint = "choose another with --port (0: any free one)"
            cause = str(error).partition(";")[0]
            raise ConfigError(f"{cause}; {hint}") from error

    @property
    def url(self) -> str:
        """The URL of the board."""
        return f"http://{LOCAL_HOST}:{self._server.port}/"

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()
        self._server.join(2 * durations.SERVER_STOP)

    def _note_death(self, cause: str) -> None:
        self.cause = cause


def serve_until_signal(server: BoardServer) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Raises:
        RunError: The server failed.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        server.ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    server.start()
    try:
        server.ended.wait()
    finally:
        server.close()
    if server.cause:
        raise RunError(server.cause)
