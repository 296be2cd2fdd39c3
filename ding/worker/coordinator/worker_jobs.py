"""The steps of a collector's and of a learner's task."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from ding.envs.running_statistics import Statistics, plain
from ding.utils import durations
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    CollectProgress,
    Demand,
    DemandRequest,
    Json,
    Kind,
    SamplesRequest,
    StartTask,
    Task,
    TaskReport,
    TrainAnswer,
    TrainRequest,
)
from ding.worker.seams import NonsenseAnswer, WorkerFailed
from ding.worker.tasks import ChunkMeta, CollectorInfo, CollectorReport, LearnerInfo, LearnerNews

from .chunk_buffer import ChunkBuffer
from .run_events import RunEvents
from .run_facts import one_line
from .worker_session import Steps, WorkerSession

_logger = logging.getLogger(__name__)

#: Maximum number of consecutive answers for other tasks that are ignored.
MAX_STRAYS = 20
#: Progress fields of a collector, and their names in its final report.
_COUNTS = {
    "cur_episode": "real_episode_count",
    "cur_sample": "sample_count",
    "cur_step": "step_count",
}


class Job(ABC):
    """A task at a worker: `start`, then `work` until it returns true, then `close`. Updates the
    known facts of the worker."""

    kind: Kind

    def __init__(self, task: Task, worker: WorkerSession, events: RunEvents) -> None:
        self.task, self._worker, self._events = task, worker, events
        self.task_id = worker.task_id = str(task["task_id"])
        self.buffer_id = str(task.get("buffer_id") or "")
        self._ours = worker.resources.ours
        worker.waits_for, worker.info, worker.is_eval = None, {}, False
        self._strays = 0

    @property
    def _buffer(self) -> ChunkBuffer | None:
        """The buffer that the task fills or reads."""
        return self._events.learner_buffer(self.buffer_id)

    def start(self) -> Steps[None]:
        resources = self._worker.resources.as_json()
        own = {f"{self.kind}_id": self._worker.name, "resource_info": resources}
        yield from self._worker.ask(StartTask(self.kind, {**self.task, **own}))

    @abstractmethod
    def work(self) -> Steps[bool]:
        """Do one step; returns whether the task is done."""

    def close(self) -> Steps[dict[str, Json]]:
        """End the task; returns the worker's report with missing fields added."""
        while True:
            report: TaskReport = yield from self._worker.ask(CloseTask(self.kind))
            if self._is_mine(report.task_id):
                return {**self._known(), **report.info, "task_id": self.task_id}

    def _known(self) -> dict[str, Json]:
        """Fields that foreign workers leave out of their reports."""
        return {"buffer_id": self.buffer_id or None}

    @abstractmethod
    def finish(self, report: Mapping[str, Json]) -> None:
        """Pass the report to the coordinator."""

    def abandon(self) -> None:  # noqa: B027
        """Release the task's resources."""

    def _is_mine(self, task_id: str | None) -> bool:
        """Whether an answer belongs to this task; answers without a task id do."""
        if task_id in (None, self.task_id):
            self._strays = 0
            return True
        self._strays += 1
        if self._strays == 1:
            text = "%s answers for task %.80r and works on %s: the answer is ignored"
            _logger.warning(text, self._worker.name, task_id, self.task_id)
        if self._strays >= MAX_STRAYS:
            raise NonsenseAnswer(f"it answers for task {task_id:.80} all the time")
        return False


