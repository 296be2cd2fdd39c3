"""Workers that are reached by HTTP: those of the config, and those that join."""

import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import requests

from ding.interaction.base.network import NotAuthenticError
from ding.interaction.base.service import refusal
from ding.interaction.exception.base import ResponseException
from ding.interaction.exception.master import MasterErrorCode as Code
from ding.interaction.exception.slave import SlaveTaskAlreadyExist, SlaveTaskRefused
from ding.interaction.master.connection import SlaveConnectionProxy
from ding.interaction.master.task import Task, TaskStatus
from ding.utils import durations
from ding.utils.errors import ConfigError, InteractionError
from ding.worker.engines.http_messages import answer_from_json, request_name, request_to_json
from ding.worker.engines.run_master import EntryMessage, JoinMessage, RunMaster
from ding.worker.messages import Kind, Request, Resources
from ding.worker.seams import (
    Arrival,
    Arrivals,
    Awaited,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)

__all__ = ["HttpControl", "HttpPeer"]

_logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Address = tuple[str, int]
_KINDS: tuple[Kind, ...] = ("collector", "learner")
_UNREACHABLE = (ResponseException, requests.RequestException, InteractionError)
#: Types of failures that mean that there is no worker any more.
_LOST = ("ConnectionLost", "SlaveShutDown")


class HttpPeer:
    """A slave that takes typed requests.

    Args:
        connection: To the slave, connected.
        on_resources: Told what it has, each time that it says so.

    Attributes:
        is_busy: Whether it was not done with an earlier request when it was asked last.
        is_known: Whether it has ever told what it has.
    """

    def __init__(
        self,
        connection: SlaveConnectionProxy,
        on_resources: Callable[[Resources], object] = lambda resources: None,
    ) -> None:
        self._connection, self._on_resources = connection, on_resources
        self.is_busy = self.is_known = False

    @property
    def is_connected(self) -> bool:
        return bool(self._connection.is_connected)

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """As `ding.worker.seams.Peer` says."""
        name = request_name(request)
        task = self._start(request, name).join(timeout)
        if task.status is TaskStatus.COMPLETED:
            answer = answer_from_json(request, task.result)
            if isinstance(answer, Resources):
                self.is_known = True
                self._on_resources(answer)
            return answer
        if task.status not in (TaskStatus.FAILED, TaskStatus.START_FAILED):
            raise WorkerLost(f"no answer to {name} for {timeout:g} s")
        cause, result = task.cause or "it failed", task.result
        if isinstance(result, dict) and result.get("type") in _LOST:
            raise WorkerLost(str(result.get("message") or cause))
        raise WorkerFailed(cause, result, by_worker=True)

    def _start(self, request: Request[Answer], name: str) -> Task:
        try:
            task = self._connection.new_task(request_to_json(request)).start()
        except SlaveTaskAlreadyExist as err:
            self.is_busy = True
            raise WorkerBusy("it still works on a step of before") from err
        except SlaveTaskRefused as err:
            raise WorkerFailed(f"it refuses {name}: {err}", by_worker=True) from err
        except _UNREACHABLE as err:
            raise WorkerLost(_cause(err)) from err
        self.is_busy = False
        return task


