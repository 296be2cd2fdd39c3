"""Big observations stored once, although two rows refer to each of them."""

import math
from collections import deque

import numpy as np

from ding.data.arrays import StoredLeaf
from ding.data.indexed_column import IndexedColumn
from ding.data.preallocate import Preallocator
from ding.data.recycler import Recycler

#: Observations from this size on are stored once. Below, the bookkeeping costs more than it saves.
MIN_FRAME_BYTES = 1024
#: Most rows between an observation and the one that follows it (n-step returns).
_FARTHEST = 8

Indexed = IndexedColumn[np.ndarray]


class FramePair:
    """`obs` and `next_obs` of a ring of rows, over one store of frames.

    Rows that are written together refer to one array of frames, by the indices that collectors
    give or, for users' arrays, where following rows have equal frames. A frame that an earlier row
    ended with is found by its name (`IndexedColumn.names`) or, without one, among the last few of
    them; it is compared before it is shared. A frame that no row refers to is overwritten.

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
        self._named: dict[int, int] = {}
        #: Slots of frames without names that rows ended with.
        self._ends: deque[int] = deque(maxlen=_FARTHEST)
        self._frames: np.ndarray
        self._users: np.ndarray
        self._names: np.ndarray
        self._free: list[int] = []
        self._used = 0
        # One frame per row, and some for the ends of trajectories.
        self._allocate_frames(capacity + capacity // 8 + 64)

    def _allocate_frames(self, room: int, kept: int = 0) -> None:
        """Make room for frames; the first `kept` of those that are there stay."""
        frames = self._preallocator.empty((room, *self._shape), self._dtype, self._name)
        users, names = np.zeros(room, np.int64), np.full(room, -1)
        if kept:
            frames[:kept] = self._frames[:kept]
            users[:kept], names[:kept] = self._users[:kept], self._names[:kept]
        # Not before all is there: another thread may be reading.
        self._frames, self._users, self._names = frames, users, names
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
        first, second = _over_one_source(first, second)
        index = np.concatenate([first.index, second.index])
        named, place = np.unique(index, return_inverse=True)
        names = np.full(len(named), -1) if first.names is None else first.names[named]
        begins = ~np.isin(named, second.index)
        found = [
            self._stored(first.source[at], name, begin)
            for at, name, begin in zip(named.tolist(), names.tolist(), begins.tolist())
        ]
        slots = np.array(found, np.int64)
        if first.names is None:
            self._ends.extend(slots[~np.isin(named, first.index)][-_FARTHEST:].tolist())
        slots = slots[place.reshape(-1)]
        np.add.at(self._users, slots, 1)
        self._first[where], self._second[where] = slots.reshape(2, -1)

    def _stored(self, frame: np.ndarray, name: int, begins: bool) -> int:
        """The slot of a frame, a new one unless the frame is stored.

        Args:
            begins: Whether no row of those that are written with it ends with the frame.
        """
        if name >= 0:
            known = [self._named[name]] if name in self._named else []
        else:
            known = [slot for slot in self._ends if self._users[slot]] if begins else []
        raw = bytes_of(frame[None]) if known else None
        for slot in known:
            if (bytes_of(self._frames[slot][None]) == raw).all():
                return slot
        slot = self._new_slot()
        self._frames[slot], self._names[slot] = frame, name
        if name >= 0:
            self._named[name] = slot
        return slot

    def _release(self, where: slice | np.ndarray) -> None:
        gone = np.concatenate([self._first[where], self._second[where]])
        gone = gone[gone >= 0]
        self._first[where] = self._second[where] = -1
        np.subtract.at(self._users, gone, 1)
        for slot in np.unique(gone[self._users[gone] == 0]).tolist():
            name = int(self._names[slot])
            if self._named.get(name) == slot:
                del self._named[name]
            self._free.append(slot)

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


def _over_one_source(first: StoredLeaf, second: StoredLeaf) -> tuple[Indexed, Indexed]:
    if _share_source(first, second):
        return first, second  # type: ignore[return-value]
    once = frames_once(first, second)
    if once is not None:
        return once
    return _over(np.concatenate([_array(first), _array(second)]), np.arange(2 * len(first)))


def _share_source(first: StoredLeaf, second: StoredLeaf) -> bool:
    return (
        isinstance(first, IndexedColumn)
        and isinstance(second, IndexedColumn)
        and first.has_source_of(second)
    )


def frames_once(first: StoredLeaf, second: StoredLeaf) -> tuple[Indexed, Indexed] | None:
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
    if _share_source(first, second):
        assert isinstance(first, IndexedColumn)
        assert isinstance(second, IndexedColumn)
        both = np.concatenate([first.index, second.index])
        named, index = np.unique(both, return_inverse=True)
        return _over(first.source[named], index.reshape(-1))
    obs, next_obs = _array(first), _array(second)
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
            return _over(np.concatenate([obs, next_obs[rest - n]]), index)
    return None


def _over(frames: np.ndarray, index: np.ndarray) -> tuple[Indexed, Indexed]:
    n = len(index) // 2
    return IndexedColumn(frames, index[:n]), IndexedColumn(frames, index[n:])


def _array(leaf: StoredLeaf) -> np.ndarray:
    return leaf.gathered() if isinstance(leaf, IndexedColumn) else leaf


def bytes_of(rows: np.ndarray) -> np.ndarray:
    """The bytes of an array ``[n, ...]``, uint8 ``[n, row_bytes]``."""
    return np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)


def _words_of(frames: np.ndarray) -> np.ndarray:
    """The bytes of each frame, eight at a time if they can be."""
    raw = bytes_of(frames)
    return raw.view(np.uint64) if raw.shape[1] % 8 == 0 else raw
