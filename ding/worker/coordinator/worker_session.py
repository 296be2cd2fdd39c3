"""One connected worker: a thread that takes it through its tasks, step by step."""

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol

import requests

from ding.interaction.exception.base import ResponseException
from ding.interaction.exception.slave import SlaveTaskAlreadyExist, SlaveTaskRefused
from ding.interaction.master.connection import SlaveConnectionProxy
from ding.interaction.master.task import TaskStatus
from ding.utils import durations
from ding.utils.errors import ConfigError, InteractionError

from .worker_jobs import Job
from .worker_link import (
    Failure,
    Link,
    NonsenseAnswer,
    SideFailed,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
    error_words,
)

_logger = logging.getLogger(__name__)

_UNREACHABLE = (ResponseException, requests.RequestException, InteractionError)


class Hub(Protocol):
    """What a session needs of the comm part."""

    link: Link

    @property
    def limits(self) -> Mapping[str, float]:
        """Seconds that a worker has for each step."""

    def connect(self, session: "WorkerSession") -> SlaveConnectionProxy:
        """Connect to its worker."""

    def drop(self, session: "WorkerSession", cause: str) -> None:
        """Let its worker go without asking it."""

    def came(self, session: "WorkerSession") -> None:
        """Its worker is there."""

    def ready(self, session: "WorkerSession") -> None:
        """Its worker is free."""

    def left(self, session: "WorkerSession") -> None:
        """Its worker is not there any more."""


