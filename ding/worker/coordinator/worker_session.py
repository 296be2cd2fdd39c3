"""One worker that is there: a thread that takes it through its tasks, step by step."""

import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from ding.utils import durations
from ding.utils.errors import ConfigError
from ding.worker.messages import (
    CloseTask,
    Kind,
    Request,
    ResourceRequest,
    Resources,
    StartTask,
    Task,
    TrainRequest,
)
from ding.worker.seams import (
    Arrival,
    NonsenseAnswer,
    TaskFailure,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)

from .reported_values import error_line
from .worker_jobs import CollectorJob, Job, LearnerJob

if TYPE_CHECKING:
    from .comm_coordinator import CommCoordinator
    from .run_events import RunEvents

_logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
#: ``gone``: nothing will come of it any more. ``resting``: others may try after its failures.
SessionState: TypeAlias = Literal[
    "connecting", "idle", "starting", "running", "closing", "resting", "gone"
]
#: Names of the limits that a request may be under.
Limit: TypeAlias = Literal["step", "start", "close", "learn"]
_JOBS: Mapping[Kind, type[Job]] = {"collector": CollectorJob, "learner": LearnerJob}


class SideFailed(WorkerFailed):
    """The coordinator itself could not go on with a worker's task."""


class WorkerSession:
    """Gives a worker tasks from its arrival to its end.

    Args:
        arrival: The worker.
        hub: Who looks after all sessions.

    Attributes:
        since: When it came to its state, seconds of the monotonic clock.
        reported_bytes: Size of all chunks that a collector has reported.
        job: The task that is open.
    """

    def __init__(self, arrival: Arrival, hub: "CommCoordinator") -> None:
        self.arrival, self.name, self.kind = arrival, arrival.name, arrival.kind
        self.resources = Resources()
        self.reported_bytes = 0
        self.job: Job | None = None
        self._hub = hub
        self._changed = threading.Condition()  # guards what follows
        self._next: Task | None = None
        self._ended: str | None = None
        self._lost: str | None = None
        self._close_asked = False
        self.state: SessionState = "connecting"
        self.since = time.monotonic()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name=f"worker-{self.name}", daemon=True)

    # ------------------------------------------------------------------ for those who look after it

    def start(self) -> None:
        self._thread.start()

    def assign(self, task: Task) -> bool:
        """Give it a task; whether it can take one."""
        with self._changed:
            if self.state != "idle" or self._next is not None or self._lost or self._ended:
                return False
            self._next, self._close_asked = task, False
            self._set("starting")
            self._changed.notify_all()
        return True

    def ask_close(self) -> None:
        """Let its task end at the next step."""
        with self._changed:
            self._close_asked = True
            self._changed.notify_all()

    def wait_done(self, timeout: float) -> bool:
        """Whether it has no open task within so many seconds."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self.job is None and self._next is None, max(0.0, timeout)
            )

    def note_loss(self, cause: str) -> bool:
        """Its worker is lost; an open request has failed. Whether that is news."""
        with self._changed:
            is_news = self._lost is None and self.state != "gone"
            self._lost = self._lost or cause
            self._changed.notify_all()
        return is_news

    def end(self, cause: str) -> None:
        """End it; does not wait, and does not let the worker go."""
        with self._changed:
            self._ended = self._ended or cause
            self._changed.notify_all()

    def join(self, timeout: float) -> bool:
        """Whether it has ended within so many seconds."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    # ------------------------------------------------------------------ for its job

    @property
    def events(self) -> "RunEvents":
        """The coordinator."""
        return self._hub.events

    @property
    def gather(self) -> float:
        """Seconds for which a collector's news is to wait for more."""
        return self._hub.gather

    def ask(self, request: Request[Answer]) -> Answer:
        """Put a request to the worker.

        Raises:
            WorkerFailed: There is no answer; as `ding.worker.seams.Peer.ask` says.
        """
        gone = self._lost or self._ended
        if gone is not None:
            raise WorkerLost(gone)
        try:
            return self.arrival.peer.ask(request, self._hub.limits[_limit(request)])
        except WorkerLost as err:
            # Somebody may know better why there is no answer.
            self._wait(durations.CAUSE_WAIT, until_close=False)
            if self._lost is None:
                raise
            raise WorkerLost(self._lost) from err

    def pause(self, seconds: float) -> bool:
        """Wait; whether the task or the session shall end."""
        return self._wait(seconds)

    # ------------------------------------------------------------------ its thread

    def _run(self) -> None:
        cause: str | None = "its session failed"
        try:
            cause = self._live()
        except BaseException as err:  # whatever it was: nobody else looks after the worker
            self.events.fatal(f"the session of {self.name} failed: {error_line(err)}")
            _logger.exception("the session of %s failed", self.name)
        finally:
            self._set("gone")
            self._hub.left(self, None if self._ended is not None else cause)

    def _live(self) -> str:
        """Give it tasks until it is lost or shall end; returns the cause."""
        try:
            self.resources = self._ask_resources()
        except WorkerFailed as err:
            # One that is busy still is so with what it was given up for; that was reported.
            if self._ended is None and not isinstance(err, WorkerBusy):
                self.events.failed_worker(TaskFailure(self.name, err.cause, lost=True))
            return err.cause
        self._hub.arrived(self)
        while True:
            task = self._next_task()
            if task is not None:
                cause = self._do(task)
                if cause is not None:
                    return cause
                self._rest()
            elif self._ended is not None:
                return self._ended
            else:
                cause = self._lost or "lost"
                self.events.failed_worker(TaskFailure(self.name, cause, lost=True))
                return cause

    def _ask_resources(self) -> Resources:
        """What the worker has, once it has ended what it did before.

        Raises:
            WorkerFailed: It has not, or gives nonsense.
        """
        deadline = time.monotonic() + durations.WORKER_END
        while True:
            try:
                return self.ask(ResourceRequest())
            except WorkerBusy:
                if time.monotonic() > deadline or self._wait(durations.CONNECT_PAUSES[0]):
                    raise

    def _next_task(self) -> Task | None:
        with self._changed:
            free = self._ended is None and self._lost is None
            self._set("idle")
        if free:
            self._hub.ready(self)
        with self._changed:
            self._changed.wait_for(lambda: self._next or self._ended or self._lost)
            return self._next

    def _do(self, task: Task) -> str | None:
        """Work on a task; returns why the worker is of no use any more."""
        job = self.job = _JOBS[self.kind](task, self)
        with self._changed:
            self._next = None
        try:
            self._go_through(job)
        except WorkerFailed as err:
            return self._fail(job, err)
        except ConfigError as err:  # of this side: it will not do better with another worker
            self.events.fatal(str(err))
            return self._fail(job, SideFailed(str(err)))
        except MemoryError:
            raise  # of all of this process, not of the task
        except Exception as err:  # a callback's or a bug of ours: the task must not be forgotten
            _logger.exception("task %s at %s failed", job.task_id, self.name)
            return self._fail(job, SideFailed(error_line(err)))
        else:
            self._failures = 0
            return None
        finally:
            job.abandon()
            with self._changed:
                self.job = None
                self._changed.notify_all()

    def _go_through(self, job: Job) -> None:
        self._set("starting")
        job.start()
        self._set("running")
        self.events.task_running(job.task_id, self.name)
        while not self._close_asked and self._ended is None and not job.work():
            pass
        self._set("closing")
        self.events.task_closing(job.task_id)
        job.finish(job.close())

    def _fail(self, job: Job, err: WorkerFailed) -> str | None:
        lost = isinstance(err, WorkerLost)
        if isinstance(err, NonsenseAnswer | SideFailed):  # the worker knows of no end yet
            lost = not self._close_quietly()
        failure = TaskFailure(self.name, err.cause, job.task_id, lost, err.by_worker)
        self.events.task_failed(failure)
        if lost:
            return err.cause
        self._failures += 1
        return None

    def _close_quietly(self) -> bool:
        """Whether a worker whose task has failed at this side has ended it, too."""
        try:
            self.ask(CloseTask(self.kind))
        except WorkerLost:
            return False
        except WorkerFailed:
            pass
        return True

    def _rest(self) -> None:
        """Let others try, if its worker failed."""
        if self._failures:
            first, longest = durations.WORKER_RESTS
            self._set("resting")
            self._wait(min(first * 2 ** (self._failures - 1), longest), until_close=False)

    def _wait(self, seconds: float, until_close: bool = True) -> bool:
        def over() -> bool:
            return bool(self._ended or self._lost or (until_close and self._close_asked))

        with self._changed:
            return self._changed.wait_for(over, seconds)

    def _set(self, state: SessionState) -> None:
        with self._changed:
            self.state, self.since = state, time.monotonic()


def _limit(request: Request[Answer]) -> Limit:
    if isinstance(request, StartTask):
        return "start"
    if isinstance(request, CloseTask):
        return "close"
    if isinstance(request, TrainRequest) and request.rows is not None:
        return "learn"  # answered when it has been trained on
    return "step"
