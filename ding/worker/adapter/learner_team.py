"""Several learners that train one policy together: all are asked at once, and fail together."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.system_helper import ReportingThread
from ding.worker.error_report import ErrorReport
from ding.worker.learner.comm.training_task import HUNG
from ding.worker.messages import CloseTask, Json, Request, ResourceRequest
from ding.worker.seams import (
    Arrival,
    NonsenseAnswer,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)

_logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class LearnerTeam:
    """The learners that a control reaches; it is that control's `ding.worker.seams.Arrivals`.

    Args:
        names: Who they are.
        release: Has the control let one go; called with its arrival and the cause.
        on_fatal: Told why none of them can be reached any more.
    """

    def __init__(
        self,
        names: Sequence[str],
        release: Callable[[Arrival, str], object],
        on_fatal: Callable[[str], object],
    ) -> None:
        self.names = list(names)
        self._release, self._on_fatal = release, on_fatal
        self._changed = threading.Condition()
        self._there: dict[str, Arrival] = {}
        self._causes: dict[str, str] = {}
        self._closing = False
        # An abandoned request may still be under way when the next one comes.
        self._pool = ThreadPoolExecutor(3 * len(self.names) or 1, thread_name_prefix="ask-learner")
        self._open: list[Future[Any]] = []
        self._aborting: threading.Thread | None = None

    def close(self) -> None:
        """Wait for nothing any more, but for requests under way."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._pool.shutdown(cancel_futures=True)

    def missing(self) -> list[str]:
        """The learners that are not there."""
        return [name for name in self.names if name not in self._there]

    def wait(self, timeout: float | None) -> list[str]:
        """The learners that are not there, or not yet, after ``timeout`` seconds at most.

        Args:
            timeout: Without one it waits until all are there, or `close` is called.
        """
        begun = time.monotonic()
        if self._aborting is not None:
            self._aborting.join(timeout)
        left = None if timeout is None else max(0.0, begun + timeout - time.monotonic())
        with self._changed:
            self._changed.wait_for(lambda: self._closing or not self.missing(), left)
            return self.missing()

    def ask(self, requests: Mapping[str, Request[Answer]], timeout: float) -> dict[str, Answer]:
        """Put a request to each learner, all at once; their answers.

        Raises:
            TaskFail: One of them failed, is lost, or gave no answer within ``timeout`` seconds;
                names it and the cause. It does not wait for the others then, which end their tasks.
        """
        names: dict[Future[Answer], str] = {}
        for name, request in requests.items():
            names[self._pool.submit(self._ask, name, request, timeout)] = name
        self._open = list(names)
        answers: dict[str, Answer] = {}
        waiting = set(names)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                try:
                    answers[names[future]] = future.result()
                except TaskFail as failure:
                    cause = self._root_cause(failure, future, names)
                    self.abort()  # none may wait for one that is gone
                    raise cause from None
        return {name: answers[name] for name in requests}

    def release(self, name: str, cause: str) -> None:
        """Give a learner up, so that it comes anew."""
        arrival = self._there.get(name)
        if arrival is not None:
            self._release(arrival, cause)
            self.lost(arrival, cause)

    # ------------------------------------------------------------------ one request

    def _ask(self, name: str, request: Request[Answer], timeout: float) -> Answer:
        """The answer of one learner.

        Raises:
            TaskFail: With the type of the failure, and the learner's name in the message.
        """
        arrival = self._there.get(name)
        if arrival is None:
            raise _fail("LearnerLost", name, self._causes.get(name, "it has not come yet"))
        try:
            return arrival.peer.ask(request, timeout)
        except WorkerLost as error:
            cause = self._causes.get(name, error.cause)
            self.release(name, cause)
            raise _fail("LearnerLost", name, cause) from error
        except WorkerBusy as error:
            raise _fail("TaskRefused", name, error.cause) from error
        except NonsenseAnswer as error:
            raise _fail("NonsenseAnswer", name, error.cause) from error
        except WorkerFailed as error:
            report = ErrorReport.from_detail(error.detail, error.cause)
            if report.type == HUNG:
                self.release(name, error.cause)  # its process ends, and is started again
            raise _fail(report.type, name, report.message, report) from error

    def _root_cause(
        self, failure: TaskFail, failed: Future[Answer], names: Mapping[Future[Answer], str]
    ) -> TaskFail:
        """Of learners that wait for each other, the failure of the one that failed first."""
        if not _is_of_group(failure):
            return failure
        for future, name in names.items():
            if future is failed:
                continue
            if not self._lives(name):
                return _fail("LearnerLost", name, "its process is gone")
            wait([future], durations.ROOT_CAUSE_WAIT)
            error = future.exception() if future.done() else None
            if isinstance(error, TaskFail) and not _is_of_group(error):
                return error
        return failure

    def _lives(self, name: str) -> bool:
        arrival = self._there.get(name)
        if arrival is None:
            return False
        try:
            arrival.peer.ask(ResourceRequest(), durations.ROOT_CAUSE_WAIT)
        except WorkerLost:
            return False
        except WorkerFailed:
            pass  # it is busy, but there
        return True

    # ------------------------------------------------------------------ the end of a task

    def abort(self) -> None:
        """Have all learners that can be reached end their tasks; does not wait."""
        self._aborting = ReportingThread(self._abort, "abort-learners", _logger.warning)
        self._aborting.start()

    def _abort(self) -> None:
        deadline = time.monotonic() + durations.TEAM_ABORT
        wait(self._open, durations.TEAM_ABORT)  # one request at a time
        left = max(0.1, deadline - time.monotonic())
        threads = [
            ReportingThread(self._close_task, f"close-{name}", _logger.warning, (name, left))
            for name in self.names
            if name in self._there
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _close_task(self, name: str, timeout: float) -> None:
        try:
            self._ask(name, CloseTask("learner"), timeout)
        except TaskFail as failure:
            _logger.info("%s", failure.message)

    # ------------------------------------------------------------------ what the control tells

    def came(self, arrival: Arrival) -> None:
        with self._changed:
            if arrival.kind == "learner" and arrival.name in self.names:
                self._there[arrival.name] = arrival
                self._causes.pop(arrival.name, None)
                self._changed.notify_all()
                return
        self._release(arrival, f"it is none of the learners {', '.join(self.names)}")

    def lost(self, arrival: Arrival, cause: str) -> None:
        with self._changed:
            if self._there.get(arrival.name) is arrival:
                del self._there[arrival.name]
                self._causes[arrival.name] = cause
                self._changed.notify_all()

    def status(self) -> Mapping[str, Json]:
        return {}

    def warn(self, source: str, text: str) -> None:
        _logger.warning("%s: %s", source, text)

    def fatal(self, cause: str) -> None:
        self._on_fatal(cause)


def _is_of_group(failure: TaskFail) -> bool:
    """Whether it only says that another one did not take part in a reduction."""
    return bool(failure.result.get("of_group"))


def _fail(kind: str, name: str, cause: str, report: ErrorReport | None = None) -> TaskFail:
    trace, of_group = ("", False) if report is None else (report.traceback, report.of_group)
    return ErrorReport(kind, f"{name}: {cause}", trace, of_group).task_fail()
