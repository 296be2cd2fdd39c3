"""How a coordinator reaches its workers: a master, and a session for each worker."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from ding.interaction.base.authentication import NotAuthenticError
from ding.interaction.base.network import split_http_address
from ding.interaction.base.service import refusal
from ding.interaction.config import DEFAULT_HEARTBEAT_TOLERANCE
from ding.interaction.exception.master import MasterErrorCode as Code
from ding.interaction.master.connection import SlaveConnectionProxy
from ding.utils import durations
from ding.utils.errors import ConfigError

from .operator_link import OperatorLink, wants_operator
from .resource_manager import NaiveResourceManager
from .run_master import JoinMessage, RunMaster
from .worker_jobs import CollectorJob, Job, LearnerJob
from .worker_link import Link
from .worker_session import WorkerSession

_JOBS: dict[str, type[Job]] = {"collector": CollectorJob, "learner": LearnerJob}
#: Seconds that a worker has for each step of a task.
_LIMITS = {
    "step": durations.STEP_TIMEOUT,
    "start": durations.START_TIMEOUT,
    "close": durations.CLOSE_TIMEOUT,
    "learn": durations.LEARN_TIMEOUT,
}


class CommCoordinator:
    """Connects to the workers of the config, lets others join, and gives them tasks.

    Args:
        cfg: The compiled config; ``cfg.system.coordinator`` names host, port, the tables
            ``collector`` and ``learner`` of workers, ``run_key``, and the spans in seconds.
        callback_fn: See `Link`.
        logger: Where it tells what it does.
        status: What ``GET /status`` answers.
    """

    def __init__(
        self,
        cfg: dict,
        callback_fn: dict[str, Callable],
        logger: logging.Logger,
        *,
        status: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        own = cfg["system"]["coordinator"]
        self.link = Link(callback_fn)
        self.limits = {name: float(own.get(f"{name}_timeout", s)) for name, s in _LIMITS.items()}
        self._logger = logger
        self._workers = {kind: _table(own, kind) for kind in _JOBS}
        self._configured = max(len(self._workers["collector"]), _collector_num(cfg))
        self._extra = 0
        self._resources = NaiveResourceManager()
        self._lock = threading.RLock()
        self._sessions: dict[str, WorkerSession] = {}
        self._present: set[str] = set()
        self._suspects: set[tuple[str, int]] = set()
        self._closing = False
        self._started = False
        operator = own.get("operator_server") or {}
        self._operator = (
            OperatorLink(operator, self._add, self._remove) if wants_operator(operator) else None
        )
        self._tolerance = float(own.get("heartbeat_tolerance", 4.0))
        port = own.get("port", 0)
        self._master = RunMaster(
            own.get("host"),
            0 if port in (None, "auto") else int(port),
            heartbeat_tolerance=self._tolerance,
            heartbeat_check_span=own.get("heartbeat_check_span", 0.5),
            request_retries=own.get("request_retries", 2),
            request_retry_waiting=own.get("request_retry_waiting", 0.3),
            channel=own.get("channel"),
            my_address=own.get("my_address"),
            key=own.get("run_key"),
            request_timeout=own.get("request_timeout", 5.0),
            on_join=self._join,
            on_lost=self._lost,
            status=status,
            on_death=self.link.fatal,
            on_warning=lambda line: self.link.warn("coordinator", line),
        )

    # Life

    def start(self) -> None:
        """Listen, and begin to connect to the workers of the config; does not wait for them.

        Raises:
            PortTakenError: Another program listens on the port.
        """
        self._master.start()
        self._started = True
        for kind, workers in self._workers.items():
            for name, address in workers.items():
                self._add(kind, name, *address)
        if self._operator is not None:
            self._operator.start()

    def close(self) -> None:
        """Let all workers go and stop listening, within seconds."""
        with self._lock:
            self._closing = True
        if self._operator is not None:
            self._operator.close()
        with self._lock:
            sessions = list(self._sessions.values())
        deadline = time.monotonic() + durations.COMM_CLOSE
        for session in sessions:
            session.end("the run is over")
        if self._started:
            self._master.shutdown()  # open steps of tasks fail, so that no session waits on
            if not self._master.join(durations.COMM_CLOSE):
                self._logger.warning("the server still works after %g s", durations.COMM_CLOSE)
        for session in sessions:
            if not session.join(max(0.1, deadline - time.monotonic())):
                self._logger.warning("the session of %s still works", session.name)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port where workers reach it."""
        host, port, _, _ = split_http_address(self._master.my_address)
        return host, port

    # Tasks

    def send_collector_task(self, collector_task: dict) -> bool:
        """Give the task to a collector that is free; whether there is one."""
        return self._send("collector", self._resources.assign_collector, collector_task)

    def send_learner_task(self, learner_task: dict) -> bool:
        """Give the task to a learner that is free; whether there is one."""
        return self._send("learner", self._resources.assign_learner, learner_task)

    def free(self, kind: str) -> int:
        """How many workers of that kind have nothing to do."""
        return self._resources.free(kind)

    def present(self, kind: str) -> int:
        """How many workers of that kind are connected."""
        with self._lock:
            sessions = self._sessions.values()
            return sum(one.kind == kind and one.name in self._present for one in sessions)

    def close_tasks(self, timeout: float) -> bool:
        """Let all open tasks end; whether they have within so many seconds."""
        deadline = time.monotonic() + timeout
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.ask_close()
        return all(session.wait_done(deadline - time.monotonic()) for session in sessions)

    def workers(self) -> dict[str, WorkerSession]:
        """The sessions by their workers' names."""
        with self._lock:
            return dict(self._sessions)

    def _send(self, kind: str, choose: Callable[[dict], dict | None], task: dict) -> bool:
        while (chosen := choose(task)) is not None:
            session = self._sessions.get(chosen[f"{kind}_id"])
            if session is not None and session.assign(task):
                return True
        return False

    # Workers of the config and of an operator

    def _add(self, kind: str, name: str, host: str, port: int) -> None:
        """Connect to a worker, ever again."""
        with self._lock:
            if self._closing or name in self._sessions:
                return
            session = self._sessions[name] = WorkerSession(name, _JOBS[kind], (host, port), self)
        session.start()

    def _remove(self, kind: str, name: str, host: str, port: int) -> None:
        """Let a worker go that the operator has ended."""
        with self._lock:
            session = None if self._closing else self._sessions.pop(name, None)
        if session is not None:
            self._drop_old(session, "the operator has ended it")
            self._count_collectors()
            self.link.workers_changed()

    # Workers that join

    def _join(self, message: JoinMessage) -> None:
        """Connect to a worker that has joined.

        Raises:
            ResponsibleException: It cannot be had.
        """
        address = (message.host, message.port)
        with self._lock:
            if self._closing:
                raise refusal(Code.SYSTEM_SHUTTING_DOWN, "the run is over", HTTPStatus.UNAUTHORIZED)
            old = self._sessions.get(message.name)
            if old is not None:
                self._check_replacement(old, message)
                self._drop_old(old, "it joined anew" if old.address == address else "started again")
            job = _JOBS[message.kind]
            session = WorkerSession(message.name, job, address, self, True, message.pid)
            self._sessions[message.name] = session
        try:
            session.connection = self.connect(session)
        except Exception as err:  # whatever keeps it from being reached, the worker is told
            with self._lock:
                if self._sessions.get(message.name) is session:
                    del self._sessions[message.name]
            self._count_collectors()
            cause = f"{message.name} at {message.host}:{message.port} cannot be connected: {err}"
            self._logger.debug(cause)
            status = HTTPStatus.FAILED_DEPENDENCY
            raise refusal(Code.TASK_DATA_INVALID, cause, status) from err
        with self._lock:
            if self._sessions.get(message.name) is session and not self._closing:
                session.start()
                return
        # It joined once more meanwhile, and was lost by that; or all are let go.
        raise refusal(Code.TASK_DATA_INVALID, "join again", HTTPStatus.FAILED_DEPENDENCY)

    def worker_ended(self, name: str, cause: str) -> bool:
        """A worker's process has ended; whether its loss is still to be told."""
        session = self._sessions.get(name)
        if session is None or not session.tell_lost(cause):
            return False
        self._master.lose(name, cause)
        return True

    def _check_replacement(self, old: WorkerSession, message: JoinMessage) -> None:
        host, port = old.address
        same = old.address == (message.host, message.port)
        if same and old.hangs:
            cause = f"{old.name} still works on a task of before: end it and start it again"
        elif not same and old.name in self._present and _listens(old.address):
            cause = (
                f"a {old.kind} called {old.name} works at {host}:{port}; choose another name, or "
                "end that one"
            )
        else:
            return
        raise refusal(Code.TASK_DATA_INVALID, cause, HTTPStatus.CONFLICT)

    def _drop_old(self, old: WorkerSession, cause: str) -> None:
        self._resources.delete(old.kind, old.name)
        self._present.discard(old.name)
        old.end(cause)
        self._master.lose(old.name, cause)
        self.link.worker_left(old.name)

    def connect(self, session: WorkerSession) -> SlaveConnectionProxy:
        """Connect to a session's worker."""
        connection = self._master.new_connection(session.name, *session.address)
        try:
            connection.connect()
        except Exception as err:
            connection.disconnect()  # the name is free again
            if isinstance(err, NotAuthenticError) and session.address not in self._suspects:
                self._suspects.add(session.address)
                self.link.warn(session.name, str(err))
            raise
        return connection

    # What sessions tell

    def drop(self, session: WorkerSession, cause: str) -> None:
        """Let a session's worker go without asking it."""
        if self._sessions.get(session.name) is session:
            self._master.lose(session.name, cause)

    def came(self, session: WorkerSession) -> None:
        """A worker is connected, unless it was replaced or given up meanwhile."""
        with self._lock:
            if self._sessions.get(session.name) is not session:
                return
            self._present.add(session.name)
        if not session.resources.get("ours"):
            # Those of others beat when they like, by default every 3 s.
            self._master.tolerate(session.name, max(self._tolerance, DEFAULT_HEARTBEAT_TOLERANCE))
        self._logger.info("%s at %s:%d is connected", session.name, *session.address)
        self._count_collectors()

    def ready(self, session: WorkerSession) -> None:
        """A worker is free."""
        if self._sessions.get(session.name) is session:
            self._resources.update(session.kind, session.name, session.resources)
            self.link.workers_changed()

    def left(self, session: WorkerSession) -> None:
        """A worker is not there any more, unless it was replaced."""
        with self._lock:
            if self._sessions.get(session.name) is not session:
                return
            self._resources.delete(session.kind, session.name)
            self._present.discard(session.name)
            if session.joined and not session.hangs:
                del self._sessions[session.name]
        self._count_collectors()
        self.link.worker_left(session.name)
        self.link.workers_changed()
        if self._operator is not None:
            self._operator.report_failed(session.kind, session.name)

    def _count_collectors(self) -> None:
        """Tell of collectors beyond those of the config that came or left."""
        with self._lock:
            beyond = max(0, self.present("collector") - self._configured)
            more, self._extra = beyond - self._extra, beyond
            tell = self.link.increase_collector if more > 0 else self.link.decrease_collector
            for _ in range(0 if self._closing else abs(more)):
                tell()

    def _lost(self, name: str, cause: str) -> None:
        session = self._sessions.get(name)
        if session is not None:
            session.tell_lost(cause)


def _table(own: Mapping[str, Any], kind: str) -> dict[str, tuple[str, int]]:
    """Addresses by name, of ``{name: [name, host, port]}`` or ``{name: [host, port]}``."""
    table = {}
    for name, entry in (own.get(kind) or {}).items():
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


def _collector_num(cfg: Mapping[str, Any]) -> int:
    """How many collectors the config starts."""
    node: Any = cfg.get("main", {})
    for key in ("policy", "collect", "collector"):
        node = node.get(key, {})
    return int(node.get("collector_num", 0) or 0)


def _listens(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, durations.PROBE_TIMEOUT):
            return True
    except OSError:
        return False
