"""Rows with the same columns, in preallocated arrays."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ding.data.arrays import (
    Form,
    IndexedColumn,
    Item,
    Key,
    MoreColumns,
    Stored,
    StoredLeaf,
    gathered,
    nested,
    path_of,
    shown,
)
from ding.data.columns import Columns
from ding.data.frame_store import MIN_FRAME_BYTES, FramePair
from ding.data.greys import Frames, as_greys
from ding.data.memory import allocate, warn_if_large
from ding.utils.types import Tree

#: Number of rows that decide whether images are stored as bytes.
_LOOK = 64
_DTYPE, _BFLOAT16, _from_numpy = torch.dtype, torch.bfloat16, torch.from_numpy


class ColumnStore:
    """A fixed number of slots for rows with the same columns.

    Args:
        capacity: Number of slots.
        columns: The first rows, which determine names, forms, dtypes and shapes.
        folder: Folder for memory-mapped files; None keeps the columns in memory.
    """

    def __init__(self, capacity: int, columns: Stored, folder: str | None) -> None:
        self.capacity = capacity
        self._folder = folder
        #: Replaced by a new object when stored rows are converted to a wider dtype.
        self.version = object()
        self._forms: dict[Key, Form] = {key: form for key, (_, form) in columns.items()}
        self._is_nested = any(isinstance(key, tuple) for key in columns)
        #: Dtype, and shape of a row, by name.
        self._kinds = {key: _kind(leaf) for key, (leaf, _) in columns.items()}
        following = _following(columns)
        once = {key: leaf for key, (leaf, _) in columns.items() if key not in following.values()}
        greys = {key: as_greys(gathered(columns[key][0][:_LOOK])) for key in following}
        scales = {key: found[0] for key, found in greys.items() if found}
        self.row_bytes = sum(
            _size(leaf) // (leaf.dtype.itemsize if key in scales else 1)
            for key, leaf in once.items()
        )
        warn_if_large(capacity * self.row_bytes, folder)
        self._arrays: dict[Key, np.ndarray] = {}
        #: Large observations, stored once for the two columns that refer to them.
        self._pairs: list[tuple[FramePair, Key, Key]] = []
        for key in once:
            dtype, shape = self._kinds[key]
            if key in following:
                frames = Frames(dtype, shape, _label(key), folder, scales.get(key))
                pair = FramePair(capacity, frames, _label(key))
                self._pairs.append((pair, key, following[key]))
            else:
                self._arrays[key] = allocate((capacity, *shape), dtype, _label(key), folder)
        self._plan()

    def _plan(self) -> None:
        """Prepare the lists that `take` and `write_row` iterate over."""
        takes: dict[Key, Callable[..., np.ndarray]] = {k: a.take for k, a in self._arrays.items()}
        for pair, key, later in self._pairs:
            takes[key], takes[later] = pair.take_first, pair.take_second
        self._takes = [(key, takes[key], form) for key, form in self._forms.items()]
        self._row_targets = [
            (key, array, form := self._forms[key], _scalar(array, form), *self._kinds[key])
            for key, array in self._arrays.items()
        ]

    # ------------------------------------------------------------------ in

    def write(self, where: slice | np.ndarray, columns: Stored) -> bool:
        """Write rows to distinct slots.

        Returns:
            False if the rows have other columns: the caller must store them elsewhere. Some columns
            of these slots may already be overwritten.
        """
        if {key: form for key, (_, form) in columns.items()} != self._forms:
            return False
        for key, target in self._arrays.items():
            value = columns[key][0]
            is_same = value.dtype is target.dtype and value.shape[1:] == target.shape[1:]
            if is_same and type(value) is not IndexedColumn:
                target[where] = value
            elif not self._write_other(key, where, value):
                return False
        for pair, *keys in self._pairs:
            first, second = (columns[key][0] for key in keys)
            if any(_kind(columns[key][0]) != self._kinds[key] for key in keys):
                return False
            pair.write(where, first, second)
        return True

    def _write_other(self, key: Key, where: slice | np.ndarray, value: StoredLeaf) -> bool:
        """Write indexed rows, or rows of another precision: 0 after 0.5, float64 after float32."""
        (dtype, shape), given = self._kinds[key], value.dtype
        # Readers of a tensor rely on its dtype, so the column is not widened.
        if value.shape[1:] != shape or (given != dtype and self._forms[key] is not None):
            return False
        if given != dtype:
            common = np.promote_types(dtype, given)
            # numpy promotes int64 and float32 to float64, which is neither of the given dtypes.
            if common not in (dtype, given):
                return False
            if common != dtype:
                self._widen(key, common, shape)
        elif isinstance(value, IndexedColumn) and type(where) is slice:
            value.source.take(value.index, 0, self._arrays[key][where])
            return True
        self._arrays[key][where] = gathered(value)
        return True

    def _widen(self, key: Key, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        wide = allocate((self.capacity, *shape), dtype, _label(key), self._folder)
        wide[:] = self._arrays[key]
        self._arrays[key], self._kinds[key] = wide, (dtype, shape)
        self.version = object()
        self._plan()

    def write_row(self, slot: int, row: Mapping[Key, Item]) -> bool:
        """Write a row dict directly into its slot.

        Returns:
            False if the row has other columns: the caller must store it elsewhere. Some values of
            the slot may already be overwritten.
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

    def take(self, index: np.ndarray, more: MoreColumns | None) -> Columns:
        """Gather rows into new memory, with ``more`` columns.

        Raises:
            IndexError: A slot is out of range.
        """
        found: dict[Any, Tree] = {}
        for key, take, form in self._takes:
            array = take(index, 0)
            is_plain = type(form) is _DTYPE and form is not _BFLOAT16
            found[key] = _from_numpy(array) if is_plain else shown(array, form)
        return Columns.trusted(nested(found) if self._is_nested else found, len(index), more)

    # ------------------------------------------------------------------ state

    @property
    def fits_files(self) -> bool:
        """Whether the rows can be stored in files of tensors."""
        dtypes = [dtype for dtype, _ in self._kinds.values()]
        return all(dtype.kind in "biuf" and dtype.itemsize <= 8 for dtype in dtypes)

    def rows(self, slots: np.ndarray) -> Columns:
        """A copy of rows, except for frames, which are indices into the stored frames."""
        leaves: dict[Key, StoredLeaf] = {k: a.take(slots, 0) for k, a in self._arrays.items()}
        for pair, key, later in self._pairs:
            leaves[key], leaves[later] = pair.indexed(slots)
        return Columns.of_stored({key: (leaves[key], form) for key, form in self._forms.items()})


