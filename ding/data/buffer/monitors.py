"""Statistics of a buffer (throughput, use, priority, staleness) and removal of used files."""

import logging
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from logging import Logger

import numpy as np
from easydict import EasyDict

from ding.data.arrays import Item
from ding.utils import durations
from ding.utils.autolog import BaseTime, LoggedModel, LoggedValue
from ding.utils.file_helper import remove_file
from ding.utils.log_helper import build_logger
from ding.utils.log_writer import ScalarWriter


class BufferLog:
    """Text lines and scalars of one buffer; files are opened by the first line or scalar.

    Args:
        tb_logger: Writer of scalars, which `close` leaves open; None creates one.
        exp_name: Folder of the run.
        name: Name of the buffer.
    """

    def __init__(self, tb_logger: ScalarWriter | None, exp_name: str | None, name: str) -> None:
        self._writer, self._owns_writer = tb_logger, tb_logger is None
        self._folder = os.path.join(exp_name or ".", "log", name)
        self._name = name
        #: Name in tags, without the random suffix of a parallel run's buffer ids, so that curves of
        #: two runs have the same name.
        self.group = re.sub(r"_[0-9a-f]{8}$", "", name)
        self._text: Logger | None = None
        self._refused = ""

    def info(self, line: str) -> None:
        """Log at DEBUG level: the scalars contain the same figures."""
        self._logger().debug(line)

    def refuse(self, what: str, reason: str) -> None:
        """Log the reason for a refusal, once until `served` is called."""
        if self._refused != what:
            self._refused = what
            self._logger().warning("%s: %s refused: %s", self._name, what, reason)

    def served(self, what: str) -> None:
        if self._refused == what:
            self._refused = ""

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        if self._writer is None:
            _, self._writer = build_logger(self._folder, self._name, need_text=False)
        assert self._writer is not None
        self._writer.add_scalar(tag, value, step)

    def close(self) -> None:
        """Close a writer that was opened here; flush one that was passed in."""
        writer, self._writer, self._text = self._writer, None, None
        end = getattr(writer, "close" if self._owns_writer else "flush", None)
        if end is not None:
            end()

    def _logger(self) -> Logger:
        if self._text is None:
            self._text, _ = build_logger(self._folder, self._name, need_tb=False)
        assert self._text is not None
        return self._text


class SampledDataAttrMonitor(LoggedModel[BaseTime]):
    """Use count, priority and staleness of the items in the latest samples.

    ``monitor.avg['use_avg']()`` is the mean of ``use_avg`` over the span; ``max`` and ``min`` work
    in the same way.

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

    def _reducer(self, name: str, reduce: Callable[..., np.floating]) -> Callable[[], float]:
        def value() -> float:
            # Without the value that was replaced when the span began.
            spans = self.range_values[name]()
            values = [v for (begin, end), v in spans if begin < end and v is not None]
            return reduce(values).item() if values else 0

        return value


#: Column and reduction of each figure, by name.
_FIGURES = {
    name: name.rsplit("_", 1)
    for name, value in vars(SampledDataAttrMonitor).items()
    if isinstance(value, LoggedValue)
}
_REDUCE: dict[str, Callable[..., np.floating]] = {
    "max": np.max,
    "min": np.min,
    "avg": np.mean,
}


def summarise_samples(samples: Sequence[Mapping[str, Item]]) -> dict[str, float]:
    """The figures of `SampledDataAttrMonitor` over these samples, each with its columns."""
    columns = {column for column, _ in _FIGURES.values()}
    values = {name: np.concatenate([sample[name] for sample in samples]) for name in columns}
    figures = _FIGURES.items()
    return {name: float(_REDUCE[kind](values[column])) for name, (column, kind) in figures}


class PeriodicThruputMonitor:
    """Counts pushed, sampled and removed items, and reports the counts of each period.

    There is no thread: the first push, sample or removal after a period writes the report.

    Args:
        name: Name of the buffer, in lines and tags.
        cfg: ``seconds``, the length of a period.
        logger: Object with a method ``info`` for a line of text; ignored without one.
        tb_logger: Object with a method ``add_scalar`` for the counts; ignored without one.

    Attributes:
        push_data_count: Items pushed in this period.
        sample_data_count: Items sampled in this period.
        remove_data_count: Items removed in this period.
        valid_count: Items that can be sampled.
    """

    def __init__(self, name: str, cfg: EasyDict, logger: object, tb_logger: object) -> None:
        self.name = name
        self._line = getattr(logger, "info", None)
        self._add_scalar = getattr(tb_logger, "add_scalar", None)
        self._period = float(cfg.seconds)
        self._begin = time.monotonic()
        self._due = self._begin + self._period
        self.push_data_count = self.sample_data_count = self.remove_data_count = 0
        self.valid_count = 0

    def note(self, pushed: int = 0, sampled: int = 0, removed: int = 0) -> None:
        """Count items."""
        self.push_data_count += pushed
        self.sample_data_count += sampled
        self.remove_data_count += removed
        self.valid_count += pushed - removed
        if time.monotonic() >= self._due:
            self._report()

    def close(self) -> None:
        """Stop reporting."""
        self._due = float("inf")

    def _report(self) -> None:
        now = time.monotonic()
        counts = {
            "push_count": self.push_data_count,
            "sample_count": self.sample_data_count,
            "remove_count": self.remove_data_count,
            "valid_count": self.valid_count,
        }
        if self._line is not None:
            elapsed = now - self._due + self._period
            facts = ", ".join(f"{key} {value}" for key, value in counts.items())
            self._line(f"{self.name} in the last {elapsed:.0f} s: {facts}")
        if self._add_scalar is not None:
            for key, value in counts.items():
                self._add_scalar(f"{self.name}_sec/{key}", value, int(now - self._begin))
        self.push_data_count = self.sample_data_count = self.remove_data_count = 0
        self._due = now + self._period


_logger = logging.getLogger(__name__)


class UsedDataRemover:
    """Removes the file ``data['data_id']`` of each item given to it, in a separate thread."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        #: The last 16 errors of files that could not be removed.
        self.errors: list[Exception] = []

    def start(self) -> None:
        """Start the thread; does nothing if it is running."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="used-data-remover", daemon=True)
            self._thread.start()

    def close(self, wait: bool = True) -> None:
        """End the thread after the queued files; with `wait`, wait some seconds for that."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._queue.put(None)
        if wait:
            thread.join(durations.USED_DATA_CLOSE)
            if thread.is_alive():  # the disk hangs
                _logger.warning("some files of used data may be left: removing them takes too long")

    def add_used_data(self, data: Item) -> None:
        """Queue an item's file; an item without ``data_id`` has none."""
        if isinstance(data, Mapping) and isinstance(data.get("data_id"), str):
            self._queue.put(data["data_id"])

    def _run(self) -> None:
        while (path := self._queue.get()) is not None:
            try:
                remove_file(path)
            except Exception as error:  # edge of the thread; the run continues, the file stays
                self.errors = [*self.errors[-15:], error]
