"""Drives the core: a thread for each worker does what the core decides."""

import logging
import time
from collections.abc import Callable, Mapping

from ding.interaction.base.network import split_http_address
from ding.utils import durations
from ding.worker.engines.control import RunControl
from ding.worker.engines.http_door import HttpWorkers
from ding.worker.messages import Kind, Task
from ding.worker.seams import Arrival, Awaited, Control

from ._commander_tasks import section
from ._types import Config
from .core import Core
from .run_events import Callbacks, RunEvents, events_of
from .turn import Turn
from .worker_session import Leave, Limit, Move, WorkerSession
from .worker_thread import WorkerThread


class CommCoordinator:
    """Gives tasks to the workers that its control lets come; implements `Arrivals`.

    Args:
        cfg: The compiled config; ``cfg.system.coordinator`` has the spans in seconds that workers
            have for their answers, and what `HttpWorkers` reads.
        callback_fn: The coordinator; or functions, see `CALLBACKS`.
        logger: Where it tells what it does.
        status: What those are told who ask the control for the run's status.
        control: The way to the workers; by HTTP if not given.
        turn: Is taken for each call of the core; its own if not given.

    Attributes:
        core: Decides what each worker does next.
    """

    def __init__(
        self,
        cfg: Config,
        callback_fn: RunEvents | Callbacks,
        logger: logging.Logger,
        *,
        status: Callable[[], Mapping[str, object]] = dict,
        control: Control | None = None,
        turn: Turn | None = None,
    ) -> None:
        own: Config = cfg["system"]["coordinator"]
        self.events: RunEvents = (
            events_of(callback_fn) if isinstance(callback_fn, Mapping) else callback_fn
        )
        self.limits: Mapping[Limit, float] = {
            "step": float(own.get("step_timeout", durations.STEP_TIMEOUT)),
            "start": float(own.get("start_timeout", durations.START_TIMEOUT)),
            "close": float(own.get("close_timeout", durations.CLOSE_TIMEOUT)),
            "learn": float(own.get("learn_timeout", durations.LEARN_TIMEOUT)),
        }
        self._logger, self._status = logger, status
        if control is None:
            workers = HttpWorkers(own)
            control = RunControl(workers, workers.specs)
        self._control = control
        started = section(cfg, "main", "policy", "collect", "collector").get("collector_num") or 0
        self.core = Core(self.events, max(len(own.get("collector") or {}), int(started)))
        self._turn = Turn() if turn is None else turn
        self._threads: dict[WorkerSession, WorkerThread] = {}

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to let workers come; does not wait for them.

        Raises:
            PortTakenError: Another program listens on the port.
        """
        self._control.start(self)

    def close(self) -> None:
        """Let all workers go, within seconds."""
        with self._turn:
            self.core.is_closing = True
            for session in self.core.workers.values():
                self.core.end(session, "the run is over")
            self._wake()
            threads = [*self._threads.values()]
        deadline = time.monotonic() + durations.COMM_CLOSE
        if not self._control.close(durations.COMM_CLOSE):
            self._logger.warning("the server still works after %g s", durations.COMM_CLOSE)
        for thread in threads:
            if not thread.join(max(0.1, deadline - time.monotonic())):
                self._logger.warning("the session of %s still works", thread.worker.name)

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port where others find the run, if they can."""
        address = self._control.address
        if address is None:
            return None
        host, port, _, _ = split_http_address(address)
        return host, port

    # ------------------------------------------------------------------ tasks

    def send_collector_task(self, collector_task: Task) -> bool:
        """Give the task to a collector that is free; whether there is one."""
        return self.send("collector", collector_task)

    def send_learner_task(self, learner_task: Task) -> bool:
        """Give the task to a learner that is free; whether there is one."""
        return self.send("learner", learner_task)

    def send(self, kind: Kind, task: Task) -> bool:
        """Give the task to a worker of that kind that is free; whether there is one."""
        with self._turn:
            is_sent = self.core.send(kind, task)
            self._wake()
        return is_sent

    def assign(self, schedule: Callable[[Core, float], None]) -> None:
        """Let tasks be given to the workers of the core."""
        with self._turn:
            schedule(self.core, time.monotonic())
            self._wake()

    def close_tasks(self, timeout: float) -> bool:
        """Let all open tasks end; whether they have within so many seconds."""
        deadline = time.monotonic() + timeout
        with self._turn:
            self.core.close_tasks()
            self._wake()
            threads = [*self._threads.values()]
        return all(thread.wait_done(deadline - time.monotonic()) for thread in threads)

    # ------------------------------------------------------------------ workers

    def sessions(self) -> list[WorkerSession]:
        """Those of the workers that have come."""
        return list(self.core.workers.values())

    def workers(self) -> list[WorkerSession | Awaited]:
        """All workers: those that have come, and those that should be there and are not."""
        found: dict[str, WorkerSession | Awaited] = {one.name: one for one in self.sessions()}
        found.update({worker.name: worker for worker in self._control.awaited()})
        # A worker is awaited before its session ends, and until the next one has begun.
        found.update({session.name: session for session in self.sessions()})
        return list(found.values())

    # ------------------------------------------------------------------ what workers' threads do

    def next(self, worker: WorkerSession, given: object) -> Move:
        """What is to be done for a worker; a worker that left is released."""
        with self._turn:
            move = self.core.next(worker, given, time.monotonic())
            self._wake()
        if isinstance(move, Leave):
            if move.cause is not None:
                # First, so that it is awaited as soon as its session is not known any more.
                self._control.release(worker.arrival, move.cause)
            with self._turn:
                self.core.left(worker)
                del self._threads[worker]
        return move

    def _wake(self) -> None:
        """Wake the threads of sessions that have something to decide."""
        woken, self.core.woken = self.core.woken, set()
        for worker in woken:
            if worker in self._threads:
                self._threads[worker].wake()

    # ------------------------------------------------------------------ what the control tells

    def came(self, arrival: Arrival) -> None:
        """Begin a session with a worker."""
        with self._turn:
            session = self.core.came(arrival, time.monotonic())
            self._wake()
            if session is not None:
                thread = self._threads[session] = WorkerThread(
                    session, self.next, self.limits, self.fatal
                )
        if session is not None:
            thread.start()

    def lost(self, arrival: Arrival, cause: str) -> None:
        """Tell the session with a worker that it is gone, and why."""
        session = self.core.workers.get(arrival.name)
        if session is not None and session.arrival is arrival:
            with self._turn:
                self.core.lost(session, cause)
                self._wake()

    def status(self) -> Mapping[str, object]:
        """What ``ding status`` shows."""
        return self._status()

    def warn(self, source: str, text: str) -> None:
        """One line for the user, from ``source``."""
        self.events.warn(source, text)

    def fatal(self, cause: str) -> None:
        """End the run with its cause."""
        self.events.fatal(cause)
