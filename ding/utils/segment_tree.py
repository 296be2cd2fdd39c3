"""Segment trees over blocks of numbers, for prioritised sampling.

A node has 16 children, not two: numpy's cost per call outweighs the arithmetic, so a tree with few
levels, each processed for all indices at once, is several times faster than a deep one. The top
level is a flat array (at most `_TOP` numbers), which is reduced at the first query after a change.
"""

import math
import operator
from collections.abc import Callable

import numpy as np

from ding.utils.errors import DataError

_FANOUT = 16
_SHIFT = 4  # 2 ** 4 == 16
_TOP = 8192
#: Maximum number of changed values whose blocks have not been reduced again.
_MOST_WAITING = 4096

_UFUNCS: dict[Callable[..., object], np.ufunc] = {
    operator.add: np.add,
    operator.mul: np.multiply,
    min: np.minimum,
    max: np.maximum,
}
_NEUTRAL: dict[np.ufunc, float] = {
    np.add: 0.0,
    np.multiply: 1.0,
    np.minimum: np.inf,
    np.maximum: -np.inf,
}


class SegmentTree:
    """An array of `capacity` float64 numbers with fast reductions over ranges.

    Args:
        capacity: Number of values, a positive integer.
        operation: Associative operation: ``operator.add``, ``operator.mul``, ``min``, ``max`` or a
            numpy ufunc of two arguments.
        neutral_element: The initial value; None for the neutral element of the operation.
    """

    def __init__(
        self, capacity: int, operation: Callable[..., object], neutral_element: float | None = None
    ) -> None:
        if int(capacity) != capacity or capacity < 1:
            raise ValueError(f"capacity must be a positive integer, got {capacity!r}")
        ufunc = _UFUNCS.get(operation, operation)
        if not isinstance(ufunc, np.ufunc):
            raise ValueError(f"operation must be add, mul, min, max or a ufunc, got {operation!r}")
        if neutral_element is None:
            neutral_element = _NEUTRAL[ufunc]
        self.capacity = int(capacity)
        self.operation = ufunc
        self.neutral_element = float(neutral_element)
        # Each level is a flat array of nodes; `_blocks` are all but the top, as rows of siblings.
        self._levels = [self._new_level(self.capacity)]
        while self._levels[-1].size > _TOP:
            self._levels.append(self._new_level(self._levels[-1].size // _FANOUT))
        self._blocks = [level.reshape(-1, _FANOUT) for level in self._levels[:-1]]
        self._values = self._levels[0][: self.capacity]
        self._waiting: list[np.ndarray] = []  # blocks in which numbers have changed
        self._waiting_count = 0
        self._changed = True
        self._reduced = self.neutral_element

    def _new_level(self, size: int) -> np.ndarray:
        padded = -(-size // _FANOUT) * _FANOUT
        return np.full(padded, self.neutral_element)

    def reduce(self, start: int = 0, end: int | None = None) -> float:
        """Reduce ``[start, end)``; None is the capacity, a negative `end` counts from the back.

        Raises:
            IndexError: The range is empty or not within ``[0, capacity]``.
        """
        end = self.capacity if end is None else end
        end = end + self.capacity if end < 0 else end
        if not 0 <= start < end <= self.capacity:
            raise IndexError(f"[{start}, {end}) is no range within [0, {self.capacity}]")
        if start == 0 and end == self.capacity:
            return self._reduce_all()
        self._settle()
        result = self.neutral_element
        for level in self._levels:
            first, last = -(-start // _FANOUT), end // _FANOUT
            if level is self._levels[-1] or first >= last:
                return float(self.operation(result, self.operation.reduce(level[start:end])))
            for edge in (level[start : first * _FANOUT], level[last * _FANOUT : end]):
                if edge.size:
                    result = self.operation(result, self.operation.reduce(edge))
            start, end = first, last
        raise AssertionError("unreachable: the last level returns")

    def get_many(self, indices: np.ndarray) -> np.ndarray:
        """The values at `indices` (int, any shape), float64."""
        indices = np.asarray(indices)
        self._check_indices(indices)
        return self.get_trusted(indices)

    def get_trusted(self, indices: np.ndarray) -> np.ndarray:
        """`get_many` without its checks."""
        return self._values.take(indices)

    def set_many(self, indices: np.ndarray, values: np.ndarray | float) -> None:
        """Set many values at once; for an index that occurs twice, the last value counts.

        Args:
            indices: Integers [n] in ``[0, capacity)``.
            values: Numbers [n], or one number for all.

        Raises:
            DataError: A value is NaN, or the subclass does not allow it (negative values).
            IndexError: An index is out of range. In both cases nothing is changed.
        """
        indices = np.asarray(indices)
        values = np.asarray(values, dtype=np.float64)
        if values.ndim and values.shape != indices.shape:
            raise DataError(
                f"{values.size} values (shape {values.shape}) for {indices.size} indices "
                f"(shape {indices.shape})"
            )
        if indices.size == 0:
            return
        self._check_indices(indices)
        self._check_values(values)
        self.set_trusted(indices, values)

    def set_trusted(self, indices: np.ndarray, values: np.ndarray | float) -> None:
        """`set_many` without its checks, which take as long as setting a small batch."""
        self._levels[0][indices] = values
        self._changed = True
        self._note(indices)

    def _note(self, indices: np.ndarray) -> None:
        """Mark the blocks of these numbers to be reduced at the next query."""
        self._waiting.append((indices >> _SHIFT).reshape(-1))
        self._waiting_count += indices.size
        if self._waiting_count > _MOST_WAITING:
            self._settle()

    def _settle(self) -> None:
        if not self._waiting:
            return
        waiting = self._waiting
        nodes = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
        self._waiting, self._waiting_count = [], 0
        for blocks, parents in zip(self._blocks, self._levels[1:]):
            parents[nodes] = self._reduce_blocks(blocks.take(nodes, axis=0))
            nodes = nodes >> _SHIFT

    def _reduce_blocks(self, blocks: np.ndarray) -> np.ndarray:
        # Pairwise: numpy's own reduction takes several times as long for such short rows.
        while blocks.shape[1] > 1:
            blocks = self.operation(blocks[:, ::2], blocks[:, 1::2])
        return blocks[:, 0]

    def __getitem__(self, idx: int | slice) -> float | np.ndarray:
        if isinstance(idx, slice):
            return self._values[idx].copy()
        return float(self._values[self._checked_index(idx)])

    def __setitem__(self, idx: int | slice | np.ndarray, val: float | np.ndarray) -> None:
        if isinstance(idx, int | np.integer):
            self.set_many(np.array([self._checked_index(idx)]), np.array([val], dtype=np.float64))
        elif isinstance(idx, slice):
            self.set_many(np.arange(*idx.indices(self.capacity)), val)
        else:
            self.set_many(idx, val)

    def __len__(self) -> int:
        return self.capacity

    def _reduce_all(self) -> float:
        if self._changed:
            self._settle()
            self._refresh(self._levels[-1])
            self._changed = False
        return self._reduced

    def _refresh(self, top: np.ndarray) -> None:
        self._reduced = float(self.operation.reduce(top))

    def _checked_index(self, idx: int) -> int:
        if not -self.capacity <= idx < self.capacity:
            raise IndexError(f"index {idx} is outside a tree of {self.capacity}")
        return int(idx) % self.capacity

    def _check_indices(self, indices: np.ndarray) -> None:
        if indices.dtype.kind not in "iu":
            raise IndexError(f"indices must be integers, got {indices.dtype}")
        if indices.size and (indices.min() < 0 or indices.max() >= self.capacity):
            raise IndexError(
                f"indices must be in [0, {self.capacity}), got {indices.min()} to {indices.max()}"
            )

    def _check_values(self, values: np.ndarray) -> None:
        if np.isnan(values.min()):
            raise DataError(f"NaN cannot be stored in a tree: {_first(values, np.isnan(values))}")


#: Sums and running sums of blocks as matrix products, which are several times faster in numpy than
#: sums along short rows.
_ONES = np.ones(_FANOUT)
_RUNNING = np.triu(np.ones((_FANOUT, _FANOUT)))


class SumSegmentTree(SegmentTree):
    """Segment tree for sums of finite, non-negative numbers."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, operator.add, 0.0)

    @property
    def total(self) -> float:
        """The sum of all values."""
        return self._reduce_all()

    def find_prefixsum_idx(self, prefixsum: float, trust_caller: bool = True) -> int:
        """The largest index such that the sum of all values before it is at most `prefixsum`.

        Args:
            trust_caller: Whether to skip the check that ``0 <= prefixsum <= total``.
        """
        if not trust_caller and not 0 <= prefixsum <= self.total * (1 + 1e-9):
            raise DataError(f"prefixsum must be in [0, {self.total}], got {prefixsum}")
        return int(self.find_prefixsum_many(np.array([prefixsum]))[0])

    def find_prefixsum_many(self, prefixsums: np.ndarray) -> np.ndarray:
        """`find_prefixsum_idx` for many prefix sums: int64 [n] for float [n].

        For prefix sums of at least the total, this is the last index with a positive value. Indices
        with the value zero are never returned.

        Raises:
            DataError: All values are zero.
        """
        total = self.total
        if total <= 0:
            raise DataError("no value in the tree is above zero: there is nothing to find")
        rest = np.minimum(prefixsums, math.nextafter(total, 0.0))
        nodes = self._running.searchsorted(rest, side="right")
        rest -= self._before.take(nodes)
        for blocks in reversed(self._blocks):
            running = blocks.take(nodes, 0).dot(_RUNNING)
            sums = running[:, -1]
            if np.count_nonzero(rest >= sums):
                # Rounding may make the rest as large as the block's sum: keep it below.
                np.minimum(rest, np.nextafter(sums, 0.0), out=rest)
            children = (running <= rest[:, None]).argmin(axis=1)
            if blocks is not self._blocks[0]:
                before = running[np.arange(len(nodes)), children - 1]
                rest -= np.where(children > 0, before, 0.0)
            nodes = nodes * _FANOUT + children
        return nodes

    def _reduce_blocks(self, blocks: np.ndarray) -> np.ndarray:
        return blocks.dot(_ONES)

    def _refresh(self, top: np.ndarray) -> None:
        running = np.empty(top.size + 1)
        running[0] = 0.0
        np.cumsum(top, out=running[1:])
        self._before, self._running = running[:-1], running[1:]
        self._reduced = float(running[-1])

    def _check_values(self, values: np.ndarray) -> None:
        if not (values.min() >= 0 and values.max() < np.inf):
            bad = ~((values >= 0) & (values < np.inf))
            raise DataError(
                f"a sum tree takes finite values that are not negative: {_first(values, bad)}"
            )


class MinSegmentTree(SegmentTree):
    """Segment tree for minima of non-negative numbers; the initial value is infinity."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, min, np.inf)

    @property
    def min(self) -> float:
        """The minimum of all values."""
        return self._reduce_all()

    def set_trusted(self, indices: np.ndarray, values: np.ndarray | float) -> None:
        leaves = self._levels[0]
        if self._changed or not indices.size:
            leaves[indices] = values
        else:
            # Usually, the minimum is not among the changed values and need not be recomputed.
            before = _least(leaves.take(indices))
            leaves[indices] = values
            after = _least(leaves.take(indices))
            if after <= self._reduced:
                self._reduced = after
            elif before <= self._reduced:
                self._changed = True
        self._note(indices)

    def _check_values(self, values: np.ndarray) -> None:
        if not values.min() >= 0:
            raise DataError(
                f"a min tree takes values that are not negative: {_first(values, ~(values >= 0))}"
            )


def _least(values: np.ndarray) -> float:
    # For few numbers, this is several times faster than `min`.
    return float(values.flat[values.argmin()])


def _first(values: np.ndarray, bad: np.ndarray) -> str:
    where = int(np.flatnonzero(bad)[0])
    return f"got {np.ravel(values)[where]} at position {where} of {values.size}"
