"""The coordinator's master: workers join at it, and any client may request the run's status."""

from collections.abc import Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any, TypeVar

import flask
from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException

from ding.board.server import run_pages
from ding.interaction import Master
from ding.interaction.base.service import (
    Handler,
    HttpService,
    http_error_response,
    parsed,
    refusal,
)
from ding.interaction.config import SMALL_BODY
from ding.interaction.exception.master import MasterErrorCode as Code
from ding.worker.engines.http_worker import ENTRY_PATH, JOIN_PATH, EntryMessage, JoinMessage

STATUS_PATH = "/status"

Joining = TypeVar("Joining", JoinMessage, EntryMessage)


class StatusService(HttpService):
    """A service that serves a run's facts to any client: JSON under ``GET /status``, and a page.

    Attributes:
        status: Returns the facts.
    """

    status: Callable[[], Mapping[str, object]]

    def _public_routes(self) -> Mapping[str, Handler]:
        return {f"GET {STATUS_PATH}": lambda _: self.status()}

    def _reply(self, request: Request) -> Response:
        path = request.environ["PATH_INFO"]
        if any(path == name.split()[1] for name in self._handlers):
            return super()._reply(request)
        return Response.from_app(self._pages, request.environ)

    @cached_property
    def _pages(self) -> flask.Flask:
        app = flask.Flask(__name__, static_folder=None)
        app.register_error_handler(HTTPException, http_error_response)
        app.register_blueprint(run_pages(self.status))
        return app


class StatusServer(StatusService):
    """Serves only the status, on the loopback address; used if there is no master."""

    _role, _peer_codes = Master._role, Master._peer_codes

    def __init__(self, status: Callable[[], Mapping[str, object]]) -> None:
        super().__init__(port=0, max_body=0)
        self.status = status


def _no_entry(message: EntryMessage) -> Mapping[str, object]:
    raise refusal(Code.TASK_DATA_INVALID, f"a {message.kind} needs its config to join here")


class RunMaster(Master, StatusService):
    """A master that workers join and that reports the status of its run.

    Args:
        on_join: Connects to a worker that joins; raises ``ResponsibleException`` to reject it.
        on_lost: Called with the name of a lost slave, and the cause.
        status: Returns the facts of the run, JSON.
        on_entry: Returns the config of a worker before it joins, JSON; may also reject it.
    """

    def __init__(
        self,
        *args: Any,
        on_join: Callable[[JoinMessage], object],
        on_lost: Callable[[str, str], object],
        status: Callable[[], Mapping[str, object]],
        on_entry: Callable[[EntryMessage], Mapping[str, object]] = _no_entry,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._on_join, self._on_entry = on_join, on_entry
        self._on_lost, self.status = on_lost, status

    def _routes(self) -> Mapping[str, Handler]:
        return {
            **super()._routes(),
            f"POST {JOIN_PATH}": self._handle_join,
            f"POST {ENTRY_PATH}": self._handle_entry,
        }

    def _handle_join(self, request: Request) -> str:
        self._on_join(self._worker_message(request, JoinMessage))
        return "joined"

    def _handle_entry(self, request: Request) -> Mapping[str, object]:
        return self._on_entry(self._worker_message(request, EntryMessage))

    def _worker_message(self, request: Request, kind: type[Joining]) -> Joining:
        if self._key is None:
            message = "workers may join only a coordinator that has a run key"
            raise refusal(Code.SLAVE_TOKEN_INVALID, message, HTTPStatus.FORBIDDEN)
        self._peer_token(request)
        return parsed(request, kind.parse, Code.TASK_DATA_INVALID, max_body=SMALL_BODY)

    def _lost_connection(self, name: str, cause: str) -> None:
        self._on_lost(name, cause)
