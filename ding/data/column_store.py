"""Rows of one kind in preallocated columns."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ding.data.arrays import (
    Arrays,
    Form,
    Key,
    StoredLeaf,
    arrays_of,
    key_of,
    nested,
    path_of,
    shown,
)
from ding.data.frame_store import MIN_FRAME_BYTES, FramePair
from ding.data.indexed_column import IndexedColumn
from ding.data.packing import packed, unpacked
from ding.data.preallocate import Preallocator
from ding.utils.errors import DataError


class ColumnStore:
    """A fixed number of slots for rows of one kind.

    Args:
        capacity: Number of slots.
        arrays: The first rows to come: names, forms, dtypes and shapes are theirs.
        preallocator: Where arrays come from.
    """

    def __init__(self, capacity: int, arrays: Arrays, preallocator: Preallocator) -> None:
        self.capacity = capacity
        self._preallocator = preallocator
        #: Another object when rows that are stored are changed, to a wider dtype.
        self.version = object()
        self._forms = arrays.forms
        #: Dtype, and shape of a row, by name.
        self._kinds = {key: _kind(leaf) for key, leaf in arrays.leaves.items()}
        following = _following(arrays)
        kept_once = set(following.values())
        self.row_bytes = row_bytes(arrays)
        preallocator.announce(capacity * self.row_bytes)
        self._arrays: dict[Key, np.ndarray] = {}
        #: Big observations, kept once for the two columns that refer to them.
        self._pairs: list[tuple[FramePair, Key, Key]] = []
        for key, (dtype, shape) in self._kinds.items():
            if key in following:
                pair = FramePair(capacity, dtype, shape, _label(key), preallocator)
                self._pairs.append((pair, key, following[key]))
            elif key not in kept_once:
                self._arrays[key] = preallocator.empty((capacity, *shape), dtype, _label(key))
        self._plan()

    def _plan(self) -> None:
        """Lay out what the hot paths go through."""
        takes: dict[Key, Callable[..., np.ndarray]] = {k: a.take for k, a in self._arrays.items()}
        for pair, key, later in self._pairs:
            takes[key], takes[later] = pair.take_first, pair.take_second
        self._takes = [(key, takes[key]) for key in self._forms]
        self._targets: list[tuple[Key, np.ndarray, np.dtype, tuple[int, ...]]] = []
        self._target_rows = -1
        self._row_targets = [
            (key, array, form := self._forms[key], _scalar(array, form), *self._kinds[key])
            for key, array in self._arrays.items()
        ]

    def _targets_for(self, n: int) -> list[tuple[Key, np.ndarray, np.dtype, tuple[int, ...]]]:
        """Where the arrays of n rows go, and what they look like mostly."""
        if n != self._target_rows:
            self._targets = [
                (key, array, array.dtype, (n, *array.shape[1:]))
                for key, array in self._arrays.items()
            ]
            self._target_rows = n
        return self._targets

    # ------------------------------------------------------------------ in

    def write(self, where: slice | np.ndarray, arrays: Arrays, rows: range) -> bool:
        """Write these rows of columns to slots, each of which is named once.

        Returns:
            False for rows of another kind: the slots are to be written by other means, and some of
            the columns may already be there.
        """
        if arrays.forms is not self._forms and arrays.forms != self._forms:
            return False
        leaves = arrays.leaves
        for key, target, dtype, shape in self._targets_for(len(rows)):
            value = leaves[key]
            if type(value) is IndexedColumn:
                source = value.source
                if source.dtype is dtype and source.shape[1:] == shape[1:]:
                    index = value.index[rows.start : rows.stop]
                    if type(where) is slice:
                        source.take(index, 0, target[where])
                    else:
                        target[where] = source.take(index, 0)
                    continue
            elif value.dtype is dtype:
                part = value if value.shape == shape else value[rows.start : rows.stop]
                if part is value or part.shape == shape:
                    target[where] = part
                    continue
            if not self._write_wider(key, where, value, rows):
                return False
        for pair, *keys in self._pairs:
            both = [leaves[key] for key in keys]
            if any(_kind(leaf) != self._kinds[key] for key, leaf in zip(keys, both)):
                return False
            pair.write(where, *(leaf[rows.start : rows.stop] for leaf in both))
        return True

    def _write_wider(
        self, key: Key, where: slice | np.ndarray, value: StoredLeaf, rows: range
    ) -> bool:
        """Write rows that differ in precision: 0 where 0.5 was, float64 where float32 was."""
        (dtype, shape), (given, given_shape) = self._kinds[key], _kind(value)
        if given_shape != shape or (given != dtype and self._forms[key] is not None):
            return False
        common = np.promote_types(dtype, given)
        if common not in (dtype, given):
            return False
        if common != dtype:
            self._widen(key, common, shape)
        part = value[rows.start : rows.stop]
        self._arrays[key][where] = part.gathered() if isinstance(part, IndexedColumn) else part
        return True

    def _widen(self, key: Key, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        wide = self._preallocator.empty((self.capacity, *shape), dtype, _label(key))
        wide[:] = self._arrays[key]
        self._arrays[key], self._kinds[key] = wide, (dtype, shape)
        self.version = object()
        self._plan()

    def write_row(self, slot: int, row: Mapping[Any, Any]) -> bool:
        """Write a row dict straight into its slot.

        False means that the slot is to be written by other means: some of the values may already
        be there.
        """
        if self._pairs or row.keys() != self._forms.keys():
            return False
        try:
            for key, target, form, scalar, dtype, shape in self._row_targets:
                value = row[key]
                if type(value) is not scalar:
                    if form is not None:
                        value = value.numpy()
                    if value.dtype != dtype or value.shape != shape:
                        return False
                target[slot] = value
        except (AttributeError, TypeError, RuntimeError):
            return False
        return True

    # ------------------------------------------------------------------ out

    def take(self, index: np.ndarray) -> Arrays:
        """Gather rows into fresh memory.

        Raises:
            IndexError: A slot that there is not.
        """
        return Arrays({key: take(index, 0) for key, take in self._takes}, self._forms)

    # ------------------------------------------------------------------ state

    def layout(self) -> dict[str, Any]:
        """What rows look like, for `of_layout`: each column without rows."""
        return {
            "names": [path_of(key) for key in self._forms],
            "columns": [
                packed(shown(np.empty((0, *shape), dtype), self._forms[key]))
                for key, (dtype, shape) in ((key, self._kinds[key]) for key in self._forms)
            ],
        }

    @classmethod
    def of_layout(
        cls, layout: Mapping[str, Any], capacity: int, preallocator: Preallocator
    ) -> "ColumnStore":
        """A store for rows that look like those of another one."""
        columns = {
            key_of(tuple(path)): unpacked(column)
            for path, column in zip(layout["names"], layout["columns"], strict=True)
        }
        arrays = arrays_of(nested(columns))
        if arrays is None:
            raise DataError("the columns of this state are not numbers")
        return cls(capacity, arrays, preallocator)

    def raw(self, slots: np.ndarray) -> dict[str, np.ndarray]:
        """A copy of rows as bytes, by the columns' positions; frames that are shared come once."""
        at = {key: i for i, key in enumerate(self._forms)}
        out = {}
        for key, array in self._arrays.items():
            out[str(at[key])] = array.take(slots, 0).reshape(-1).view(np.uint8)
        for pair, key, _ in self._pairs:
            frames, first, second = pair.rows(slots)
            out[f"{at[key]}.frames"] = frames.reshape(-1).view(np.uint8)
            out[f"{at[key]}.first"], out[f"{at[key]}.second"] = first, second
        return out

    def write_raw(
        self, slots: np.ndarray, raw: Mapping[str, np.ndarray], n: int, rows: np.ndarray
    ) -> None:
        """Write to slots those of the n rows that `raw` gave whose positions are `rows`."""
        at = {key: i for i, key in enumerate(self._forms)}
        leaves: dict[Key, StoredLeaf] = {}
        for key in self._arrays:
            dtype, shape = self._kinds[key]
            column = raw[str(at[key])].view(dtype).reshape(n, *shape)
            leaves[key] = IndexedColumn(column, rows)
        for _, key, later in self._pairs:
            dtype, shape = self._kinds[key]
            frames = raw[f"{at[key]}.frames"].view(dtype).reshape(-1, *shape)
            leaves[key] = IndexedColumn(frames, raw[f"{at[key]}.first"][rows])
            leaves[later] = IndexedColumn(frames, raw[f"{at[key]}.second"][rows])
        if len(rows):
            self.write(slots, Arrays(leaves, self._forms), range(len(rows)))


