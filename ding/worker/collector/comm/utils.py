"""A fake collector for tests of coordinators."""

import itertools
import os
import time
from collections.abc import Mapping
from typing import Any

import torch

from ding.data.chunks import SharedFolder, write_chunk
from ding.interaction import Slave, TaskFail
from ding.worker.collector.steps import Tally
from ding.worker.messages import Json


class NaiveCollector(Slave):
    """Answers collector tasks with made-up data.

    Each request for data writes one sample to a file in the folder ``prefix``, up to ``SAMPLES``.
    """

    SAMPLES = 8

    def __init__(self, *args: Any, prefix: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prefix = prefix
        self._numbers = itertools.count()
        self._work_info: dict[str, Any] | None = None

    def _process_task(self, task: Mapping[str, object]) -> Json:
        match task.get("name"):
            case "resource":
                return {"cpu": 1, "gpu": 0}
            case "collector_start_task":
                return self._begin(task)
            case "collector_data_task":
                return self._data()
            case "collector_close_task":
                return self._close_task()
        cause = f"unknown task {task.get('name')!r}"
        raise TaskFail({"message": cause}, cause)

    def _begin(self, task: Mapping[str, Any]) -> Json:
        info = task.get("task_info") or {}
        cfg = info.get("collector_cfg") or {}
        ids = {name: info.get(name) for name in ("task_id", "buffer_id")}
        own = {"eval_flag": bool(cfg.get("eval_flag")), "start": time.monotonic(), "count": 0}
        self._work_info = {**ids, **own}
        return {"message": "the collector task has started"}

    def _data(self) -> Json:
        task = self._require_task()
        done = task["count"] >= self.SAMPLES
        count = task["count"] = task["count"] if done else task["count"] + 1
        ids = {name: task[name] for name in ("task_id", "buffer_id")}
        facts = {**ids, "cur_episode": count // 4, "cur_sample": count, "cur_step": count}
        if done or task["eval_flag"]:
            return {**facts, "collector_done": done}
        data_id = f"naive_{os.getpid()}_{id(self)}_{next(self._numbers)}"
        write_chunk(SharedFolder(self._prefix or "."), data_id, [_sample(count)])
        return {**facts, "data_id": data_id, "unroll_split_begin": 0, "unroll_len": 1}

    def _close_task(self) -> Json:
        task, self._work_info = self._require_task(), None
        now, tally = time.monotonic(), Tally()
        tally.envsteps = tally.samples = max(1, task["count"])
        tally.episode_count = max(1, tally.envsteps // 4)
        tally.returns.extend([1.0] * tally.episode_count)
        return {
            **tally.report(max(now - task["start"], 1e-8)),
            **{name: task[name] for name in ("task_id", "buffer_id", "eval_flag")},
            "env_num": 1,
            "train_iter": 0,
            "collector_done": True,
            "predefined_episode_count": tally.episode_count,
            "finish_time": now,
            "collect_setting": {},
        }

    def _require_task(self) -> dict[str, Any]:
        if self._work_info is None:
            raise TaskFail({"message": "no task is running"}, "no task is running")
        return self._work_info


def _sample(number: int) -> dict[str, torch.Tensor]:
    return {
        "obs": torch.full((4,), float(number)),
        "next_obs": torch.full((4,), float(number + 1)),
        "action": torch.tensor([number % 2]),
        "reward": torch.tensor([1.0]),
        "done": torch.tensor(number % 4 == 0),
    }
