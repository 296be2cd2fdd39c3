"""Drives the core: a thread per worker executes the core's decisions."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ding.interaction.base.network import split_http_address
from ding.utils import durations
from ding.utils.types import Settings
from ding.worker.engines.control import RunControl
from ding.worker.engines.flask_fs import HttpWorkers
from ding.worker.messages import CloseTask, Kind, Request, StartTask, Task, TrainRequest
from ding.worker.seams import Arrival, Awaited, Control, WorkerFailed

from ._commander_tasks import section
from .core import Core, SideFailed
from .run_events import Callbacks, RunEvents, events_of
from .run_facts import error_line
from .turn import Turn
from .worker_session import FOREVER, Ask, Leave, Move, WorkerSession

_logger = logging.getLogger(__name__)


class CommCoordinator:
    """Assigns tasks to the workers that its control finds; implements `Arrivals`.

    Args:
        cfg: The compiled config; ``cfg.system.coordinator`` contains the time limits of answers in
            seconds, and the keys of `HttpWorkers`.
        callback_fn: The coordinator; or functions, see `CALLBACKS`.
        status: Returns the facts for ``ding status``.
        control: Connects to the workers; HTTP if not given.
        turn: Held during each call of the core; a new one if not given.

    Attributes:
        core: Decides what each worker does next.
    """

    def __init__(
        self,
        cfg: Settings,
        callback_fn: RunEvents | Callbacks,
        logger: logging.Logger,
        *,
        status: Callable[[], Mapping[str, object]] = dict,
        control: Control | None = None,
        turn: Turn | None = None,
    ) -> None:
        own: Settings = cfg["system"]["coordinator"]
        self.events: RunEvents = (
            events_of(callback_fn) if isinstance(callback_fn, Mapping) else callback_fn
        )
        self._start_limit = float(own.get("start_timeout", durations.START_TIMEOUT))
        self._logger, self._status = logger, status
        if control is None:
            workers = HttpWorkers(own)
            control = RunControl(workers, workers.specs)
        self._control = control
        # Workers started by the run are expected as well; only others count as additional.
        started = section(cfg, "main", "policy", "collect", "collector").get("collector_num") or 0
        self.core = Core(self.events, max(len(own.get("collector") or {}), int(started)))
        self._turn = Turn() if turn is None else turn
        self._threads: dict[WorkerSession, threading.Thread] = {}
        self._woken: dict[WorkerSession, threading.Event] = {}  # events of the workers' threads
        self._task_ended = threading.Condition()

    def start(self) -> None:
        """Start to accept workers; raises `PortTakenError` if another program uses the port."""
        self._control.start(self)

    def close(self) -> None:
        """Release all workers, within seconds."""
        with self._turn:
            # First: workers that join from now on must not get a session.
            self.core.is_closing = True
            for session in self.core.workers.values():
                self.core.end(session, "the run is over")
            self._wake()
            threads = [*self._threads.values()]
        deadline = time.monotonic() + durations.COMM_CLOSE
        if not self._control.close(durations.COMM_CLOSE):
            self._logger.warning("the server still works after %g s", durations.COMM_CLOSE)
        for thread in threads:
            # A thread may have been created just now, and not be started yet.
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(max(0.1, deadline - time.monotonic()))
                if thread.is_alive():
                    self._logger.warning("the session %s still works", thread.name)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the run, after `start`."""
        return split_http_address(self._control.address)[:2]

    def send_collector_task(self, collector_task: Task) -> bool:
        """Assign the task to an idle collector; returns whether there is one."""
        return self.send("collector", collector_task)

    def send_learner_task(self, learner_task: Task) -> bool:
        """Assign the task to an idle learner; returns whether there is one."""
        return self.send("learner", learner_task)

    def send(self, kind: Kind, task: Task) -> bool:
        """Assign the task to an idle worker of that kind; returns whether there is one."""
        with self._turn:
            is_sent = self.core.send(kind, task)
            self._wake()
        return is_sent

    def schedule(self) -> None:
        """Assign all tasks that can be assigned now."""
        with self._turn:
            self.core.schedule(time.monotonic())
            self._wake()

    def close_tasks(self, timeout: float) -> bool:
        """End all open tasks; returns whether they end within ``timeout`` seconds."""
        with self._turn:
            self.core.close_tasks()
            self._wake()
            workers = [*self._threads]
        with self._task_ended:
            return self._task_ended.wait_for(
                lambda: not any(worker.is_open for worker in workers), timeout
            )

    def sessions(self) -> list[WorkerSession]:
        """The workers that have joined."""
        return list(self.core.workers.values())

    def workers(self) -> list[WorkerSession | Awaited]:
        """All workers: those that have joined, and those that are expected and missing."""
        found: dict[str, WorkerSession | Awaited] = {one.name: one for one in self.sessions()}
        found.update({worker.name: worker for worker in self._control.awaited()})
        # A worker is awaited before its session ends, and until its next one begins.
        found.update({session.name: session for session in self.sessions()})
        return list(found.values())

    def _drive(self, worker: WorkerSession, woken: threading.Event) -> None:
        """Execute the core's decisions for a worker until its session ends."""
        given: object = None
        try:
            while not isinstance(move := self._next(worker, given), Leave):
                given = None
                if isinstance(move, Ask):
                    given = self._ask(worker, move.request)
                else:
                    seconds = move.until - time.monotonic()
                    woken.wait(None if seconds == FOREVER else max(seconds, 0.0))
                    woken.clear()
        except BaseException as err:  # no other thread handles this worker
            self.fatal(f"the session of {worker.name} failed: {error_line(err)}")
            _logger.exception("the session of %s failed", worker.name)

    def _ask(self, worker: WorkerSession, request: Request[Any]) -> object:
        """A worker's answer, or its failure."""
        try:
            return worker.arrival.peer.ask(request, self._limit(request))
        except WorkerFailed as err:
            return err
        except Exception as err:  # a bug in the engine must not end the run
            _logger.exception("the carrier of %s failed", worker.name)
            return SideFailed(error_line(err))

    def _limit(self, request: Request[Any]) -> float:
        """Time limit of an answer, in seconds."""
        match request:
            case StartTask():
                return self._start_limit
            case CloseTask():
                return durations.CLOSE_TIMEOUT
            case TrainRequest(rows=rows) if rows is not None:
                return durations.LEARN_TIMEOUT  # answered after training
        return durations.STEP_TIMEOUT

    def _next(self, worker: WorkerSession, given: object) -> Move:
        """The next move of a worker; releases a worker that left."""
        with self._turn:
            move = self.core.next(worker, given, time.monotonic())
            self._wake()
        if isinstance(move, Leave):
            if move.cause is not None:
                # First, so that the worker is awaited as soon as its session is removed.
                self._control.release(worker.arrival, move.cause)
            with self._turn:
                self.core.left(worker)
                del self._threads[worker], self._woken[worker]
        if not worker.is_open:
            with self._task_ended:
                self._task_ended.notify_all()
        return move

    def _wake(self) -> None:
        """Wake the threads of sessions for which a decision is due."""
        woken, self.core.woken = self.core.woken, set()
        for worker in woken & self._woken.keys():
            self._woken[worker].set()

    def came(self, arrival: Arrival) -> None:
        """Start a session and its thread for a worker that has joined."""
        with self._turn:
            session = self.core.came(arrival, time.monotonic())
            self._wake()
            if session is None:
                return
            woken = self._woken[session] = threading.Event()
            thread = self._threads[session] = threading.Thread(
                target=self._drive,
                args=(session, woken),
                name=f"worker-{session.name}",
                daemon=True,
            )
        thread.start()

    def lost(self, arrival: Arrival, cause: str) -> None:
        """End the session of a lost worker; ignored if the worker has joined again."""
        # Compared by arrival: a late report must not end the worker's next session.
        session = self.core.workers.get(arrival.name)
        if session is not None and session.arrival is arrival:
            with self._turn:
                self.core.lost(session, cause)
                self._wake()

    def status(self) -> Mapping[str, object]:
        """The facts of the run, for ``GET /status``."""
        return self._status()

    def warn(self, source: str, text: str) -> None:
        """Log a warning about a worker."""
        self.events.warn(source, text)

    def fatal(self, cause: str) -> None:
        """End the run as failed with this cause."""
        self.events.fatal(cause)
