"""What a learner knows of its last iterations."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import torch

from ding.utils.autolog import LoggedModel, LoggedValue, TickTime

#: Iterations that a learner looks back.
WINDOW = 10


_Reduction = Callable[[list[float]], "np.floating | float"]

_REDUCTIONS: dict[str, _Reduction] = {
    "avg": np.mean,
    "max": np.max,
    "min": np.min,
    "std": np.std,
    "val": lambda values: values[-1],
}
_TIMES = ("data_time", "train_time")


class TickMonitor(LoggedModel[TickTime]):
    """Times and losses of the last ``expire`` iterations.

    ``monitor.avg["total_loss"]()`` is the mean over the window; ``max``, ``min``, ``val`` (the
    newest) and ``std`` likewise.

    Args:
        time_: Counts the iterations.
        expire: How many iterations are looked back on.
        names: Further values, in addition to the times.
    """

    data_time = LoggedValue(float)
    train_time = LoggedValue(float)

    def __init__(self, time_: TickTime, expire: int | float, names: Sequence[str] = ()) -> None:
        super().__init__(time_, expire, names)
        for name in self.value_names():
            for attribute, reduce in _REDUCTIONS.items():
                self.register_attribute_value(attribute, name, partial(_reduce, self, name, reduce))

    def recent(self, name: str) -> list[float]:
        """The values of a name in the window, the oldest first."""
        return [value for _, value in self.range_values[name]()]


def _reduce(monitor: TickMonitor, name: str, reduce: _Reduction) -> float:
    """One figure of the window; 0 while it is empty."""
    values = monitor.recent(name)
    return float(reduce(values)) if values else 0.0


def get_simple_monitor_type(properties: Sequence[str] = ()) -> type[TickMonitor]:
    """A monitor class with further values, by name."""

    class SimpleTickMonitor(TickMonitor):
        def __init__(self, time_: TickTime, expire: int | float) -> None:
            super().__init__(time_, expire, properties)

    return SimpleTickMonitor


class MonitorFeed:
    """What the last iterations logged; a monitor reads it when it is looked at.

    Args:
        names: Values to monitor, in addition to ``train_time`` and ``data_time``.
        every_number: Whether to monitor all other numbers, too.
    """

    def __init__(self, names: Sequence[str], every_number: bool = False) -> None:
        self._wanted = list(dict.fromkeys(names))
        self._every_number = every_number
        # One more than the window: ranges include the value before them.
        self._recent: deque[Mapping[str, object]] = deque(maxlen=WINDOW + 1)

    def names(self) -> list[str]:
        """What is monitored and has come, without the times; those asked for first."""
        came = {name for values in self.window() for name in values}
        return [name for name in self._monitored() if name in came and name not in _TIMES]

    def add(self, values: Mapping[str, object]) -> None:
        """Take the values of one iteration; those that are not monitored are left out."""
        self._recent.append(values)

    @property
    def monitor(self) -> TickMonitor:
        """The figures of the last iterations; one that is kept follows later ones."""
        return _FedMonitor(self, self._monitored())

    def _monitored(self) -> list[str]:
        names = [*self._wanted, *_TIMES]
        if self._every_number:
            found = (item for values in self._recent for item in values.items())
            names += [name for name, value in found if _is_number(value)]
        return list(dict.fromkeys(names))

    # ------------------------------------------------------------------ state

    def window(self) -> list[dict[str, float]]:
        """What the last iterations logged of what is monitored, in plain numbers."""
        names = frozenset(self._monitored())
        return [
            {name: _number(v) for name, v in values.items() if name in names and v is not None}
            for values in self._recent
        ]

    def load_window(self, window: Sequence[Mapping[str, float]]) -> None:
        """Go on from what `window` returned."""
        self._recent.clear()
        self._recent.extend(window)


class _FedMonitor(TickMonitor):
    """A monitor that reads the window of a feed."""

    def __init__(self, feed: MonitorFeed, names: Sequence[str]) -> None:
        clock = TickTime()
        super().__init__(clock, WINDOW, names)
        self._feed = feed
        for values in feed.window():  # for those who read single values and ranges
            for name, value in values.items():
                self.ranged_data(name).append(value)
            clock.step()

    def recent(self, name: str) -> list[float]:
        return [values[name] for values in self._feed.window() if name in values]


def _number(value: Any) -> float:
    # Of the values of a batch, as some policies log them, the mean.
    return value.float().mean().item() if isinstance(value, torch.Tensor) else float(np.mean(value))


def _is_number(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return isinstance(value, Real) and not isinstance(value, bool)
