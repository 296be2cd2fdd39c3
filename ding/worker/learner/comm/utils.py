"""A fake learner for tests of coordinators: it answers requests, and trains nothing."""

import time
from collections.abc import Mapping
from typing import Any, cast

from ding.interaction.slave import Slave, TaskFail

#: Number of updates after which it reports that it is done.
ITERATIONS = 5


class NaiveLearner(Slave):
    """Answers all requests of a learner's task, and is done after a few batches.

    Args:
        prefix: Prefix of the identifiers in its answers.
    """

    def __init__(self, *args: Any, prefix: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prefix = prefix
        self._task_info: Mapping[str, object] = {}
        self._step = 0

    def _process_task(self, task: Mapping[str, object]) -> dict[str, object]:
        match task.get("name"):
            case "resource":
                return {"gpu": 0, "cpu": 1}
            case "learner_start_task":
                self._task_info, self._step = cast(Mapping[str, object], task["task_info"]), 0
                return {"message": f"{self._prefix}learner task has started"}
            case "learner_get_data_task":
                return {**self._identity(), "batch_size": 2, "cur_learner_iter": self._step}
            case "learner_learn_task":
                return {**self._identity(), "info": self._learn(task.get("data"))}
            case "learner_close_task":
                return {**self._identity(), "learner_step": self._step, "learner_done": True}
        raise TaskFail({"name": task.get("name")}, f"unknown task {task.get('name')!r}")

    def _identity(self) -> dict[str, object]:
        return {name: self._task_info.get(name) for name in ("task_id", "buffer_id")}

    def _learn(self, data: object) -> dict[str, object]:
        self._step += 1
        rows = data if isinstance(data, list) else []
        names = ("replay_buffer_idx", "replay_unique_id")
        priority_info = {name: [row.get(name) for row in rows] for name in names}
        priority_info["priority"] = [1.0] * len(rows)
        return {
            "learner_step": self._step,
            "priority_info": priority_info,
            "learner_done": self._step >= ITERATIONS,
            "time": time.time(),
        }
