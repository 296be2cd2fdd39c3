"""Batches from chunks, each of which is read once."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ding.data.chunks.chunk_file import Samples
from ding.data.chunks.wire import Fact, facts_of, rows_of
from ding.data.column_store import row_bytes
from ding.data.columns import Columns
from ding.data.kinds import Row
from ding.data.ring import Ring
from ding.utils.errors import ChunkError, DataError

#: Bad chunks that are not tried again.
_MOST_BAD = 4096
_CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


class ChunkCache:
    """Turns wire batches (which rows of which chunks) into batches of training data.

    Samples that were read lie in one ring of columns, so that a batch is one gather per column; the
    oldest make room. A chunk that is needed again after that is read again.

    Args:
        read: Reads a chunk by its name; `ChunkError` for one that cannot be read.
        capacity: Samples to keep; at best as many as the replay buffer holds.
        max_bytes: Keep fewer if they would take more memory; a quarter of the machine's if None.
    """

    def __init__(
        self,
        read: Callable[[str], Samples],
        capacity: int,
        max_bytes: int | None = None,
    ) -> None:
        self._read_chunk = read
        self._capacity = int(capacity)
        self._max_bytes = _memory() // 4 if max_bytes is None else max_bytes
        self._ring: Ring | None = None
        # Number of the first row in the ring, and rows, of each chunk there.
        self._at: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()
        #: Chunks that could not be read since `take_bad`: name and cause.
        self.bad: list[tuple[str, str]] = []
        self._known_bad: OrderedDict[str, str] = OrderedDict()
        #: Chunks read so far.
        self.reads = 0

    def batch(self, wire: Mapping[str, Any]) -> Samples:
        """The rows of a wire batch, with what the buffer said of them as further columns.

        Rows of chunks that cannot be read are replaced by others of the batch.

        Raises:
            ChunkError: None of the chunks can be read; names the first.
            DataError: The message is damaged.
        """
        chunk, row = rows_of(wire)
        facts = facts_of(wire.get("info") or {}, len(chunk))
        with self._lock:
            names = wire["chunks"]
            parts = self._load(names if type(names) is list else list(names))
            lengths = np.zeros(len(names), np.int64)
            starts = np.zeros(len(names), np.int64)
            for i, name in enumerate(names):
                starts[i], lengths[i] = parts.get(name, (0, 0))
            good = row < lengths[chunk]
            if not good.all():
                kept = self._replace(names, chunk, row, good, lengths)
                chunk, row = chunk[kept], row[kept]
                facts = {name: column[kept] for name, column in facts.items()}
            texts, numbers = _texts_and_numbers(facts)
            assert self._ring is not None
            slots = (starts[chunk] + row) % self._ring.capacity
            data = self._ring.take(slots, (lambda: numbers) if numbers else None)
        return _with_texts(data, texts) if texts else data

    def take_bad(self) -> list[tuple[str, str]]:
        """Chunks that could not be read since the last call: name and cause, each chunk once."""
        with self._lock:
            bad, self.bad = self.bad, []
        return bad

    # ------------------------------------------------------------------ reading

    def _load(self, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Number of the first row, and rows, of each chunk that can be read, all there at once."""
        self._store(self._read(self._missing(names)))
        if self._missing(names):
            # New ones took the place of others that this batch needs as well.
            self._reload(names)
        return {name: self._at[name] for name in names if name in self._at}

    def _missing(self, names: Sequence[str]) -> list[str]:
        return [n for n in names if n not in self._at and n not in self._known_bad]

    def _read(self, names: Sequence[str]) -> dict[str, Samples]:
        found = {}
        for name in names:
            try:
                found[name] = self._read_chunk(name)
                self.reads += 1
            except DataError as error:
                self._is_bad(name, error.cause if isinstance(error, ChunkError) else str(error))
        return found

    def _is_bad(self, name: str, cause: str) -> None:
        if name not in self._known_bad:
            self._known_bad[name] = cause
            self.bad.append((name, cause))
            if len(self._known_bad) > _MOST_BAD:
                self._known_bad.popitem(last=False)

    def _reload(self, names: Sequence[str]) -> None:
        """Put all chunks of a batch side by side, in a larger ring if need be."""
        read = self._read([n for n in names if n not in self._known_bad])
        rows = sum(len(data) for data in read.values())
        assert self._ring is not None
        self._ring = Ring(max(rows, self._ring.capacity))
        self._at.clear()
        self._store(read)

    def _store(self, read: Mapping[str, Samples]) -> None:
        for name, data in read.items():
            if self._ring is None:
                self._ring = Ring(self._capacity_for(data))
            if len(data) > self._ring.capacity:
                self._ring = Ring(len(data))
                self._at.clear()
            self._at[name] = (self._ring.total, len(data))
            self._ring.write(self._ring.next_slots(len(data)), data)
            oldest = self._ring.total - self._ring.capacity
            while next(iter(self._at.values()))[0] < oldest:
                self._at.popitem(last=False)

    def _capacity_for(self, data: Samples) -> int:
        # What the buffer holds of its oldest chunks is less than all of them.
        capacity = self._capacity + self._capacity // 16 + 2 * len(data)
        windows = data.windows() if isinstance(data, Columns) else None
        if windows is None:
            return capacity
        fitting = int(self._max_bytes // max(row_bytes(windows[0][0]), 1))
        return max(min(capacity, fitting), len(data))

    # ------------------------------------------------------------------ bad chunks

    def _replace(
        self,
        names: Sequence[str],
        chunk: np.ndarray,
        row: np.ndarray,
        good: np.ndarray,
        lengths: np.ndarray,
    ) -> np.ndarray:
        """For each row the one to take: another in the place of those that are not to be had."""
        for i in np.unique(chunk[~good]).tolist():
            if lengths[i]:
                most = int(row[chunk == i].max())
                self._is_bad(names[i], f"it has {lengths[i]} rows, row {most} was asked for")
        if not good.any():
            name = names[int(chunk[0])]
            raise ChunkError(name, self._known_bad.get(name, "it cannot be read"))
        kept = np.arange(len(row))
        stand_ins = np.flatnonzero(good)
        kept[~good] = stand_ins[np.arange(len(row) - len(stand_ins)) % len(stand_ins)]
        return kept


def _texts_and_numbers(facts: Mapping[str, Fact]) -> tuple[dict[str, np.ndarray], dict[str, Fact]]:
    texts, numbers = {}, {}
    for name, column in facts.items():
        if isinstance(column, np.ndarray) and column.dtype == object:
            texts[name] = column
        else:
            numbers[name] = column
    return texts, numbers


def _with_texts(data: Samples, texts: Mapping[str, np.ndarray]) -> list[Row]:
    """Columns hold numbers alone: with texts they are rows."""
    rows: list[Row] = list(data)
    for name, values in texts.items():
        for row, value in zip(rows, values.tolist()):
            row[name] = value
    return rows


def _memory() -> int:
    """Bytes of memory that this machine, or container, has."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        found = 16 << 30
    for path in _CONTAINER_LIMITS:
        try:
            with open(path) as file:
                found = min(found, int(file.read()))
        except (OSError, ValueError):
            continue  # no container, or none with a limit
    return found
