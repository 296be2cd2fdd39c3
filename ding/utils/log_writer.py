"""The writer of scalars that components get as their `tb_logger`, and the files that it writes."""

import functools
import itertools
import json
import os
import secrets
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, SupportsFloat

from ding.utils.types import Settings

from . import durations
from .default_helper import flatten_dict
from .log_file import AppendFile, hold, release
from .pytorch_ddp_dist_helper import get_rank
from .run_files import METRICS_FILE, Row, format_row
from .sent_files import sent_file

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

_PLAIN = (bool, int, float, str)
_number = itertools.count()


class ScalarWriter(Protocol):
    """Interface of writers of scalars, such as TensorBoard writers."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object: ...


class Writer(ScalarWriter, Protocol):
    """The methods of a TensorBoard writer that learners, collectors and evaluators use."""

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, float], global_step: int
    ) -> object: ...

    def add_histogram(self, tag: str, values: object, global_step: int) -> object: ...

    def flush(self) -> object: ...

    def close(self) -> object: ...


class _Sink(Protocol):
    """Interface of sinks, which write the rows of a run; `DistributedWriter` creates them."""

    def take(self, row: Row) -> object: ...

    def flush(self) -> object: ...


class DistributedWriter:
    """A TensorBoard summary writer that also writes each scalar to ``metrics.jsonl``.

    ``add_scalar`` only buffers the value; rows are written about every two seconds, at ``flush``,
    at ``close`` and when the process ends. Scalars of the same group (the part of the tag before
    the first slash) and step form one row. In a distributed run, only rank 0 writes. ``close``
    writes the pending rows; the writer stays usable, since other components may share it.

    All other ``add_*`` methods of ``tensorboardX.SummaryWriter`` (``add_histogram``,
    ``add_video``, ``add_text``, ...) are supported as well, and write immediately.

    Args:
        logdir: Folder of the event file; the JSON-lines file is in its `run_folder`.
    """

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
        self.logdir = os.fspath(logdir)
        #: Called after each flush, if set.
        self.on_flush: Callable[[], object] | None = None
        self._enabled = get_rank() == 0
        # An absolute path: the working directory may have changed when the file is opened.
        self._tensorboard = TensorBoardFile(os.path.abspath(self.logdir))
        metrics = _MetricsFile(os.path.join(run_folder(self.logdir), METRICS_FILE))
        self._sinks: tuple[_Sink, ...] = (metrics, self._tensorboard)
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
        scalar_value: SupportsFloat,
        global_step: int | None = None,
        walltime: float | None = None,
        **_: object,
    ) -> None:
        """Add one scalar.

        Raises:
            TypeError: The value is not a single number.
        """
        if not self._enabled:
            return
        number = scalar_value if type(scalar_value) is float else _to_float(tag, scalar_value)
        key = (tag.partition("/")[0], global_step)
        with self._lock:
            row = self._open.get(key)
            if row is None or tag in row.values:
                # Flush only between rows, so that no row is split.
                if time.monotonic() >= self._due:
                    self.flush()
                step = None if global_step is None else int(global_step)
                now = time.time() if walltime is None else walltime
                row = self._open[key] = Row(now, step, {})
                self._rows.append(row)
                self._tensorboard.open()
                hold(self)
            row.values[tag] = number

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, SupportsFloat],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add several scalars with the tags ``<main_tag>/<tag>``."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step, walltime)

    def flush(self) -> None:
        """Write all pending rows to disk."""
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
        """Write all pending rows; the writer stays usable."""
        self.flush()

    def add_config(self, config: Settings) -> None:
        """Write a config (plain JSON) as text and as hyperparameters."""
        if self._enabled:
            self._tensorboard.config(config)

    def __enter__(self) -> "DistributedWriter":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("add_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(self._add_rare, name)

    def _add_rare(self, name: str, *args: object, **kwargs: object) -> None:
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


class TensorBoardFile:
    """The sink that writes a TensorBoard event file; the first row imports tensorboardX.

    Programs that patch tensorboardX, such as ``wandb.init(sync_tensorboard=True)``, see the file.

    Args:
        folder: Folder of the event file.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._writer: SummaryWriter | None = None
        self._warned = False

    def open(self) -> None:
        """Create the file if there is none: this is no longer possible at the end of a process."""
        if self._writer is None and not self._warned:
            self._try(lambda writer: None)

    def take(self, row: Row) -> None:
        """Write one event with all scalars of a step."""

        def write(writer: "SummaryWriter") -> None:
            from tensorboardX.proto.summary_pb2 import Summary

            summary = Summary()
            for tag, value in row.values.items():
                summary.value.add(tag=tag, simple_value=value)
            writer.file_writer.add_summary(summary, row.step, row.time)

        self._try(write)

    def config(self, config: Settings) -> None:
        """Write the config as text, and its flattened values as hyperparameters."""

        def write(writer: "SummaryWriter") -> None:
            from tensorboardX.summary import hparams

            text = json.dumps(config, indent=2).replace("\n", "\n    ")
            writer.add_text("config", f"    {text}", 0)
            flat = flatten_dict(config, delimiter=".")
            plain = {
                key: value if isinstance(value, _PLAIN) else str(value)
                for key, value in flat.items()
            }
            for summary in hparams(plain, {"evaluator_step/reward_mean": 0.0}):
                writer.file_writer.add_summary(summary)

        self._try(write)

    def call(self, method: str, *args: object, **kwargs: object) -> None:
        """Call a method of ``tensorboardX.SummaryWriter``."""
        self._try(lambda writer: getattr(writer, method)(*args, **kwargs))

    def flush(self) -> None:
        """Write pending events to disk."""
        if self._writer is not None:
            self._writer.file_writer.flush()

    def _try(self, action: Callable[["SummaryWriter"], object]) -> None:
        try:
            if self._writer is None:
                self._writer = _open(self.folder)
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"cannot write TensorBoard events into {self.folder}: "
                    f"{error.strerror or error}; the run continues",
                    RuntimeWarning,
                    stacklevel=4,
                )
        else:
            action(self._writer)


