"""Rows of one kind in preallocated columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ding.data.field import Field, as_array
from ding.data.frame_store import MIN_FRAME_BYTES, FramePair
from ding.data.indexed_column import IndexedColumn
from ding.data.packing import packed, unpacked
from ding.data.preallocate import Preallocator
from ding.data.tree import Path, tree_paths

#: Rows to be written: as they are, or named by their numbers.
Rows = np.ndarray | IndexedColumn[np.ndarray]

#: Name of a column, whether it is a tensor, dtype and shape of its array, and where that goes.
_Usual = tuple[Any, bool, np.dtype | None, tuple[int, ...], np.ndarray]


class ColumnStore:
    """A fixed number of slots for rows of one kind.

    Args:
        capacity: Number of slots.
        columns: The first rows to come: names, dtypes and shapes are theirs.
        preallocator: Where arrays come from.

    Raises:
        DataError: A column that cannot be stored as an array.
    """

    is_columnar = True

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
        self._pairs, paired = self._pair_frames()
        plain = [field for field in self._fields if field not in paired]
        self._plain = [i for i, field in enumerate(self._fields) if field not in paired]
        self.row_bytes = sum(f.row_bytes for f in plain)
        self.row_bytes += sum(pair.row_bytes for pair, _, _ in self._pairs)
        preallocator.announce(capacity * self.row_bytes)
        for field in plain:
            field.use(preallocator.empty((capacity, *field.shape), field.dtype, field.path))
        for pair, _, _ in self._pairs:
            pair.allocate(preallocator)
        self._plan()

    def _pair_frames(self) -> tuple[list[tuple[FramePair, int, int]], list[Field]]:
        """Big observations, kept once for the two fields that refer to them."""
        at = {field.path: i for i, field in enumerate(self._fields)}
        pairs, paired = [], []
        for path, i in at.items():
            j = at.get(("next_obs", *path[1:])) if path[0] == "obs" else None
            if j is None:
                continue
            first, second = self._fields[i], self._fields[j]
            same = (first.dtype, first.shape, first.torch_dtype) == (
                *(second.dtype, second.shape),
                second.torch_dtype,
            )
            if same and first.row_bytes >= MIN_FRAME_BYTES:
                pair = FramePair(self.capacity, first.dtype, first.shape, path)
                first.take, second.take = pair.take_first, pair.take_second
                pairs.append((pair, i, j))
                paired += [first, second]
        return pairs, paired

    def _plan(self) -> None:
        """Lay out what the hot paths go through."""
        fields = self._fields
        self._names: list[Any] = [f.path if self._nested else f.path[0] for f in fields]
        self._scalars = [f.scalar for f in fields]
        self._taking = [(n, f.take, f.leave) for n, f in zip(self._names, fields)]
        self._usual = [
            (
                name,
                field.torch_dtype is not None,
                field.dtype if field.is_usual else None,
                field.shape,
                field.array,
            )
            for name, field in zip(self._names, fields)
            if not self._pairs
        ]
        self._usual_rows: list[_Usual] = []
        self._usual_count = -1

    def _usual_for(self, n: int) -> list[_Usual]:
        """What n rows of the usual kinds of columns look like, and where each goes."""
        if n != self._usual_count:
            self._usual_rows = [(*head, (n, *shape), to) for *head, shape, to in self._usual]
            self._usual_count = n
        return self._usual_rows

    # ------------------------------------------------------------------ in

    def write_usual(self, start: int, columns: Mapping[str, Any], rows: range) -> bool:
        """Write these rows of columns of the usual kinds from slot `start` on, if there is room.

        As fast as it can be, but not complete. False means that the slots are to be written by
        other means: some of the columns may already be there.
        """
        n = len(rows)
        span = slice(start, start + n)
        flat: Mapping[Any, Any] = dict(tree_paths(columns)) if self._nested else columns
        if span.stop > self.capacity or len(flat) != len(self._usual):
            return False
        try:
            for name, is_tensor, dtype, shape, target in self._usual_for(n):
                array = flat[name]
                if type(array) is IndexedColumn:
                    source = array.source.numpy() if is_tensor else array.source
                    index = array.index if len(array) == n else array.index[rows.start : rows.stop]
                    if source.dtype is not dtype or source.shape[1:] != shape[1:]:
                        return False
                    source.take(index, 0, target[span])
                    continue
                if is_tensor:
                    array = array.numpy()
                if array.shape != shape:
                    array = array[rows.start : rows.stop]
                    if array.shape != shape:
                        return False
                if array.dtype is not dtype:
                    return False
                target[span] = array
        except (AttributeError, TypeError, RuntimeError, KeyError):
            return False
        return True

    def accept(self, columns: Mapping[str, Any]) -> list[Rows] | None:
        """The arrays to :meth:`write`, in the store's order; None for rows of another kind."""
        flat: Mapping[Any, Any] = dict(tree_paths(columns)) if self._nested else columns
        if flat.keys() != self._keys:
            return None
        found = [field.accept(flat[name]) for name, field in zip(self._names, self._fields)]
        arrays = [array for array in found if array is not None]
        return arrays if len(arrays) == len(found) else self._widen(flat, found)

    def _widen(self, flat: Mapping[Any, Any], arrays: list[Rows | None]) -> list[Rows] | None:
        """Rows that differ in precision alone: 0 where 0.5 was, float64 where float32 was."""
        values = [flat[name] for name in self._names]
        misfits = [i for i, array in enumerate(arrays) if array is None]
        dtypes = [(i, self._fields[i].wider(values[i])) for i in misfits]
        if any(dtype is None or i not in self._plain for i, dtype in dtypes):
            return None
        for i, dtype in dtypes:
            field = self._fields[i]
            assert dtype is not None
            if dtype != field.dtype:
                wide = self._preallocator.empty((self.capacity, *field.shape), dtype, field.path)
                wide[:] = field.array
                field.use(wide)
                field.dtype, field.scalar = dtype, None
            arrays[i] = values[i]
        self.version += 1
        self._plan()
        return arrays  # type: ignore[return-value]

    def write(self, start: int, arrays: Sequence[Rows], n: int) -> None:
        """Write n rows from slot `start` on, around the end if need be; n <= capacity."""
        room = self.capacity - start
        if n > room:
            self.write(start, [array[:room] for array in arrays], room)
            start, n, arrays = 0, n - room, [array[room:] for array in arrays]
        span = slice(start, start + n)
        for i in self._plain:
            array, target = arrays[i], self._fields[i].array
            if isinstance(array, IndexedColumn):
                array.source.take(array.index, 0, target[span])
            else:
                target[span] = array
        for pair, i, j in self._pairs:
            pair.write(start, arrays[i], arrays[j])

    def write_row(self, slot: int, row: Mapping[str, Any]) -> bool:
        """Write a row dict straight into its slot.

        False means that the slot is to be written by other means: some of the values may already
        be there.
        """
        if self._nested or self._pairs or row.keys() != self._keys:
            return False
        try:
            for (name, is_tensor, dtype, shape, target), scalar in zip(self._usual, self._scalars):
                value = row[name]
                if type(value) is not scalar:
                    if is_tensor:
                        value = value.numpy()
                    if value.dtype != dtype or value.shape != shape:
                        return self._write_unusual_row(slot, row)
                target[slot] = value
        except (AttributeError, TypeError, RuntimeError):
            return self._write_unusual_row(slot, row)
        return True

    def _write_unusual_row(self, slot: int, row: Mapping[str, Any]) -> bool:
        values = [field.accept_one(row[name]) for name, field in zip(self._names, self._fields)]
        if any(value is None for value in values):
            return False
        for field, value in zip(self._fields, values):
            field.array[slot] = value
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
        """Write the n rows that :meth:`raw` gave, but the first `skipped`, from `start` on."""
        arrays: list[Any] = [None] * len(self._fields)
        for i in self._plain:
            field = self._fields[i]
            arrays[i] = raw[str(i)].view(field.dtype).reshape(n, *field.shape)
        for _, i, j in self._pairs:
            field = self._fields[i]
            frames = raw[f"{i}.frames"].view(field.dtype).reshape(-1, *field.shape)
            arrays[i], arrays[j] = frames[raw[f"{i}.first"]], frames[raw[f"{i}.second"]]
        self.write(start, [array[skipped:] for array in arrays], n - skipped)

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        order: np.ndarray,
        capacity: int,
        preallocator: Preallocator,
    ) -> "ColumnStore":
        """A store whose slots from 0 on hold the slots `order` of the one that was saved."""
        plain = {path: as_array(unpacked(value)) for path, value in state["plain"].items()}
        samples = {path: unpacked(value)[:0] for path, value in state["plain"].items()}
        for path, frames in state["frames"].items():
            empty = frames["frames"][:0]
            for name in (path, ("next_obs", *path[1:])):
                samples[name] = torch.from_numpy(empty) if frames["torch"] else empty
        store = cls(capacity, _nest({path: samples[path] for path in state["names"]}), preallocator)
        for i in store._plain:
            field = store._fields[i]
            saved = plain[field.path]
            assert saved is not None
            field.array[: len(order)] = saved[order]
        for pair, i, _ in store._pairs:
            pair.load_state_dict(state["frames"][store._fields[i].path], order)
        return store


def _nest(flat: Mapping[Path, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        home = nested
        for name in path[:-1]:
            home = home.setdefault(name, {})
        home[path[-1]] = value
    return nested
