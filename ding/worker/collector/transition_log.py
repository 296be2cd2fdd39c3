"""Transitions in the order in which they happened, in preallocated columns."""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ding.data import tree_map
from ding.utils.errors import DataError
from ding.worker.collector._types import Tree


class TransitionLog:
    """A growing table of transitions of many environments, interleaved in time.

    Columns are allocated with the first rows and double when they are full. What is appended is
    copied here; what leaves by ``gather`` is a copy again, so that the table can be reused while
    its past contents are learned from. Large columns leave by ``whole`` and ``keep(given=...)``,
    without a copy.
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
        if columns.keys() != self._columns.keys():
            self._allocate(columns)
        self.append_part(count, columns)

    def append_part(self, count: int, columns: Mapping[str, Tree]) -> None:
        """Copy rows that have nothing to say in other columns; see :meth:`append`."""
        start, stop = self._length, self._length + count
        if stop > self._capacity:
            self._grow(stop)
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

    def names(self) -> list[str]:
        return list(self._columns)

    def gather(self, index: np.ndarray, names: Iterable[str]) -> dict[str, Tree]:
        """Copies of the rows ``index`` (int64 ``[m]``) of some columns."""
        return {
            name: tree_map(lambda leaf: leaf.take(index, axis=0), self._columns[name])
            for name in names
        }

    def whole(self, name: str) -> Tree:
        """View of one column's rows so far, nested or not."""
        return tree_map(lambda leaf: leaf[: self._length], self._columns[name])

    def keep(self, index: np.ndarray, given: Collection[str] = ()) -> None:
        """Forget all rows but ``index``, which must ascend.

        Args:
            given: Columns whose arrays others have now: they are not written to any more.
        """
        count = len(index)
        for name in self._columns if count else given:
            is_given = name in given

            def kept(leaf: np.ndarray, is_given: bool = is_given) -> np.ndarray:
                to = np.empty_like(leaf) if is_given else leaf
                to[:count] = leaf.take(index, axis=0)
                return to

            self._columns[name] = tree_map(kept, self._columns[name])
        self._length = count

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