def _following(columns: Stored) -> dict[Key, Key]:
    """Columns of large observations, each mapped to its ``next_obs`` column of the same kind."""
    kinds = {key: (_kind(leaf), form) for key, (leaf, form) in columns.items()}
    later: dict[Key, Key] = {}
    for key, (leaf, _) in columns.items():
        first, *rest = path_of(key)
        following = ("next_obs", *rest) if rest else "next_obs"
        is_big = first == "obs" and _size(leaf) >= MIN_FRAME_BYTES
        if is_big and kinds.get(following) == kinds[key]:
            later[key] = following
    return later


def _size(leaf: StoredLeaf) -> int:
    return leaf.dtype.itemsize * math.prod(leaf.shape[1:])


def _kind(leaf: StoredLeaf) -> tuple[np.dtype, tuple[int, ...]]:
    return leaf.dtype, leaf.shape[1:]


def _scalar(array: np.ndarray, form: Form) -> type | None:
    """The Python type that can be written into this column without a conversion."""
    is_exact = form is None and array.ndim == 1 and array.dtype in (np.bool_, np.int64, np.float64)
    return {"b": bool, "i": int, "f": float}[array.dtype.kind] if is_exact else None


def _label(key: Key) -> str:
    return ".".join(map(str, path_of(key)))
