"""The default engine: HTTP between processes, and folders that they share.

Workers listen on HTTP: workers of the config, and workers that join at the coordinator.
"""

import itertools
import logging
import os
import re
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar, cast

import requests

from ding.interaction.base.service import refusal
from ding.interaction.config import LOCAL_HOST
from ding.interaction.exception.base import ResponseException
from ding.interaction.exception.master import MasterErrorCode as Code
from ding.interaction.exception.slave import SlaveTaskAlreadyExist, SlaveTaskRefused
from ding.interaction.master.connection import SlaveConnectionProxy
from ding.interaction.master.task import Task, TaskStatus
from ding.utils import ENGINE_REGISTRY, durations
from ding.utils.errors import ConfigError, DingError, InteractionError
from ding.utils.run_claims import RunMark
from ding.utils.shared_folder import SharedFolder
from ding.worker.engines.carrier import (
    Answered,
    EndWorker,
    NotYetError,
    OnDeath,
    Starter,
    Workers,
    WorkerSpec,
    WorkerTable,
    built_elsewhere,
)
from ding.worker.engines.control import RunControl
from ding.worker.engines.http_messages import answer_from_json, request_name, request_to_json
from ding.worker.engines.http_worker import EntryMessage, JoinMessage
from ding.worker.engines.run_master import RunMaster
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.messages import Kind, Request, Resources
from ding.worker.seams import Arrivals, Engine, WorkerBusy, WorkerFailed, WorkerLost

_logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Folder = TypeVar("Folder", bound=SharedFolder)
Address = tuple[str, int]
_KINDS: tuple[Kind, ...] = ("collector", "learner")
_UNREACHABLE = (ResponseException, requests.RequestException, InteractionError)
#: Types of failures that mean that the worker is lost.
_LOST = ("ConnectionLost", "SlaveShutDown")


@ENGINE_REGISTRY.register("flask_fs")
def flask_fs_engine(
    system: Mapping[str, Any],
    exp_name: str,
    seed: int = 0,
    starter: Starter | None = None,
    specs: Sequence[WorkerSpec] = (),
) -> Engine:
    """Workers that a supervisor or a user starts, and that join at the coordinator's HTTP server.

    This is the coordinator's side; a worker reads its folders and addresses from its own config.

    Args:
        system: The compiled config's ``system``.
        exp_name: The run's folder.
        seed: The run's seed.
        starter: Starts the workers, if this run does.
        specs: Specifications of the started workers; the config's tables list further workers.

    Raises:
        ConfigError: A folder cannot be used, or a table of workers has an invalid entry.
    """
    samples = _folder(system, "path_data", SharedFolderSamples)
    weights = _folder(system, "path_policy", SharedFolderWeights)
    folders = {"buffers": samples, "weights": weights}
    workers = HttpWorkers(system["coordinator"], partial(_config_of, system, seed))
    known = {spec.name for spec in specs}
    specs = [*specs, *(spec for spec in workers.specs if spec.name not in known)]
    control = RunControl(workers, specs, system.get("max_restart", 0), starter)
    return Engine(
        control,
        samples,
        weights,
        FolderArtifacts(exp_name),
        {kind: RunMark(folder.path, exp_name) for kind, folder in folders.items()},
    )


def _config_of(system: Mapping[str, Any], seed: int, kind: Kind, name: str) -> Mapping[str, object]:
    """The config of a worker that joins without one, copied from the first of its kind."""
    first = system.get(f"{kind}0")
    if first is None or not re.fullmatch(rf"{kind}\d+", name):
        raise ConfigError(f"expected a worker's name, such as {kind}7, got {name!r}")
    # Without the run key, which the worker needed for this request.
    entry = {**first, "name": name, "host": None, "port": "auto", "run_key": None}
    for path in ("exp_name", "path_data", "path_policy"):
        # The worker may have another working directory.
        entry[path] = os.path.abspath(entry[path])
    main = {"exp_name": entry["exp_name"], "seed": seed}
    return {"main": main, "system": {"logs": system.get("logs", {}), name: entry}}


def _folder(system: Mapping[str, Any], key: str, kind: type[Folder]) -> Folder:
    """The folder that the workers share."""
    sections = [system["coordinator"], system, *system.values()]
    named = [part[key] for part in sections if isinstance(part, Mapping) and part.get(key)]
    if not named:
        raise ConfigError(f"system.{key} is not set; expected a folder that all workers share")
    try:
        return kind(named[0])
    except (DingError, TypeError) as err:
        raise ConfigError(f"system.{key} is {named[0]!r}, expected a folder: {err}") from err


