"""Rows of one kind in preallocated columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ding.data.field import Field
from ding.data.frame_store import MIN_FRAME_BYTES, FramePair
from ding.data.indexed_column import IndexedColumn
from ding.data.packing import packed, unpacked
from ding.data.preallocate import Preallocator
from ding.data.tree import Path, tree_paths

#: A field, its name, whether it is a tensor, dtype and shape of its array, and where that goes.
_Usual = tuple[Field, Any, bool, np.dtype | None, tuple[int, ...], np.ndarray]


class ColumnStore:
    """A fixed number of slots for rows of one kind.

    Args:
        capacity: Number of slots.
        columns: The first rows to come: names, dtypes and shapes are theirs.
        preallocator: Where arrays come from.

    Raises:
        DataError: A column that cannot be stored as an array.
    """

    def __init__(
        self, capacity: int, columns: Mapping[str, Any], preallocator: Preallocator
    ) -> None:
        self.capacity = capacity
        self._preallocator = preallocator
        #: Changes when what is stored is stored otherwise from then on.
        self.version = 0
        flat = dict(tree_paths(columns))
        self._nested = any(len(path) > 1 for path in flat)
        self._fields = [Field(path, leaf) for path, leaf in flat.items()]
        self._keys = flat.keys() if self._nested else columns.keys()
        following = self._paired()
        kept_once = following.values()
        self._plain = [i for i in range(len(flat)) if i not in following and i not in kept_once]
        self.row_bytes = sum(
            field.row_bytes for i, field in enumerate(self._fields) if i not in kept_once
        )
        preallocator.announce(capacity * self.row_bytes)
        for i in self._plain:
            field = self._fields[i]
            field.use(preallocator.empty((capacity, *field.shape), field.dtype, field.path))
        #: Big observations, kept once for the two fields that refer to them, whose numbers follow.
        self._pairs: list[tuple[FramePair, int, int]] = []
        for i, j in following.items():
            pair = FramePair(capacity, self._fields[i], preallocator)
            self._fields[i].take, self._fields[j].take = pair.take_first, pair.take_second
            self._pairs.append((pair, i, j))
        self._plan()

    def _paired(self) -> dict[int, int]:
        """Fields of big observations by number, and for each that of the next observation."""
        at = {field.path: i for i, field in enumerate(self._fields)}
        found = {}
        for path, i in at.items():
            j = at.get(("next_obs", *path[1:])) if path[0] == "obs" else None
            if j is None or self._fields[i].row_bytes < MIN_FRAME_BYTES:
                continue
            one, other = self._fields[i], self._fields[j]
            same = one.dtype == other.dtype and one.torch_dtype is other.torch_dtype
            if same and one.shape == other.shape:
                found[i] = j
        return found

    def _plan(self) -> None:
        """Lay out what the hot paths go through."""
        fields = self._fields
        self._names: list[Any] = [f.path if self._nested else f.path[0] for f in fields]
        self._taking = [(n, f.take, f.leave) for n, f in zip(self._names, fields)]
        self._usual: list[_Usual] = []
        for field, name in ((fields[i], self._names[i]) for i in self._plain):
            dtype = field.dtype if field.is_usual else None
            is_tensor = field.torch_dtype is not None
            self._usual.append((field, name, is_tensor, dtype, field.shape, field.array))
        self._usual_rows: list[_Usual] = []
        self._usual_count = -1

    def _usual_for(self, n: int) -> list[_Usual]:
        """What n rows of the usual kinds of columns look like, and where each goes."""
        if n != self._usual_count:
            self._usual_rows = [(*head, (n, *shape), to) for *head, shape, to in self._usual]
            self._usual_count = n
        return self._usual_rows

    # ------------------------------------------------------------------ in

    def write(self, start: int, columns: Mapping[str, Any], rows: range) -> bool:
        """Write these rows of columns from slot `start` on, around the end if need be.

        Returns:
            False for rows of another kind: the slots are to be written by other means, and some of
            the columns may already be there.
        """
        flat: Mapping[Any, Any] = dict(tree_paths(columns)) if self._nested else columns
        if len(flat) != len(self._fields):
            return False
        n, room = len(rows), self.capacity - start
        if n > room:
            return self.write(start, columns, rows[:room]) and self.write(0, columns, rows[room:])
        span = slice(start, start + n)
        tensor = tensors_array = None
        for field, name, is_tensor, dtype, shape, target in self._usual_for(n):
            value: Any = flat.get(name)
            # What is common first, and without a call.
            try:
                if type(value) is IndexedColumn:
                    source = value.source
                    if is_tensor:
                        # Mostly the same for ``obs`` and ``next_obs``.
                        if source is not tensor:
                            tensor, tensors_array = source, source.numpy()
                        source = tensors_array
                    if source.dtype is dtype and source.shape[1:] == shape[1:]:
                        index = value.index
                        index = index if len(index) == n else index[rows.start : rows.stop]
                        source.take(index, 0, target[span])
                        continue
                else:
                    array = value.numpy() if is_tensor else value
                    fits = array.shape == shape
                    if not fits:
                        array = array[rows.start : rows.stop]
                        fits = array.shape == shape
                    if fits and array.dtype is dtype:
                        target[span] = array
                        continue
            except (AttributeError, TypeError, RuntimeError):
                pass  # a value of another kind
            if not self._write_unusual(field, span, value, rows):
                return False
        for pair, *both in self._pairs:
            found = [self._fields[i].accept(flat.get(self._names[i]), rows) for i in both]
            if found[0] is None or found[1] is None:
                return False
            pair.write(start, found[0], found[1])
        return True

    def _write_unusual(self, field: Field, span: slice, value: Any, rows: range) -> bool:
        array = field.accept(value, rows)
        if array is None:
            # Rows that differ in precision alone: 0 where 0.5 was, float64 where float32 was.
            dtype = field.wider(value)
            if dtype is None:
                return False
            if dtype != field.dtype:
                self._widen(field, dtype)
            array = value[rows.start : rows.stop]
        field.array[span] = array.gathered() if isinstance(array, IndexedColumn) else array
        return True

    def _widen(self, field: Field, dtype: np.dtype) -> None:
        wide = self._preallocator.empty((self.capacity, *field.shape), dtype, field.path)
        wide[:] = field.array
        field.use(wide)
        field.dtype, field.scalar = dtype, None
        self.version += 1
        self._plan()

    def write_row(self, slot: int, row: Mapping[str, Any]) -> bool:
        """Write a row dict straight into its slot.

        False means that the slot is to be written by other means: some of the values may already
        be there.
        """
        if self._nested or self._pairs or row.keys() != self._keys:
            return False
        try:
            for field, name, is_tensor, dtype, shape, target in self._usual:
                value = row[name]
                if type(value) is not field.scalar:
                    if is_tensor:
                        value = value.numpy()
                    if value.dtype != dtype or value.shape != shape:
                        return False
                target[slot] = value
        except (AttributeError, TypeError, RuntimeError):
            return False
        return True

    # ------------------------------------------------------------------ out

    def take(self, index: np.ndarray) -> dict[str, Any]:
        """Gather rows into fresh memory: columns of the kinds that came in.

        Raises:
            IndexError: A slot that there is not.
        """
        out = {}
        for name, take, leave in self._taking:
            values = take(index, 0)
            out[name] = values if leave is None else leave(values)
        return _nest(out) if self._nested else out

    # ------------------------------------------------------------------ state

    def state_dict(self, filled: int) -> dict[str, Any]:
        """A copy of the first `filled` slots; frames that are shared stay shared."""
        plain = {}
        for i in self._plain:
            field = self._fields[i]
            values = field.array[:filled].copy()
            plain[field.path] = packed(values if field.leave is None else field.leave(values))
        frames = {
            self._fields[i].path: {
                **pair.state_dict(filled),
                "torch": self._fields[i].torch_dtype is not None,
            }
            for pair, i, _ in self._pairs
        }
        names = [field.path for field in self._fields]
        return {"names": names, "plain": plain, "frames": frames}

    def raw(self, slots: np.ndarray) -> dict[str, np.ndarray]:
        """A copy of rows as bytes, by the fields' positions; frames that are shared come once."""
        out = {}
        for i in self._plain:
            values = self._fields[i].array.take(slots, 0)
            out[str(i)] = values.reshape(-1).view(np.uint8)
        for pair, i, _ in self._pairs:
            frames, first, second = pair.rows(slots)
            out[f"{i}.frames"] = frames.reshape(-1).view(np.uint8)
            out[f"{i}.first"], out[f"{i}.second"] = first, second
        return out

    def write_raw(self, start: int, raw: Mapping[str, np.ndarray], n: int, skipped: int) -> None:
        """Write the n rows that `raw` gave, but the first `skipped`, from `start` on."""
        arrays: dict[int, np.ndarray] = {}
        for i in self._plain:
            field = self._fields[i]
            arrays[i] = raw[str(i)].view(field.dtype).reshape(n, *field.shape)
        for _, i, j in self._pairs:
            field = self._fields[i]
            frames = raw[f"{i}.frames"].view(field.dtype).reshape(-1, *field.shape)
            arrays[i], arrays[j] = frames[raw[f"{i}.first"]], frames[raw[f"{i}.second"]]
        leaves = {self._fields[i].path: (self._fields[i].leave, a) for i, a in arrays.items()}
        columns = {path: a if leave is None else leave(a) for path, (leave, a) in leaves.items()}
        self.write(start, _nest(columns), range(skipped, n))

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        order: np.ndarray,
        capacity: int,
        preallocator: Preallocator,
    ) -> "ColumnStore":
        """A store whose slots from 0 on hold the slots `order` of the one that was saved."""
        columns = {path: unpacked(value) for path, value in state["plain"].items()}
        both: dict[Path, np.ndarray] = {}
        for path, pair in state["frames"].items():
            frames = torch.from_numpy(pair["frames"]) if pair["torch"] else pair["frames"]
            for name, rows in ((path, pair["first"]), (("next_obs", *path[1:]), pair["second"])):
                columns[name], both[name] = frames, rows[order]
        named = {
            path: IndexedColumn(columns[path], both.get(path, order)) for path in state["names"]
        }
        store = cls(capacity, _nest(named), preallocator)
        if len(order):
            store.write(0, _nest(named), range(len(order)))
        return store


def _nest(flat: Mapping[Path, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        home = nested
        for name in path[:-1]:
            home = home.setdefault(name, {})
        home[path[-1]] = value
    return nested
