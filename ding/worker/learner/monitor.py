"""Averages over a learner's last iterations."""

from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import torch

from ding.utils.autolog import LoggedModel, LoggedValue, TickTime

#: Number of iterations in the averages.
WINDOW = 10

_REDUCTIONS: dict[str, Callable[[list[float]], "np.floating | float"]] = {
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
    newest) and ``std`` work in the same way. ``names`` are values in addition to the times.
    """

    data_time = LoggedValue(float)
    train_time = LoggedValue(float)

    def __init__(self, time_: TickTime, expire: int | float, names: Sequence[str] = ()) -> None:
        super().__init__(time_, expire, names)
        for name in self.value_names():
            for kind in _REDUCTIONS:
                self.register_attribute_value(kind, name, partial(self._reduced, name, kind))

    def _reduced(self, name: str, kind: str) -> float:
        """One statistic of the window; 0 if the window is empty."""
        values = self.recent(name)
        return float(_REDUCTIONS[kind](values)) if values else 0.0

    def recent(self, name: str) -> list[float]:
        """The values of a name in the window, oldest first."""
        return [value for _, value in self.range_values[name]()]


def get_simple_monitor_type(properties: Sequence[str] = ()) -> type[TickMonitor]:
    """A monitor class with additional values, by name."""

    class SimpleTickMonitor(TickMonitor):
        def __init__(self, time_: TickTime, expire: int | float) -> None:
            super().__init__(time_, expire, properties)

    return SimpleTickMonitor


class MonitorFeed:
    """Stores the logged values of the last iterations; a monitor converts them when it is read.

    Args:
        names: Values to monitor, in addition to ``train_time`` and ``data_time``.
        every_number: Whether to monitor all other numbers as well.
    """

    def __init__(self, names: Sequence[str], every_number: bool = False) -> None:
        self._wanted = list(dict.fromkeys(names))
        self._every_number = every_number
        # One more than the window: ranges include the preceding value.
        self._recent: deque[Mapping[str, object]] = deque(maxlen=WINDOW + 1)

    def names(self) -> list[str]:
        """The monitored names that have values, without the times."""
        came = {name for values in self.window() for name in values}
        return [name for name in self._monitored() if name in came and name not in _TIMES]

    def means(self, beyond: Container[str]) -> dict[str, float]:
        """Means of the monitored values whose names are not in ``beyond``."""
        if not self._every_number and all(name in beyond for name in self._wanted):
            return {}
        names = [name for name in self.names() if name not in beyond]
        return {name: float(np.mean(self.recent(name)[-WINDOW:])) for name in names}

    def add(self, values: Mapping[str, object]) -> None:
        """Add the values of one iteration."""
        self._recent.append(values)

    @property
    def monitor(self) -> TickMonitor:
        """A monitor of the last iterations; it keeps following the feed."""
        return _FedMonitor(self, self._monitored())

    def _monitored(self) -> list[str]:
        names = [*self._wanted, *_TIMES]
        if self._every_number:
            found = (item for values in self._rows() for item in values.items())
            names += [
                name
                for name, value in found
                if (value.numel() == 1 if isinstance(value, torch.Tensor) else _is_number(value))
            ]
        return list(dict.fromkeys(names))

    def window(self) -> list[dict[str, float]]:
        """The monitored values of the last iterations, as plain numbers."""
        names = frozenset(self._monitored())
        return [
            {name: _number(v) for name, v in values.items() if name in names and v is not None}
            for values in self._rows()
        ]

    def recent(self, name: str) -> list[float]:
        """The values of a name in the last iterations, as plain numbers."""
        values = (logged.get(name) for logged in self._rows())
        return [_number(value) for value in values if value is not None]

    def _rows(self) -> tuple[Mapping[str, object], ...]:
        # A copy: the training thread appends while another thread reads.
        return tuple(self._recent)

    def load_window(self, window: Sequence[Mapping[str, float]]) -> None:
        self._recent.clear()
        self._recent.extend(window)


class _FedMonitor(TickMonitor):
    """A monitor that reads the window of a feed."""

    def __init__(self, feed: MonitorFeed, names: Sequence[str]) -> None:
        clock = TickTime()
        super().__init__(clock, WINDOW, names)
        self._feed = feed
        for values in feed.window():  # for code that reads single values and ranges
            for name, value in values.items():
                self.ranged_data(name).append(value)
            clock.step()

    def recent(self, name: str) -> list[float]:
        return self._feed.recent(name)


def _number(value: Any) -> float:
    # Some policies log the values of a whole batch: use their mean.
    if isinstance(value, float):
        return value
    return value.float().mean().item() if isinstance(value, torch.Tensor) else float(np.mean(value))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