@dataclass
class _Worker:
    """What is known of a worker, by its name.

    Attributes:
        joined: Whether it came by itself; else it is connected to, ever again.
        arrival: As it was told when it came; ``None`` while it is not there.
        is_told: Whether the coordinator knows of that.
        hangs: Whether it was let go since it does not end what it was asked for.
        pause: Seconds before it is connected to again.
    """

    kind: Kind
    name: str
    address: Address
    joined: bool
    arrival: Arrival | None = None
    is_told: bool = False
    peer: HttpPeer | None = None
    hangs: bool = False
    pause: float = durations.CONNECT_PAUSES[0]

    @property
    def where(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"


class HttpControl:
    """Connects to the workers of the config, ever again, and lets others join.

    Args:
        cfg: ``system.coordinator``: host, port, ``run_key``, ``channel``, the tables ``collector``
            and ``learner`` of workers, and the spans in seconds.
        entry_of: Gives the config of a worker of a kind and a name, for those that come without.

    Raises:
        ConfigError: A table has an entry that is no address.
    """

    def __init__(
        self,
        cfg: Mapping[str, Any],
        entry_of: Callable[[Kind, str], Mapping[str, object]] = lambda kind, name: {},
    ) -> None:
        self._entry_of = entry_of
        self._given_names: set[str] = set()
        self._lock = threading.Condition(threading.RLock())  # guards what follows
        self._workers: dict[str, _Worker] = {}
        self._closing = False
        self._suspects: set[Address] = set()
        self._arrivals: Arrivals
        self._started = False
        for kind in _KINDS:
            for name, address in worker_table(cfg, kind).items():
                self._workers[name] = _Worker(kind, name, address, joined=False)
        self._tolerance = float(cfg.get("heartbeat_tolerance", durations.HEARTBEAT_TOLERANCE))
        port = cfg.get("port", 0)
        self._master = RunMaster(
            cfg.get("host"),
            0 if port in (None, "auto") else int(port),
            heartbeat_tolerance=self._tolerance,
            heartbeat_check_span=cfg.get("heartbeat_check_span", 0.5),
            request_retries=cfg.get("request_retries", 2),
            request_retry_waiting=cfg.get("request_retry_waiting", 0.3),
            channel=cfg.get("channel"),
            my_address=cfg.get("my_address"),
            key=cfg.get("run_key"),
            request_timeout=cfg.get("request_timeout", durations.REQUEST_TIMEOUT),
            on_join=self._join,
            on_entry=self._give_entry,
            on_lost=self._notice_loss,
            status=lambda: self._arrivals.status(),
            on_death=lambda cause: self._arrivals.fatal(cause),
            on_warning=lambda line: self._arrivals.warn("coordinator", line),
        )

    # ------------------------------------------------------------------ what the coordinator calls

    def start(self, arrivals: Arrivals) -> None:
        """Listen, and begin to connect to the workers of the config.

        Raises:
            PortTakenError: Another program listens on the port.
        """
        self._arrivals = arrivals
        self._master.start()
        self._started = True
        with self._lock:
            for worker in self._workers.values():
                self._connect_soon(worker)

    def release(self, arrival: Arrival, cause: str) -> None:
        with self._lock:
            worker = self._workers.get(arrival.name)
            if self._closing or worker is None or worker.arrival is not arrival:
                return
            peer, worker.peer, worker.arrival = worker.peer, None, None
            worker.is_told = False
            assert peer is not None  # as long as there is an arrival
            worker.hangs = peer.is_busy
            self._master.lose(worker.name, cause)
            if worker.joined:
                if not worker.hangs:
                    del self._workers[worker.name]
            else:
                wait = worker.pause
                if peer.is_known:
                    wait, worker.pause = 0.0, durations.CONNECT_PAUSES[0]
                self._connect_soon(worker, wait)

    def awaited(self) -> Sequence[Awaited]:
        with self._lock:
            return [
                Awaited(worker.kind, worker.name, worker.where)
                for worker in self._workers.values()
                if not (worker.is_told or worker.joined)
            ]

    def close(self, timeout: float) -> bool:
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        deadline = time.monotonic() + timeout
        if not self._started:
            return True
        self._master.shutdown()  # open tasks fail, so that nobody waits for an answer
        return self._master.join(max(0.1, deadline - time.monotonic()))

    @property
    def address(self) -> str | None:
        """``http://host:port``, once it was started."""
        return self._master.my_address

    # ------------------------------------------------------------------ workers of the config

    def _connect_soon(self, worker: _Worker, wait: float = 0.0) -> None:
        name, args = f"connect-{worker.name}", (worker, wait)
        threading.Thread(target=self._connect, args=args, name=name, daemon=True).start()

    def _connect(self, worker: _Worker, wait: float) -> None:
        """Try to connect after so many seconds, until that is done or nobody wants it."""
        while True:
            with self._lock:
                if self._lock.wait_for(lambda: not self._is_wanted(worker), wait):
                    return
                wait = worker.pause
                worker.pause = min(2 * wait, durations.CONNECT_PAUSES[1])
            try:
                if self._welcome(worker):
                    return
            except _UNREACHABLE as err:
                _logger.debug("no connection to %s: %s", worker.name, err)
            except Exception as err:  # the edge of a thread
                self._arrivals.fatal(f"connecting to {worker.name}: {type(err).__name__}: {err}")
                _logger.exception("connecting to %s failed", worker.name)
                return

    def _is_wanted(self, worker: _Worker) -> bool:
        return not self._closing and self._workers.get(worker.name) is worker

    def _welcome(self, worker: _Worker, pid: int | None = None) -> bool:
        """Connect to a worker and tell of it; whether it is still there and wanted by then."""
        connection = self._master.new_connection(worker.name, *worker.address)
        try:
            connection.connect()
        except Exception as err:
            connection.disconnect()  # the name is free again
            if isinstance(err, NotAuthenticError) and worker.address not in self._suspects:
                self._suspects.add(worker.address)
                self._arrivals.warn(worker.name, str(err))
            raise
        peer = HttpPeer(connection, lambda resources: self._tolerate(worker, resources))
        with self._lock:
            if not self._is_wanted(worker) or not peer.is_connected:
                return False
            worker.peer, worker.hangs = peer, False
            arrival = Arrival(worker.kind, worker.name, peer, worker.where, pid)
            worker.arrival = arrival
        self._arrivals.came(arrival)
        with self._lock:
            worker.is_told = worker.arrival is arrival
        return True

    def _tolerate(self, worker: _Worker, resources: Resources) -> None:
        if not resources.ours:  # those beat when they like
            tolerance = max(self._tolerance, durations.SLAVE_TOLERANCE)
            self._master.tolerate(worker.name, tolerance)

    # ------------------------------------------------------------------ workers that join

    def _give_entry(self, message: EntryMessage) -> Mapping[str, object]:
        """The config of a worker that is going to join, under the name that it wants or a new one.

        Raises:
            ResponsibleException: A run has no workers of that name and kind.
        """
        with self._lock:
            taken = self._given_names.union(self._workers)
            free = (f"{message.kind}{n}" for n in itertools.count())
            name = message.name or next(name for name in free if name not in taken)
            self._given_names.add(name)
        try:
            return self._entry_of(message.kind, name)
        except ConfigError as err:
            raise refusal(Code.TASK_DATA_INVALID, str(err)) from err

    def _join(self, message: JoinMessage) -> None:
        """Connect to a worker that has joined.

        Raises:
            ResponsibleException: It cannot be had.
        """
        address = (message.host, message.port)
        with self._lock:
            if self._closing:
                raise refusal(Code.SYSTEM_SHUTTING_DOWN, "the run is over", HTTPStatus.UNAUTHORIZED)
            old = self._workers.get(message.name)
            if old is not None:
                _check_replacement(old, message)
            worker = _Worker(message.kind, message.name, address, joined=True)
            self._workers[message.name] = worker
        if old is not None:
            cause = "it joined anew" if old.address == address else "started again"
            self._master.lose(old.name, cause)
            if old.arrival is not None:
                self._arrivals.lost(old.arrival, cause)
        try:
            is_wanted = self._welcome(worker, message.pid)
        except Exception as err:  # whatever keeps it from being reached, the worker is told
            with self._lock:
                if self._workers.get(message.name) is worker:
                    del self._workers[message.name]
            cause = f"{message.name} at {worker.where} cannot be connected: {err}"
            _logger.debug(cause)
            status = HTTPStatus.FAILED_DEPENDENCY
            raise refusal(Code.TASK_DATA_INVALID, cause, status) from err
        if not is_wanted:
            # It joined once more meanwhile, and was lost by that; or all are let go.
            raise refusal(Code.TASK_DATA_INVALID, "join again", HTTPStatus.FAILED_DEPENDENCY)

    def _notice_loss(self, name: str, cause: str) -> None:
        with self._lock:
            worker = self._workers.get(name)
            arrival = None if worker is None else worker.arrival
        if arrival is not None:
            self._arrivals.lost(arrival, cause)


def worker_table(cfg: Mapping[str, Any], kind: Kind) -> dict[str, Address]:
    """Addresses by name, of ``{name: [name, host, port]}`` or ``{name: [host, port]}``."""
    table = {}
    for name, entry in (cfg.get(kind) or {}).items():
        try:
            *_, host, port = entry
            if port in (None, "auto", 0):
                continue  # it joins
            table[str(name)] = (str(host), int(port))
        except (TypeError, ValueError) as err:
            raise ConfigError(
                f"system.coordinator.{kind}.{name} is {entry!r}, expected [name, host, port]"
            ) from err
    return table


def _check_replacement(old: _Worker, message: JoinMessage) -> None:
    """Whether a worker may take the place of another one of its name.

    Raises:
        ResponsibleException: It may not.
    """
    same = old.address == (message.host, message.port)
    if same and old.hangs:
        cause = f"{old.name} still works on a task of before: end it and start it again"
    elif not same and old.arrival is not None and _listens(old.address):
        cause = (
            f"a {old.kind} called {old.name} works at {old.where}; choose another name, or end "
            "that one"
        )
    else:
        return
    raise refusal(Code.TASK_DATA_INVALID, cause, HTTPStatus.CONFLICT)


def _listens(address: Address) -> bool:
    try:
        with socket.create_connection(address, durations.PROBE_TIMEOUT):
            return True
    except OSError:
        return False


def _cause(err: Exception) -> str:
    if isinstance(err, requests.ConnectionError):
        return "it does not listen any more"
    return f"{type(err).__name__}: {str(err)[:300]}"
