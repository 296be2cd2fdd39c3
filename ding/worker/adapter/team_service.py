"""Makes several learners that train one policy together look like one to the coordinator."""

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from ding.interaction.base import random_token
from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.json_fields import from_json
from ding.utils.system_helper import ReportingThread
from ding.worker.adapter.learner_team import LearnerTeam
from ding.worker.comm_worker import CommWorker
from ding.worker.error_report import ErrorReport
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    Demand,
    DemandRequest,
    Json,
    Kind,
    Request,
    ResourceRequest,
    Resources,
    StartTask,
    Task,
    TaskReport,
    TrainAnswer,
    TrainRequest,
)
from ding.worker.seams import Arrival, Arrivals, WorkerBusy, WorkerFailed, WorkerLost

Answer = TypeVar("Answer")
_SUMS = frozenset({"trained", "own_rows"})
_LEAST = frozenset({"learner_step", "cur_learner_iter", "policy_iter", "batch_num", "envstep"})


class _Ids(TypedDict):
    """Of a task, as far as it has them."""

    task_id: str | None
    buffer_id: str | None


class TeamService(CommWorker):
    """A learner that consists of several; a `ding.worker.seams.WorkerService`.

    Every learner gets as many batches as every other, so that all make the same number of updates.
    What fails at one of them fails the task, and the others end theirs.

    Args:
        names: The learners.
        release: As for `LearnerTeam`.
        cfg: The worker's config.
        name: Of the worker.

    Attributes:
        team: The learners.
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
        self.team = LearnerTeam(names, release, self._fail)
        self._ids = _Ids(task_id=None, buffer_id=None)
        self._left = 0  # batches that are no whole round of the learners
        self._sizes: dict[str, int] = {}

    # ------------------------------------------------------------------ requests

    def _resources(self) -> Resources:
        """The processors of all learners together."""
        missing = self.team.wait(durations.AGGREGATOR_STEP)
        if missing:
            raise _missing(missing)
        answers = self._ask_all(ResourceRequest(), durations.AGGREGATOR_STEP)
        return Resources(
            sum(answer.cpu for answer in answers),
            sum(answer.gpu for answer in answers),
            all(answer.ours for answer in answers),
        )

    def _start_task(self, info: Task) -> None:
        given = (info.get(name) for name in ("task_id", "buffer_id"))
        task_id, buffer_id = (None if value is None else str(value) for value in given)
        self._ids = _Ids(task_id=task_id, buffer_id=buffer_id)
        self._left = 0
        missing = self.team.wait(durations.AGGREGATOR_GATHER)
        if missing:
            raise _missing(missing)
        # Two tries of a task must not meet in each other's group.
        start = StartTask("learner", {**info, "meeting": random_token()})
        self._ask_all(start, durations.AGGREGATOR_START)

    def _answer_in_task(self, request: Request[Answer]) -> object:
        match request:
            case DemandRequest():
                return self._demand(request)
            case TrainRequest():
                return self._train(request)
        return super()._answer_in_task(request)

    def _demand(self, request: DemandRequest) -> Demand:
        """What all learners want together.

        To a coordinator that can send several batches (its request holds ``wait``) ``batch_size``
        is that of one learner's batch; to others it is the sum.
        """
        demands = self.team.ask(dict.fromkeys(self.team.names, request), durations.AGGREGATOR_STEP)
        self._sizes = {name: demand.batch_size for name, demand in demands.items()}
        train_iter = min(demand.train_iter for demand in demands.values())
        wanted = [d.batch_num for d in demands.values() if d.batch_num is not None]
        if request.wait is None or len(wanted) < len(demands):
            size = sum(self._sizes.values())
            return Demand(batch_size=size, train_iter=train_iter, **self._ids)
        return Demand(
            batch_size=max(self._sizes.values()),
            train_iter=train_iter,
            batch_num=self._beyond_those_left(min(wanted)),
            learners=len(demands),
            done=all(demand.done for demand in demands.values()),
            **self._ids,
        )

    def _beyond_those_left(self, each: int) -> int:
        """Batches that are wanted if each learner wants so many."""
        return max(0, each * len(self.team.names) - self._left)

    def _train(self, request: TrainRequest) -> TrainAnswer:
        """Deal out what came, as much to one learner as to the other, and merge the results."""
        if request.rows is None:
            requests = self._dealt_batches(request)
            answers = self.team.ask(requests, durations.AGGREGATOR_STEP)
        else:
            requests = self._dealt_rows(request, request.rows)
            answers = self.team.ask(requests, durations.LEARN_TIMEOUT)
        return self._merged(list(answers.values()))

    def _dealt_batches(self, request: TrainRequest) -> dict[str, TrainRequest]:
        names = self.team.names
        # Those over wait for the next time: every learner makes the same number of updates.
        draws, self._left = divmod(self._left + request.draws, len(names))
        return {
            name: TrainRequest(
                request.envstep,
                request.env_statistics,
                wait=request.wait,
                # The same learner has a chunk again when all begin again.
                chunks=tuple(c for c in request.chunks if _number_of(c) % len(names) == i),
                draws=draws,
            )
            for i, name in enumerate(names)
        }

    def _dealt_rows(
        self, request: TrainRequest, rows: tuple[Mapping[str, Json], ...]
    ) -> dict[str, TrainRequest]:
        requests, start = {}, 0
        for name in self.team.names:
            size = self._sizes.get(name, len(rows) // len(self.team.names))
            requests[name] = TrainRequest(rows=rows[start : start + size], wait=request.wait)
            start += size
        return requests

    def _merged(self, answers: Sequence[TrainAnswer]) -> TrainAnswer:
        """The results of several learners as those of one."""
        merged = from_json(TrainAnswer, merged_info([answer.as_json() for answer in answers]))
        wanted = merged.batch_num
        left = None if wanted is None else self._beyond_those_left(wanted)
        return dataclasses.replace(merged, batch_num=left, **self._ids)

    def _close_task(self) -> TaskReport:
        self._left = 0
        reports = self._ask_all(CloseTask("learner"), durations.AGGREGATOR_CLOSE)
        info = merged_info([dict(report.info) for report in reports])
        task_id, buffer_id = self._ids["task_id"], self._ids["buffer_id"]
        return TaskReport(task_id, {**info, "task_id": task_id, "buffer_id": buffer_id})

    def _ask_all(self, request: Request[Answer], timeout: float) -> list[Answer]:
        return list(self.team.ask(dict.fromkeys(self.team.names, request), timeout).values())

    # ------------------------------------------------------------------ life

    def _give_up_task(self, cause: str) -> None:
        if self._closing.is_set():
            self.team.close()
        else:
            self.team.abort()

    def _ask_to_end(self) -> None:
        """Learners see for themselves that nobody asks them any more."""

    def released(self) -> None:
        """The coordinator has said that the run is over: the learners are told when it closes."""
        self._ended.set()


def _number_of(chunk: ChunkReport) -> int:
    number = chunk.meta.get("number")
    return number if isinstance(number, int) else 0


class TeamPeer:
    """Comes to the coordinator as one learner, each time when all of its members are there.

    Args:
        name: Of the learner.
        names: Of its processes.
        release: Has one of them let go; called with its arrival and the cause.

    Attributes:
        members: To be told when one of these processes comes, or is lost.
    """

    def __init__(
        self, name: str, names: Sequence[str], release: Callable[[Arrival, str], object]
    ) -> None:
        self._name = name
        self._service = TeamService(names, release, name)
        self.members: Arrivals = self._service.team
        self._asking = threading.Lock()
        self._wanted, self._closing = threading.Event(), False
        self._arrivals: Arrivals
        self._thread = ReportingThread(
            self._come, f"team-{name}", lambda cause: self._arrivals.fatal(cause)
        )

    def start(self, arrivals: Arrivals) -> None:
        """Begin to wait for the members."""
        self._arrivals = arrivals
        self._service.start()
        self._wanted.set()
        self._thread.start()

    def end(self, cause: str) -> None:
        """It is let go; it comes again when all of it is there."""
        self._service.coordinator_lost(cause)
        self._wanted.set()

    def close(self) -> None:
        """End; its members are told by who keeps them."""
        self._closing = True
        self._service.close()
        self._wanted.set()

    def _come(self) -> None:
        while self._wanted.wait() and not self._closing:
            self._wanted.clear()
            if self._service.team.wait(None) or self._closing:
                return
            where = f"{len(self._service.team.names)} processes"
            self._arrivals.came(Arrival("learner", self._name, self, where))

    def ask(self, request: Request[Answer], timeout: float) -> Answer:
        """Put a request and wait for the answer; see `ding.worker.seams.Peer`."""
        if not self._asking.acquire(blocking=False):
            raise WorkerBusy("it still works on an earlier request")
        try:
            return self._service.handle(request)  # which has limits of its own
        except TaskFail as error:
            report = ErrorReport.from_detail(error.result, error.message or "it failed")
            if report.type == "ConnectionLost":
                raise WorkerLost(report.message) from error
            raise WorkerFailed(str(report), error.result, by_worker=True) from error
        finally:
            self._asking.release()


def _missing(names: list[str]) -> TaskFail:
    # To the coordinator it is as if the worker were not there.
    return ErrorReport("ConnectionLost", f"not connected: {', '.join(names)}").task_fail()


def merged_info(infos: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """The results of several learners as those of one.

    ``learner_step`` and other counters that all share: the least; ``trained`` and ``own_rows``: the
    sum; ``priority_info``, ``bad_chunks`` and ``warnings``: one after another; ``learner_done``:
    whether all are; ``waiting``: what any waits for; other numbers: the mean.
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
