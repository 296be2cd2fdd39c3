"""What a buffer tells about its data: throughput, and the use, priority and age of samples."""

import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.utils.autolog import BaseTime, LoggedModel, LoggedValue

Scalars = Callable[[str, Mapping[str, float], int], None]


class SampledDataAttrMonitor(LoggedModel[BaseTime]):
    """Use count, priority and staleness of the items in the latest samples.

    ``monitor.avg['use_avg']()`` is the mean of ``use_avg`` over the span; ``max`` and ``min``
    likewise.

    Args:
        time_: Counts samples.
        expire: Number of samples that the figures span.
    """

    use_max = LoggedValue(int)
    use_avg = LoggedValue(float)
    priority_max = LoggedValue(float)
    priority_avg = LoggedValue(float)
    priority_min = LoggedValue(float)
    staleness_max = LoggedValue(int)
    staleness_avg = LoggedValue(float)

    def __init__(self, time_: BaseTime, expire: int | float) -> None:
        super().__init__(time_, expire)
        for name, (_, kind) in _FIGURES.items():
            self.register_attribute_value(kind, name, self._reducer(name, _REDUCE[kind]))

    def _reducer(self, name: str, reduce: Callable[[Any], Any]) -> Callable[[], float]:
        def value() -> float:
            # Not the one that was replaced when the span began.
            spans = self.range_values[name]()
            values = [v for (begin, end), v in spans if begin < end and v is not None]
            return reduce(values).item() if values else 0

        return value

    def summary(self) -> dict[str, float]:
        """Each figure over the span."""
        return {name: getattr(self, kind)[name]() for name, (_, kind) in _FIGURES.items()}


#: Figures by name: of which column, and how it is reduced.
_FIGURES = {
    name: name.rsplit("_", 1)
    for name, value in vars(SampledDataAttrMonitor).items()
    if isinstance(value, LoggedValue)
}
_REDUCE: dict[str, Callable[[Any], Any]] = {"max": np.max, "min": np.min, "avg": np.mean}


def summarise_samples(samples: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What `SampledDataAttrMonitor` tells of these samples, each with its columns."""
    columns = {column for column, _ in _FIGURES.values()}
    values = {name: np.concatenate([sample[name] for sample in samples]) for name in columns}
    figures = _FIGURES.items()
    return {name: float(_REDUCE[kind](values[column])) for name, (column, kind) in figures}


def _counter(name: str, doc: str) -> property:
    """A count of a monitor, which reports if need be when it is set."""

    def count(self: "PeriodicThruputMonitor", value: int) -> None:
        setattr(self, name, value)
        self.note()

    return property(operator.attrgetter(name), count, doc=doc)


class PeriodicThruputMonitor:
    """Counts items that come, go out and leave, and reports the counts of each period.

    There is no thread: the report is written by the first push or sample after the period.

    Args:
        name: Name of the buffer.
        cfg: ``seconds``, the length of a period.
        logger: Takes a line of text: a function, or a logger.
        tb_logger: Takes ``(tag, values, step)``: a function, or a writer with ``add_scalar``.
    """

    def __init__(self, name: str, cfg: EasyDict, logger: object, tb_logger: object) -> None:
        self.name = name
        self._line = logger if callable(logger) else getattr(logger, "info", _ignore)
        self._scalars = tb_logger if callable(tb_logger) else _scalar_writer(name, tb_logger)
        self._period = float(cfg.seconds)
        self._begin = time.monotonic()
        self._due = self._begin + self._period
        self._pushed = self._sampled = self._removed = self._valid = 0

    def note(self, pushed: int = 0, sampled: int = 0, removed: int = 0) -> None:
        """Count items."""
        self._pushed += pushed
        self._sampled += sampled
        self._removed += removed
        self._valid += pushed - removed
        if time.monotonic() >= self._due:
            self._report()

    def close(self) -> None:
        """Report nothing more."""
        self._due = float("inf")

    push_data_count = _counter("_pushed", "Items that came in this period.")
    sample_data_count = _counter("_sampled", "Items that went out in samples in this period.")
    remove_data_count = _counter("_removed", "Items that left in this period.")
    valid_count = _counter("_valid", "Items that are there.")

    def _report(self) -> None:
        now = time.monotonic()
        counts = {
            "push_count": self._pushed,
            "sample_count": self._sampled,
            "remove_count": self._removed,
            "valid_count": self._valid,
        }
        elapsed = now - self._due + self._period
        facts = ", ".join(f"{key} {value}" for key, value in counts.items())
        self._line(f"{self.name} in the last {elapsed:.0f} s: {facts}")
        self._scalars("sec", counts, int(now - self._begin))
        self._pushed = self._sampled = self._removed = 0
        self._due = now + self._period


def _ignore(*_: object) -> None:
    pass


def _scalar_writer(name: str, writer: object) -> Scalars:
    add = getattr(writer, "add_scalar", _ignore)

    def write(tag: str, values: Mapping[str, float], step: int) -> None:
        for key, value in values.items():
            add(f"{name}_{tag}/{key}", value, step)

    return write
