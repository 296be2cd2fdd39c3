"""Answers ``ding status``, and shows the run's page."""

from collections.abc import Callable, Mapping

import flask

from ding.board.pages import run_pages
from ding.interaction.base.service import HttpService, Route
from ding.interaction.master import Master

STATUS_PATH = "/status"


class StatusService(HttpService):
    """A service that anybody may ask for a run's facts: JSON under ``GET /status``, and its page.

    Attributes:
        status: Gives the facts.
    """

    status: Callable[[], Mapping[str, object]]

    def _routes(self) -> list[Route]:
        return [Route("GET", STATUS_PATH, lambda: None, lambda _: self.status(), public=True)]

    def _make_app(self) -> flask.Flask:
        app = super()._make_app()
        app.register_blueprint(run_pages(self.status))
        return app


class StatusServer(StatusService):
    """Serves that alone, on the loopback address, where no master does."""

    _role, _codes = Master._role, Master._codes

    def __init__(self, status: Callable[[], Mapping[str, object]]) -> None:
        super().__init__(port=0, max_body=0)
        self.status = status