class CollectorJob(Job):
    """Fetches collected samples, as many at once as are available."""

    kind = "collector"

    def __init__(self, task: Task, worker: WorkerSession, events: RunEvents) -> None:
        super().__init__(task, worker, events)
        cfg = task.get("collector_cfg")
        if isinstance(cfg, Mapping):
            worker.is_eval = bool(cfg.get("eval_flag"))
            if not self._ours:  # they would send compressed pickles, which cannot be read here
                self.task = {**task, "collector_cfg": {**cfg, "compressor": "none"}}
        self._reported_before = worker.reported_bytes
        self._waiting_bytes = 0
        self._idle = 0

    def work(self) -> Steps[bool]:
        if self._must_wait():
            self._worker.waits_for = "learner"
            yield from self._worker.pause(durations.RATE_LOOK, f"room {self.buffer_id}")
            if not self._ours:
                return False
        request = SamplesRequest()
        if self._ours:
            gather = self._worker.gather
            # Longer than the gathering time, or each answer would be empty.
            request = SamplesRequest(max(durations.POLL, 2 * gather), self._quota(), gather)
        answer = yield from self._worker.ask(request)
        for chunk in answer.chunks:
            if self._is_mine(chunk.task_id):
                self._take(chunk)
        progress = answer.progress
        if progress is None or not self._is_mine(progress.task_id):
            self._idle = 0
            return False
        if self._take_progress(progress):
            return True
        # Foreign collectors answer at once, even without news; ours wait for news.
        if not (answer.chunks or self._ours):
            shortest, longest = durations.FOREIGN_PAUSES
            yield from self._worker.pause(min(shortest * 2**self._idle, longest))
            self._idle = min(self._idle + 1, 10)
        return False

    def _must_wait(self) -> bool:
        """Whether to delay the next request because the learner is behind."""
        # Foreign collectors only collect when asked. Ours know their limit, and are asked anyway,
        # since they report progress.
        buffer, worker = self._buffer, self._worker
        if buffer is None or worker.is_eval or (self._ours and worker.waits_for != "learner"):
            return False
        return not buffer.pace.has_room()

    def _quota(self) -> int | None:
        """Total bytes that the worker may have written in this task so far."""
        buffer, worker = self._buffer, self._worker
        if buffer is None:
            return None
        granted = buffer.pace.grant(worker.name, worker.reported_bytes, self._waiting_bytes)
        return granted - self._reported_before

    def _take(self, chunk: ChunkReport) -> None:
        self._worker.reported_bytes += chunk.size
        buffer_id = chunk.buffer_id or self.buffer_id
        send_data = self._events.deal_with_collector_send_data
        send_data(self.task_id, buffer_id, chunk.data_id, cast(ChunkMeta, chunk.meta))
        self._worker.changed.add(f"data {buffer_id}")

    def _take_progress(self, progress: CollectProgress) -> bool:
        """Whether the task is done."""
        worker, buffer = self._worker, self._buffer
        worker.info, self._waiting_bytes = progress.as_json(), progress.waiting_bytes
        worker.waits_for = _short(progress.waiting)
        if worker.waits_for == "space" and buffer is not None and buffer.pace.paces(worker.name):
            worker.waits_for = "learner"  # the reason why it may not write more
        info = cast(CollectorInfo, worker.info)
        if progress.warning:
            self._events.warn(worker.name, progress.warning)
        return bool(self._events.deal_with_collector_judge_finish(self.task_id, info))

    def close(self) -> Steps[dict[str, Json]]:
        try:
            return (yield from super().close())
        except WorkerFailed as err:
            if self._ours or not err.by_worker:
                raise
            # Some foreign collectors do not support this request; they are done nevertheless.
            return {**self._known(), "task_id": self.task_id}

    def _known(self) -> dict[str, Json]:
        if self._ours:
            return super()._known()
        info = self._worker.info
        counts = {of: info[key] for key, of in _COUNTS.items() if key in info}
        return {**super()._known(), **counts, **info}

    def finish(self, report: Mapping[str, Json]) -> None:
        self._events.deal_with_collector_finish_task(self.task_id, cast(CollectorReport, report))


