"""Tracks which chunks of a buffer are needed, and removes the others from the store."""

import itertools
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ding.utils.errors import CheckpointWriteError, DataError
from ding.utils.types import State
from ding.worker.messages import ChunkReport, Json
from ding.worker.seams import SampleStore

from .turn import Turn

_logger = logging.getLogger(__name__)
_MOST_ROWS = 1 << 24
#: Maximum number of chunks named in one message.
_MOST_NAMED = 2048


def parse_meta(meta: object) -> tuple[str, int, dict[str, np.ndarray]]:
    """Name and number of samples of a chunk, and the columns of metadata per sample.

    Args:
        meta: ``data_id``; ``sample_num`` (default 1), ``collect_iter`` (default -1) and
            ``priority``, one value for all samples or one for each. For a trajectory of which one
            step is the sample, ``unroll_split_begin``.

    Raises:
        DataError: The message is invalid.
    """
    if not isinstance(meta, Mapping) or not isinstance(meta.get("data_id"), str):
        raise DataError(f"metadata must be a mapping with data_id, got {_short(meta)}")
    data_id, rows = meta["data_id"], meta.get("sample_num", 1)
    if type(rows) is not int or not 1 <= rows <= _MOST_ROWS:
        raise DataError(f"{_short(data_id)}: sample_num must be a positive integer, got {rows!r}")
    columns = {
        "row": np.arange(rows) + _first_row(meta),
        "collect_iter": _spread(data_id, meta.get("collect_iter"), rows, np.int64),
    }
    if meta.get("priority") is not None:
        columns["priority"] = _spread(data_id, meta["priority"], rows, np.float64)
    return data_id, rows, columns


def _first_row(meta: Mapping[str, object]) -> int:
    begin, length = meta.get("unroll_split_begin"), meta.get("unroll_len", 1)
    if begin is None or meta.get("sample_num") is not None:
        return 0
    if type(begin) is not int or begin < 0 or length != 1:
        raise DataError(
            f"{_short(meta['data_id'])}: unroll_split_begin={_short(begin)} and "
            f"unroll_len={_short(length)} came: of a trajectory in one file single steps can be "
            f"sampled; for longer ones let the collector write columns"
        )
    return begin


def _spread(data_id: str, value: object, rows: int, dtype: type) -> np.ndarray:
    try:
        if type(value) is int:
            return np.full(rows, value, dtype)
        array: np.ndarray = np.asarray(-1 if value is None else value, dtype)
        if array.shape in ((), (rows,)):
            return np.array(np.broadcast_to(array, (rows,)))
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(f"{_short(data_id)}: {_short(value)} does not fit {rows} samples")


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(slots=True, eq=False)
class Chunk:
    """Samples that were written together: name, ascending number, sample count, bytes."""

    data_id: str
    number: int
    rows: int
    size: int
    facts: dict[str, Json]  # what a learner needs to know in addition to the name
    is_live: bool = True  # whether a replay buffer has its samples, or will read them
    pins: int = 0  # batches in transit that need it


