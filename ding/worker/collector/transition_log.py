"""Transitions in the order in which they happened, in preallocated columns."""

from collections.abc import Mapping

import numpy as np

from ding.data import tree_map
from ding.utils.errors import DataError
from ding.worker.collector.steps import Tree


class TransitionLog:
    """A growing table of transitions of many environments, interleaved in time.

    Columns are allocated with the first rows and double when they are full. What is appended is
    copied here; what leaves by ``gather`` is a copy again, so that the table can be reused while
    its past contents are learned from.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Tree] = {}
        self._capacity = 0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def append(self, count: int, columns: Mapping[str, Tree]) -> None:
        """Copy rows; a column becomes as wide as what comes needs: float64 after float32.

        Args:
            count: How many.
            columns: ``[count, ...]`` each, nested dicts of such, or one number for all rows.

        Raises:
            DataError: There are other columns than in the rows so far.
        """
        start, stop = self._length, self._length + count
        if stop > self._capacity:
            self._grow(stop)
        if columns.keys() != self._columns.keys():
            self._allocate(columns)
        for name, values in columns.items():
            store = self._columns[name]
            if (
                isinstance(store, np.ndarray)
                and getattr(values, "dtype", store.dtype) == store.dtype
            ):
                store[start:stop] = values
            else:
                self._columns[name] = _write(store, start, stop, values)
        self._length = stop

    def add_missing(self, name: str, like: Tree, value: float) -> None:
        """Have a column from here on, of the kind of `like`; the rows so far get `value`."""
        if name not in self._columns and self._length:
            self._columns[name] = column = _empty(self._capacity, like)
            column[: self._length] = value

    def column(self, name: str) -> np.ndarray:
        """View of one column's rows so far."""
        column: np.ndarray = self._columns[name][: self._length]
        return column

    def gather(self, index: np.ndarray) -> dict[str, Tree]:
        """Copies of the rows ``index`` (int64 ``[m]``) of all columns."""
        return {
            name: tree_map(lambda leaf: leaf.take(index, axis=0), column)
            for name, column in self._columns.items()
        }

    def keep(self, index: np.ndarray) -> None:
        """Forget all rows but ``index``, which must ascend."""
        if len(index):

            def move(leaf: np.ndarray) -> None:
                leaf[: len(index)] = leaf.take(index, axis=0)

            for column in self._columns.values():
                tree_map(move, column)
        self._length = len(index)

    def _allocate(self, columns: Mapping[str, Tree]) -> None:
        if self._length:
            raise DataError(
                f"columns {', '.join(columns)} came after {self._length} transitions of "
                f"{', '.join(self._columns)}: a policy must return the same outputs at each step"
            )
        self._columns = {
            name: tree_map(lambda leaf: _empty(self._capacity, leaf), values)
            for name, values in columns.items()
        }

    def _grow(self, needed: int) -> None:
        self._capacity = max(2 * self._capacity, needed, 64)

        def extend(leaf: np.ndarray) -> np.ndarray:
            larger = _empty(self._capacity, leaf)
            larger[: self._length] = leaf[: self._length]
            return larger

        self._columns = {name: tree_map(extend, col) for name, col in self._columns.items()}


def _empty(capacity: int, like: Tree) -> np.ndarray:
    like = np.asarray(like)
    return np.empty((capacity, *like.shape[1:]), like.dtype)


def _write(store: Tree, start: int, stop: int, values: Tree) -> Tree:
    """Write rows; returns the store, or the wider one that values of another dtype need."""
    if isinstance(store, dict):
        return {name: _write(part, start, stop, values[name]) for name, part in store.items()}
    dtype = getattr(values, "dtype", store.dtype)
    if dtype != store.dtype:
        wide = np.promote_types(store.dtype, dtype)
        if wide != store.dtype:
            narrow, store = store, np.empty(store.shape, wide)
            store[:start] = narrow[:start]
    store[start:stop] = values
    return store
