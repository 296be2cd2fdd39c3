"""Stores the rows of a ring in separate files, so that frequent saves write only new rows.

Each row has a unique number (`Ring.numbers`). A file contains rows with their numbers and is never
changed. A state contains the numbers of its rows and the names of the files that contain them.
Files that are in neither of the last two states are removed.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np

from ding.data.chunks import ChunkFacts, chunk_columns
from ding.data.columns import Columns
from ding.torch_utils.tensor_file import Leaf, read_tensors, write_tensors
from ding.utils.errors import CheckpointError, DataError
from ding.utils.types import SavedState, State

#: Name of the tensor that contains the numbers of a file's rows.
_NUMBERS = "__numbers__"
_NAME = re.compile(r"rows-[0-9a-f]{16}\.safetensors")
#: Approximate maximum size of a file's rows; files below the second size are merged.
_MAX_BYTES = 64 << 20
_MERGE_BYTES = 8 << 20

#: Rows in the format of chunks.
Rows: TypeAlias = tuple[dict[str, Leaf], ChunkFacts]


@dataclass(frozen=True)
class Segment:
    """A file with all rows numbered ``[start, stop)`` that were stored when it was written.

    Attributes:
        rows: Number of rows in the file.
        n_bytes: Size of these rows.
    """

    start: int
    stop: int
    file: str
    rows: int
    n_bytes: int


class RowJournal:
    """The files of one ring.

    Args:
        folder: Folder of the files; created by the first write.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._segments: list[Segment] = []
        self._layout: object = None
        self._last: set[str] = set()
        self._pending: dict[str, Rows] = {}

    def extend(
        self,
        layout: object,
        numbers: np.ndarray,
        row_bytes: int,
        copy: Callable[[np.ndarray], Rows],
    ) -> list[State]:
        """Copy the rows that are in no file yet; `write` writes them.

        Args:
            layout: Identifies the columns of the rows; if it changes, all rows are written again.
            numbers: Numbers of all rows, int64 ``[n]``, ascending.
            row_bytes: Size of a row.
            copy: Copies rows, given by their indices in `numbers`.

        Returns:
            The segments of all rows, as plain data.
        """
        if layout is not self._layout:
            self._segments, self._layout = [], layout
        kept = _worth_keeping(self._segments, numbers)
        # Indices of the rows that are in no segment.
        is_new = np.ones(len(numbers), bool)
        for segment in kept:
            is_new[slice(*np.searchsorted(numbers, (segment.start, segment.stop)))] = False
        ages = np.flatnonzero(is_new)
        step = max(_MAX_BYTES // max(row_bytes, 1), 1)
        # A new file cannot contain rows from both sides of a kept segment.
        ends = np.flatnonzero(np.diff(ages) > 1) + 1
        for run in np.split(ages, ends):
            for at in range(0, len(run), step):
                piece = run[at : at + step]
                # A random name, not the numbers of the rows: a run that is resumed from an older
                # state assigns these numbers to other rows, and a newer state may name the file.
                name = f"rows-{secrets.token_hex(8)}.safetensors"
                tensors, facts = copy(piece)
                self._pending[name] = {**tensors, _NUMBERS: numbers[piece]}, facts
                start, stop = numbers[piece[[0, -1]]].tolist()
                kept.append(Segment(start, stop + 1, name, len(piece), len(piece) * row_bytes))
        self._segments = sorted(kept, key=lambda segment: segment.start)
        return [asdict(segment) for segment in self._segments]

    def write(self) -> None:
        """Write the rows that `extend` copied. Call it before the state is written.

        Raises:
            CheckpointWriteError: A file cannot be written; the next `extend` copies all rows again.
        """
        try:
            while self._pending:
                name, rows = next(iter(self._pending.items()))
                write_tensors(os.path.join(self._folder, name), *rows, durable=True)
                del self._pending[name]
        except BaseException:
            # A state that names a missing file could not be loaded.
            self._segments, self._layout = [], None
            self._pending.clear()
            raise

    def remove_unused(self) -> None:
        """Remove the files that are in neither of the last two written states."""
        last = {segment.file for segment in self._segments}
        used, self._last = last | self._last, last
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                if name not in used and _NAME.fullmatch(name):
                    os.remove(os.path.join(self._folder, name))

    def read(self, entries: Sequence[SavedState]) -> Iterator[tuple[np.ndarray, Columns]]:
        """For each segment of a state, the numbers of its rows, int64 ``[n]``, and the rows.

        Raises:
            CheckpointError: A file is missing or damaged.
        """
        for entry in entries:
            segment = Segment(**entry)
            path = os.path.join(self._folder, segment.file)
            try:
                if not _NAME.fullmatch(segment.file):
                    raise DataError("no such file is ever written")
                tensors, facts = read_tensors(path)
                if _NUMBERS not in tensors:
                    raise DataError("it has no numbers of rows")
                numbers = np.asarray(tensors.pop(_NUMBERS))
                columns = chunk_columns(tensors, facts)
            except (OSError, DataError) as error:
                raise CheckpointError(
                    f"cannot read the replay buffer's rows from {path}: {error}; without them, "
                    "begin a run with a checkpoint (--load-path)"
                ) from error
            yield numbers, columns

    def adopt(self, entries: Sequence[SavedState], layout: object) -> None:
        """Continue with the files of a state that was loaded into a ring of this layout."""
        self._segments = [Segment(**entry) for entry in entries]
        self._layout = layout
        self._last = {segment.file for segment in self._segments}


def _worth_keeping(segments: Sequence[Segment], numbers: np.ndarray) -> list[Segment]:
    """Segments whose rows are not written again, given the numbers of all rows."""
    bounds = [(segment.start, segment.stop) for segment in segments]
    here = np.diff(np.searchsorted(numbers, np.array(bounds, np.int64).reshape(-1, 2)))[:, 0]
    kept = [(segment, n) for segment, n in zip(segments, here.tolist()) if n]
    # Limit the share of replaced rows in the files to one half.
    if sum(segment.rows for segment, _ in kept) > 2 * len(numbers):
        kept = [(segment, n) for segment, n in kept if 2 * n >= segment.rows]
    # Merge the last small files with the new rows, so that there are few small files.
    new = len(numbers) - sum(n for _, n in kept)
    while kept:
        last, n = kept[-1]
        if last.n_bytes >= _MERGE_BYTES or last.rows > 2 * new:
            break
        kept.pop()
        new += n
    return [segment for segment, _ in kept]
