"""Big observations stored once, although two rows refer to each of them."""

import math

import numpy as np

from ding.data.arrays import StoredLeaf
from ding.data.fingerprints import bytes_of, fingerprints
from ding.data.indexed_column import IndexedColumn
from ding.data.preallocate import Preallocator
from ding.data.recycler import Recycler

#: Observations from this size on are stored once. Below, the bookkeeping costs more than it saves.
MIN_FRAME_BYTES = 1024
#: Most rows between an observation and the one that follows it (n-step returns).
_FARTHEST = 8


class FramePair:
    """`obs` and `next_obs` of a ring of rows, over one store of frames.

    A frame of a row that comes in is looked up by content among all frames that live rows refer
    to: by a fingerprint of all its bytes, and a match is compared in full. So it does not matter
    how trajectories follow each other or interleave, nor over how many pushes. A frame that no row
    refers to any more is overwritten.

    Args:
        capacity: Number of rows.
        dtype: Of a frame.
        shape: Of a frame.
        name: Of the column, for errors and files.
        preallocator: Where arrays come from.
    """

    def __init__(
        self,
        capacity: int,
        dtype: np.dtype,
        shape: tuple[int, ...],
        name: str,
        preallocator: Preallocator,
    ) -> None:
        self._dtype, self._shape, self._name = dtype, shape, name
        self._preallocator = preallocator
        self._first = np.full(capacity, -1, np.int64)
        self._second = np.full(capacity, -1, np.int64)
        self._recycler = Recycler()
        self._by_print: dict[int, int] = {}
        self._frames: np.ndarray
        self._users: np.ndarray
        self._prints: np.ndarray
        self._free: list[int] = []
        self._used = 0
        # One frame per row, and some for the ends of trajectories.
        self._allocate_frames(capacity + capacity // 8 + 64)

    def _allocate_frames(self, room: int, kept: int = 0) -> None:
        """Make room for frames; the first `kept` of those that are there stay."""
        frames = self._preallocator.empty((room, *self._shape), self._dtype, self._name)
        users, prints = np.zeros(room, np.int64), np.zeros(room, np.uint64)
        if kept:
            frames[:kept] = self._frames[:kept]
            users[:kept], prints[:kept] = self._users[:kept], self._prints[:kept]
        # Not before all is there: another thread may be reading.
        self._frames, self._users, self._prints = frames, users, prints
        self._raw = frames.reshape(room, -1).view(np.uint8)
        self._room = room

    def _grow(self) -> None:
        """More room: trajectories are so short that rows have few frames in common."""
        self._allocate_frames(self._room + self._room // 2, self._used)

    @property
    def frame_count(self) -> int:
        """Number of frames that rows refer to."""
        return self._used - len(self._free)

    def take_first(self, index: np.ndarray, *_: object) -> np.ndarray:
        return self._gather(self._first.take(index))

    def take_second(self, index: np.ndarray, *_: object) -> np.ndarray:
        return self._gather(self._second.take(index))

    def _gather(self, slots: np.ndarray) -> np.ndarray:
        if len(slots) and slots.min() < 0:
            raise IndexError(f"{self._name}: a row was asked for that was never written")
        out = self._recycler.empty((len(slots), *self._shape), self._dtype)
        # Nothing is left to clip; other modes gather into memory of their own first.
        return self._frames.take(slots, 0, out, "clip")

    def write(self, where: slice | np.ndarray, first: StoredLeaf, second: StoredLeaf) -> None:
        """Write rows to slots."""
        self._release(where)
        # First all of `first`: most of `second` is found among them.
        columns = [first, second]
        if (
            isinstance(first, IndexedColumn)
            and isinstance(second, IndexedColumn)
            and first.has_source_of(second)
        ):
            both = np.concatenate([first.index, second.index])
            columns = [IndexedColumn(first.source, both)]
        slots = np.concatenate([self._intern(column) for column in columns])
        self._first[where], self._second[where] = slots.reshape(2, -1)

    def _release(self, where: slice | np.ndarray) -> None:
        gone = np.concatenate([self._first[where], self._second[where]])
        gone = gone[gone >= 0]
        self._first[where] = self._second[where] = -1
        np.subtract.at(self._users, gone, 1)
        for slot in np.unique(gone[self._users[gone] == 0]).tolist():
            key = int(self._prints[slot])
            if self._by_print.get(key) == slot:
                del self._by_print[key]
            self._free.append(slot)

    def _intern(self, column: StoredLeaf) -> np.ndarray:
        """Slots of frames, which have one user more for each time they are named."""
        if isinstance(column, np.ndarray):
            return self._intern_frames(column, np.ones(len(column), np.int64))
        named, index, users = np.unique(column.index, return_inverse=True, return_counts=True)
        return self._intern_frames(column.source[named], users)[index]

    def _intern_frames(self, frames: np.ndarray, users: np.ndarray) -> np.ndarray:
        raw = bytes_of(frames)
        slots = np.empty(len(frames), np.int64)
        prints = fingerprints(raw)
        for i, (key, count) in enumerate(zip(prints.tolist(), users.tolist())):
            slot = self._by_print.get(key)
            if slot is None or not (self._raw[slot] == raw[i]).all():
                slot = self._new_slot()
                self._raw[slot] = raw[i]
                self._prints[slot] = prints[i]
                self._by_print[key] = slot
            self._users[slot] += count
            slots[i] = slot
        return slots

    def _new_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if self._used == self._room:
            self._grow()
        self._used += 1
        return self._used - 1

    def rows(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each frame that some rows refer to once, and to which the rows refer, twice int64 [n]."""
        first, second = self._first[slots], self._second[slots]
        live = np.unique(np.concatenate([first, second]))
        return self._frames[live], np.searchsorted(live, first), np.searchsorted(live, second)


def frames_once(
    first: StoredLeaf, second: StoredLeaf
) -> tuple[IndexedColumn[np.ndarray], IndexedColumn[np.ndarray]] | None:
    """`obs` and `next_obs` over one array that has few of their frames twice.

    Args:
        first: ``[n, ...]``, trajectories one after the other; `second` likewise.

    Returns:
        None if the observations are small, of different kinds, or few of them are there twice.
    """
    n, size = len(first), first.dtype.itemsize * math.prod(first.shape[1:])
    same_kind = first.dtype == second.dtype and first.shape == second.shape
    if not same_kind or size < MIN_FRAME_BYTES or n < 2:
        return None
    if (
        isinstance(first, IndexedColumn)
        and isinstance(second, IndexedColumn)
        and first.has_source_of(second)
    ):
        both = np.concatenate([first.index, second.index])
        named, index = np.unique(both, return_inverse=True)
        return _over(first.source[named], index.reshape(-1), n)
    obs, next_obs = (c.gathered() if isinstance(c, IndexedColumn) else c for c in (first, second))
    a, b = _words_of(obs), _words_of(next_obs)
    for step in range(1, min(_FARTHEST, n - 1) + 1):
        # The first two rows tell, unless both end trajectories.
        if any((b[i] == a[i + step]).all() for i in range(min(2, n - step))):
            index = np.arange(2 * n)
            index[n:] += step - n
            rest = n + np.flatnonzero((b[:-step] != a[step:]).any(axis=1))
            rest = np.append(rest, np.arange(2 * n - step, 2 * n))
            index[rest] = n + np.arange(len(rest))
            if 2 * len(rest) > n:
                return None
            return _over(np.concatenate([obs, next_obs[rest - n]]), index, n)
    return None


def _over(
    frames: np.ndarray, index: np.ndarray, n: int
) -> tuple[IndexedColumn[np.ndarray], IndexedColumn[np.ndarray]]:
    return IndexedColumn(frames, index[:n]), IndexedColumn(frames, index[n:])


def _words_of(frames: np.ndarray) -> np.ndarray:
    """The bytes of each frame, eight at a time if they can be."""
    raw = bytes_of(frames)
    return raw.view(np.uint64) if raw.shape[1] % 8 == 0 else raw
