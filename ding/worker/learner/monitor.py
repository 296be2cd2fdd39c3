"""What a learner knows of its last iterations."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real

import numpy as np
import torch

from ding.utils.autolog import LoggedModel, LoggedValue, TickTime

#: Iterations that a learner looks back.
WINDOW = 10


class TickMonitor(LoggedModel[TickTime]):
    """Times and losses of the last ``expire`` iterations.

    ``monitor.avg["total_loss"]()`` is the mean over the window; ``max``, ``min``, ``val`` (the
    newest) and ``std`` likewise.
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

    def window(self) -> dict[str, list[tuple[float, float]]]:
        """By name, how many ticks ago each value of the window came, and the value."""
        now = self.current_time()
        return {
            name: [(now - when, float(np.mean(value))) for when, value in records]
            for name in self.value_names()
            if (records := self.ranged_data(name).history())
        }

    def load_window(self, window: Mapping[str, list[tuple[float, float]]]) -> None:
        """Take up a window, moving the clock on over it."""
        known = set(self.value_names())
        records = [
            (age, name, value)
            for name, values in window.items()
            if name in known
            for age, value in values
        ]
        left = max((age for age, *_ in records), default=0)
        for age, name, value in sorted(records, key=lambda record: -record[0]):
            self._go_on(left - age)
            left = age
            setattr(self, name, value)
        self._go_on(left)

    def _go_on(self, ticks: float) -> None:
        if ticks >= 1:
            self.time.step(int(ticks))


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


def _one_number(value: object) -> object:
    """Of the values of a batch, as some policies log them, the mean."""
    return float(np.mean(value)) if isinstance(value, list) else value


class MonitorFeed:
    """A monitor that is filled when it is looked at, not at each iteration.

    Args:
        names: Values to monitor, beside ``train_time`` and ``data_time``.
        every_number: Monitor all other numbers that come as well.
    """

    def __init__(self, names: Sequence[str], every_number: bool = False) -> None:
        self._tick = TickTime()
        self._wanted = list(names)
        self._every_number = every_number
        self._make_monitor()
        # One more than the window: ranges include the value before them.
        self._unread: deque[Mapping[str, object]] = deque(maxlen=WINDOW + 1)
        self._unread_count = 0

    def _make_monitor(self) -> None:
        self._monitor = get_simple_monitor_type(self._wanted)(self._tick, expire=WINDOW)
        self._names = frozenset(self._monitor.value_names())

    def load_window(self, window: Mapping[str, list[tuple[float, float]]]) -> None:
        """Take up the window of an earlier monitor, and go on from there."""
        if self._every_number:
            self._wanted += [name for name in window if name not in self._names]
            self._make_monitor()
        self._monitor.load_window(window)

    def names(self) -> list[str]:
        """What is monitored and has come at all, but for the times; those asked for first."""
        monitor = self.monitor
        return [name for name in self._wanted if monitor.ranged_data(name).history()]

    def add(self, values: Mapping[str, object]) -> None:
        """Take the values of one iteration; those that are not monitored are left out."""
        self._unread.append(values)
        self._unread_count += 1

    @property
    def monitor(self) -> TickMonitor:
        if self._every_number:
            self._take_up_names()
        forgotten = self._unread_count - len(self._unread)
        if forgotten:
            self._tick.step(forgotten)
        for values in self._unread:
            for name, value in values.items():
                if name in self._names and value is not None:
                    setattr(self._monitor, name, _one_number(value))
            self._tick.step()
        self._unread.clear()
        self._unread_count = 0
        return self._monitor

    def _take_up_names(self) -> None:
        found = {
            name: None
            for values in self._unread
            for name, value in values.items()
            if name not in self._names and _is_number(value)
        }
        if not found:
            return
        window, now = self._monitor.window(), self._tick.time()
        self._wanted += found
        oldest = max((age for records in window.values() for age, _ in records), default=0)
        self._tick = TickTime(int(now - oldest))
        self._make_monitor()
        self._monitor.load_window(window)


def _is_number(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return isinstance(value, Real) and not isinstance(value, bool)
