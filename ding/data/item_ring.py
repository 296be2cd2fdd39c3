"""The ring behind every buffer: a fixed number of slots, the oldest item replaced first."""

import copy
import secrets
from collections.abc import Sequence

import numpy as np
import torch

from ding.data.arrays import Arrays
from ding.data.column_store import ColumnStore
from ding.data.columns import Columns, MoreColumns, Windows, as_columns
from ding.data.kinds import Item, Items, State
from ding.data.packing import packed, unpacked
from ding.data.preallocate import Preallocator
from ding.data.row_journal import RowJournal
from ding.utils.errors import DataError


class ItemRing:
    """Slots for items, held as columns for as long as the items are rows of one kind.

    The first item that is of another kind turns the stored rows into objects; nothing is lost. An
    emptied ring starts afresh.

    Args:
        capacity: Number of slots.
        memmap_path: Folder for memory-mapped files; None keeps columns in memory.
        deepcopy: Whether objects that are handed out are deep copies. If not, dicts and lists are
            copied and the arrays in them shared. What comes from columns is always a copy.
        columnar: False stores whatever comes as objects.
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
        self._preallocator = Preallocator(memmap_path)
        self._deepcopy = deepcopy
        self._columnar = columnar
        #: Where rows are kept that are not in a state, while that is taken or loaded.
        self.journal: RowJournal | None = None
        self.clear()

    def clear(self) -> None:
        """Forget all items and give their memory back."""
        self._store: ColumnStore | None = None
        self._objects: Items | None = None if self._columnar else [None] * self.capacity
        self.head = 0
        self.filled = 0
        #: How many rows have come; row number n is in slot n % capacity.
        self.total = 0
        self._claimed = 0  # up to where rows are being written
        self._life = secrets.token_hex(8)

    @property
    def is_columnar(self) -> bool:
        return self._objects is None

    # ------------------------------------------------------------------ in

    def push(self, data: Items | Item) -> tuple[int, int]:
        """Store one item, or each item of a list.

        Returns:
            The first slot that was written and the number of slots, which go on around the end.
            A list longer than the ring leaves its last `capacity` items.
        """
        if type(data) is dict:
            self._claimed = self.total + 1
            if self._store is not None and self._store.write_row(self.head, data):
                return self._advance(1)
        items = data if isinstance(data, list) else [data]
        batch = as_columns(items) if self._objects is None or isinstance(data, Columns) else None
        if batch is not None:
            if (windows := batch.windows()) is not None:
                return self.push_windows(windows)
            items = batch.copied_rows()
        return self._push_objects(items)

    def push_windows(self, windows: Windows) -> tuple[int, int]:
        """`push` of what `Columns.windows` gave."""
        if len(windows) == 1 and len(windows[0][1]) <= self.capacity:
            return self._push_arrays(*windows[0])
        total = sum(len(rows) for _, rows in windows)
        skipped = max(total - self.capacity, 0)
        self._advance(skipped)
        start = self.head
        for arrays, rows in windows:
            self._push_arrays(arrays, rows[skipped:])
            skipped = max(skipped - len(rows), 0)
        return start, min(total, self.capacity)

    def _push_arrays(self, arrays: Arrays, rows: range) -> tuple[int, int]:
        n = len(rows)
        if self._store is None and self._objects is None and n:
            self._store = ColumnStore(self.capacity, arrays, self._preallocator)
        if self._store is not None:
            self._claimed = self.total + n
            if self._store.write(self.head, arrays, rows):
                return self._advance(n)
        return self._push_objects(Columns.trusted(arrays, rows.stop)[rows.start :])

    def _push_objects(self, items: Sequence[Item]) -> tuple[int, int]:
        if self._objects is None:
            self._become_objects()
        assert self._objects is not None
        skipped = max(len(items) - self.capacity, 0)
        self._advance(skipped)
        for offset, item in enumerate(items[skipped:]):
            # A caller that adds keys to its own dict later must not change what is stored.
            self._objects[(self.head + offset) % self.capacity] = _detached(item)
        return self._advance(len(items) - skipped)

    def _become_objects(self) -> None:
        objects: Items = [None] * self.capacity
        if self._store is not None and self.filled:
            objects[: self.filled] = list(self.take(np.arange(self.filled)))
        self._store, self._objects = None, objects

    def _advance(self, n: int) -> tuple[int, int]:
        start = self.head
        self.head = (start + n) % self.capacity
        self.total += n
        if self.filled < self.capacity:
            self.filled = min(self.filled + n, self.capacity)
        return start, n

    # ------------------------------------------------------------------ out

    def take(self, slots: np.ndarray, facts: MoreColumns | None = None) -> Columns | Items:
        """The items in these slots, independent of what is stored and of each other.

        Args:
            slots: Slots that hold items.
            facts: Makes further columns to add to them; objects must then be dicts.
        """
        if self._objects is None:
            if self._store is None:
                return []
            return Columns.trusted(self._store.take(slots), len(slots), facts)
        items = self._take_objects(slots)
        if facts is not None:
            for item, more in zip(items, Columns.trusted(facts(), len(slots))):
                item.update(more)
        return items

    def _take_objects(self, slots: np.ndarray) -> Items:
        assert self._objects is not None
        seen: set[int] = set()
        items = []
        for slot in slots.tolist():
            item = self._objects[slot]
            # A second copy of an item in one batch shares nothing with the first.
            deep = self._deepcopy or slot in seen
            items.append(copy.deepcopy(item) if deep else _detached(item))
            seen.add(slot)
        return items

    def peek(self, slots: np.ndarray) -> Items:
        """Stored objects themselves, for reading; rows made from columns if they are columns."""
        if self._objects is None:
            return list(self.take(slots))
        return [self._objects[slot] for slot in slots.tolist()]

    def by_age(self) -> np.ndarray:
        """Slots that were written to, the oldest first."""
        order = np.arange(self.filled)
        return order if self.filled < self.capacity else (order + self.head) % self.capacity

    def drop(self, slots: np.ndarray) -> None:
        """Let go of objects that will not be asked for again."""
        if self._objects is not None:
            for slot in slots.tolist():
                self._objects[slot] = None

    # ------------------------------------------------------------------ state

    def state_dict(self) -> State:
        """A copy of all items, in columns if they are columns, and where the ring stands.

        With a ``journal`` the rows of columns go there.
        """
        state: State = {
            "capacity": self.capacity,
            "head": self.head,
            "total": self.total,
            "journal": None,
            "filled": self.filled,
            "columns": None,
            "objects": None,
        }
        if self._objects is not None:
            state["objects"] = [packed(item) for item in self._objects[: self.filled]]
        elif self._store is not None:
            in_state = self.filled if self.journal is None else 0
            state["columns"] = self._store.state_dict(in_state)
            if self.journal is not None:
                state["journal"] = self.journal.extend(self)
        return state

    @property
    def generation(self) -> tuple[str, int]:
        """Another one whenever rows were changed otherwise than by newer ones."""
        return self._life, 0 if self._store is None else self._store.version

    @property
    def row_bytes(self) -> int:
        """Size of a stored row."""
        return 0 if self._store is None else self._store.row_bytes

    def raw_rows(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """A copy of rows by their numbers, as `ColumnStore.write_raw` takes it.

        Rows that are not overwritten meanwhile are right, also if others are pushed.
        """
        store = self._store
        if store is None:
            raise DataError("the ring was cleared")
        return store.raw(np.arange(start, stop) % self.capacity)

    @property
    def oldest_whole(self) -> int:
        """Number of the oldest row of which nothing has been overwritten; negative before any."""
        return self._claimed - self.capacity

    def load_state_dict(self, state: State) -> np.ndarray:
        """Put back what `state_dict` gave; of more items than fit the newest are kept.

        Returns:
            For each slot that is filled now, from 0 on, the slot of its item in the state.
        """
        self.clear()
        if state["journal"] is not None:
            return self._load_rows(state)
        order = np.arange(state["filled"])
        if state["capacity"] != self.capacity:
            if state["filled"] == state["capacity"]:
                order = (order + state["head"]) % state["capacity"]
            order = order[-self.capacity :]
        if state["objects"] is not None:
            self._objects = [None] * self.capacity
            self._objects[: len(order)] = [unpacked(state["objects"][i]) for i in order.tolist()]
        elif state["columns"] is not None:
            self._store = ColumnStore.from_state(
                state["columns"], order, self.capacity, self._preallocator
            )
        self.filled = len(order)
        same = state["capacity"] == self.capacity
        self.head = state["head"] if same else len(order) % self.capacity
        self.total = self._claimed = state["total"] if same else len(order)
        return order

    def _load_rows(self, state: State) -> np.ndarray:
        """`load_state_dict` of a state whose rows are in the journal."""
        if self.journal is None:
            raise DataError("the rows of this state are in files of their own")
        same = state["capacity"] == self.capacity
        n = min(state["filled"], self.capacity)
        total = state["total"]
        first = total - n
        store = ColumnStore.from_state(
            state["columns"], np.arange(0), self.capacity, self._preallocator
        )
        for start, stop, raw in self.journal.read(state["journal"]):
            skipped = max(first - start, 0)
            if start + skipped < stop:
                number = start + skipped if same else start + skipped - first
                store.write_raw(number % self.capacity, raw, stop - start, skipped)
        self._store, self.filled = store, n
        self.total = self._claimed = total if same else n
        self.head = self.total % self.capacity
        if same:
            self.journal.adopt(state["journal"], self.generation)
            return np.arange(n)
        return np.arange(first, total) % state["capacity"]


def _detached(item: Item) -> Item:
    """A copy of an item's dicts and lists; the tensors, arrays and other objects are shared."""
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
