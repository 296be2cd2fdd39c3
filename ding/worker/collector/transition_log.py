"""Transitions in the order in which they happened, in preallocated columns."""

from typing import Any

import numpy as np

from ding.data import tree_map


class TransitionLog:
    """A growing table of transitions of many environments, interleaved in time.

    Columns are allocated when they are first put and double when they are full. What is put is
    copied here, once; what leaves by ``gather`` is a copy again, so that the table can be reused
    while its past contents are learned from.

    A step's observation must be put before the environments write the next one over it, and its
    reward comes only after: hence ``open``, ``put`` ..., ``commit``. Rows that an exception left
    open never happened.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}
        self._capacity = 0
        self._length = 0
        self._stop = 0

    def __len__(self) -> int:
        return self._length

    def open(self, count: int) -> None:
        """Make room for ``count`` transitions, which ``put`` fills column by column."""
        self._stop = self._length + count
        if self._stop > self._capacity:
            self._grow(self._stop)

    def put(self, name: str, values: Any) -> None:
        """Copy one column of the open rows: ``[count, ...]``, a nested dict of such, or one number
        for all of them."""
        store = self._columns.get(name)
        if store is None:
            store = tree_map(lambda leaf: _allocate(self._capacity, leaf), values)
            self._columns[name] = store
        _write(store, self._length, self._stop, values)

    def commit(self) -> None:
        """The open rows are complete."""
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


def _write(store: Any, start: int, stop: int, values: Any) -> None:
    if isinstance(store, dict):
        for name, part in store.items():
            _write(part, start, stop, values[name])
    else:
        store[start:stop] = values