@dataclass(eq=False)
class Remote:
    """A connected slave.

    Attributes:
        is_busy: Whether it had not finished an earlier request at the last request.
        is_dropped: Whether it gets no more requests.
    """

    name: str
    address: Address
    connection: SlaveConnectionProxy
    pid: int | None = None
    is_busy: bool = False
    is_dropped: bool = False

    @property
    def where(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"


class HttpWorkers(Workers[Remote]):
    """Slaves that support typed requests. Those of the config are connected to, others join.

    Args:
        cfg: ``system.coordinator``: host, port, ``run_key``, ``channel``, the tables ``collector``
            and ``learner`` of workers, and the durations in seconds.
        entry_of: Returns the config for a kind and a name, for workers that join without one.

    Raises:
        ConfigError: A table has an entry that is not an address.
    """

    workers_join = True

    def __init__(
        self,
        cfg: Mapping[str, Any],
        entry_of: Callable[[Kind, str], Mapping[str, object]] = lambda kind, name: {},
    ) -> None:
        self._cfg, self._entry_of = cfg, entry_of
        self._tolerance = float(cfg.get("heartbeat_tolerance", durations.HEARTBEAT_TOLERANCE))
        #: The workers in the config's tables.
        self.specs: list[WorkerSpec] = []
        for kind in _KINDS:
            for name, (host, at) in worker_table(cfg, kind).items():
                entry = {"host": host, "port": at}
                self.specs.append(WorkerSpec(name, kind, built_elsewhere, entry))
        self._master: RunMaster
        self._table: WorkerTable
        self._lock = threading.Lock()  # guards the attributes below
        self._given_names: set[str] = set()
        self._remotes: dict[str, Remote] = {}

    def listener(self, table: WorkerTable, arrivals: Arrivals) -> RunMaster:
        cfg, port, self._table = self._cfg, self._cfg.get("port", 0), table
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
            status=arrivals.status,
            on_death=arrivals.fatal,
            on_warning=partial(arrivals.warn, "coordinator"),
        )
        return self._master

    # ------------------------------------------------------------------ workers

    def place(self, worker: WorkerSpec) -> str:
        address = _own_address(worker)
        return "wherever it joins from" if address is None else "{}:{}".format(*address)

    def address(self, handle: Remote) -> tuple[str, int | None]:
        return handle.where, handle.pid

    def spawn(self, worker: WorkerSpec, on_death: OnDeath) -> Remote | None:
        """Connect to a worker with an address in the config; others join."""
        address = _own_address(worker)
        if address is None:
            return None
        try:
            return self._connect(worker.name, address)
        except _UNREACHABLE as err:
            _logger.debug("no connection to %s: %s", worker.name, err)
            raise NotYetError(f"no connection: {_cause(err)}") from err

    def call(self, handle: Remote, request: Request[Answer], timeout: float) -> Answer:
        if isinstance(request, EndWorker):
            handle.connection.disconnect_now()
            return cast(Answer, Answered(None))
        name = request_name(request)
        task = self._start(handle, request, name).join(timeout)
        if task.status is TaskStatus.COMPLETED:
            answer = answer_from_json(request, task.result)
            if isinstance(answer, Resources) and not answer.ours:  # without a fixed heartbeat
                tolerance = max(self._tolerance, durations.SLAVE_TOLERANCE)
                self._master.tolerate(handle.name, tolerance)
            return answer
        if task.status not in (TaskStatus.FAILED, TaskStatus.START_FAILED):
            raise WorkerLost(f"no answer to {name} for {timeout:g} s")
        cause, result = task.cause or "it failed", task.result
        if isinstance(result, dict) and result.get("type") in _LOST:
            raise WorkerLost(str(result.get("message") or cause))
        raise WorkerFailed(cause, result, by_worker=True)

    def _start(self, remote: Remote, request: Request[Answer], name: str) -> Task:
        try:
            task = remote.connection.new_task(request_to_json(request)).start()
        except SlaveTaskAlreadyExist as err:
            remote.is_busy = True
            raise WorkerBusy("it still works on a step of before") from err
        except SlaveTaskRefused as err:
            raise WorkerFailed(f"it refuses {name}: {err}", by_worker=True) from err
        except _UNREACHABLE as err:
            raise WorkerLost(_cause(err)) from err
        remote.is_busy = False
        return task

    def drop(self, handle: Remote) -> None:
        """Drop a worker: it notices this, and may join again."""
        handle.is_dropped = True
        if handle.connection.is_connected:  # else a new worker of its name may be connecting
            self._master.lose(handle.name, "released")
        with self._lock:
            if self._remotes.get(handle.name) is handle and not handle.is_busy:
                del self._remotes[handle.name]

    def _connect(self, name: str, address: Address, pid: int | None = None) -> Remote:
        connection = self._master.new_connection(name, *address)
        try:
            connection.connect()
        except Exception:
            connection.disconnect()  # frees the name
            raise
        remote = Remote(name, address, connection, pid)
        with self._lock:
            self._remotes[name] = remote
        return remote

    def _notice_loss(self, name: str, cause: str) -> None:
        remote = self._remotes.get(name)
        if remote is not None:
            self._table.lost(name, remote, cause)

    # ------------------------------------------------------------------ workers that join

    def _give_entry(self, message: EntryMessage) -> Mapping[str, object]:
        """The config of a worker that will join, under its requested name or a new one."""
        with self._lock:
            taken = self._given_names.union(self._table.names())
            free = (f"{message.kind}{n}" for n in itertools.count())
            name = message.name or next(name for name in free if name not in taken)
            # Reserved: other workers may ask before this one joins.
            self._given_names.add(name)
        try:
            return self._entry_of(message.kind, name)
        except ConfigError as err:
            raise refusal(Code.TASK_DATA_INVALID, str(err)) from err

    def _join(self, message: JoinMessage) -> None:
        """Connect to a worker that has joined; it replaces an earlier one of its name."""
        name, address = message.name, (message.host, message.port)
        if cause := self._table.objection(name):
            raise refusal(Code.TASK_DATA_INVALID, cause, HTTPStatus.CONFLICT)
        old = self._remotes.get(name)
        if old is not None:
            _check_replacement(old, message)
            cause = "it joined again" if old.address == address else "started again"
            self._master.lose(name, cause)
            # Before the new one is connected: its session must not receive the old one's loss.
            self._table.lost(name, old, cause)
        try:
            remote = self._connect(name, address, message.pid)
        except Exception as err:  # the worker is notified of the cause
            cause = f"{name} at {address[0]}:{address[1]} cannot be connected: {err}"
            _logger.debug(cause)
            status = HTTPStatus.FAILED_DEPENDENCY
            raise refusal(Code.TASK_DATA_INVALID, cause, status) from err
        if not self._table.adopt(message.kind, name, remote):
            remote.connection.disconnect_now()
            raise refusal(Code.SYSTEM_SHUTTING_DOWN, "the run is over", HTTPStatus.UNAUTHORIZED)


