"""What the coordinator is told of training: everything since it was told last."""

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from ding.utils import durations


class LearnReport:
    """Collects the results of updates in one thread, gives them away in another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._info: dict[str, Any] = {}
        self._priorities: list[dict[str, Any]] = []
        self._warnings: dict[str, None] = {}
        self._bad: list[list[str]] = []
        self._rate_from = (time.monotonic(), 0)
        self._rate = 0.0

    def add(self, learn_info: dict[str, Any]) -> None:
        """Take a learner's ``learn_info``."""
        info = dict(learn_info)
        priorities = info.pop("priority_info", None)
        with self._lock:
            self._info.update(info)
            # One batch may bring several updates, and then the same priorities several times.
            if priorities and not (self._priorities and self._priorities[-1] is priorities):
                self._priorities.append(priorities)

    def warn(self, text: str) -> None:
        """Let the operator know; the same words are told once."""
        with self._lock:
            self._warnings[text] = None

    def add_bad_chunks(self, bad: Iterable[tuple[str, str]]) -> None:
        """Take names of chunks that cannot be read, with causes."""
        with self._lock:
            self._bad.extend([data_id, cause] for data_id, cause in bad)

    def take(self, learner_step: int) -> dict[str, Any]:
        """What has come since the last time, as JSON; priorities of several batches are one."""
        with self._lock:
            priorities, self._priorities = self._priorities, []
            bad, self._bad = self._bad, []
            warnings, self._warnings = list(self._warnings), {}
            info = dict(self._info)
        now, (since, step) = time.monotonic(), self._rate_from
        if now - since >= durations.UPDATE_RATE_SPAN:
            self._rate = (learner_step - step) / (now - since)
            self._rate_from = now, learner_step
        return {
            "learner_done": False,
            **{name: plain(value) for name, value in info.items()},
            "learner_step": learner_step,
            "priority_info": merged_priorities(priorities),
            "bad_chunks": bad,
            "warnings": warnings,
            "iters_per_second": round(self._rate, 3),
        }


def merged_priorities(parts: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """``priority_info`` of several batches as one, in lists."""
    names = {name for part in parts for name in part}
    whole = [part for part in parts if part.keys() == names]
    return {name: [v for part in whole for v in plain(part[name])] for name in sorted(names)}


def plain(value: Any) -> Any:
    """The value with builtins for tensors and arrays, so that JSON has words for it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
