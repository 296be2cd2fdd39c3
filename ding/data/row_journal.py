"""The rows of a ring in files of their own, so that a state that is saved often writes few of them.

Each row is numbered as it comes. A file holds the rows of a range of numbers and is never changed;
a state names the files that make up its rows, and files that no state names are removed.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ding.torch_utils.tensor_file import read_tensors, write_tensors
from ding.utils.errors import CheckpointError, CheckpointWriteError, DataError

if TYPE_CHECKING:
    from ding.data.item_ring import ItemRing

_NAME = re.compile(r"rows-[0-9a-f]{16}\.safetensors")
#: A file's rows take about this much at most; smaller files are merged up to the other size.
_MAX_BYTES = 64 << 20
_MERGE_BYTES = 8 << 20
_COPY_LATER_BYTES = 4 << 20


@dataclass(frozen=True)
class Segment:
    """Rows ``start`` to ``stop``, the file that holds them, and its size."""

    start: int
    stop: int
    file: str
    n_bytes: int


@dataclass(frozen=True)
class _Later:
    """Rows that are copied when they are written, as they are not overwritten for long."""

    rows: "ItemRing"
    generation: Any
    start: int
    stop: int

    def copied(self) -> dict[str, np.ndarray]:
        raw = self.rows.raw_rows(self.start, self.stop)
        if self.rows.generation != self.generation or self.rows.oldest_whole > self.start:
            raise CheckpointWriteError(
                "rows of the replay buffer were replaced while they were saved; the save before is "
                "unchanged"
            )
        return raw


class RowJournal:
    """Keeps the files of one ring.

    Large pieces of rows that will not be overwritten soon are copied when they are written, which
    may be in another thread while the ring is in use.

    Args:
        folder: Where they are; made when there is something to write.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._segments: list[Segment] = []
        self._generation: Any = None
        self._last: set[str] = set()
        self._pending: dict[str, dict[str, np.ndarray] | _Later] = {}

    # ------------------------------------------------------------------ out

    def extend(self, rows: "ItemRing") -> list[dict[str, Any]]:
        """Take what is new, to be written by `write`; the segments of all rows."""
        if rows.generation != self._generation:
            self._segments, self._generation = [], rows.generation
        oldest = rows.total - rows.filled
        kept = [segment for segment in self._segments if segment.stop > oldest]
        start = max(kept[-1].stop if kept else oldest, oldest)
        if start < rows.total:
            start = self._absorb(kept, start, oldest, rows)
        step = max(_MAX_BYTES // max(rows.row_bytes, 1), 1)
        for at in range(start, rows.total, step):
            stop = min(at + step, rows.total)
            name = f"rows-{secrets.token_hex(8)}.safetensors"
            n_bytes = (stop - at) * rows.row_bytes
            may_wait = at - rows.oldest_whole >= rows.filled // 4 or rows.oldest_whole < 0
            if may_wait and n_bytes >= _COPY_LATER_BYTES:
                self._pending[name] = _Later(rows, rows.generation, at, stop)
            else:
                self._pending[name] = rows.raw_rows(at, stop)
            kept.append(Segment(at, stop, name, n_bytes))
        self._segments = kept
        return [asdict(segment) for segment in kept]

    def _absorb(self, kept: list[Segment], start: int, oldest: int, rows: "ItemRing") -> int:
        """Write the last small files again together with the new rows: they stay few."""
        while kept:
            last = kept[-1]
            if last.n_bytes >= _MERGE_BYTES or last.stop - last.start > 2 * (rows.total - start):
                break
            start = max(kept.pop().start, oldest)
        return start

    def write(self) -> None:
        """Write what was taken, before the state that names it is written.

        Raises:
            CheckpointWriteError: A file cannot be written, or rows were overwritten; what was taken
                is taken again.
        """
        try:
            for name in list(self._pending):
                raw = self._pending[name]
                raw = raw.copied() if isinstance(raw, _Later) else raw
                write_tensors(os.path.join(self._folder, name), raw, {}, True)
                del self._pending[name]
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        self._segments, self._generation = [], None
        self._pending.clear()

    def remove_unused(self) -> None:
        """Remove the files that are in neither of the last two states that were written."""
        last = {segment.file for segment in self._segments}
        used, self._last = last | self._last, last
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                if name not in used and _NAME.fullmatch(name):
                    os.remove(os.path.join(self._folder, name))

    # ------------------------------------------------------------------ in

    def read(self, entries: Sequence[Any]) -> Iterator[tuple[int, int, dict[str, np.ndarray]]]:
        """First and next number, and the rows, of each segment of a state.

        Raises:
            CheckpointError: A file is missing or damaged.
        """
        for entry in entries:
            segment = Segment(**entry)
            path = os.path.join(self._folder, segment.file)
            try:
                if not _NAME.fullmatch(segment.file):
                    raise DataError("no such file is ever written")
                tensors, _ = read_tensors(path)
            except (OSError, DataError) as error:
                raise CheckpointError(
                    f"cannot read the replay buffer's rows from {path}: {error}"
                ) from error
            yield segment.start, segment.stop, tensors  # type: ignore[misc]

    def adopt(self, entries: Sequence[Any], generation: Any) -> None:
        """Go on with the files of a state that was loaded into a ring of that generation."""
        self._segments = [Segment(**entry) for entry in entries]
        self._generation = generation
        self._last = {segment.file for segment in self._segments}