def _own_address(worker: WorkerSpec) -> Address | None:
    """The address on which a worker listens, if its entry contains one."""
    port = worker.entry.get("port")
    if port in (None, "auto", 0):
        return None
    return str(worker.entry.get("host") or LOCAL_HOST), int(str(port))


def worker_table(cfg: Mapping[str, Any], kind: Kind) -> dict[str, Address]:
    """Addresses by name, from ``{name: [name, host, port]}`` or ``{name: [host, port]}``."""
    table = {}
    for name, entry in (cfg.get(kind) or {}).items():
        try:
            *_, host, port = entry
            if port in (None, "auto", 0):
                continue  # the worker joins
            table[str(name)] = (str(host), int(port))
        except (TypeError, ValueError) as err:
            raise ConfigError(
                f"system.coordinator.{kind}.{name} is {entry!r}, expected [name, host, port]"
            ) from err
    return table


def _check_replacement(old: Remote, message: JoinMessage) -> None:
    """Reject a worker that may not replace an earlier one of its name."""
    same = old.address == (message.host, message.port)
    if same and old.is_dropped and old.is_busy:
        cause = f"{old.name} still works on a task of before: end it and start it again"
    # The connection of a killed process remains until a heartbeat is missed.
    elif not same and old.connection.is_connected and _listens(old.address):
        cause = (
            f"a worker called {old.name} works at {old.where}; choose another name, or end that one"
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
