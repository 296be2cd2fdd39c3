"""Several learners that train one policy together, as one worker towards the coordinator."""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.json_fields import from_json, to_json
from ding.utils.system_helper import ReportingThread
from ding.worker.comm_worker import CommWorker
from ding.worker.error_report import ErrorReport
from ding.worker.learner.comm.training_task import HUNG
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    Demand,
    DemandRequest,
    Json,
    Kind,
    OpenMeeting,
    Request,
    ResourceRequest,
    Resources,
    StartTask,
    Task,
    TaskReport,
    TrainAnswer,
    TrainRequest,
)
from ding.worker.seams import (
    Arrival,
    Arrivals,
    NonsenseAnswer,
    WorkerBusy,
    WorkerFailed,
    WorkerLost,
)

_logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
_SUMS = frozenset({"trained", "own_rows", "cpu_percent", "memory_mb", "gpu_memory_mb"})
_LEAST = frozenset({"learner_step", "cur_learner_iter", "policy_iter", "batch_num", "envstep"})


class LearnerTeam(CommWorker):
    """A learner that consists of several; receives their control's reports (`Arrivals`).

    Requests go to all at once, and all get the same number of batches, so that all make the same
    number of updates. A failure of one fails the task, and the others end theirs.

    Args:
        names: The learners.
        release: Releases a learner at its control; called with its arrival and the cause.
        name: The worker's name.
        cfg: The worker's config.
    """

    kind: Kind = "learner"

    def __init__(
        self,
        names: Sequence[str],
        release: Callable[[Arrival, str], object],
        name: str,
        cfg: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(cfg or {}, name)
        self.names = list(names)
        self._release = release
        self._changed = threading.Condition()
        self._there: dict[str, Arrival] = {}
        self._causes: dict[str, str] = {}  # why learners were lost
        # Three per learner: an abandoned request, the end of its task, and the next request.
        self._pool = ThreadPoolExecutor(3 * len(self.names) or 1, thread_name_prefix="ask-learner")
        self._open: dict[str, Future[Any]] = {}
        self._aborting: list[Future[None]] = []
        self._task_id: str | None = None
        self._buffer_id: str | None = None
        self._left = 0  # batches that do not fill a whole round of the learners
        self._asking, self._wanted = threading.Lock(), threading.Event()

    # ------------------------------------------------------------------ connections

    def missing(self) -> list[str]:
        """The learners that are not connected."""
        return [name for name in self.names if name not in self._there]

    def wait(self, timeout: float | None) -> list[str]:
        """The learners that are not connected after at most ``timeout`` seconds.

        Args:
            timeout: ``None``: wait until all are connected, or the worker is closed.
        """
        begun = time.monotonic()
        # A learner that is still ending its last task would reject the next one as busy.
        wait(self._aborting, timeout)
        left = None if timeout is None else max(0.0, begun + timeout - time.monotonic())
        with self._changed:
            self._changed.wait_for(lambda: self._closing.is_set() or not self.missing(), left)
            return self.missing()

    def release(self, name: str, cause: str) -> None:
        """Release a learner, so that it connects again."""
        arrival = self._there.get(name)
        if arrival is not None:
            self._release(arrival, cause)
            self.lost(arrival, cause)

    def came(self, arrival: Arrival) -> None:
        with self._changed:
            if arrival.kind == "learner" and arrival.name in self.names:
                self._there[arrival.name] = arrival
                self._causes.pop(arrival.name, None)
                self._changed.notify_all()
                return
        self._release(arrival, f"it is not one of the learners {', '.join(self.names)}")

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
        self._fail(cause)

    # ------------------------------------------------------------------ requests

    def _resources(self) -> Resources:
        """The total processors of all learners."""
        self._require_all(durations.AGGREGATOR_STEP)
        answers = self._ask_all(ResourceRequest(), durations.AGGREGATOR_STEP)
        if not all(answer.ours for answer in answers):
            text = "a learner of another program trains alone: have it join the coordinator"
            raise ErrorReport("ConfigError", text).task_fail()
        return Resources(
            sum(answer.cpu for answer in answers), sum(answer.gpu for answer in answers)
        )

    def _start_task(self, info: Task) -> None:
        given = (info.get(name) for name in ("task_id", "buffer_id"))
        self._task_id, self._buffer_id = (None if id_ is None else str(id_) for id_ in given)
        self._left = 0
        self._require_all(durations.AGGREGATOR_GATHER)
        # Before the others, which will wait for each other at that address.
        [place] = self._ask({self.names[0]: OpenMeeting()}, durations.AGGREGATOR_STEP)
        starts = {}
        for rank, name in enumerate(self.names):
            meeting = dataclasses.replace(place, learners=tuple(self.names), rank=rank)
            starts[name] = StartTask("learner", {**info, "meeting": to_json(meeting)})
        self._ask(starts, durations.AGGREGATOR_START)

    def _require_all(self, timeout: float) -> None:
        if missing := self.wait(timeout):
            # For the coordinator, it is as if the worker were not connected.
            cause = f"not connected: {', '.join(missing)}"
            raise ErrorReport("ConnectionLost", cause).task_fail()

    def _answer_in_task(self, request: Request[Answer]) -> object:
        match request:
            case DemandRequest():
                return self._demand(request)
            case TrainRequest():
                return self._train(request)
        return super()._answer_in_task(request)

    def _demand(self, request: DemandRequest) -> Demand:
        # The minimum over learners: one that got a batch more would wait alone in a reduction.
        demands = self._ask_all(request, durations.AGGREGATOR_STEP)
        return Demand(
            self._task_id,
            max(demand.batch_size for demand in demands),
            min(demand.train_iter for demand in demands),
            self._beyond_those_left(min(demand.batch_num or 0 for demand in demands)),
            self._buffer_id,
        )

    def _beyond_those_left(self, each: int) -> int:
        """Number of batches to request if each learner wants ``each``."""
        return max(0, each * len(self.names) - self._left)

    def _train(self, request: TrainRequest) -> TrainAnswer:
        """Distribute the data evenly over the learners, and merge the results."""
        answers = self._ask(self._dealt_batches(request), durations.AGGREGATOR_STEP)
        merged = from_json(TrainAnswer, merged_info([answer.as_json() for answer in answers]))
        wanted = merged.batch_num
        return dataclasses.replace(
            merged,
            task_id=self._task_id,
            buffer_id=self._buffer_id,
            batch_num=None if wanted is None else self._beyond_those_left(wanted),
        )

    def _dealt_batches(self, request: TrainRequest) -> dict[str, TrainRequest]:
        # The remainder waits for the next request: all learners make the same number of updates.
        draws, self._left = divmod(self._left + request.draws, len(self.names))
        chunks: list[list[ChunkReport]] = [[] for _ in self.names]
        for chunk in request.chunks:
            number = chunk.meta.get("number")
            # By number: after a restart, each learner gets the same chunks again.
            chunks[(number if isinstance(number, int) else 0) % len(self.names)].append(chunk)
        return {
            name: dataclasses.replace(request, chunks=tuple(own), draws=draws)
            for name, own in zip(self.names, chunks)
        }

    def _close_task(self) -> TaskReport:
        self._left = 0
        reports = self._ask_all(CloseTask("learner"), durations.AGGREGATOR_CLOSE)
        info = merged_info([dict(report.info) for report in reports])
        ids: dict[str, Json] = {"task_id": self._task_id, "buffer_id": self._buffer_id}
        return TaskReport(self._task_id, {**info, **ids})

    # ------------------------------------------------------------------ requests to the learners

    def _ask_all(self, request: Request[Answer], timeout: float) -> list[Answer]:
        return self._ask(dict.fromkeys(self.names, request), timeout)

    def _ask(self, requests: Mapping[str, Request[Answer]], timeout: float) -> list[Answer]:
        """Send requests to the learners at once; after a failure the others end their tasks."""
        asked = {
            name: self._pool.submit(self._ask_one, name, request, timeout)
            for name, request in requests.items()
        }
        self._open = {**asked}
        waiting = set(asked.values())
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                failure = future.exception()
                if isinstance(failure, TaskFail):
                    cause = self._root_cause(failure, asked)
                    self.abort()  # the others must not wait for a lost one
                    raise cause from None
        return [future.result() for future in asked.values()]

    def _ask_one(self, name: str, request: Request[Answer], timeout: float) -> Answer:
        """One learner's answer; errors contain the learner's name."""
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
            # A hanging thread cannot be ended, so its process must be given up.
            if report.type == HUNG:
                self.release(name, error.cause)  # its process ends and is restarted
            raise _fail(report.type, name, report.message, report) from error

    def _root_cause(self, failure: TaskFail, asked: Mapping[str, Future[Answer]]) -> TaskFail:
        """The first failure among learners that wait for each other."""
        if not _is_of_group(failure):
            return failure
        deadline = time.monotonic() + durations.ROOT_CAUSE_WAIT
        for future in asked.values():
            wait([future], max(0.0, deadline - time.monotonic()))
            error = future.exception() if future.done() else None
            if isinstance(error, TaskFail) and not _is_of_group(error):
                return error
        with self._changed:  # or a learner that had answered has ended since
            self._changed.wait_for(self.missing, max(0.0, deadline - time.monotonic()))
            for name in self.missing():
                return _fail("LearnerLost", name, self._causes.get(name, "it left"))
        return failure

    # ------------------------------------------------------------------ as one worker

    def announce(self, arrivals: Arrivals) -> None:
        """Start, and arrive as one learner whenever all learners are connected."""
        self.start()
        self._wanted.set()
        name = f"team-{self._name}"
        ReportingThread(self._come, name, arrivals.fatal, (arrivals,)).start()

    def _come(self, arrivals: Arrivals) -> None:
        while self._wanted.wait() and not self._closing.is_set():
            self._wanted.clear()
            if self.wait(None) or self._closing.is_set():
                return
            where = f"{len(self.names)} processes"
            arrivals.came(Arrival("learner", self._name, self, where))

    def end(self, cause: str) -> None:
        """Release all learners; the team arrives again when all are connected."""
        self.coordinator_lost(cause)
        self._wanted.set()

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Send a request and wait for the answer; see `ding.worker.seams.Peer`."""
        if not self._asking.acquire(blocking=False):
            raise WorkerBusy("it still works on an earlier request")
        try:
            return self.handle(request)  # which applies its own time limits
        except TaskFail as error:
            report = ErrorReport.from_detail(error.result, error.message or "it failed")
            if report.type == "ConnectionLost":
                raise WorkerLost(report.message) from error
            raise WorkerFailed(str(report), error.result, by_worker=True) from error
        finally:
            self._asking.release()

    # ------------------------------------------------------------------ life

    def abort(self) -> None:
        """Ask all reachable learners to end their tasks; does not wait."""
        if self._closing.is_set():
            return  # the pool is shut down, and tasks end with the learners
        deadline = time.monotonic() + durations.TEAM_ABORT
        self._aborting = [
            self._pool.submit(self._end_task, name, deadline) for name in tuple(self._there)
        ]

    def _end_task(self, name: str, deadline: float) -> None:
        if name in self._open:
            wait([self._open[name]], durations.TEAM_ABORT)  # one request at a time
        try:
            self._ask_one(name, CloseTask("learner"), max(0.1, deadline - time.monotonic()))
        except TaskFail as failure:
            _logger.info("%s", failure.message)

    def _give_up_task(self, cause: str) -> None:
        if not self._closing.is_set():
            self.abort()
            return
        with self._changed:
            self._changed.notify_all()
        self._wanted.set()
        self._pool.shutdown(cancel_futures=True)  # waits for open requests

    def _ask_to_end(self) -> None:
        """No-op: learners notice by themselves that requests stop."""

    def released(self) -> None:
        """The coordinator has ended the run: `close` notifies the learners."""
        self._ended.set()


def _is_of_group(failure: TaskFail) -> bool:
    """Whether a failure only reports that another learner missed a reduction."""
    return bool(failure.result.get("of_group"))


def _fail(kind: str, name: str, cause: str, report: ErrorReport | None = None) -> TaskFail:
    trace, of_group = ("", False) if report is None else (report.traceback, report.of_group)
    return ErrorReport(kind, f"{name}: {cause}", trace, of_group).task_fail()


def merged_info(infos: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Merge the results of several learners into one.

    The minimum of ``learner_step`` and other counters that all share; the sum of ``trained``,
    ``own_rows``, CPU and memory; the concatenation of ``priority_info``, ``bad_chunks`` and
    ``warnings``; ``learner_done`` if all are; ``waiting`` of any; the mean of other numbers.
    """
    merged: dict[str, Json] = {}
    for name in dict.fromkeys(key for info in infos for key in info):
        values = [info[name] for info in infos if info.get(name) is not None]
        merged[name] = _merged_value(name, values, len(infos)) if values else None
    return merged


def _merged_value(name: str, values: list[Any], count: int) -> Any:
    first = values[0]
    if name == "starved":
        return any(values)
    if name == "learner_done":
        return len(values) == count and all(values)
    if all(isinstance(value, dict) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        return {
            key: _merged_value(key, [value[key] for value in values if key in value], len(values))
            for key in keys
        }
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return first
    if name in _LEAST:
        return min(values)
    return sum(values) if name in _SUMS else sum(values) / len(values)
