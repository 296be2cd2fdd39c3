"""Connects a worker to its coordinator over HTTP: a slave that serves requests, and a joiner."""

import contextlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, ClassVar

import requests

from ding.interaction.base import get_values_from_response, random_token, split_http_address
from ding.interaction.base.messages import Message
from ding.interaction.base.network import HttpEngine, NotAuthenticError
from ding.interaction.config import DEFAULT_CHANNEL, LOCAL_HOST
from ding.interaction.slave import Slave
from ding.utils import durations
from ding.utils.errors import RunError
from ding.utils.json_fields import Rule
from ding.utils.system_helper import ReportingThread
from ding.worker.engines.http_messages import answer_to_json, request_from_json
from ding.worker.error_report import ErrorReport
from ding.worker.messages import Json, Kind
from ding.worker.seams import WorkerService

_logger = logging.getLogger(__name__)

JOIN_PATH = "/worker/join"
#: Path at which a worker requests its part of the config before it joins.
ENTRY_PATH = "/worker/entry"
#: Error answers for which a retry is useless.
_FINAL = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
)

#: Maximum length of a name, which appears in lists, log lines and file names.
MAX_NAME = 64
_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9._-]{{0,{MAX_NAME - 1}}}")
#: Fields that describe a joining worker.
_Name = Annotated[str, Rule(_NAME.fullmatch, f"up to {MAX_NAME} letters, digits and ._-")]
_Host = Annotated[str, Rule(lambda h: 0 < len(h) <= 255 and h.isprintable(), "an address")]
_Port = Annotated[int, Rule(lambda port: 0 < port < 65536, "a port")]

Callbacks = Mapping[str, Callable[..., Any]]


class _WorkerMessage(Message):
    """``{"worker": {...}}``."""

    _inner = "worker"

    def body(self) -> dict[str, object]:
        return {"worker": dict(vars(self))}


@dataclass(frozen=True)
class JoinMessage(_WorkerMessage):
    """A worker reports the address at which it listens."""

    kind: Kind
    name: _Name
    host: _Host
    port: _Port
    pid: int = 0


@dataclass(frozen=True)
class EntryMessage(_WorkerMessage):
    """A worker requests its part of the config, before it listens anywhere.

    Attributes:
        name: ``None``: a new name in the run.
    """

    kind: Kind
    name: _Name | None = None