class LearnerJob(Job):
    """Permits the batches that a learner wants next, while it trains."""

    kind = "learner"

    def __init__(self, task: Task, worker: WorkerSession, events: RunEvents) -> None:
        super().__init__(task, worker, events)
        self._held: deque[Sequence[Mapping[str, Json]]] = deque()  # rows of a foreign learner
        self._has_begun = self._is_starved = False
        self._demand: Demand | None = None
        self._sent_statistics: Statistics | None = None
        self._wait = durations.POLL if self._ours else None

    def work(self) -> Steps[bool]:
        if self._demand is None:
            demand = yield from self._worker.ask(DemandRequest(self._wait))
            if not self._is_mine(demand.task_id):
                return False
            self.buffer_id = demand.buffer_id or self.buffer_id
            if not self._has_begun and self._buffer is not None:
                self._has_begun = True
                # Not at the start of the task, since the learner's answer may name another buffer.
                self._buffer.begin()
            self._demand = demand
        request = yield from self._batches(self._demand)
        if request is None:
            return False
        # Draws were permitted: collectors that the rate limiter blocked may continue.
        self._worker.changed.add(f"room {self.buffer_id}")
        answer = yield from self._worker.ask(request)
        demand, self._demand = self._demand, None
        if not self._is_mine(answer.task_id):
            return False
        if self._ours and answer.batch_num is not None:
            step = max(demand.train_iter, answer.learner_step)
            self._demand = replace(demand, batch_num=answer.batch_num, train_iter=step)
        return self._take(answer)

    def _batches(self, demand: Demand) -> Steps[TrainRequest | None]:
        """The next request to the learner; ``None`` if the task must end before there is one."""
        look_at = self._worker.now + durations.POLL
        while True:
            buffer = self._buffer
            if demand.batch_num is None:
                request = self._rows(demand)
            else:
                request = self._permission(buffer, demand)
            if request is not None:
                self._worker.waits_for = None
                return request
            is_held = buffer is not None and buffer.holds_learner(demand.batch_size)
            self._worker.waits_for = "collectors" if is_held else "data"
            seconds = look_at - self._worker.now
            if seconds <= 0 and demand.batch_num is not None and buffer is not None:
                # Its report advances the rate limiter, on which the collectors wait.
                return self._request(0.0)  # it may have news of its current batches
            wait = seconds if seconds > 0 else durations.POLL
            if (yield from self._worker.pause(wait, f"data {self.buffer_id}")):
                return None

    def _rows(self, demand: Demand) -> TrainRequest | None:
        """One batch for a learner that does not support chunks."""
        ids = self.task_id, self.buffer_id
        rows = self._events.deal_with_learner_get_data(*ids, demand.batch_size, demand.train_iter)
        if rows is None:
            return None
        self._held.append(rows)
        return TrainRequest(rows=tuple(rows), wait=self._wait)

    def _permission(self, buffer: ChunkBuffer | None, demand: Demand) -> TrainRequest | None:
        """A request with permitted draws from the learner's replay buffer, and its new chunks."""
        wanted = demand.batch_num or 0
        if buffer is None:
            return None
        chunks = buffer.take_chunks()
        draws = buffer.permit(demand.batch_size, wanted) if wanted else 0
        if wanted and not (draws or chunks):
            return None
        # New chunks must not wait until batches are wanted.
        wait = durations.MESSAGE_GATHER if chunks or self._is_starved else self._wait
        return self._request(wait, chunks, draws)

    def _request(
        self, wait: float | None, chunks: tuple[ChunkReport, ...] = (), draws: int = 0
    ) -> TrainRequest:
        envstep, statistics = self._events.collected()
        news = None
        # Compared by identity: statistics are replaced as a whole, and may be large.
        if statistics and statistics is not self._sent_statistics:
            self._sent_statistics = statistics
            news = plain(statistics)
        return TrainRequest(envstep, news, wait=wait, chunks=chunks, draws=draws)

    def _take(self, answer: TrainAnswer) -> bool:
        """Whether the task is done."""
        self.abandon()  # training on the rows sent has ended
        if self._buffer is not None and answer.own_rows is not None:
            self._is_starved = answer.starved
            news = answer.received, answer.left, answer.own_rows, answer.starved
            self._buffer.note_replay(*news)
        if answer.error:
            raise WorkerFailed(answer.error, answer.as_json(), by_worker=True)
        worker = self._worker
        worker.info = answer.as_json()
        # A cause found here (data, collectors) is more specific than the learner's.
        if worker.waits_for is None or answer.waiting is None:
            worker.waits_for = _short(answer.waiting)
        worker.changed.add(f"room {self.buffer_id}")
        latest = cast(LearnerNews, worker.info)
        self._events.deal_with_learner_send_info(self.task_id, self.buffer_id, latest)
        return bool(self._events.deal_with_learner_judge_finish(self.task_id, latest))

    def _known(self) -> dict[str, Json]:
        keys, info = ("learner_step", "learner_done"), self._worker.info
        return {**super()._known(), **{key: info[key] for key in keys if key in info}}

    def finish(self, report: Mapping[str, Json]) -> None:
        self._events.deal_with_learner_finish_task(self.task_id, cast(LearnerInfo, report))

    def abandon(self) -> None:
        while self._held:
            rows = self._held.popleft()
            if self._buffer is not None:
                self._buffer.release(rows)


def _short(waiting: str | None) -> str | None:
    return None if waiting is None else one_line(waiting, 40)
