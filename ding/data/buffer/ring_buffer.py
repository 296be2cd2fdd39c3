"""What every replay buffer offers, and what the buffers over one ring share."""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
from easydict import EasyDict

from ding.data.arrays import Item, Items, State
from ding.data.buffer.monitors import BufferLog, PeriodicThruputMonitor, UsedDataRemover
from ding.data.columns import Columns
from ding.data.draw import Draw
from ding.data.ring import Ring, Slots
from ding.data.row_journal import RowJournal
from ding.utils.default_helper import Configurable, deep_merge_dicts
from ding.utils.errors import DataError, require_entries
from ding.utils.file_helper import read_file, save_file
from ding.utils.log_writer import ScalarWriter

#: Takes items and says of each whether it leaves; bool [n].
ItemTest: TypeAlias = Callable[[Items], np.ndarray]

_LOAD_CHUNK = 1024


class IBuffer(Configurable, ABC):
    """A store of training data that batches are drawn from."""

    @abstractmethod
    def push(self, data: Items | Item, cur_collector_envstep: int) -> None:
        """Store one item, or each item of a list (``Columns`` are a list of rows)."""

    @abstractmethod
    def update(self, info: Mapping[str, Item]) -> None:
        """Take in what learning found out about sampled items, such as their priorities."""

    @abstractmethod
    def sample(self, batch_size: int, cur_learner_iter: int) -> Items | None:
        """`batch_size` items, or None when there are too few."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all items."""

    @abstractmethod
    def count(self) -> int:
        """Number of items that can be sampled."""

    @abstractmethod
    def save_data(self, file_name: str) -> None:
        """Write the items into a file."""

    @abstractmethod
    def load_data(self, file_name: str) -> None:
        """Push the items of a file that `save_data` wrote."""

    @abstractmethod
    def state_dict(self) -> State:
        """All that a restored buffer needs to go on bit for bit: items, counters, generator."""

    @abstractmethod
    def load_state_dict(self, _state_dict: State) -> None:
        """Go on where the buffer that gave this state stopped."""


