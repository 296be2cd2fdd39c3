"""Changes a hyper-parameter when a metric stops getting better."""

import operator
from typing import Any

from easydict import EasyDict

from ding.utils.default_helper import deep_merge_dicts
from ding.utils.errors import ConfigError

_CHANGES = {
    "reduce": operator.sub,
    "add": operator.add,
    "multi": operator.mul,
    "div": operator.truediv,
}


class Scheduler:
    """Keeps a parameter while a metric improves, changes it on a plateau.

    Config (every key has a default):

    - ``schedule_flag``: whether the parameter is scheduled at all.
    - ``schedule_mode``: ``'reduce'`` subtracts `factor`, ``'add'`` adds it, ``'multi'``
      multiplies by it, ``'div'`` divides by it.
    - ``factor``: see there.
    - ``change_range``: the least and the greatest value that the parameter may take.
    - ``threshold``: an improvement must be larger than this to count.
    - ``optimize_mode``: ``'min'`` or ``'max'``: what is better.
    - ``patience``: how many steps without improvement are borne.
    - ``cooldown``: how many steps after a change are not counted.
    """

    config = {
        "schedule_flag": False,
        "schedule_mode": "reduce",
        "factor": 0.05,
        "change_range": [-1, 1],
        "threshold": 1e-4,
        "optimize_mode": "min",
        "patience": 1,
        "cooldown": 0,
    }

    def __init__(self, merged_scheduler_config: EasyDict | None = None) -> None:
        cfg = EasyDict(deep_merge_dicts(self.config, merged_scheduler_config))
        self.schedule_mode = _one_of(cfg, "schedule_mode", tuple(_CHANGES))
        self.optimize_mode = _one_of(cfg, "optimize_mode", ("min", "max"))
        self.low, self.high = cfg.change_range
        if self.low > self.high:
            raise ConfigError(f"change_range must be [least, greatest], got {cfg.change_range}")
        if self.schedule_mode == "div" and cfg.factor == 0:
            raise ConfigError("factor must not be 0 when schedule_mode is 'div'")
        self.schedule_flag = cfg.schedule_flag
        self.factor = cfg.factor
        self.threshold = cfg.threshold
        self.patience = cfg.patience
        self.cooldown = cfg.cooldown
        self._best: float | None = None
        self._bad_steps = 0
        self._cooling = 0

    def step(self, metrics: float, param: float) -> float:
        """Take note of a metric; the parameter to go on with."""
        if not self.schedule_flag:
            return param
        if self.is_better(metrics):
            self._best = metrics
            self._bad_steps = 0
        elif self._cooling == 0:
            self._bad_steps += 1
        self._cooling = max(0, self._cooling - 1)
        if self._bad_steps <= self.patience:
            return param
        self._bad_steps, self._cooling = 0, self.cooldown
        return self.update_param(param)

    def update_param(self, param: float) -> float:
        """The parameter after one change, within its range."""
        param = _CHANGES[self.schedule_mode](param, self.factor)
        return min(self.high, max(self.low, param))

    def is_better(self, metrics: float) -> bool:
        """Whether a metric improves on the best so far by more than the threshold."""
        if self._best is None:
            return True
        gain = self._best - metrics if self.optimize_mode == "min" else metrics - self._best
        return gain > self.threshold


def _one_of(cfg: EasyDict, key: str, allowed: tuple[str, ...]) -> Any:
    if cfg[key] not in allowed:
        raise ConfigError(f"{key} must be one of {', '.join(allowed)}, got {cfg[key]!r}")
    return cfg[key]