def _open(folder: str) -> "SummaryWriter":
    if sent_file(folder) is None:
        return _open_in(folder, folder)
    with tempfile.TemporaryDirectory() as here:
        return _open_in(here, folder)


def _open_in(here: str, folder: str) -> "SummaryWriter":
    """A writer of events into a folder.

    Args:
        here: Folder in which tensorboardX creates its file; may differ from `folder`.
    """
    from tensorboardX import SummaryWriter

    # Without a suffix, all files that are created in the same second have the same name. It must
    # not be predictable: a link of that name, created by another user, would be followed.
    suffix = f".{os.getpid()}.{next(_number)}.{secrets.token_hex(8)}"
    writer = SummaryWriter(here, filename_suffix=suffix)
    # A full disk ends tensorboardX's thread, and the process then never exits; each of its flushes
    # waits for the disk. Therefore, events are collected in the caller's thread.
    events = writer.file_writer.event_writer
    events._worker.stop()
    events._event_queue.close()
    events._event_queue.join_thread()
    records = events._ev_writer._py_recordio_writer
    records.close()
    path = os.path.join(folder, os.path.basename(records.path))
    file = records._writer = AppendFile(path, lines=False)
    if here != folder:
        file.write(Path(records.path).read_bytes())
    events.add_event, events.flush = events._ev_writer.write_event, file.flush
    events.close = lambda: None  # at exit, it would be called before the last rows are written
    return writer


def run_folder(log_path: str | os.PathLike[str]) -> str:
    """The run folder of a component's log folder: ``<run>`` for ``<run>/log/<name>``."""
    log_path = os.path.abspath(os.fspath(log_path))
    parent = os.path.dirname(log_path)
    return os.path.dirname(parent) if os.path.basename(parent) == "log" else log_path


def _to_float(tag: str, value: SupportsFloat) -> float:
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"add_scalar({tag!r}) got {type(value).__name__} {value!r:.80}, expected one number; "
            "reduce it first, or use add_histogram or add_text"
        ) from None
