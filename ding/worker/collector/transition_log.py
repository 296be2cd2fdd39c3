"""Transitions in the order in which they happened, in preallocated columns."""

from typing import Any

import numpy as np

from ding.data import tree_map
from ding.utils.errors import DataError


class TransitionLog:
    """A growing table of transitions of many environments, interleaved in time.

    Columns are allocated when they are first put and double when they are full. What is put is
    copied here, once; what leaves by ``gather`` is a copy again, so that the table can be reused
    while its past contents are learned from.

    A step's observation must be put before the environments write the next one over it, and its
    reward comes only after: hence ``open``, ``put`` ..., ``commit``. Rows that an exception left
    open never happened. Between ``open`` and ``commit`` each column is put once.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}
        self._capacity = 0
        self._length = 0
        self._stop = 0
        self._puts = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def open(self, count: int) -> None:
        """Make room for ``count`` transitions, which ``put`` fills column by column."""
        self._stop = self._length + count
        self._puts = 0
        if self._stop > self._capacity:
            self._grow(self._stop)

    def put(self, name: str, values: Any, missing: Any = None) -> None:
        """Copy one column of the open rows.

        Args:
            values: ``[count, ...]``, a nested dict of such, or one number for all of them.
            missing: What the rows so far get, if this is a column that they do not have.

        A column becomes as wide as what comes needs: float64 after float32, int64 after int8.

        Raises:
            DataError: A new column that says nothing of the rows so far.
        """
        store = self._columns.get(name)
        if store is None:
            if self._length and missing is None:
                raise DataError(
                    f"column {name!r} came after {self._length} transitions without it: a policy "
                    "must return the same outputs at each step"
                )
            store = tree_map(lambda leaf: _allocate(self._capacity, leaf), values)
            if self._length:
                tree_map(lambda leaf: leaf[: self._length].fill(missing), store)
            self._columns[name] = store
        written = _write(store, self._length, self._stop, values)
        if written is not store:
            self._columns[name] = written
        self._puts += 1

    def commit(self) -> None:
        """The open rows are complete.

        Raises:
            DataError: A column that earlier rows have was not put.
        """
        if self._puts != len(self._columns):
            raise DataError(
                f"{len(self._columns)} columns ({', '.join(self._columns)}) are needed for each "
                f"transition, {self._puts} came: a policy must return the same outputs at each step"
            )
        self._length = self._stop

    def column(self, name: str) -> np.ndarray:
        """View of one column's rows so far."""
        return self._columns[name][: self._length]

    def gather(self, index: np.ndarray, names: list[str]) -> dict[str, Any]:
        """Copies of the rows ``index`` (int64 ``[m]``) of some columns."""
        return {
            name: tree_map(lambda leaf: leaf.take(index, axis=0), self._columns[name])
            for name in names
        }

    def names(self) -> list[str]:
        return list(self._columns)

    def keep(self, index: np.ndarray) -> None:
        """Forget all rows but ``index``, which must ascend."""
        if len(index):

            def move(leaf: np.ndarray) -> None:
                leaf[: len(index)] = leaf.take(index, axis=0)

            for col in self._columns.values():
                tree_map(move, col)
        self._length = len(index)

    def _grow(self, needed: int) -> None:
        self._capacity = max(2 * self._capacity, needed, 64)

        def extend(leaf: np.ndarray) -> np.ndarray:
            larger = _allocate(self._capacity, leaf)
            larger[: self._length] = leaf[: self._length]
            return larger

        self._columns = {name: tree_map(extend, col) for name, col in self._columns.items()}


def _allocate(capacity: int, like: Any) -> np.ndarray:
    like = np.asarray(like)
    return np.empty((capacity, *like.shape[1:]), like.dtype)


def _write(store: Any, start: int, stop: int, values: Any) -> Any:
    """Write rows; returns the store, or the wider one that values of another dtype need."""
    if isinstance(store, dict):
        return {name: _write(part, start, stop, values[name]) for name, part in store.items()}
    dtype = getattr(values, "dtype", store.dtype)
    if dtype != store.dtype:
        wide = np.promote_types(store.dtype, dtype)
        if wide != store.dtype:
            # Only committed rows count; what is beyond was never written.
            narrow, store = store, np.empty(store.shape, wide)
            store[:start] = narrow[:start]
    store[start:stop] = values
    return store