class CallbackSlave(Slave):
    """A slave that answers tasks by callback functions, as in DI-engine.

    Args:
        callback_fn: The functions, by the names in `callbacks`.
    """

    #: By task name, the callback that answers it, and the field of the task passed to it.
    callbacks: ClassVar[Mapping[str, tuple[str, str | None]]]

    def __init__(self, *args: Any, callback_fn: Callbacks, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._callback_fn = callback_fn

    def _process_task(self, task: Mapping[str, object]) -> Any:
        name = str(task.get("name"))
        if name not in self.callbacks:
            known = ", ".join(self.callbacks)
            raise ErrorReport(
                "UnknownTask", f"unknown task {name!r:.80}; known are {known}"
            ).task_fail()
        callback, field = self.callbacks[name]
        call = self._callback_fn[callback]
        return call() if field is None else call(task.get(field))


class HttpWorker(Slave):
    """Connects a service to a coordinator: a slave that passes requests to the service.

    Args:
        service: The worker.
        cfg: ``host``; ``port`` (``'auto'``, 0 or ``None``: any free one, sent to the coordinator);
            ``coordinator``, its host and port; ``joins``: whether to join even with a fixed port;
            ``name``, ``run_key``, ``channel``, ``heartbeat_span``.
        on_failure: Called with the cause when no coordinator can reach the worker any more.
    """

    def __init__(
        self,
        service: WorkerService,
        cfg: Mapping[str, Any],
        on_failure: Callable[[str], object],
    ) -> None:
        port, key, channel = cfg.get("port", "auto"), cfg.get("run_key"), cfg.get("channel")
        has_own_port = port not in ("auto", 0, None)
        super().__init__(
            cfg.get("host"),
            int(port) if has_own_port else 0,
            cfg.get("heartbeat_span"),
            channel=channel,
            key=key,
            on_death=on_failure,
        )
        self._service = service
        self._joiner: Joiner | None = None
        joins = cfg.get("joins") or not has_own_port  # else the coordinator's table lists it
        if cfg.get("coordinator") and joins:
            host, at = cfg["coordinator"]
            name = str(cfg.get("name") or service.kind)
            self._joiner = Joiner(
                *((host, int(at)), service.kind, name, lambda: self.my_address),
                *(key, channel, on_failure),
            )

    def start(self) -> None:
        """Listen, and start to join the coordinator; does not wait."""
        super().start()
        if self._joiner is not None:
            self._joiner.start()

    def stop_joining(self) -> None:
        """Stop trying to join a coordinator; does not wait."""
        if self._joiner is not None:
            self._joiner.close(0.0)

    def close(self) -> None:
        """Stop listening; an open request fails."""
        if self._joiner is not None:
            self._joiner.close()
        super().close()

    def _process_task(self, task: Mapping[str, object]) -> Json:
        request = request_from_json(self._service.kind, task)
        return answer_to_json(request, self._service.handle(request))

    def _before_disconnection(self, data: Mapping[str, object]) -> None:
        self._service.released()

    def _lost_connection(self, master_address: str, err: Exception) -> None:
        cause = f"lost the coordinator at {master_address}: {type(err).__name__}: {err}"
        self._service.coordinator_lost(cause)
        if self._joiner is not None:
            self._joiner.lost()


class Joiner:
    """Joins a worker to its coordinator, again after each call of `lost`.

    When the coordinator accepts, it has connected to the worker as its master.

    Args:
        coordinator: Host (``None``: this host) and port.
        kind, name: The worker's kind and name in the run.
        address_fn: Returns the worker's address, as ``host:port`` (its slave's ``my_address``).
        key: The run's key.
        channel: Number that must be equal on both sides.
        on_give_up: Called with the cause, in the joiner's thread, when joining fails for good.
        first_patience: Seconds to try the first time.
        patience: Seconds to try after `lost`.
    """

    def __init__(
        self,
        coordinator: tuple[str | None, int],
        kind: Kind,
        name: str,
        address_fn: Callable[[], str],
        key: str | None,
        channel: int | None = None,
        on_give_up: Callable[[str], object] | None = None,
        *,
        first_patience: float = durations.JOIN_PATIENCE,
        patience: float = durations.REJOIN_PATIENCE,
    ) -> None:
        self._coordinator = f"{coordinator[0] or LOCAL_HOST}:{coordinator[1]}"
        self._kind, self._name = kind, name
        self._address_fn, self._on_give_up = address_fn, on_give_up
        self._patiences = (first_patience, patience)
        self._engine = _client(coordinator, key, channel)
        self._closed = threading.Event()
        self._wake = threading.Event()
        # Reporting: if this thread failed silently, the worker would wait forever.
        self._thread = ReportingThread(self._run, f"join-{name}", self._give_up)

    def start(self) -> None:
        """Start to join; does not wait. The worker must be listening."""
        self._wake.set()
        self._thread.start()

    def lost(self) -> None:
        """The coordinator was lost: join again. To be called in ``Slave._lost_connection``."""
        self._wake.set()

    def close(self, timeout: float = durations.JOIN_CLOSE) -> None:
        """Stop without a report; waits for the thread, except in the thread itself."""
        self._closed.set()
        self._wake.set()
        self._engine.close()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        patience, later = self._patiences
        while True:
            self._wake.wait()
            if self._closed.is_set():
                return
            cause = self._join(patience)
            if cause is not None:
                self._give_up(cause)
                return
            # The first time, the coordinator may still be starting; later, it may have to be
            # restarted first.
            patience = later

    def _give_up(self, cause: str) -> None:
        if not self._closed.is_set() and self._on_give_up is not None:
            self._on_give_up(cause)

    def _join(self, patience: float) -> str | None:
        """Why joining failed; ``None`` after success."""
        begin, (wait, longest) = time.monotonic(), durations.JOIN_PAUSES
        while not self._closed.is_set():
            # Before the try: a loss during it must lead to another one.
            self._wake.clear()
            cause, is_final = self._ask()
            if cause is None:
                self._engine.close()  # the coordinator supports only a few connections
                _logger.info("joined the coordinator at %s", self._coordinator)
                return None
            if is_final:
                return f"the coordinator at {self._coordinator}: {cause}"
            tried = time.monotonic() - begin
            if tried >= patience:
                return f"no coordinator at {self._coordinator} for {tried:.0f} s: {cause}"
            self._closed.wait(wait)
            wait = min(2 * wait, longest)
        return "closed"

    def _ask(self) -> tuple[str | None, bool]:
        """The error, ``None`` for success, and whether a retry is useless."""
        host, port, _, _ = split_http_address(self._address_fn())
        message = JoinMessage(self._kind, self._name, host, port, os.getpid())
        try:
            self._engine.request("POST", JOIN_PATH, message.body())
        except requests.RequestException as error:
            return _problem(error)
        return None, False


def ask_for_entry(
    coordinator: tuple[str, int], kind: Kind, name: str | None, key: str | None
) -> Mapping[str, Any]:
    """Request the part of a run's compiled config that a worker needs; waits for the coordinator.

    Args:
        name: The worker's name; ``None``: the coordinator chooses one.

    Returns:
        ``main`` and ``system``, with one worker's entry.

    Raises:
        RunError: The coordinator is missing or rejects the request.
    """
    pause = durations.JOIN_PAUSES[1]
    retries, body = round(durations.JOIN_PATIENCE / pause), EntryMessage(kind, name).body()
    with contextlib.closing(_client(coordinator, key)) as client:
        try:
            response = client.request(
                "POST", ENTRY_PATH, body, retries=retries, retry_waiting=pause
            )
        except requests.RequestException as error:
            where = f"the coordinator at {coordinator[0]}:{coordinator[1]}"
            raise RunError(f"{where}: {_problem(error)[0]}") from error
    entry: Mapping[str, Any] = get_values_from_response(response)[4]
    return entry


def _client(
    coordinator: tuple[str | None, int], key: str | None, channel: int | None = None
) -> HttpEngine:
    channel = DEFAULT_CHANNEL if channel is None else channel
    return HttpEngine(
        coordinator[0] or LOCAL_HOST,
        int(coordinator[1]),
        key=key,
        role="master",
        headers={"Channel": str(channel), "Token": random_token()},
        timeout=durations.JOIN_TIMEOUT,
        retries=0,
    )


def _problem(error: requests.RequestException) -> tuple[str, bool]:
    """Why a coordinator did not fulfil a request, and whether a retry is useless."""
    if not isinstance(error, requests.HTTPError):
        is_final = isinstance(error, NotAuthenticError)
        return str(error) if is_final else f"{type(error).__name__}: {error}", is_final
    status = error.response.status_code
    try:
        cause = get_values_from_response(error.response)[3]
    except ValueError:
        cause = f"HTTP status {status}"
    return f"it refuses this worker: {cause}", status in _FINAL
