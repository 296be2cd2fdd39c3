"""The steps of a collector's and of a learner's task."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ding.envs.running_statistics import plain
from ding.utils import durations

from .run_facts import as_count
from .worker_link import Ask, Link, NonsenseAnswer, WorkerFailed, one_line

_logger = logging.getLogger(__name__)

#: Answers for other tasks that are passed over, one after another.
MAX_STRAYS = 20
#: What a collector tells of its progress, and what its report calls that.
_COUNTS = {
    "cur_episode": "real_episode_count",
    "cur_sample": "sample_count",
    "cur_step": "step_count",
}
_STEP_KEYS = ("learner_step", "learner_done")


class Job(ABC):
    """One task as one worker does it: `start`, then `work` until it says so, then `close`.

    Args:
        task: What the worker is given.
        worker: Its name.
        resources: What it has; ``ours`` in there: it speaks this project's extensions.
        ask: Gives it a step.
        link: To the coordinator.
        pause: Waits so many seconds, less if the task shall end; whether it shall.
        account: As the attribute.

    Attributes:
        waits_for: What the task cannot go on without, ``None`` if it goes on.
        info: The latest that the worker told of its progress.
        account: What lasts from task to task: bytes ``written`` since the worker came.
    """

    kind: str

    def __init__(
        self,
        task: dict[str, Any],
        worker: str,
        resources: dict[str, Any],
        ask: Ask,
        link: Link,
        pause: Callable[[float], bool],
        account: dict[str, int],
    ) -> None:
        self.task, self.worker = task, worker
        self.ours, self._resources = bool(resources.get("ours")), resources
        self.task_id: str = task["task_id"]
        self.buffer_id = str(task.get("buffer_id") or "")
        self.waits_for: str | None = None
        self.info: dict[str, Any] = {}
        self.account = account
        self._ask, self._link, self._pause = ask, link, pause
        self._written = 0
        self._strays = 0

    def start(self) -> None:
        info = {**self._task(), f"{self.kind}_id": self.worker, "resource_info": self._resources}
        self._ask({"name": f"{self.kind}_start_task", "task_info": info}, "start")

    def _task(self) -> dict[str, Any]:
        """The task as the worker is told of it."""
        return self.task

    @abstractmethod
    def work(self) -> bool:
        """Do a step; whether the task is done."""

    def close(self) -> dict[str, Any]:
        """End it; returns the worker's closing words."""
        while True:
            answer = self._ask({"name": f"{self.kind}_close_task"}, "close")
            if self._is_mine(_checked(answer, f"{self.kind}_close_task")):
                return {**self._last_words(), **answer, "task_id": self.task_id}

    def _last_words(self) -> dict[str, Any]:
        """What foreign workers leave out of their closing words."""
        return {"buffer_id": self.task.get("buffer_id")}

    @abstractmethod
    def finish(self, info: dict[str, Any]) -> None:
        """Tell the coordinator the closing words."""

    def abandon(self) -> None:  # noqa: B027
        """Give back what the task held."""

    def _is_mine(self, answer: Mapping[str, Any]) -> bool:
        given = answer.get("task_id", self.task_id)
        if given == self.task_id:
            self._strays = 0
            return True
        self._strays += 1
        if self._strays == 1:
            text = "%s answers for task %.80r and works on %s: the answer is ignored"
            _logger.warning(text, self.worker, given, self.task_id)
        if self._strays >= MAX_STRAYS:
            raise NonsenseAnswer(f"it answers for task {str(given)[:80]} all the time")
        return False