class RingBuffer(IBuffer):
    """Base of thread-safe buffers over a `ding.data.ring.Ring`.

    Args:
        cfg: Config; what it leaves out is as in the class's defaults.
        tb_logger: Writer of scalars, left open at the end. Without one the buffer makes its own
            when it first has something to write.
        exp_name: Folder of the run.
        instance_name: Name in logs, tags and item ids.
    """

    #: Whether uniform rows are kept as columns.
    _columnar = True
    #: What a state holds at least.
    _entries: tuple[str, ...] = ("ring", "push_count", "draw")

    def __init__(
        self,
        cfg: EasyDict,
        tb_logger: ScalarWriter | None = None,
        exp_name: str | None = "default_experiment",
        instance_name: str | None = "buffer",
    ) -> None:
        self._closed = True  # until all parts below exist
        self._cfg = EasyDict(deep_merge_dicts(self.default_config(), cfg))
        self._exp_name, self._instance_name = exp_name, instance_name or "buffer"
        # Re-entrant: subclasses lock around methods that lock as well, and `__del__` may run within
        # one of them, when memory is collected there.
        self._lock = threading.RLock()
        self._draw = Draw()
        #: The generator of the buffer's random numbers; it is part of its state.
        self.rng = self._draw.rng
        self._ring = Ring(
            self._cfg.replay_buffer_size,
            self._cfg.get("memmap_path"),
            self._cfg.deepcopy,
            self._columnar,
        )
        self._push_count = 0
        self._log = BufferLog(tb_logger, exp_name, self._instance_name)
        self._monitor = PeriodicThruputMonitor(
            self._log.group, self._thruput_cfg(), self._log, self._log
        )
        self._remover = UsedDataRemover() if self._cfg.enable_track_used_data else None
        self._set_up()
        self._closed = False

    def _set_up(self) -> None:
        """Make the further parts of a kind of buffers."""

    def _thruput_cfg(self) -> EasyDict:
        return EasyDict(seconds=self._cfg.periodic_thruput_seconds)

    # ------------------------------------------------------------------ items

    def place(self, n: int) -> Slots:
        """Where the next n items go: here the oldest ones make room.

        Override it for another rule. It is called once for each push, with the lock held and
        before the items are counted in `push_count`.

        Returns:
            A slot below `replay_buffer_size` for each item, -1 for one that is not kept; of several
            items for one slot the last is kept.
        """
        return self._ring.next_slots(n)

    def push(self, data: Items | Item, cur_collector_envstep: int = -1) -> None:
        """Store one item, or each item of a list. The oldest items make room."""
        with self._lock:
            self._store(data)

    def _store(self, data: Items | Item) -> tuple[Slots, np.ndarray | None]:
        """Push one item, or each item of a list.

        Returns:
            The slots that were written; of which of the items, in their order, or ``None`` for all.
        """
        items = data if isinstance(data, list) else [data]
        total = len(items)
        slots, kept = self.place(total), None
        if type(slots) is not range:
            slots, kept = _of_last_items(np.asarray(slots), total, self._ring.capacity)
        if kept is not None:
            items = taken(items, kept)
            # Items that are not kept are numbered, too: `set_newest` counts from the end of a push.
            self._ring.total += total - len(kept)
        if self._remover is not None:
            written = np.asarray(slots, np.int64)
            # Before the write: after it, no item names the files of those that were replaced.
            self._discard(written[self._ring.numbers[written] >= 0])
        before, n = self._ring.count, len(slots)
        self._ring.write(slots, items)
        if kept is not None:
            self._ring.numbers[np.asarray(slots)] = self._ring.total - total + kept
        self._push_count += total
        self._monitor.note(pushed=n, removed=before + n - self._ring.count)
        return slots, kept

    def clear(self) -> None:
        """Forget all items."""
        with self._lock:
            slots = self._ring.slots()
            self._discard(slots)
            self._monitor.note(removed=len(slots))
            self._ring.clear()
            self._push_count = 0

    def count(self) -> int:
        """Number of items that can be sampled."""
        return self._ring.count

    @property
    def replay_buffer_size(self) -> int:
        """Number of items that fit."""
        return self._ring.capacity

    @property
    def push_count(self) -> int:
        """Number of items that were pushed since the buffer was made or cleared."""
        return self._push_count

    def item_facts(self) -> dict[str, np.ndarray]:
        """What is known of the stored items, the oldest first.

        Returns:
            ``number``, counted over all items that were ever pushed, int64 [n], ascending; and
            further facts of a kind of buffers.
        """
        with self._lock:
            return {"number": self._ring.numbers[self._ring.by_age()]}

    def remove_if(self, test: ItemTest) -> None:
        """Remove the items for which a test is true."""
        with self._lock:
            slots = self._ring.slots()
            if len(slots):
                self._remove(slots[test(self._ring.take(slots))])

    def _remove(self, slots: np.ndarray) -> None:
        if len(slots):
            self._discard(slots)
            self._ring.drop(slots)
            self._monitor.note(removed=len(slots))

    def _discard(self, slots: np.ndarray) -> None:
        """Queue the files of items that are about to leave."""
        if self._remover is not None and not self._ring.is_columnar:
            for item in self._ring.peek(slots):
                self._remover.add_used_data(item)

    def _enough(self, size: int, available: int, least: float) -> bool:
        """Whether there are `least` items to sample; if not, say so in the log."""
        if available >= max(least, 1):
            self._log.served("sample")
            return True
        self._log.refuse("sample", f"{size} asked for, {available} there")
        return False

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Start removing the files of used data, if that is enabled."""
        if self._remover is not None:
            self._remover.start()

    def close(self) -> None:
        """Forget all items and end what runs in the background; again does nothing."""
        self._end(wait=True)

    def __del__(self) -> None:
        # A constructor that raised leaves no `_closed`; an interpreter that ends may lack modules.
        with contextlib.suppress(Exception):
            self._end(wait=False)

    def _end(self, wait: bool) -> None:
        if self._closed:
            return
        self._closed = True
        self.clear()
        if self._remover is not None:
            self._remover.close(wait)
        self._monitor.close()
        self._log.close()

    # ------------------------------------------------------------------ files and state

    def save_data(self, file_name: str) -> None:
        """Write the items into a file, columns as columns; counters and priorities stay out.

        Raises:
            CheckpointWriteError: Names the file and the cause; a previous file is unchanged.
            TypeError: An item holds something that cannot be stored safely.
        """
        with self._lock:
            # The copy alone is made under the lock; the file may take seconds, and collecting goes
            # on.
            items = self._ring.state_dict()
        save_file(file_name, {"items": items})

    def load_data(self, file_name: str) -> None:
        """Push the items of a file that `save_data` wrote, or of a plain list.

        Raises:
            CheckpointError: The file is missing, damaged or not plain data.
        """
        content = read_file(file_name)
        if not isinstance(content, dict) or "items" not in content:
            self.push(list(content), -1)
            return
        state = content["items"]
        # Read into a ring first and pushed from it: the file may be of a buffer of another size or
        # kind, whose slots and numbers mean nothing here.
        ring = Ring(max(len(state["slots"]), 1), columnar=self._columnar)
        ring.load_state_dict(state)
        slots = ring.by_age()
        for at in range(0, len(slots), _LOAD_CHUNK):
            self.push(ring.take(slots[at : at + _LOAD_CHUNK]), -1)

    def state_dict(self) -> State:
        with self._lock:
            return {
                "ring": self._ring.state_dict(),
                "push_count": self._push_count,
                "draw": self._draw.state_dict(),
            }

    def load_state_dict(self, _state_dict: State) -> None:
        """Go on where the buffer that gave this state stopped.

        Raises:
            CheckpointError: It is no state of such a buffer.
        """
        require_entries(type(self).__name__, _state_dict, self._entries)
        with self._lock:
            self._load(_state_dict)
            self._monitor.valid_count = self._ring.count

    def _load(self, state: State) -> np.ndarray:
        """Restore a state.

        Returns:
            Slots of the rows that are here now, the oldest first: of the last ones of the state.
        """
        slots = self._ring.load_state_dict(state["ring"])
        self._push_count = int(state["push_count"])
        self._draw.load_state_dict(state["draw"])
        return slots

    @contextlib.contextmanager
    def rows_in(self, journal: RowJournal) -> Iterator[None]:
        """Within the block, states that are taken or loaded have their rows in a journal.

        Only rows in columns; others stay in the state.
        """
        with self._lock:
            self._ring.journal = journal
            try:
                yield
            finally:
                self._ring.journal = None


def taken(items: Items, index: np.ndarray) -> Items:
    """The items of these places, columns as columns."""
    if isinstance(items, Columns) and items.is_columnar:
        return items.take(index)
    return [items[i] for i in index.tolist()]


def _of_last_items(
    slots: np.ndarray, n: int, capacity: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Each slot once, and which items go there; ``None`` if all do.

    Raises:
        DataError: There is not a slot for each item, or one that the buffer does not have.
    """
    fits = slots.shape == (n,) and slots.dtype.kind == "i"
    if not fits or (n and (slots.min() < -1 or slots.max() >= capacity)):
        raise DataError(
            f"place({n}) returned {slots!r}: expected an integer array [{n}] of slots in "
            f"[0, {capacity}), or -1 for items that are not kept"
        )
    named, from_end = np.unique(slots[::-1], return_index=True)
    if len(named) == n and (not n or named[0] >= 0):
        return slots, None
    kept = np.sort(n - 1 - from_end[named >= 0])
    return slots[kept], kept