class ChunkTable:
    """Tracks which chunks a replay buffer has or will read, and which batches in transit need them.

    The next `remove_unused` removes a chunk that neither needs from the sample store; until then
    its bytes count. The methods that remove take the turn themselves, the others are called within
    it.

    Args:
        store: The store of the chunks.
        turn: Is not held while chunks are removed, since disks may be slow.
    """

    def __init__(self, store: SampleStore, turn: Turn) -> None:
        self._store, self._turn = store, turn
        self._forget()

    def _forget(self) -> None:
        # All ordered by number, oldest first.
        self._chunks: dict[int, Chunk] = {}
        self._unsent: dict[int, Chunk] = {}  # not named to the learner yet
        self._received: dict[int, Chunk] = {}  # read by the replay buffer
        self._by_id: dict[str, Chunk] = {}
        self._next = 0
        # Chunks that the replay buffer does not need any more.
        self._left: dict[int, Chunk] = {}
        self.kept_rows = self.bytes = 0  # of all chunks that were not removed
        self.on_the_way = 0  # samples of live chunks that the replay buffer has not read yet

    @property
    def files(self) -> int:
        """Number of files to which samples or batches in transit refer."""
        return len(self._by_id)

    def find(self, key: str | int) -> Chunk | None:
        """The chunk of a name or number."""
        return self._by_id.get(key) if isinstance(key, str) else self._chunks.get(key)

    # ------------------------------------------------------------------ what a learner has

    def _add(self, data_id: str, rows: int, size: int, facts: dict[str, Json]) -> None:
        """Add a chunk for the replay buffer."""
        chunk = Chunk(data_id, self._next, rows, size, facts)
        self._next += 1
        self._chunks[chunk.number] = self._unsent[chunk.number] = self._by_id[data_id] = chunk
        self.bytes += size
        self.kept_rows += rows
        self.on_the_way += rows

    def begin(self) -> None:
        """A learner begins: all remaining chunks will be named to it."""
        self._received = {}
        self._unsent = {number: chunk for number, chunk in self._chunks.items() if chunk.is_live}
        self.on_the_way = sum(chunk.rows for chunk in self._unsent.values())

    def take_chunks(self) -> tuple[ChunkReport, ...]:
        """The chunks that were not named to the learner yet, as many as fit in one message."""
        numbers = list(itertools.islice(self._unsent, _MOST_NAMED))
        named = map(self._unsent.pop, numbers)
        return tuple(
            ChunkReport(c.data_id, None, None, c.size, {**c.facts, "number": c.number})
            for c in named
        )

    def _receive(self, data_ids: Iterable[str]) -> None:
        """The replay buffer has read these chunks."""
        for chunk in filter(None, map(self.find, data_ids)):
            if chunk.is_live and chunk.number not in self._received:
                self.on_the_way -= chunk.rows
                self._unsent.pop(chunk.number, None)
                self._received[chunk.number] = chunk

    def _leave(self, chunks: Iterable[Chunk]) -> None:
        """The replay buffer does not need these chunks any more."""
        for chunk in chunks:
            if not chunk.is_live:
                continue
            if self._received.pop(chunk.number, None) is None:
                self.on_the_way -= chunk.rows
            self._unsent.pop(chunk.number, None)
            # It stays in the table until its file is removed: batches in transit may need it.
            chunk.is_live = False
            self._left[chunk.number] = chunk

    def pin(self, chunks: Iterable[Chunk], batches: int) -> None:
        """Change the number of batches in transit that need these chunks, by 1 or -1."""
        for chunk in chunks:
            chunk.pins += batches
            self._left[chunk.number] = chunk

    # ------------------------------------------------------------------ files

    def _size_of(self, data_id: str, reported: object) -> int:
        """Bytes of a chunk; the reported size if the chunk cannot be looked up."""
        # The limit on the store's bytes must hold even if a worker reports wrong sizes.
        found = self._store.size(data_id)
        if found is not None:
            return found  # else the learner will report the chunk as bad
        return reported if isinstance(reported, int) and reported >= 0 else 0

    def remove_unused(self) -> None:
        """Remove chunks that neither the replay buffer nor batches need any more."""
        with self._turn:
            left, self._left = self._left, {}
            unused = [chunk for chunk in left.values() if not (chunk.is_live or chunk.pins)]
            for chunk in unused:
                del self._chunks[chunk.number], self._by_id[chunk.data_id]
        if not unused:
            return
        for chunk in unused:
            self._remove(chunk.data_id)
        with self._turn:
            self.bytes -= sum(chunk.size for chunk in unused)
            self.kept_rows -= sum(chunk.rows for chunk in unused)

    def _remove(self, data_id: str) -> None:
        try:
            self._store.remove(data_id)
        except CheckpointWriteError as error:  # removed again at the end of the run
            _logger.warning("a file of used data stays: %s", error)

    def _remove_strangers(self, names: re.Pattern[str]) -> None:
        """Remove matching files, also unfinished ones, that are not needed chunks."""
        with self._turn:
            known = set(self._by_id)
        self._store.clear(names, keep=known)

    def _remove_all(self, names: re.Pattern[str]) -> None:
        """Remove all chunks, and all matching files."""
        with self._turn:
            known = set(self._by_id)
        for data_id in known:
            self._remove(data_id)
        self._store.clear(names)

    # ------------------------------------------------------------------ state

    def _table_state(self) -> State:
        """The live chunks; without pins, since their batches do not survive a restart."""
        chunks = [chunk for chunk in self._chunks.values() if chunk.is_live]
        return {
            "next": self._next,
            "data_id": [chunk.data_id for chunk in chunks],
            "number": np.array([chunk.number for chunk in chunks], np.int64),
            "rows": np.array([chunk.rows for chunk in chunks], np.int64),
            "size": np.array([chunk.size for chunk in chunks], np.int64),
            "facts": [chunk.facts for chunk in chunks],
        }

    def _load_table(self, state: State) -> list[str]:
        """Restore a state; returns the chunks whose files are missing or differ in size."""
        self._forget()
        columns = (state[name].tolist() for name in ("number", "rows", "size"))
        for data_id, number, rows, size, facts in zip(state["data_id"], *columns, state["facts"]):
            self._next = number
            self._add(data_id, rows, size, facts)
        self._next = state["next"]
        # A file truncated by a crash has the right name, but another size.
        gone = [c for c in self._chunks.values() if self._store.size(c.data_id) != c.size]
        self._leave(gone)
        return [chunk.data_id for chunk in gone]
