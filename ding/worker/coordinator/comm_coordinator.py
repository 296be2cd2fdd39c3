"""Looks after a run's workers: a session for each, and who of them is free."""

import logging
import threading
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
from .callback_events import Callbacks, events_of
from .resource_manager import NaiveResourceManager
from .run_events import RunEvents
from .worker_session import Limit, WorkerSession


class CommCoordinator:
    """Gives tasks to the workers that its control lets come; implements `Arrivals`.

    Args:
        cfg: The compiled config; ``cfg.system.coordinator`` has the spans in seconds that workers
            have for their answers, and what `HttpWorkers` reads.
        callback_fn: The coordinator; or functions, see `CALLBACKS`.
        logger: Where it tells what it does.
        status: What those are told who ask the control for the run's status.
        control: The way to the workers; by HTTP if not given.

    Attributes:
        gather: Seconds for which a collector's news waits for more: the longer, the more of them
            there are, so that the questions to all together stay as many.
    """

    def __init__(
        self,
        cfg: Config,
        callback_fn: RunEvents | Callbacks,
        logger: logging.Logger,
        *,
        status: Callable[[], Mapping[str, object]] = dict,
        control: Control | None = None,
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
        self._configured = max(len(own.get("collector") or {}), int(started))
        self._resources = NaiveResourceManager()
        self._lock = threading.RLock()  # guards what follows
        self._sessions: dict[str, WorkerSession] = {}
        self._present: set[WorkerSession] = set()
        self._extra = 0
        self._closing = False
        self.gather = durations.MESSAGE_GATHER

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to let workers come; does not wait for them.

        Raises:
            PortTakenError: Another program listens on the port.
        """
        self._control.start(self)

    def close(self) -> None:
        """Let all workers go, within seconds."""
        with self._lock:
            self._closing = True
            sessions = list(self._sessions.values())
        deadline = time.monotonic() + durations.COMM_CLOSE
        for session in sessions:
            session.end("the run is over")
        if not self._control.close(durations.COMM_CLOSE):
            self._logger.warning("the server still works after %g s", durations.COMM_CLOSE)
        for session in sessions:
            if not session.join(max(0.1, deadline - time.monotonic())):
                self._logger.warning("the session of %s still works", session.name)

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
        while (taken := self._resources.take(kind)) is not None:
            session = self._sessions.get(taken[0])
            if session is not None and session.assign(task):
                return True
        return False

    def close_tasks(self, timeout: float) -> bool:
        """Let all open tasks end; whether they have within so many seconds."""
        deadline = time.monotonic() + timeout
        sessions = self.sessions()
        for session in sessions:
            session.ask_close()
        return all(session.wait_done(deadline - time.monotonic()) for session in sessions)

    # ------------------------------------------------------------------ workers

    def free(self, kind: Kind) -> int:
        """How many workers of that kind have nothing to do."""
        return self._resources.free(kind)

    def present(self, kind: Kind) -> int:
        """How many workers of that kind are there."""
        with self._lock:
            return sum(session.kind == kind for session in self._present)

    def sessions(self) -> list[WorkerSession]:
        """Those of the workers that have come."""
        with self._lock:
            return list(self._sessions.values())

    def workers(self) -> list[WorkerSession | Awaited]:
        """All workers: those that have come, and those that should be there and are not."""
        found: dict[str, WorkerSession | Awaited] = {one.name: one for one in self.sessions()}
        found.update({worker.name: worker for worker in self._control.awaited()})
        # A worker is awaited before its session ends, and until the next one has begun.
        found.update({session.name: session for session in self.sessions()})
        return list(found.values())

    def worker_ended(self, name: str, cause: str) -> bool:
        """A worker's process has ended; whether its loss was not known."""
        session = self._sessions.get(name)
        if session is None or not session.note_loss(cause):
            return False
        self._control.release(session.arrival, cause)
        return True

    # ------------------------------------------------------------------ what the control tells

    def came(self, arrival: Arrival) -> None:
        """Begin a session with a worker."""
        session = WorkerSession(arrival, self)
        with self._lock:
            if self._closing:
                return
            old = self._sessions.get(arrival.name)
            self._sessions[arrival.name] = session
            if old is not None:
                self._resources.delete(old.kind, old.name)
                self._present.discard(old)
        if old is not None:
            old.end("it came anew")
            self._count_collectors()
            self.events.worker_left(old.name)
        session.start()

    def lost(self, arrival: Arrival, cause: str) -> None:
        """Tell the session with a worker that it is gone, and why."""
        session = self._sessions.get(arrival.name)
        if session is not None and session.arrival is arrival:
            session.note_loss(cause)

    def status(self) -> Mapping[str, object]:
        """What ``ding status`` shows."""
        return self._status()

    def warn(self, source: str, text: str) -> None:
        """One line for the user, from ``source``."""
        self.events.warn(source, text)

    def fatal(self, cause: str) -> None:
        """End the run with its cause."""
        self.events.fatal(cause)

    # ------------------------------------------------------------------ what sessions tell

    def arrived(self, session: WorkerSession) -> None:
        """A worker has reported its resources, unless it was replaced meanwhile."""
        with self._lock:
            if self._sessions.get(session.name) is not session:
                return
            self._present.add(session)
        self._logger.info("%s at %s is connected", session.name, session.arrival.where)
        self._count_collectors()

    def ready(self, session: WorkerSession) -> None:
        """A worker is free."""
        with self._lock:
            if self._sessions.get(session.name) is not session:
                return
            self._resources.update(session.kind, session.name, session.resources.as_json())
        self.events.workers_changed()

    def left(self, session: WorkerSession, cause: str | None) -> None:
        """A worker is not there any more; with a cause, it is let go."""
        if cause is not None:
            # First, so that it is awaited as soon as its session is not known any more.
            self._control.release(session.arrival, cause)
        with self._lock:
            is_current = self._sessions.get(session.name) is session
            if is_current:
                del self._sessions[session.name]
                self._resources.delete(session.kind, session.name)
            self._present.discard(session)
        if is_current:
            self._count_collectors()
            self.events.worker_left(session.name)
        self.events.workers_changed()

    def _count_collectors(self) -> None:
        """Tell of collectors beyond those of the config that came or left."""
        with self._lock:
            present = self.present("collector")
            span = max(durations.MESSAGE_GATHER, durations.MESSAGE_GATHER_EACH * present)
            self.gather = min(span, durations.MESSAGE_GATHER_MOST)
            beyond = max(0, present - self._configured)
            more, self._extra = beyond - self._extra, beyond
            tell = self.events.deal_with_increase_collector
            if more < 0:
                tell = self.events.deal_with_decrease_collector
            for _ in range(0 if self._closing else abs(more)):
                tell()