def row_bytes(arrays: Arrays) -> int:
    """What a `ColumnStore` of such rows takes for each."""
    kept_once = set(_following(arrays).values())
    return sum(_size(leaf) for key, leaf in arrays.leaves.items() if key not in kept_once)


def _following(arrays: Arrays) -> dict[Key, Key]:
    """Big observations, and for each the next one, if that is of the same kind."""
    leaves, forms, found = arrays.leaves, arrays.forms, {}
    for key, leaf in leaves.items():
        path = path_of(key)
        if path[0] == "obs" and _size(leaf) >= MIN_FRAME_BYTES:
            later = key_of(("next_obs", *path[1:]))
            if (
                later in leaves
                and forms[later] == forms[key]
                and _kind(leaves[later]) == _kind(leaf)
            ):
                found[key] = later
    return found


def _size(leaf: StoredLeaf) -> int:
    return leaf.dtype.itemsize * math.prod(leaf.shape[1:])


def _kind(leaf: StoredLeaf) -> tuple[np.dtype, tuple[int, ...]]:
    return leaf.dtype, leaf.shape[1:]


def _scalar(array: np.ndarray, form: Form) -> type | None:
    """What a number of a row dict is that can be written as it is."""
    is_exact = form is None and array.ndim == 1 and array.dtype in (np.bool_, np.int64, np.float64)
    return {"b": bool, "i": int, "f": float}[array.dtype.kind] if is_exact else None


def _label(key: Key) -> str:
    return ".".join(map(str, path_of(key)))
