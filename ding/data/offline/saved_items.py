"""The items of replay buffers that were saved: in files of their own, or with a run's state."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ding.data.arrays import State
from ding.data.columns import Columns
from ding.data.ring import Ring
from ding.data.row_journal import RowJournal
from ding.utils.errors import CheckpointError, DataError
from ding.utils.file_helper import read_file

#: In a run's folder: the run's state, and the rows of its replay buffer.
STATE_FILE = os.path.join("ckpt", "resume.pth.tar")
ROWS_FOLDER = os.path.join("ckpt", "rows")


def items_of_ring(state: State, rows_folder: str | None = None) -> Columns | list[Any]:
    """The items of a saved ring, the oldest first.

    Args:
        state: What `Ring.state_dict` gave.
        rows_folder: Where its rows are if they are not in the state.

    Raises:
        DataError: It is not such a state, or of another version, or declares more rows than are
            stored.
        CheckpointError: Its rows are damaged.
    """
    with _of_this_version("a replay buffer"):
        count = len(state["slots"])
        ring = Ring(max(count, 1), columnar=state["objects"] is None)
        if rows_folder is not None:
            ring.journal = RowJournal(rows_folder)
        ring.load_state_dict(state)
        return ring.take(ring.by_age())


@contextmanager
def _of_this_version(what: str) -> Iterator[None]:
    try:
        yield
    except (DataError, CheckpointError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, MemoryError, RuntimeError) as error:
        raise DataError(
            f"its state is not that of {what} of this version: {type(error).__name__}: {error}"
        ) from error


def items_of_run(folder: str) -> Columns | list[Any]:
    """The items that are in the replay buffer of a run, by the state that it has saved.

    Raises:
        DataError: It is no run's folder, or the run has no replay buffer.
        CheckpointError: The state or the rows are damaged.
    """
    path = os.path.join(folder, STATE_FILE)
    if not os.path.exists(path):
        raise DataError(
            f"{folder} is no folder of a run: it has no {STATE_FILE}. Expected one, or a file of "
            "transitions"
        )
    state = read_file(path)
    buffer = state.get("buffer") if isinstance(state, Mapping) else None
    if not isinstance(buffer, Mapping) or "ring" not in buffer:
        raise DataError(
            f"the run {folder} has no replay buffer: expected one of an off-policy policy (serial)"
        )
    return items_of_ring(buffer["ring"], os.path.join(folder, ROWS_FOLDER))
