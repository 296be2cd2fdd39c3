"""Answers ``ding status``, and shows the run's page, where no other server does."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import flask

from ding.board.pages import run_pages
from ding.interaction.base.own_address import is_own_name, joined
from ding.interaction.base.server import HttpServer
from ding.interaction.config import LOCAL_HOST
from ding.utils import durations

_logger = logging.getLogger(__name__)

STATUS_PATH = "/status"


class StatusServer:
    """Gives a run's facts as JSON under ``GET /status``, and its page, on the loopback address.

    Args:
        status: The facts.
    """

    def __init__(self, status: Callable[[], Mapping[str, object]]) -> None:
        self._status = status
        self._pages = flask.Flask(__name__, static_folder=None)
        self._pages.register_blueprint(run_pages(status))
        self._server = HttpServer(self._answer, LOCAL_HOST, 0, max_body=0)
        self._started = False

    @property
    def address(self) -> str:
        """``host:port``."""
        return joined(LOCAL_HOST, self._server.port)

    def start(self) -> None:
        self._started = True
        self._server.start()

    def close(self) -> None:
        """Stop to listen."""
        self._server.stop()
        if self._started:
            self._server.join(durations.SERVER_STOP)

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != STATUS_PATH:
            return self._pages(environ, start_response)
        status, body = self._facts(environ)
        content = json.dumps(body).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
        start_response(f"{status.value} {status.phrase}", headers)
        return [content]

    def _facts(self, environ: Mapping[str, Any]) -> tuple[HTTPStatus, dict[str, Any]]:
        if not is_own_name(environ.get("HTTP_HOST", ""), self.address, LOCAL_HOST):
            return HTTPStatus.FORBIDDEN, _failure("ask under the server's address")
        if (environ["REQUEST_METHOD"], environ["PATH_INFO"]) != ("GET", STATUS_PATH):
            return HTTPStatus.NOT_FOUND, _failure(f"there is GET {STATUS_PATH} alone")
        try:
            facts = dict(self._status())
        except Exception as error:  # the edge of a request: reported to whoever asks
            _logger.exception("the status cannot be told")
            return HTTPStatus.INTERNAL_SERVER_ERROR, _failure(f"{type(error).__name__}: {error}")
        return HTTPStatus.OK, {"success": True, "code": 0, "message": "", "data": facts}


def _failure(message: str) -> dict[str, Any]:
    return {"success": False, "code": 1, "message": message}
