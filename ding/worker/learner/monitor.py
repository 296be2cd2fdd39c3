"""What a learner knows of its last iterations."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ding.utils.autolog import LoggedModel, LoggedValue


class TickMonitor(LoggedModel):
    """Times and losses of the last ``expire`` iterations.

    ``monitor.avg["total_loss"]()`` is the mean over the window; ``max``, ``min``, ``val`` (the
    newest) and ``std`` likewise.
    """

    data_time = LoggedValue(float)
    train_time = LoggedValue(float)

    def __init__(self, time_: Any, expire: int | float) -> None:
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

    def load_window(self, window: dict[str, list[tuple[float, float]]]) -> None:
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


_REDUCTIONS = {
    "avg": np.mean,
    "max": np.max,
    "min": np.min,
    "std": np.std,
    "val": lambda values: values[-1],
}


def _reduce(monitor: TickMonitor, name: str, reduce: Any) -> float:
    """One figure of the window; 0 while it is empty."""
    values = [value for _, value in monitor.range_values[name]()]
    return float(reduce([np.mean(value) for value in values])) if values else 0.0


def get_simple_monitor_type(properties: Sequence[str] = ()) -> type[TickMonitor]:
    """A monitor class with further values, by name."""
    if not properties:
        return TickMonitor
    values = {name: LoggedValue(float) for name in dict.fromkeys(properties)}
    return type("SimpleTickMonitor", (TickMonitor,), values)
