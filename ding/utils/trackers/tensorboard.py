"""TensorBoard's event files, written by tensorboardX."""

import itertools
import json
import os
import secrets
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ding.utils.default_helper import flatten_dict
from ding.utils.log_file import AppendFile
from ding.utils.run_files import Row
from ding.utils.sent_files import sent_file

_PLAIN = (bool, int, float, str)
_number = itertools.count()


class TensorBoardFile:
    """The sink that writes an event file; it is begun, and tensorboardX imported, at the first row.

    What watches tensorboardX, such as ``wandb.init(sync_tensorboard=True)``, sees the file.

    Args:
        folder: Folder of the event file.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._writer: Any = None
        self._warned = False

    def open(self) -> None:
        """Begin the file if there is none: at the end of a process it is too late for that."""
        if self._writer is None and not self._warned:
            self._try(lambda writer: None)

    def take(self, row: Row) -> None:
        """Write one event with all scalars of a step."""

        def write(writer: Any) -> None:
            from tensorboardX.proto.summary_pb2 import Summary

            summary = Summary()
            for tag, value in row.values.items():
                summary.value.add(tag=tag, simple_value=value)
            writer.file_writer.add_summary(summary, row.step, row.time)

        self._try(write)

    def config(self, config: Mapping[str, Any]) -> None:
        """Write the config as text, and its numbers, words and switches as hyperparameters."""

        def write(writer: Any) -> None:
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

    def call(self, method: str, *args: Any, **kwargs: Any) -> None:
        """Call a method of ``tensorboardX.SummaryWriter``."""
        self._try(lambda writer: getattr(writer, method)(*args, **kwargs))

    def flush(self) -> None:
        """Write what is pending to disk."""
        if self._writer is not None:
            self._writer.file_writer.flush()

    def _try(self, action: Callable[[Any], object]) -> None:
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


def _open(folder: str) -> Any:
    if sent_file(folder) is None:
        return _open_in(folder, folder)
    with tempfile.TemporaryDirectory() as here:
        return _open_in(here, folder)


def _open_in(here: str, folder: str) -> Any:
    """A writer of events into a folder.

    Args:
        here: Where tensorboardX begins its file, which may not be that folder.
    """
    from tensorboardX import SummaryWriter

    # The name that the file has without a suffix is the same for all that begin in one second; and
    # other users of the folder must not be able to guess it: a link of that name would be followed.
    suffix = f".{os.getpid()}.{next(_number)}.{secrets.token_hex(8)}"
    writer = SummaryWriter(here, filename_suffix=suffix)
    # Its thread dies of a full disk, and the end of the process then waits for it for ever; each of
    # its flushes waits for the disk. Events are collected in the caller's thread instead.
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
    events.close = lambda: None  # at exit it would come before the last rows
    return writer