class CollectorJob(Job):
    """Fetches what is collected, as much at once as there is."""

    kind = "collector"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._idle = 0

    def _task(self) -> dict[str, Any]:
        cfg = self.task.get("collector_cfg")
        if self.ours or not isinstance(cfg, dict):
            return self.task
        # Others compress pickles, which nobody here reads.
        return {**self.task, "collector_cfg": {**cfg, "compressor": "none"}}

    def work(self) -> bool:
        request: dict[str, Any] = {"name": "collector_data_task"}
        if self.ours:
            request["wait"] = durations.POLL
            quota = self._quota()
            if quota is not None:
                request["quota"] = quota
        answer = self._ask(request, "step")
        items = answer if isinstance(answer, list) else [answer]
        progress = None
        for item in items:
            if not self._is_mine(_checked(item, "collector_data_task")):
                continue
            if "data_id" in item:
                self._take(item)
            else:
                progress = item
        if progress is None:
            self._idle = 0
            return False
        return self._heed(progress, alone=len(items) == 1)

    def close(self) -> dict[str, Any]:
        try:
            return super().close()
        except WorkerFailed as err:
            if self.ours or not err.told:
                raise
            # There are foreign collectors that do not know this step; they are done all the same.
            return {**self._last_words(), "task_id": self.task_id}

    def _last_words(self) -> dict[str, Any]:
        if self.ours:
            return super()._last_words()
        counts = {of: self.info[key] for key, of in _COUNTS.items() if key in self.info}
        return {**super()._last_words(), **counts, **self.info}

    def finish(self, info: dict[str, Any]) -> None:
        self._link.finish_collector(self.task_id, info)

    def _quota(self) -> int | None:
        """Bytes that the worker may have written in this task by now."""
        buffer = self._link.learner_buffer(self.buffer_id)
        if buffer is None:
            return None
        before = self.account["written"] - self._written
        need = self.info.get("waiting_bytes", 0)
        granted = buffer.grant(self.worker, self.account["written"], as_count(need))
        return granted - before

    def _take(self, meta: dict[str, Any]) -> None:
        data_id, size = meta["data_id"], meta.get("size", 0)
        if not isinstance(data_id, str) or not isinstance(size, int):
            raise NonsenseAnswer("collector_data_task: data_id and size are no string and number")
        self._written += size
        self.account["written"] += size
        buffer_id = meta.get("buffer_id") or self.buffer_id
        self._link.send_data(self.task_id, buffer_id, data_id, meta)
        if "cur_step" in meta:
            self._link.collector_progress(self.task_id, meta)

    def _heed(self, progress: dict[str, Any], alone: bool) -> bool:
        self.info, waiting = progress, progress.get("waiting")
        self.waits_for = None if waiting is None else one_line(waiting, 40)
        self._link.collector_progress(self.task_id, progress)
        if progress.get("warning"):
            self._link.warn(self.worker, str(progress["warning"]))
        if self._link.collector_done(self.task_id, progress):
            return True
        if alone and not self.ours:
            shortest, longest = durations.FOREIGN_PAUSES
            self._pause(min(shortest * 2**self._idle, longest))
            self._idle = min(self._idle + 1, 10)
        return False


