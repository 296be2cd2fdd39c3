"""What the coordinator is told of training: everything since it was told last."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from ding.utils import durations
from ding.worker.messages import Json, TrainAnswer

#: What a learner tells of an update: numbers, arrays, and the priorities of samples.
LearnInfo = Mapping[str, object]


class LearnReport:
    """Collects the results of updates in one thread, gives them away in another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._info: dict[str, object] = {}
        self._priorities: list[dict[str, object]] = []
        self._warnings: dict[str, None] = {}
        self._bad: list[tuple[str, str]] = []
        self._rate_from = (time.monotonic(), 0)
        self._rate = 0.0

    def add(self, learn_info: LearnInfo) -> None:
        """Take a learner's ``learn_info``."""
        info = dict(learn_info)
        priorities = info.pop("priority_info", None)
        with self._lock:
            self._info.update(info)
            # One batch may bring several updates, and then the same priorities several times.
            if priorities and not (self._priorities and self._priorities[-1] is priorities):
                self._priorities.append(cast(dict[str, object], priorities))

    def warn(self, text: str) -> None:
        """Let the operator know; the same words are told once."""
        with self._lock:
            self._warnings[text] = None

    def add_bad_chunks(self, bad: Iterable[tuple[str, str]]) -> None:
        """Take names of chunks that cannot be read, with causes."""
        with self._lock:
            self._bad.extend(bad)

    def complete(self, answer: TrainAnswer) -> TrainAnswer:
        """An answer with what has come since the last one."""
        with self._lock:
            priorities, self._priorities = self._priorities, []
            bad, self._bad = tuple(self._bad), []
            warnings, self._warnings = tuple(self._warnings), {}
            info = {name: plain(value) for name, value in self._info.items()}
        now, (since, step) = time.monotonic(), self._rate_from
        if now - since >= durations.UPDATE_RATE_SPAN:
            self._rate = (answer.learner_step - step) / (now - since)
            self._rate_from = now, answer.learner_step
        return replace(
            answer,
            warnings=warnings,
            bad_chunks=bad,
            priority_info=merged_priorities(priorities),
            info={**info, **answer.info, "iters_per_second": round(self._rate, 3)},
        )


def merged_priorities(parts: Sequence[Mapping[str, object]]) -> dict[str, Json]:
    """``priority_info`` of several batches as one, in lists."""
    names = {name for part in parts for name in part}
    whole = [part for part in parts if part.keys() == names]
    lists = {name: [plain(part[name]) for part in whole] for name in sorted(names)}
    return {
        name: [value for values in found for value in (values if isinstance(values, list) else [])]
        for name, found in lists.items()
    }


def plain(value: Any) -> Json:
    """The value with builtins for tensors and arrays, so that JSON has words for it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor | np.ndarray | np.generic) or hasattr(value, "tolist"):
        built_in: Json = value.tolist()
        return built_in
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    other: Json = value
    return other
