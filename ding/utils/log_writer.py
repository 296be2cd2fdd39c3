"""The writer that components know as their `tb_logger`."""

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from . import durations
from .log_file import AppendFile, hold, release
from .run_files import METRICS_FILE, Row, format_row
from .trackers.tensorboard import TensorBoardFile


class ScalarWriter(Protocol):
    """Where scalars go: a TensorBoard writer, or another one of its kind."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object: ...


class Writer(ScalarWriter, Protocol):
    """A TensorBoard writer, as far as learners, collectors and evaluators use one."""

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, float], global_step: int
    ) -> object: ...

    def add_histogram(self, tag: str, values: object, global_step: int) -> object: ...

    def flush(self) -> object: ...

    def close(self) -> object: ...


class _Sink(Protocol):
    """Takes the rows of a run; new ones are added in `DistributedWriter`."""

    def take(self, row: Row) -> object: ...

    def flush(self) -> object: ...


class DistributedWriter:
    """A summary writer for TensorBoard that writes each scalar to ``metrics.jsonl`` as well.

    ``add_scalar`` only notes the value; rows are written about every two seconds, at ``flush``,
    at ``close`` and when the process ends. Scalars of one group (the part of the tag before the
    first slash) and step become one row. On ranks other than 0 of a distributed run nothing is
    written. ``close`` writes what is pending and may be followed by more, so a component that
    closes a writer it shares takes nothing from the others.

    Every other method of ``tensorboardX.SummaryWriter`` (``add_histogram``, ``add_video``,
    ``add_text``, ...) is there too, and writes at once.

    Args:
        logdir: Folder of the event file.
        metrics_path: The JSON-lines file; by default the one of the run folder that holds
            ``logdir`` (see `run_folder`).
    """

    def __init__(
        self, logdir: str | os.PathLike[str], metrics_path: str | os.PathLike[str] | None = None
    ) -> None:
        self.logdir = os.fspath(logdir)
        #: Called after each flush, if set.
        self.on_flush: Callable[[], object] | None = None
        if metrics_path is None:
            metrics_path = os.path.join(run_folder(self.logdir), METRICS_FILE)
        self._enabled = is_writing_rank()
        # Its file is opened later, when the process may have gone to another folder.
        self._tensorboard = TensorBoardFile(os.path.abspath(self.logdir))
        self._sinks: tuple[_Sink, ...] = (_MetricsFile(metrics_path), self._tensorboard)
        self._lock = threading.RLock()
        self._rows: list[Row] = []
        self._open: dict[tuple[str, int | None], Row] = {}
        self._due = time.monotonic() + durations.LOG_FLUSH

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self.logdir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        **_: Any,
    ) -> None:
        """Note one number.

        Raises:
            TypeError: If the value is not one number.
        """
        if not self._enabled:
            return
        if type(scalar_value) is not float:
            scalar_value = _to_float(tag, scalar_value)
        key = (tag.partition("/")[0], global_step)
        with self._lock:
            row = self._open.get(key)
            if row is None or tag in row.values:
                # Only between rows, so that a row is not torn in two by the clock.
                if time.monotonic() >= self._due:
                    self.flush()
                step = None if global_step is None else int(global_step)
                now = time.time() if walltime is None else walltime
                row = self._open[key] = Row(now, step, {})
                self._rows.append(row)
                self._tensorboard.open()
                hold(self)
            row.values[tag] = scalar_value

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Note several numbers under ``<main_tag>/<tag>``."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step, walltime)

    def flush(self) -> None:
        """Write everything that is pending to disk."""
        with self._lock:
            rows, self._rows = self._rows, []
            self._open = {}
            release(self)
            self._due = time.monotonic() + durations.LOG_FLUSH
            for sink in self._sinks:
                for row in rows:
                    sink.take(row)
                sink.flush()
        if self.on_flush is not None:
            self.on_flush()

    def close(self) -> None:
        """Write everything that is pending; the writer stays usable."""
        self.flush()

    def add_config(self, config: Mapping[str, Any]) -> None:
        """Write a config, plain JSON, as text and as hyperparameters."""
        if self._enabled:
            self._tensorboard.config(config)

    def __enter__(self) -> "DistributedWriter":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("add_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(self._add_rare, name)

    def _add_rare(self, name: str, *args: Any, **kwargs: Any) -> None:
        if self._enabled:
            with self._lock:
                self._tensorboard.call(name, *args, **kwargs)


class _MetricsFile:
    """The sink that writes rows as lines of ``metrics.jsonl``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = AppendFile(path)

    def take(self, row: Row) -> None:
        self._file.write(format_row(row))

    def flush(self) -> None:
        self._file.flush()


def run_folder(log_path: str | os.PathLike[str]) -> str:
    """The run folder of a component's log folder: ``<run>`` for ``<run>/log/<name>``."""
    log_path = os.path.abspath(os.fspath(log_path))
    parent = os.path.dirname(log_path)
    return os.path.dirname(parent) if os.path.basename(parent) == "log" else log_path


def _to_float(tag: str, value: Any) -> float:
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"add_scalar({tag!r}) got {type(value).__name__} {value!r:.80}, expected one number; "
            "reduce it first, or use add_histogram or add_text"
        ) from None


def is_writing_rank() -> bool:
    """Whether this process is rank 0 of its process group, or in none."""
    # A process that has not imported torch is in no process group, and must not pay for it.
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return True
    return distributed.get_rank() == 0