class WorkerSession:
    """Connects to a worker, gives it tasks, and ends with it.

    Args:
        name: The worker's name in the run.
        job_type: What tasks of its kind consist of.
        address: Host and port.
        hub: The comm part that it belongs to.
        joined: Whether the worker came by itself; else the session connects to it, ever again.
        pid: Its process, if it told.

    Attributes:
        state: ``connecting``, ``idle``, ``starting``, ``running``, ``closing``, ``resting`` or
            ``gone``.
        since: When it came there, seconds of the monotonic clock.
        hangs: Whether the worker does not end what it was given up for.
    """

    def __init__(
        self,
        name: str,
        job_type: type[Job],
        address: tuple[str, int],
        hub: Hub,
        joined: bool = False,
        pid: int | None = None,
    ) -> None:
        self.name, self.kind, self.address, self.joined = name, job_type.kind, address, joined
        self.pid = pid
        self.resources: dict[str, Any] = {}
        self._job_type, self._hub = job_type, hub
        self._changed = threading.Condition()  # guards what follows
        self._next: dict[str, Any] | None = None
        self._ended: str | None = None
        self._lost: str | None = None
        self._close_asked = False
        self.job: Job | None = None
        self.state, self.since = "connecting", time.monotonic()
        self.connection: SlaveConnectionProxy | None = None
        self.hangs = False
        self._failures = 0
        self._account = {"written": 0}
        self._thread = threading.Thread(target=self._run, name=f"worker-{name}", daemon=True)

    # What the comm part calls

    def start(self) -> None:
        self._thread.start()

    def assign(self, task: dict[str, Any]) -> bool:
        """Give it a task; whether it can take one."""
        with self._changed:
            if self.state != "idle" or self._next is not None or self._lost or self._ended:
                return False
            self._next, self._close_asked = task, False
            self._set("starting")
            self._changed.notify_all()
        return True

    def ask_close(self, task_id: str | None = None) -> None:
        """Let its task end at the next step."""
        with self._changed:
            if task_id is None or (self.job is not None and self.job.task_id == task_id):
                self._close_asked = True
                self._changed.notify_all()

    def wait_done(self, timeout: float) -> bool:
        """Whether it has no open task within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.busy, max(0.0, timeout))

    def tell_lost(self, cause: str) -> bool:
        """Its worker is lost; an open step has failed. Whether that is news."""
        with self._changed:
            is_news = self._lost is None and self.state != "gone"
            self._lost = self._lost or cause
            self._changed.notify_all()
        return is_news

    def end(self, cause: str) -> None:
        """End it; does not wait."""
        with self._changed:
            self._ended = self._ended or cause
            self._changed.notify_all()

    def join(self, timeout: float) -> bool:
        """Whether it has ended within so many seconds."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def busy(self) -> bool:
        """Whether a task is open."""
        return self.job is not None or self._next is not None

    # Its thread

    def _run(self) -> None:
        try:
            while self._ended is None and self._reach():
                self._account = {"written": 0}
                self._hub.came(self)
                try:
                    self._lost = self._serve()
                finally:
                    self._let_go(self._lost or "its session failed")
                    self._hub.left(self)
                if self.joined:
                    break
        except BaseException as err:  # whatever it was: nobody else looks after the worker
            self._hub.link.fatal(f"the session of {self.name} failed: {error_words(err)}")
            _logger.exception("the session of %s failed", self.name)
        finally:
            self._set("gone")
            self._hub.left(self)

    def _ask_resource(self) -> dict[str, Any]:
        """What the worker has, once it has ended what it did before.

        Raises:
            WorkerFailed: It has not, or gives nonsense.
        """
        deadline = time.monotonic() + durations.WORKER_END
        while True:
            try:
                answer = self._ask({"name": "resource"}, "step")
            except WorkerBusy:
                self.hangs = time.monotonic() > deadline
                if self.hangs or self._wait(durations.CONNECT_PAUSES[0]):
                    raise
            else:
                self.hangs = False
                if not isinstance(answer, dict):
                    raise NonsenseAnswer(f"resource: the answer is {type(answer).__name__}")
                return answer

    def _let_go(self, cause: str) -> None:
        # At the end of the run the master says goodbye to all workers that are still connected.
        if self._ended is None:
            self._hub.drop(self, cause)
            self.connection = None

    def _reach(self) -> bool:
        """Connect and ask for resources; whether the worker is there."""
        pause, longest = durations.CONNECT_PAUSES
        while self._ended is None:
            self._set("connecting")
            with self._changed:
                self._lost = None
            try:
                if self.connection is None:
                    self.connection = self._hub.connect(self)
                answer = self._ask_resource()
            except (WorkerFailed, *_UNREACHABLE) as err:
                cause = _text(err)
                self._let_go(cause)
                if self.joined:
                    failure = Failure(self.name, cause, lost=True)
                    self._hub.link.failed_worker(failure)
                    return False
                _logger.debug("no connection to %s: %s", self.name, cause)
                self._wait(pause)
                pause = min(2 * pause, longest)
            else:
                self.resources = answer
                return True
        return False

    def _serve(self) -> str:
        """Give it tasks until it is lost or shall end; returns the cause."""
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
                self._hub.link.failed_worker(Failure(self.name, cause, lost=True))
                return cause

    def _next_task(self) -> dict[str, Any] | None:
        with self._changed:
            free = self._ended is None and self._lost is None
            self._set("idle")
        if free:
            self._hub.ready(self)
        with self._changed:
            self._changed.wait_for(lambda: self._next or self._ended or self._lost)
            return self._next

    def _do(self, task: dict[str, Any]) -> str | None:
        """Work on a task; returns why the worker is of no use any more."""
        tools = (self._ask, self._hub.link, self._wait, self._account)
        job = self.job = self._job_type(task, self.name, self.resources, *tools)
        with self._changed:
            self._next = None
        try:
            self._go_through(job)
        except WorkerFailed as err:
            return self._fail(job, err)
        except ConfigError as err:  # of this side: it will not do better with another worker
            self._hub.link.fatal(str(err))
            return self._fail(job, SideFailed(str(err)))
        except MemoryError:
            raise  # of all of this process, not of the task
        except Exception as err:  # a callback's or a bug of ours: the task must not be forgotten
            _logger.exception("task %s at %s failed", job.task_id, self.name)
            return self._fail(job, SideFailed(error_words(err)))
        else:
            self._failures = 0
            return None
        finally:
            job.abandon()
            with self._changed:
                self.job = None
                self._changed.notify_all()

    def _go_through(self, job: Job) -> None:
        link = self._hub.link
        self._set("starting")
        job.start()
        self._set("running")
        link.task_running(job.task_id, self.name)
        while not self._close_asked and self._ended is None and not job.work():
            pass
        self._set("closing")
        link.task_closing(job.task_id)
        job.finish(job.close())

    def _fail(self, job: Job, err: WorkerFailed) -> str | None:
        lost = isinstance(err, WorkerLost)
        if isinstance(err, NonsenseAnswer | SideFailed):  # the worker knows of no end yet
            lost = not self._quiet_close(job)
        failure = Failure(self.name, err.cause, job.task_id, lost, err.told, err.detail)
        self._hub.link.task_failed(failure)
        if lost:
            return err.cause
        self._failures += 1
        return None

    def _rest(self) -> None:
        """Let others try, if its worker failed."""
        if self._failures:
            first, longest = durations.WORKER_RESTS
            self._set("resting")
            self._wait(min(first * 2 ** (self._failures - 1), longest), until_close=False)

    def _quiet_close(self, job: Job) -> bool:
        """Whether a worker whose task has failed at this side has ended it, too."""
        try:
            self._ask({"name": f"{job.kind}_close_task"}, "close")
        except WorkerLost:
            return False
        except WorkerFailed:
            pass
        return True

    def _ask(self, data: Mapping[str, Any], step: str) -> Any:
        """Give the worker a step and wait for the answer.

        Raises:
            WorkerLost: It cannot be reached, does not answer in time, or was lost.
            WorkerFailed: It says that it failed or refuses.
        """
        limit = self._hub.limits[step]
        if (gone := self._lost or self._ended) is not None or self.connection is None:
            raise WorkerLost(gone or "it is not connected")
        try:
            task = self.connection.new_task(data).start()
        except SlaveTaskAlreadyExist as err:
            raise WorkerBusy("it still works on a step of before") from err
        except SlaveTaskRefused as err:
            raise WorkerFailed(f"it refuses {data['name']}: {err}", told=True) from err
        except _UNREACHABLE as err:
            # Somebody may know better why it does not listen any more.
            self._wait(durations.CAUSE_WAIT, until_close=False)
            raise WorkerLost(self._lost or _text(err)) from err
        task.join(limit)
        if task.status is TaskStatus.COMPLETED:
            return task.result
        if task.status not in (TaskStatus.FAILED, TaskStatus.START_FAILED):
            cause = f"no answer to {data['name']} for {limit:g} s"
            self._hub.drop(self, cause)
            raise WorkerLost(cause)
        cause, result = task.cause or "it failed", task.result
        if isinstance(result, dict) and result.get("type") in ("ConnectionLost", "SlaveShutDown"):
            raise WorkerLost(self._lost or str(result.get("message") or cause))
        raise WorkerFailed(cause, result, told=True)

    def _wait(self, seconds: float, until_close: bool = True) -> bool:
        """Wait; whether the task or the session shall end."""

        def over() -> bool:
            return bool(self._ended or self._lost or (until_close and self._close_asked))

        with self._changed:
            return self._changed.wait_for(over, seconds)

    def _set(self, state: str) -> None:
        with self._changed:
            self.state, self.since = state, time.monotonic()


def _text(err: BaseException) -> str:
    if isinstance(err, WorkerFailed):
        return err.cause
    if isinstance(err, requests.ConnectionError):
        return "it does not listen any more"
    return f"{type(err).__name__}: {str(err)[:300]}"