class LearnerJob(Job):
    """Serves what the learner wants to train on next, while it trains."""

    kind = "learner"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._held: deque[Any] = deque()
        self._demand: dict[str, Any] | None = None
        self._told_statistics: Any = None

    def work(self) -> bool:
        if self._demand is None:
            demand = self._ask(self._request("learner_get_data_task"), "step")
            if not self._is_mine(_checked(demand, "learner_get_data_task", "batch_size")):
                return False
            self._demand = demand
        buffer_id = self._demand.get("buffer_id") or self.buffer_id
        data = self._serve(buffer_id, self._demand)
        if data is None:
            return False
        step = "step" if isinstance(data, dict) else "learn"
        answer = self._ask({**self._request("learner_learn_task"), "data": data}, step)
        if not self._is_mine(_checked(answer, "learner_learn_task", "info")):
            self._demand = None
            return False
        info = _checked(answer["info"], "learner_learn_task: info")
        self._demand = self._next_demand(info)
        return self._heed(buffer_id, info)

    def _request(self, name: str) -> dict[str, Any]:
        return {"name": name, **({"wait": durations.POLL} if self.ours else {})}

    def _next_demand(self, info: dict[str, Any]) -> dict[str, Any] | None:
        """What the learner wants next, if it told so with its results."""
        if not self.ours or self._demand is None or "batch_num" not in info:
            return None
        step = info.get("learner_step", self._demand.get("cur_learner_iter", -1))
        return {**self._demand, "batch_num": info["batch_num"], "cur_learner_iter": step}

    def finish(self, info: dict[str, Any]) -> None:
        self._link.finish_learner(self.task_id, info)

    def _last_words(self) -> dict[str, Any]:
        known = {key: self.info[key] for key in _STEP_KEYS if key in self.info}
        return {**super()._last_words(), **known}

    def abandon(self) -> None:
        self._release(len(self._held))

    def _serve(self, buffer_id: str, demand: dict[str, Any]) -> Any:
        """What the learner is sent; ``None`` if the task shall end before there is data."""
        size, step = demand["batch_size"], demand.get("cur_learner_iter", -1)
        wanted = demand.get("batch_num")
        learners = demand.get("learners", 1)
        if not all(isinstance(n, int) for n in (size, step, wanted or 0, learners)) or learners < 1:
            raise NonsenseAnswer("learner_get_data_task: batch_size or cur_learner_iter: no number")
        while True:
            buffer = self._link.learner_buffer(buffer_id)
            if wanted and buffer is not None and not buffer.wait(size, 0.0):
                data = None  # asking it in vain is logged
            elif wanted is None:
                data = self._link.get_data(self.task_id, buffer_id, size, step)
            else:
                data = self._batches(buffer_id, size, step, wanted)
            if data is not None:
                self.waits_for = None
                if wanted is None:
                    self._held.append(data)
                return data
            self.waits_for = "data"
            if self._pause(durations.POLL if buffer is None else 0.0):
                return None
            if buffer is not None and not buffer.wait(size, durations.POLL) and self._held:
                # Rows may be too old for what it trains on last, and not for what it is at now.
                return {"batches": [], "envstep": self._link.envstep()}

    def _batches(self, buffer_id: str, size: int, step: int, wanted: int) -> dict | None:
        buffer = self._link.learner_buffer(buffer_id)
        if buffer is None:
            return None
        batches: list[dict[str, Any]] = []
        learners = (self._demand or {}).get("learners", 1)
        while len(batches) < wanted:
            # Those that it has not trained on yet come first.
            train_iter = step + len(self._held) // learners
            wire = buffer.sample(size, step, train_iter)
            if wire is None:
                break
            self._held.append(wire)
            batches.append(wire)
        if wanted and not batches:
            return None
        data = {"batches": batches, "envstep": self._link.envstep()}
        statistics = self._link.env_statistics()
        if statistics and statistics is not self._told_statistics:
            self._told_statistics = statistics
            data["env_statistics"] = plain(statistics)
        return data

    def _heed(self, buffer_id: str, info: dict[str, Any]) -> bool:
        trained = info.get("trained")
        self._release(trained if isinstance(trained, int) else len(self._held))
        if info.get("error"):
            raise WorkerFailed(str(info["error"]), info, told=True)
        self.info, waiting = info, info.get("waiting")
        self.waits_for = None if waiting is None else one_line(waiting, 40)
        self._link.send_info(self.task_id, buffer_id, info)
        return bool(self._link.learner_done(self.task_id, info))

    def _release(self, count: int) -> None:
        buffer = self._link.learner_buffer(self.buffer_id)
        for _ in range(min(count, len(self._held))):
            wire = self._held.popleft()
            if buffer is not None:
                buffer.release(wire)


def _checked(answer: Any, step: str, *keys: str) -> dict[str, Any]:
    """The answer if it is a JSON object with those keys."""
    if not isinstance(answer, dict):
        raise NonsenseAnswer(
            f"{step}: the answer is {type(answer).__name__} {str(answer)[:80]!r}, not an object"
        )
    missing = [key for key in keys if key not in answer]
    if missing:
        raise NonsenseAnswer(
            f"{step}: the answer lacks {', '.join(missing)}; it has {sorted(answer)[:20]}"
        )
    return answer
