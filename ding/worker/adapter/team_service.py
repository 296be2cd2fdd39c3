"""Makes several learners that train one policy together look like one to the coordinator."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from ding.interaction.base import random_token
from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.worker.adapter.learner_team import LearnerTeam
from ding.worker.adapter.merged_info import merged_info
from ding.worker.error_report import ErrorReport
from ding.worker.messages import (
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
    WireBatch,
)

Answer = TypeVar("Answer")


class TeamService:
    """A learner that consists of several; a `ding.worker.seams.WorkerService`.

    Every learner gets as many batches as every other, so that all make the same number of updates.
    What fails at one of them fails the task, and the others end theirs.

    Attributes:
        team: The learners.
    """

    kind: Kind = "learner"

    def __init__(self, make_team: Callable[[Callable[[str], object]], LearnerTeam]) -> None:
        self.team = make_team(self._fail)
        self._ids: tuple[str | None, str | None] = (None, None)
        self._left: list[WireBatch] = []  # batches that are no whole round of the learners
        self._dealt_chunks = 0
        self._sizes: dict[str, int] = {}
        self._end_flag = True
        self._ended = threading.Event()
        self._failed: str | None = None

    # ------------------------------------------------------------------ requests

    def handle(self, request: Request[Answer]) -> Answer:
        """Answer a request.

        Raises:
            TaskFail: It failed, or is none to a learner; with type, message, traceback.
        """
        answer: object
        match request:
            case ResourceRequest():
                answer = self._resources()
            case StartTask(kind="learner", info=info):
                answer = self._start_task(info)
            case DemandRequest():
                answer = self._demand(request)
            case TrainRequest():
                answer = self._train(request)
            case CloseTask(kind="learner"):
                answer = self._close_task(request)
            case _:
                text = f"a learner knows no {type(request).__name__}"
                raise ErrorReport("UnknownTask", text).task_fail()
        return cast(Answer, answer)

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
        self._ids, self._left = (task_id, buffer_id), []
        missing = self.team.wait(durations.AGGREGATOR_GATHER)
        if missing:
            raise _missing(missing)
        # Two tries of a task must not meet in each other's group.
        start = StartTask("learner", {**info, "meeting": random_token()})
        self._ask_all(start, durations.AGGREGATOR_START)

    def _demand(self, request: DemandRequest) -> Demand:
        """What all learners want together.

        To a coordinator that can send several batches (its request holds ``wait``) ``batch_size``
        is that of one learner's batch; to others it is the sum.
        """
        demands = self.team.ask(dict.fromkeys(self.team.names, request), durations.AGGREGATOR_STEP)
        self._sizes = {name: demand.batch_size for name, demand in demands.items()}
        task_id, buffer_id = self._ids
        train_iter = min(demand.train_iter for demand in demands.values())
        wanted = [d.batch_num for d in demands.values() if d.batch_num is not None]
        if request.wait is None or len(wanted) < len(demands):
            size = sum(self._sizes.values())
            return Demand(task_id, size, train_iter, buffer_id=buffer_id)
        return Demand(
            task_id,
            max(self._sizes.values()),
            train_iter,
            batch_num=self._beyond_those_left(min(wanted)),
            learners=len(demands),
            done=all(demand.done for demand in demands.values()),
            buffer_id=buffer_id,
            own_rows=sum(demand.own_rows for demand in demands.values()),
        )

    def _beyond_those_left(self, each: int) -> int:
        """Batches that are wanted if each learner wants so many."""
        return max(0, each * len(self.team.names) - len(self._left))

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
        batches = [*self._left, *request.batches]
        names = self.team.names
        used = len(batches) // len(names) * len(names)
        # Those over wait for the next time: every learner makes the same number of updates.
        self._left = batches[used:]
        # Chunks for their own buffers go round, so that each has its share of the samples.
        first = self._dealt_chunks
        self._dealt_chunks += len(request.chunks)
        return {
            name: TrainRequest(
                tuple(batches[i : used : len(names)]),
                request.envstep,
                request.env_statistics,
                wait=request.wait,
                chunks=request.chunks[(i - first) % len(names) :: len(names)],
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
        wanted = [a.batch_num for a in answers if a.batch_num is not None]
        trained = [a.trained for a in answers if a.trained is not None]
        iters = [a.policy_iter for a in answers if a.policy_iter is not None]
        own_rows = [a.own_rows for a in answers if a.own_rows is not None]
        info = merged_info([dict(a.info) for a in answers])
        priorities = merged_info([dict(a.priority_info) for a in answers])
        return TrainAnswer(
            *self._ids,
            learner_step=min(a.learner_step for a in answers),
            learner_done=all(a.learner_done for a in answers),
            trained=sum(trained) if trained else None,
            batch_num=self._beyond_those_left(min(wanted)) if wanted else None,
            policy_iter=min(iters, default=None),
            waiting=next((a.waiting for a in answers if a.waiting), None),
            trouble=next((a.trouble for a in answers if a.trouble), None),
            error=next((a.error for a in answers if a.error), None),
            warnings=tuple(text for a in answers for text in a.warnings),
            bad_chunks=tuple(chunk for a in answers for chunk in a.bad_chunks),
            priority_info=priorities,
            info=info,
            received=tuple(name for a in answers for name in a.received),
            own_rows=sum(own_rows) if own_rows else None,
        )

    def _close_task(self, request: CloseTask) -> TaskReport:
        self._left = []
        reports = self._ask_all(request, durations.AGGREGATOR_CLOSE)
        info = merged_info([dict(report.info) for report in reports])
        return TaskReport(
            self._ids[0], {**info, "task_id": self._ids[0], "buffer_id": self._ids[1]}
        )

    def _ask_all(self, request: Request[Answer], timeout: float) -> list[Answer]:
        return list(self.team.ask(dict.fromkeys(self.team.names, request), timeout).values())

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to let learners come and to take requests."""
        if self._end_flag:
            self._end_flag = False
            self._ended.clear()
            self.team.start()

    def coordinator_lost(self, cause: str) -> None:
        """The coordinator is gone without a word: the learners end their tasks."""
        self.team.abort()

    def released(self) -> None:
        """The coordinator has said that the run is over."""
        self._ended.set()

    def close(self) -> None:
        """Let the learners go. Closing twice does nothing."""
        if not self._end_flag:
            self._end_flag = True
            self.team.close()
            self._ended.set()

    def join(self, timeout: float | None = None) -> bool:
        """Whether it has ended within ``timeout`` seconds."""
        return self._ended.wait(timeout)

    @property
    def failed(self) -> str | None:
        """Why it cannot go on, if it cannot."""
        return self._failed

    def _fail(self, cause: str) -> None:
        self._failed = self._failed or cause
        self._ended.set()


def _missing(names: list[str]) -> TaskFail:
    # To the coordinator it is as if the worker were not there.
    return ErrorReport("ConnectionLost", f"not connected: {', '.join(names)}").task_fail()
