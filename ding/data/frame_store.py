"""Stores each large observation (frame) once, although two rows refer to it."""

import math

import numpy as np

from ding.data.arrays import IndexedColumn, StoredLeaf, gathered
from ding.data.greys import Frames
from ding.data.memory import Recycler

#: Minimum size of frames. For smaller observations, the bookkeeping costs more than it saves.
MIN_FRAME_BYTES = 1024
#: Maximum number of rows between an observation and its ``next_obs`` (n-step returns).
_FARTHEST = 8
#: Stride of the bytes by which equal frames are looked up.
#: A prime: a divisor of an image's width would select bytes from only a few image columns.
_SPARSE = 97
#: Ends of trajectories that are remembered.
_MOST_ENDS = 1024

Indexed = IndexedColumn[np.ndarray]


class FramePair:
    """`obs` and `next_obs` of a ring of rows, over one store of frames.

    Rows that are written together refer to one array of frames: collectors pass indices, and in
    users' arrays frames of successive rows are compared. If a trajectory was cut and the next rows
    continue it, its last frame is looked up by some of its bytes and compared in full before it is
    shared. A frame that no row refers to is overwritten.

    Args:
        capacity: Number of rows.
        frames: Empty, for the frames.
        name: Of the column, for errors.
    """

    def __init__(self, capacity: int, frames: Frames, name: str) -> None:
        self._frames, self._name = frames, name
        #: By row: slots of its two frames. By frame: number of references.
        self._first, self._second = np.full((2, capacity), -1)
        self._users = np.zeros(0, np.int64)
        self._recycler = Recycler()
        #: Slots of the last frames of trajectories by some of their bytes, the oldest first.
        self._ends: dict[bytes, int] = {}
        self._free: list[int] = []
        self._used = 0
        # One frame per row, and some for the ends of trajectories.
        self._make_room(capacity + capacity // 8 + 64)

    def _make_room(self, room: int) -> None:
        """Make room for frames: more where trajectories are so short that rows share few."""
        self._frames.grow(room)
        users = np.zeros(room, np.int64)
        users[: len(self._users)] = self._users
        self._users = users

    def take_first(self, index: np.ndarray, *_: object) -> np.ndarray:
        return self._gather(self._first.take(index))

    def take_second(self, index: np.ndarray, *_: object) -> np.ndarray:
        return self._gather(self._second.take(index))

    def _gather(self, slots: np.ndarray) -> np.ndarray:
        if len(slots) and slots.min() < 0:
            raise IndexError(f"{self._name}: a row was asked for that was never written")
        out = self._recycler.empty((len(slots), *self._frames.shape), self._frames.dtype)
        return self._frames.take(slots, out)

    def write(self, where: slice | np.ndarray, first: StoredLeaf, second: StoredLeaf) -> None:
        """Write rows to slots."""
        # Release the frames of replaced rows first, so that new frames can reuse their slots.
        self._release(where)
        # By index, not by content: to hash all pushed bytes, or to compare a chunk with the last
        # frames of eight others in full, took longer than copying all its frames.
        over = _over_one_array(first, second) or frames_once(first, second)
        if over is None:
            frames = np.concatenate([gathered(first), gathered(second)])
            over = _over(frames, np.arange(len(frames)))
        first, second = over
        named, place = np.unique(np.concatenate([first.index, second.index]), return_inverse=True)
        places = place.reshape(2, -1)
        begins, ends = np.ones((2, len(named)), bool)
        begins[places[1]] = ends[places[0]] = False
        slots = np.full(len(named), -1)
        self._find_ends(first.source, named, np.flatnonzero(begins), slots)
        fresh = np.flatnonzero(slots < 0)
        slots[fresh] = self._store(first.source, named[fresh])
        at = np.flatnonzero(ends)[-_MOST_ENDS:]
        self._ends.update(zip(_prints(first.source, named[at]), slots[at].tolist()))
        for print_ in list(self._ends)[: len(self._ends) - _MOST_ENDS]:
            del self._ends[print_]
        # Several rows refer to one frame; `+=` over an index array would count it once.
        np.add.at(self._users, slots[places.reshape(-1)], 1)
        self._first[where], self._second[where] = slots[places]

    def _find_ends(
        self, source: np.ndarray, named: np.ndarray, at: np.ndarray, slots: np.ndarray
    ) -> None:
        """Set the slots of those frames `at` that are last frames of earlier rows."""
        for i, print_ in zip(at.tolist(), _prints(source, named[at])):
            slot = self._ends.get(print_, -1)
            # The slot may have been reused since, or the frames may differ in other bytes.
            if slot >= 0 and self._users[slot] > 0:
                stored = self._frames.take(np.array([slot]))
                if (bytes_of(stored) == bytes_of(source[named[i : i + 1]])).all():
                    slots[i] = slot

    def _store(self, source: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Copy frames of an array to free slots; returns the slots."""
        n = len(index)
        kept = max(len(self._free) - n, 0)
        free, self._free = self._free[kept:], self._free[:kept]
        first, self._used = self._used, self._used + n - len(free)
        while self._used > len(self._users):
            self._make_room(len(self._users) * 3 // 2)
        slots = np.array([*free, *range(first, self._used)], np.int64)
        fresh = source if n == len(source) else source[index]
        self._frames.write(slots, fresh, used=first)
        return slots

    def _release(self, where: slice | np.ndarray) -> None:
        gone = np.concatenate([self._first[where], self._second[where]])
        gone = gone[gone >= 0]
        self._first[where] = self._second[where] = -1
        np.subtract.at(self._users, gone, 1)
        self._free.extend(np.unique(gone[self._users[gone] == 0]).tolist())

    def indexed(self, slots: np.ndarray) -> tuple[Indexed, Indexed]:
        """Frames of rows, as indices into an array that may be written to later."""
        frames, rows = self._frames.in_slots(np.stack([self._first[slots], self._second[slots]]))
        return IndexedColumn(frames, rows[0]), IndexedColumn(frames, rows[1])


def _prints(source: np.ndarray, index: np.ndarray) -> list[bytes]:
    """Fingerprints of frames: every 97th byte, in which almost all frames differ."""
    return [row.tobytes() for row in bytes_of(source)[:, ::_SPARSE][index]]


def _over_one_array(first: StoredLeaf, second: StoredLeaf) -> tuple[Indexed, Indexed] | None:
    # Returns both columns if they are indices into the same memory.
    if not isinstance(first, IndexedColumn) or not isinstance(second, IndexedColumn):
        return None
    mine, theirs = first.source.__array_interface__, second.source.__array_interface__
    facts = ("data", "shape", "strides", "typestr")
    return (first, second) if all(mine[fact] == theirs[fact] for fact in facts) else None


def frames_once(first: StoredLeaf, second: StoredLeaf) -> tuple[Indexed, Indexed] | None:
    """`obs` and `next_obs` as indices into one array with few duplicate frames.

    Args:
        first: ``[n, ...]``, trajectories one after the other; `second` likewise.

    Returns:
        None if the observations are small, differ in dtype or shape, or share few frames.
    """
    n, size = len(first), first.dtype.itemsize * math.prod(first.shape[1:])
    same_kind = first.dtype == second.dtype and first.shape == second.shape
    if not same_kind or size < MIN_FRAME_BYTES or n < 2:
        return None
    if (over := _over_one_array(first, second)) is not None:
        both = np.concatenate([over[0].index, over[1].index])
        named, index = np.unique(both, return_inverse=True)
        return _over(over[0].source[named], index.reshape(-1))
    obs, next_obs = gathered(first), gathered(second)
    a, b = bytes_of(obs), bytes_of(next_obs)
    if a.shape[1] % 8 == 0:  # compared eight at a time
        a, b = a.view(np.uint64), b.view(np.uint64)
    for step in range(1, min(_FARTHEST, n - 1) + 1):
        # The first two rows suffice, unless both are the last of a trajectory.
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


def bytes_of(rows: np.ndarray) -> np.ndarray:
    """The bytes of an array ``[n, ...]``, uint8 ``[n, row_bytes]``."""
    return np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
