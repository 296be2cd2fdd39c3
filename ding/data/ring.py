"""Storage of replay buffers: a fixed number of slots, written only by `Ring.write`. The buffers
decide where to write and what to draw.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import torch

from ding.data.arrays import Item, Items, MoreColumns, State
from ding.data.chunks import ChunkFacts, chunk_columns, chunk_tensors, packed, unpacked
from ding.data.column_store import ColumnStore
from ding.data.columns import Columns, as_columns
from ding.data.row_journal import RowJournal
from ding.torch_utils.tensor_file import Leaf
from ding.utils.errors import DataError

#: Distinct slots that rows are written to: int64 ``[n]``, or a range of consecutive slots.
Slots: TypeAlias = np.ndarray | range


class Ring:
    """A fixed number of slots for items, stored as columns as long as all rows have the same kind.

    The first item of another kind turns the stored rows into objects; nothing is lost. Rows are
    numbered in the order in which they are written. The number in a slot identifies the row stored
    there, in ids of samples and in files of saved rows.

    Args:
        capacity: Number of slots.
        memmap_path: Folder for memory-mapped files; None keeps columns in memory.
        deepcopy: Whether `take` returns deep copies of objects. If not, dicts and lists are copied
            and the arrays in them shared. Rows from columns are always copies.
        columnar: False stores all items as objects.

    Attributes:
        numbers: Number of the row in each slot, int64 ``[capacity]``; -1 for an empty slot.
        total: Number of the next row.
        count: How many slots hold a row.
        journal: If set, `state_dict` and `load_state_dict` store rows of columns in its files.
    """

    def __init__(
        self,
        capacity: int,
        memmap_path: str | None = None,
        deepcopy: bool = False,
        columnar: bool = True,
    ) -> None:
        if int(capacity) != capacity or capacity < 1:
            raise DataError(f"replay_buffer_size must be a positive integer, got {capacity!r}")
        self.capacity = int(capacity)
        self._memmap_path = memmap_path
        self._deepcopy = deepcopy
        self._columnar = columnar
        self.journal: RowJournal | None = None
        self.total = 0  # `clear` does not reset it: no number is assigned twice
        self.clear()

    def clear(self) -> None:
        """Empty all slots and release their memory."""
        self._store: ColumnStore | None = None
        self._objects: Items | None = None if self._columnar else [None] * self.capacity
        self.numbers = np.full(self.capacity, -1)
        self.count = 0
        self._head = 0  # the slot after the last one written
        self._in_turn = True  # the `count` slots before the head hold the rows, ordered by age
        self._occupied: np.ndarray | None = None

    @property
    def is_columnar(self) -> bool:
        return self._objects is None

    # ------------------------------------------------------------------ in

    def next_slots(self, n: int) -> Slots:
        """The n slots after the last one written, wrapping around; slots repeat if n exceeds the
        capacity. They hold the oldest rows if all rows were written to such slots.
        """
        stop = self._head + n
        if stop <= self.capacity:
            return range(self._head, stop)
        return np.arange(self._head, stop) % self.capacity

    def write(self, slots: Slots, rows: Items) -> None:
        """Store rows in distinct slots; rows that were stored there are replaced.

        Args:
            slots: In ``[0, capacity)``, one for each row.
            rows: ``Columns`` or a list of items.
        """
        n = len(rows)
        if not n:
            return
        if type(slots) is range:
            # A slice is copied in one block, an index array row by row.
            where: slice | np.ndarray = slice(slots.start, slots.stop)
            first, end = slots.start, slots.stop
        else:
            where = np.asarray(slots)
            first, end = -1, int(slots[-1]) + 1
        if self._objects is not None or not self._write_columns(where, rows):
            self._write_objects(slots, rows)
        # Only rows that are not written right after the last one can break the order by age.
        if first != self._head and self._in_turn:
            expected = (self._head + np.arange(n)) % self.capacity
            self._in_turn = bool((np.asarray(slots) == expected).all())
        if self.count < self.capacity:
            self.count += int(np.count_nonzero(self.numbers[where] < 0))
            self._occupied = None
        self.numbers[where] = self.total if n == 1 else np.arange(self.total, self.total + n)
        self.total += n
        self._head = end % self.capacity

    def _write_columns(self, where: slice | np.ndarray, rows: Items) -> bool:
        batch = rows if isinstance(rows, Columns) and rows.is_columnar else None
        if batch is None:
            if len(rows) == 1 and self._store is not None and type(row := rows[0]) is dict:
                slot = where.start if isinstance(where, slice) else int(where[0])
                if self._store.write_row(slot, row):
                    return True
            batch = as_columns(rows)
        columns = None if batch is None else batch.stored()
        if columns is None:
            return False
        if self._store is None:
            self._store = ColumnStore(self.capacity, columns, self._memmap_path)
        return self._store.write(where, columns)

    def _write_objects(self, slots: Slots, rows: Sequence[Item]) -> None:
        if self._objects is None:
            self._become_objects(slots)
        assert self._objects is not None
        rows = rows.copied_rows() if isinstance(rows, Columns) else rows
        for slot, item in zip(slots, rows):
            # Keys that the caller adds to its dict later must not change the stored item.
            self._objects[slot] = _detached(item)

    def _become_objects(self, replaced: Slots) -> None:
        """Turn columns into objects, except in slots that are about to be replaced."""
        objects: Items = [None] * self.capacity
        stays = self.numbers >= 0
        # The failed write may have changed some columns of these slots already.
        stays[replaced] = False
        slots = np.flatnonzero(stays)
        if self._store is not None and len(slots):
            for slot, row in zip(slots.tolist(), self.take(slots)):
                objects[slot] = row
        self._store, self._objects = None, objects

    def drop(self, slots: np.ndarray) -> None:
        """Empty distinct slots that hold rows."""
        self.numbers[slots] = -1
        self.count -= len(slots)
        # The order by age follows from the numbers until the gap is filled again.
        self._in_turn, self._occupied = False, None
        if self._objects is not None:
            for slot in slots.tolist():
                self._objects[slot] = None

    # ------------------------------------------------------------------ out

    def slots(self) -> np.ndarray:
        """Slots that hold rows, ascending."""
        if self._occupied is None:
            self._occupied = np.flatnonzero(self.numbers >= 0)
        return self._occupied

    def nth(self, index: np.ndarray) -> np.ndarray:
        """The slots at these positions of `slots`."""
        is_prefix = self._in_turn and self._head == self.count
        return index if is_prefix or self.count == self.capacity else self.slots()[index]

    def by_age(self) -> np.ndarray:
        """Slots that hold rows, the oldest row first."""
        return self.of_age(np.arange(self.count))

    def of_age(self, ages: np.ndarray) -> np.ndarray:
        """Slots of rows by age; 0 is the oldest row."""
        if not self._in_turn:
            slots = self.slots()
            slots = slots[np.argsort(self.numbers[slots])]
            before_head = (self._head - self.count + np.arange(self.count)) % self.capacity
            # Sorting at each call is slow: once the gaps are overwritten, slots are in order again.
            self._in_turn = bool((slots == before_head).all())
            return slots[ages]
        return (self._head - self.count + ages) % self.capacity

    def take(self, slots: np.ndarray, facts: MoreColumns | None = None) -> Columns | Items:
        """The items in these slots, independent of the stored items and of each other.

        Args:
            slots: Slots that hold items.
            facts: Makes columns that are added to the items, which must be dicts.
        """
        if self._objects is None:
            if self._store is None:
                return []
            return self._store.take(slots, facts)
        items = self._take_objects(slots)
        if facts is not None:
            for item, more in zip(items, Columns(facts())):
                item.update(more)
        return items

    def _take_objects(self, slots: np.ndarray) -> Items:
        assert self._objects is not None
        seen: set[int] = set()
        items = []
        for slot in slots.tolist():
            item = self._objects[slot]
            # The second copy of an item in a batch is deep: it shares nothing with the first.
            deep = self._deepcopy or slot in seen
            items.append(copy.deepcopy(item) if deep else _detached(item))
            seen.add(slot)
        return items

    def peek(self, slots: np.ndarray) -> Items:
        """The stored objects themselves, read-only; for columns, rows that are made from them."""
        if self._objects is None:
            return list(self.take(slots))
        return [self._objects[slot] for slot in slots.tolist()]

    # ------------------------------------------------------------------ state

    def state_dict(self) -> State:
        """A copy of all rows, the oldest first, with their slots and numbers.

        With a ``journal``, rows of columns are stored in its files and the state contains the names
        of the files.
        """
        slots = self.by_age()
        state: State = {
            "capacity": self.capacity,
            "slots": slots,
            "numbers": self.numbers[slots],
            "head": self._head,
            "total": self.total,
            "rows": None,
            "journal": None,
            "objects": None,
        }
        store = self._store
        if self._objects is not None:
            state["objects"] = [packed(self._objects[slot]) for slot in slots.tolist()]
        elif store is not None:
            if self.journal is not None and store.fits_files:
                state["journal"] = self.journal.extend(
                    store.version,
                    state["numbers"],
                    store.row_bytes,
                    lambda ages: _tensors(store, slots[ages]),
                )
            elif len(slots):
                state["rows"] = _tensors(store, slots)
        return state

    def load_state_dict(self, state: State) -> np.ndarray:
        """Restore a state; if it has more rows than fit, the newest are kept.

        Returns:
            Slots of the restored rows, which are the last rows of the state, the oldest first.
        """
        if "layout" in state:
            raise DataError("the rows of this state were saved by an earlier version")
        self.clear()
        # The saved slots are only valid for the same capacity; otherwise rows are placed by age.
        same = state["capacity"] == self.capacity
        n = min(len(state["slots"]), self.capacity)
        first = len(state["slots"]) - n
        slots = np.asarray(state["slots"]) if same else np.arange(n)
        self.numbers[slots] = np.asarray(state["numbers"])[first:]
        self.count, self.total = n, int(state["total"])
        self._head = int(state["head"]) if same else n % self.capacity
        self._in_turn = False  # `of_age` updates it
        if state["objects"] is not None:
            self._objects = [None] * self.capacity
            for slot, item in zip(slots.tolist(), state["objects"][first:]):
                self._objects[slot] = unpacked(item)
        else:
            self._objects = None
            self._load_rows(state, slots)
        return slots

    def _load_rows(self, state: State, slots: np.ndarray) -> None:
        numbers = self.numbers[slots]
        pieces: Iterable[tuple[np.ndarray, Columns]] = ()
        if state["rows"] is not None:
            pieces = [(np.asarray(state["numbers"]), chunk_columns(*state["rows"]))]
        elif state["journal"] is None:
            pass
        elif self.journal is None:
            raise DataError("the rows of this state are in separate files")
        else:
            pieces = self.journal.read(state["journal"])
        found = 0
        for written, columns in pieces:
            # A file may contain rows that have been replaced since.
            at = np.searchsorted(numbers, written)
            at[at == len(numbers)] = 0
            rows = np.flatnonzero(numbers[at] == written) if len(numbers) else np.arange(0)
            if len(written) != len(columns):
                raise DataError(f"{len(written)} rows are numbered, {len(columns)} are stored")
            if 0 < len(rows) < len(columns):
                columns = columns.take(rows)
            if len(rows):
                self._write_columns(slots[at[rows]], columns)
            found += len(rows)
        if found != len(slots):
            raise DataError(f"the state has {len(slots)} rows, of which {found} are stored")
        if self.journal is not None and state["journal"] and self._store is not None:
            self.journal.adopt(state["journal"], self._store.version)


def _tensors(store: ColumnStore, slots: np.ndarray) -> tuple[dict[str, Leaf], ChunkFacts]:
    """Rows in the format of chunks."""
    return chunk_tensors(store.rows(slots))


def _detached(item: Item) -> Item:
    """A copy of an item's dicts and lists; tensors, arrays and other objects are shared."""
    kind = type(item)
    if kind is dict:
        return {
            name: value if type(value) in _LEAVES else _detached(value)
            for name, value in item.items()
        }
    if isinstance(item, Columns):
        return Columns(item.columns) if item.is_columnar else [_detached(row) for row in item]
    if kind is list:
        return [value if type(value) in _LEAVES else _detached(value) for value in item]
    return item


_LEAVES = frozenset({torch.Tensor, np.ndarray, int, float, bool, str, type(None)})
