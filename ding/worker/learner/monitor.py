"""What a learner knows of its last iterations."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import torch

from ding.utils.autolog import LoggedModel, LoggedValue, TickTime

#: Iterations that a learner looks back.
WINDOW = 10


class TickMonitor(LoggedModel[TickTime]):
    """Times and losses of the last ``expire`` iterations.

    ``monitor.avg["total_loss"]()`` is the mean over the window; ``max``, ``min``, ``val`` (the
    newest) and ``std`` likewise.

    Args:
        time_: Counts the iterations.
        expire: How many iterations are looked back on.
    """

    data_time = LoggedValue(float)
    train_time = LoggedValue(float)

    def __init__(self, time_: TickTime, expire: int | float) -> None:
        super().__init__(time_, expire)
        for name in self.value_names():
            for attribute, reduce in _REDUCTIONS.items():
                self.register_attribute_value(attribute, name, partial(_reduce, self, name, reduce))

    @classmethod
    def value_names(cls) -> list[str]:
        """Names of the logged values."""
        return [
            name
            for kind in reversed(cls.__mro__)
            for name, value in vars(kind).items()
            if isinstance(value, LoggedValue)
        ]


_Reduction = Callable[[list[np.floating]], np.floating]

_REDUCTIONS: dict[str, _Reduction] = {
    "avg": np.mean,
    "max": np.max,
    "min": np.min,
    "std": np.std,
    "val": lambda values: values[-1],
}


def _reduce(monitor: TickMonitor, name: str, reduce: _Reduction) -> float:
    """One figure of the window; 0 while it is empty."""
    values = [value for _, value in monitor.range_values[name]()]
    return float(reduce([np.mean(value) for value in values])) if values else 0.0


def get_simple_monitor_type(properties: Sequence[str] = ()) -> type[TickMonitor]:
    """A monitor class with further values, by name."""
    if not properties:
        return TickMonitor
    values = {name: LoggedValue(float) for name in dict.fromkeys(properties)}
    return type("SimpleTickMonitor", (TickMonitor,), values)


class MonitorFeed:
    """A monitor that is filled when it is looked at, not at each iteration.

    Args:
        names: Values to monitor, beside ``train_time`` and ``data_time``.
        every_number: Monitor all other numbers that come as well.
    """

    def __init__(self, names: Sequence[str], every_number: bool = False) -> None:
        self._wanted = list(names)
        self._every_number = every_number
        # One more than the window: ranges include the value before them.
        self._recent: deque[Mapping[str, object]] = deque(maxlen=WINDOW + 1)
        self._make_monitor()

    def _make_monitor(self) -> None:
        """An empty one of what is wanted; all that is remembered is for it to read."""
        self._tick = TickTime()
        self._monitor = get_simple_monitor_type(self._wanted)(self._tick, expire=WINDOW)
        self._names = frozenset(self._monitor.value_names())
        self._unread = len(self._recent)

    def names(self) -> list[str]:
        """What is monitored and has come at all, but for the times; those asked for first."""
        monitor = self.monitor
        return [name for name in self._wanted if monitor.ranged_data(name).history()]

    def add(self, values: Mapping[str, object]) -> None:
        """Take the values of one iteration; those that are not monitored are left out."""
        self._recent.append(values)
        self._unread += 1

    @property
    def monitor(self) -> TickMonitor:
        if not self._unread:
            return self._monitor
        if self._every_number and (new := self._new_names()):
            self._wanted += new
            self._make_monitor()
        unread = list(self._recent)[-self._unread :]
        if self._unread > len(unread):
            self._tick.step(self._unread - len(unread))
        for values in unread:
            for name, value in self._monitored(values):
                setattr(self._monitor, name, value)
            self._tick.step()
        self._unread = 0
        return self._monitor

    def _monitored(self, values: Mapping[str, object]) -> Iterable[tuple[str, Any]]:
        for name, value in values.items():
            if name in self._names and value is not None:
                # Of the values of a batch, as some policies log them, the mean.
                yield name, float(np.mean(value)) if isinstance(value, list) else value

    def _new_names(self) -> list[str]:
        found = (item for values in self._recent for item in values.items())
        return list(dict.fromkeys(n for n, v in found if n not in self._names and _is_number(v)))

    # ------------------------------------------------------------------ state

    def window(self) -> list[dict[str, float]]:
        """What the last iterations have brought of what is monitored, in plain numbers."""
        _ = self.monitor  # knows all names
        return [
            {name: float(np.mean(value)) for name, value in self._monitored(values)}
            for values in self._recent
        ]

    def load_window(self, window: Sequence[Mapping[str, float]]) -> None:
        """Go on from what `window` gave."""
        self._recent.clear()
        self._recent.extend(window)
        self._make_monitor()


def _is_number(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return isinstance(value, Real) and not isinstance(value, bool)
