"""A worker's way to its coordinator: it tells where it listens, and does so again when lost."""

import logging
import os
import threading
import time
from collections.abc import Callable
from http import HTTPStatus

import requests

from ding.interaction.base import get_values_from_response, random_token, split_http_address
from ding.interaction.base.authentication import NotAuthenticError
from ding.interaction.base.service import make_engine
from ding.interaction.config import DEFAULT_CHANNEL, LOCAL_HOST
from ding.utils import durations

_logger = logging.getLogger(__name__)

JOIN_PATH = "/worker/join"
#: Answers that trying again does not change.
_FINAL = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
)


class Joiner:
    """Joins a worker to its coordinator, and joins it again after `lost`.

    When the coordinator accepts, it has connected to the worker as its master.

    Args:
        coordinator: Host (``None``: this one) and port.
        kind: ``collector`` or ``learner``.
        name: The worker's name in the run.
        address_fn: Gives where the worker listens, as ``host:port`` (its slave's ``my_address``).
        key: The run's key.
        channel: Number that both sides have to agree on.
        on_give_up: Told why, in the joiner's thread, when the coordinator cannot be joined.
        ready: Called in the joiner's thread each time before it begins to join; may wait. It gives
            up quietly if that is false.
        first_patience: Seconds to try the first time.
        patience: Seconds to try after `lost`.
    """

    def __init__(
        self,
        coordinator: tuple[str | None, int],
        kind: str,
        name: str,
        address_fn: Callable[[], str],
        key: str | None,
        channel: int | None = None,
        on_give_up: Callable[[str], object] | None = None,
        ready: Callable[[], bool] = lambda: True,
        *,
        first_patience: float = durations.JOIN_PATIENCE,
        patience: float = durations.REJOIN_PATIENCE,
    ) -> None:
        host, port = coordinator[0] or LOCAL_HOST, coordinator[1]
        self._coordinator = f"{host}:{port}"
        self._worker = {"kind": kind, "name": name}
        self._address_fn, self._on_give_up, self._ready = address_fn, on_give_up, ready
        self._patiences = (first_patience, patience)
        headers = {
            "Channel": str(DEFAULT_CHANNEL if channel is None else channel),
            "Token": random_token(),
        }
        address = (host, int(port), False, "")
        self._engine = make_engine(
            headers, address, durations.JOIN_TIMEOUT, retries=0, key=key, role="master"
        )
        self._closed = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"join-{name}", daemon=True)

    def start(self) -> None:
        """Begin to join; does not wait. The worker must be listening."""
        self._wake.set()
        self._thread.start()

    def lost(self) -> None:
        """The coordinator is gone: join again. Call it in ``Slave._lost_connection``."""
        self._wake.set()

    def close(self, timeout: float = durations.JOIN_CLOSE) -> None:
        """Give up quietly; waits for the thread unless it is the caller."""
        self._closed.set()
        self._wake.set()
        self._engine.close()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        patience, later = self._patiences
        while True:
            self._wake.wait()
            if self._closed.is_set() or not self._ready():
                return
            cause = self._join(patience)
            if cause is not None:
                if not self._closed.is_set() and self._on_give_up is not None:
                    self._on_give_up(cause)
                return
            patience = later

    def _join(self, patience: float) -> str | None:
        """Why it gave up; ``None`` when it has joined."""
        begin, (wait, longest) = time.monotonic(), durations.JOIN_PAUSES
        while not self._closed.is_set():
            self._wake.clear()
            cause, final = self._ask()
            if cause is None:
                _logger.info("joined the coordinator at %s", self._coordinator)
                return None
            if final:
                return cause
            tried = time.monotonic() - begin
            if tried >= patience:
                return f"no coordinator at {self._coordinator} for {tried:.0f} s: {cause}"
            self._closed.wait(wait)
            wait = min(2 * wait, longest)
        return "closed"

    def _ask(self) -> tuple[str | None, bool]:
        """What went wrong, ``None`` for nothing, and whether trying again is of no use."""
        host, port, _, _ = split_http_address(self._address_fn())
        body = {"worker": {**self._worker, "host": host, "port": port, "pid": os.getpid()}}
        try:
            self._engine.request("POST", JOIN_PATH, body)
        except requests.HTTPError as err:
            told, final = _told(err.response), err.response.status_code in _FINAL
            refused = f"the coordinator at {self._coordinator} refuses this worker: {told}"
            return refused if final else told, final
        except NotAuthenticError as err:
            return str(err), True
        except requests.RequestException as err:
            return f"{type(err).__name__}: {err}", False
        return None, False


def _told(response: requests.Response) -> str:
    try:
        return str(get_values_from_response(response)[3])
    except ValueError:
        return f"HTTP status {response.status_code}"
