"""Which chunks there are, who still refers to them, and when their files may go."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_WIDEST = 1 << 16


@dataclass(slots=True)
class Chunk:
    """One chunk file.

    Attributes:
        number: What the rows of the buffer call it.
        rows: Samples in it.
        size: Bytes on disk.
        facts: What a learner has to be told of it, beside its name.
    """

    data_id: str
    number: int
    rows: int
    size: int
    facts: dict[str, Any]


def distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Different numbers ascending, how often each comes, and which of them each one is.

    Numbers that are close together are counted instead of sorted, several times faster.
    """
    if not len(numbers):
        return numbers, numbers, numbers
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span > _WIDEST:
        found, index, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        return found, counts, index
    offsets = numbers - low
    counts = np.bincount(offsets, minlength=span)
    there = counts > 0
    at = np.flatnonzero(there)
    return at + low, counts[at], (np.cumsum(there) - 1)[offsets]


class ChunkLedger:
    """Counts, for each chunk, the rows that refer to it and the batches on the way that need it.

    A chunk without either is given out by :meth:`take_unused`, once; until :meth:`removed` is told,
    its bytes count. It is not safe for threads: its owner has a lock.
    """

    def __init__(self) -> None:
        self._chunks: dict[int, Chunk] = {}  # ascending numbers: the oldest first
        self._by_id: dict[str, int] = {}
        self._base = self._next = 0
        self._refs = np.zeros(64, np.int64)
        self._pins = np.zeros(64, np.int64)
        self._dead = np.zeros(64, bool)
        self._unused: list[Chunk] = []
        self._dead_rows = 0
        #: Rows in the buffer.
        self.rows = 0
        #: Samples in all files that have not been removed.
        self.file_rows = 0
        #: Bytes of all files that have not been removed.
        self.bytes = 0

    def __len__(self) -> int:
        """Number of files that have not been given out for removal."""
        return len(self._by_id)

    def __contains__(self, data_id: str) -> bool:
        return data_id in self._by_id

    def __getitem__(self, number: int) -> Chunk:
        return self._chunks[number]

    def find(self, data_id: str) -> Chunk | None:
        number = self._by_id.get(data_id)
        return None if number is None else self._chunks[number]

    def by_age(self) -> list[Chunk]:
        """All chunks that rows or batches refer to, the oldest first."""
        return list(self._chunks.values())

    def names(self) -> set[str]:
        """Names of all files that have not been given out for removal."""
        return set(self._by_id)

    # ------------------------------------------------------------------ changes

    def add(self, data_id: str, rows: int, size: int, facts: dict[str, Any] | None = None) -> Chunk:
        """A chunk all of whose rows are referred to from now on."""
        if self._next - self._base >= len(self._refs):
            self._make_room()
        chunk = Chunk(data_id, self._next, rows, size, facts or {})
        self._next += 1
        at = chunk.number - self._base
        self._refs[at], self._pins[at], self._dead[at] = rows, 0, False
        self._chunks[chunk.number] = chunk
        self._by_id[data_id] = chunk.number
        self.bytes += size
        self.rows += rows
        self.file_rows += rows
        return chunk

    def _make_room(self) -> None:
        """Forget the counts of old chunks that are gone, and have as much room as before left."""
        first = min(self._chunks, default=self._next)
        kept, self._base, start = self._next - first, first, first - self._base
        room = max(64, 2 * kept + 1)
        for name in ("_refs", "_pins", "_dead"):
            old = getattr(self, name)
            new = np.zeros(room, old.dtype)
            new[:kept] = old[start : start + kept]
            setattr(self, name, new)

    def leave(self, numbers: np.ndarray) -> None:
        """Rows are no longer in the buffer: the chunk number of each."""
        if not len(numbers):
            return
        found, counts, _ = distinct(numbers)
        at = found - self._base
        self.rows -= len(numbers)
        if self._dead_rows:
            self._dead_rows -= int(counts[self._dead[at]].sum())
        self._refs[at] -= counts
        self._drop_unused(found[self._refs[at] <= 0])

    def leave_oldest(self, n: int) -> None:
        """The n oldest rows are no longer in the buffer."""
        gone: list[np.ndarray] = []
        for number in self._chunks:
            if n <= 0:
                break
            rows = min(n, self.refs(number))
            gone.append(np.full(rows, number))
            n -= rows
        if gone:
            self.leave(np.concatenate(gone))

    def pin(self, numbers: np.ndarray) -> None:
        """Keep the files of these chunks (each named once)."""
        self._pins[numbers - self._base] += 1

    def unpin(self, numbers: np.ndarray) -> None:
        """Undo one :meth:`pin` of the same chunks."""
        at = numbers - self._base
        self._pins[at] -= 1
        self._drop_unused(numbers[(self._refs[at] <= 0) | self._dead[at]])

    def kill(self, number: int) -> int:
        """Let nobody draw a chunk's rows again; its file goes when no batch needs it.

        Returns:
            How many rows in the buffer that were.
        """
        at = number - self._base
        if self._dead[at]:
            return 0
        self._dead[at] = True
        rows = int(self._refs[at])
        self._dead_rows += rows
        self._drop_unused(np.array([number]))
        return rows

    def _drop_unused(self, numbers: np.ndarray) -> None:
        for number in numbers[self._pins[numbers - self._base] == 0].tolist():
            chunk = self._chunks[number]
            if self._by_id.get(chunk.data_id) == number:
                del self._by_id[chunk.data_id]
                self._unused.append(chunk)
            if self._refs[number - self._base] <= 0:
                del self._chunks[number]

    def take_unused(self) -> list[Chunk]:
        """Chunks whose files are to be removed now."""
        unused, self._unused = self._unused, []
        return unused

    def removed(self, chunks: Iterable[Chunk]) -> None:
        """The files of these chunks are no longer there."""
        for chunk in chunks:
            self.bytes -= chunk.size
            self.file_rows -= chunk.rows

    def put_back(self, chunks: Iterable[Chunk]) -> None:
        """The files of these chunks could not be removed: try again later."""
        self._unused.extend(chunks)

    # ------------------------------------------------------------------ questions

    def refs(self, number: int) -> int:
        """Rows in the buffer that refer to a chunk."""
        return int(self._refs[number - self._base])

    def pins(self, number: int) -> int:
        """Batches on the way that need a chunk."""
        return int(self._pins[number - self._base])

    @property
    def dead_rows(self) -> int:
        """Rows in the buffer that must not be drawn."""
        return self._dead_rows

    def alive(self, numbers: np.ndarray) -> np.ndarray:
        """Which of these rows may be drawn, by their chunk numbers; bool [n]."""
        at = numbers - self._base
        known = at >= 0
        at = np.where(known, at, 0)
        return known & (self._refs[at] > 0) & ~self._dead[at]

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """Chunks and references; pins are of batches that nobody will wait for any more."""
        chunks = list(self._chunks.values())
        at = np.array([chunk.number for chunk in chunks], np.int64) - self._base
        return {
            "next": self._next,
            "data_id": [chunk.data_id for chunk in chunks],
            "number": at + self._base,
            "rows": np.array([chunk.rows for chunk in chunks], np.int64),
            "size": np.array([chunk.size for chunk in chunks], np.int64),
            "told": np.array([bool(chunk.facts) for chunk in chunks], bool),
            "facts": [chunk.facts for chunk in chunks if chunk.facts],
            "refs": self._refs[at],
            "dead": self._dead[at],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        numbers = state["number"].tolist()
        self._base = numbers[0] if numbers else int(state["next"])
        room = 64 + int(state["next"]) - self._base
        self._refs, self._pins = np.zeros(room, np.int64), np.zeros(room, np.int64)
        self._dead = np.zeros(room, bool)
        rows, sizes = state["rows"].tolist(), state["size"].tolist()
        refs, dead = state["refs"].tolist(), state["dead"].tolist()
        facts, told = iter(state["facts"]), state["told"].tolist()
        for i, data_id in enumerate(state["data_id"]):
            self._next = numbers[i]
            self.add(data_id, rows[i], sizes[i], next(facts) if told[i] else None)
            self._refs[numbers[i] - self._base] = refs[i]
            self.rows += refs[i] - rows[i]
            if dead[i]:
                self.kill(numbers[i])
            elif not refs[i]:
                self._drop_unused(np.array([numbers[i]]))
        self._next = int(state["next"])
