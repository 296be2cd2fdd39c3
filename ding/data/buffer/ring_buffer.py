"""Interface of replay buffers, and the base class of buffers over one ring."""

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

#: Takes items and returns which of them to remove, bool [n].
ItemTest: TypeAlias = Callable[[Items], np.ndarray]

_LOAD_CHUNK = 1024


class IBuffer(Configurable, ABC):
    """Interface of replay buffers."""

    @abstractmethod
    def push(self, data: Items | Item, cur_collector_envstep: int) -> None:
        """Store one item, or each item of a list (``Columns`` are a list of rows)."""

    @abstractmethod
    def update(self, info: Mapping[str, Item]) -> None:
        """Update sampled items with the learner's results, such as their priorities."""

    @abstractmethod
    def sample(self, batch_size: int, cur_learner_iter: int) -> Items | None:
        """`batch_size` items, or None if there are too few."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all items."""

    @abstractmethod
    def count(self) -> int:
        """Number of items that can be sampled."""

    @abstractmethod
    def save_data(self, file_name: str) -> None:
        """Write the items to a file."""

    @abstractmethod
    def load_data(self, file_name: str) -> None:
        """Push the items of a file that `save_data` wrote."""

    @abstractmethod
    def state_dict(self) -> State:
        """Items, counters and random generator, so that a restored buffer continues bit for bit."""

    @abstractmethod
    def load_state_dict(self, _state_dict: State) -> None:
        """Restore the state of another buffer."""


class RingBuffer(IBuffer):
    """Base of thread-safe buffers over a `ding.data.ring.Ring`.

    Args:
        cfg: Config; missing keys have the class's defaults.
        tb_logger: Writer of scalars, which `close` leaves open. Without one the buffer creates a
            writer for its first scalar.
        exp_name: Folder of the run.
        instance_name: Name in logs, tags and item ids.
    """

    #: Whether uniform rows are stored as columns.
    _columnar = True
    #: Keys that a state must contain.
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
        # Re-entrant: subclasses hold the lock while they call methods that lock as well, and
        # garbage collection may call `__del__` within one of them.
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
        """Create the further parts of a subclass."""

    def _thruput_cfg(self) -> EasyDict:
        return EasyDict(seconds=self._cfg.periodic_thruput_seconds)

    # ------------------------------------------------------------------ items

    def place(self, n: int) -> Slots:
        """Choose the slots for the next n items: by default those of the oldest items.

        Override it for another rule. It is called once per push, with the lock held and before the
        items are counted in `push_count`.

        Returns:
            A slot below `replay_buffer_size` for each item; -1 for an item that is not stored. If
            several items get the same slot, the last one is stored.
        """
        return self._ring.next_slots(n)

    def push(self, data: Items | Item, cur_collector_envstep: int = -1) -> None:
        """Store one item, or each item of a list. New items replace the oldest."""
        with self._lock:
            self._store(data)

    def _store(self, data: Items | Item) -> tuple[Slots, np.ndarray | None]:
        """Push one item, or each item of a list.

        Returns:
            The slots that were written, and the indices of the items stored in them (``None`` for
            all items).
        """
        items = data if isinstance(data, list) else [data]
        total = len(items)
        slots, kept = self.place(total), None
        if type(slots) is not range:
            slots, kept = _of_last_items(np.asarray(slots), total, self._ring.capacity)
        if kept is not None:
            items = taken(items, kept)
            # Items that are not stored get numbers, too: `set_newest` counts all pushed items.
            self._ring.total += total - len(kept)
        if self._remover is not None:
            written = np.asarray(slots, np.int64)
            # Before the write: it overwrites the replaced items, which contain their file names.
            self._discard(written[self._ring.numbers[written] >= 0])
        before, n = self._ring.count, len(slots)
        self._ring.write(slots, items)
        if kept is not None:
            self._ring.numbers[np.asarray(slots)] = self._ring.total - total + kept
        self._push_count += total
        self._monitor.note(pushed=n, removed=before + n - self._ring.count)
        return slots, kept

    def clear(self) -> None:
        """Remove all items."""
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
        """Maximum number of items."""
        return self._ring.capacity

    @property
    def push_count(self) -> int:
        """Number of items pushed since the buffer was created or cleared."""
        return self._push_count

    def item_facts(self) -> dict[str, np.ndarray]:
        """Metadata of the stored items, the oldest first.

        Returns:
            ``number``, the position among all items ever pushed, int64 [n], ascending; subclasses
            add further arrays.
        """
        with self._lock:
            return {"number": self._ring.numbers[self._ring.by_age()]}

    def remove_if(self, test: ItemTest) -> None:
        """Remove the items for which the test is true."""
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
        """Queue the files of items that are about to be removed."""
        if self._remover is not None and not self._ring.is_columnar:
            for item in self._ring.peek(slots):
                self._remover.add_used_data(item)

    def _enough(self, size: int, available: int, least: float) -> bool:
        """Whether at least `least` items can be sampled; if not, log a refusal."""
        if available >= max(least, 1):
            self._log.served("sample")
            return True
        self._log.refuse("sample", f"{size} asked for, {available} there")
        return False

    # ------------------------------------------------------------------ start and end

    def start(self) -> None:
        """Start removing the files of used data, if this is enabled."""
        if self._remover is not None:
            self._remover.start()

    def close(self) -> None:
        """Remove all items and end the background thread; does nothing if already closed."""
        self._end(wait=True)

    def __del__(self) -> None:
        # `_closed` is missing if the constructor raised, and modules at the interpreter's exit.
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
        """Write the items to a file, columns as columns, without counters and priorities.

        Raises:
            CheckpointWriteError: The file cannot be written; a previous file is unchanged.
            TypeError: An item contains an object that cannot be stored safely.
        """
        with self._lock:
            # Only the copy is made under the lock: writing the file may take seconds, in which
            # collecting continues.
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
        # Load the items into a separate ring and push them from there: the buffer that wrote the
        # file may have another size or type, so its slots and numbers are not valid here.
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
        """Restore a state, to continue where the buffer that returned it stopped.

        Raises:
            CheckpointError: It is not the state of such a buffer.
        """
        require_entries(type(self).__name__, _state_dict, self._entries)
        with self._lock:
            self._load(_state_dict)
            self._monitor.valid_count = self._ring.count

    def _load(self, state: State) -> np.ndarray:
        """Restore a state.

        Returns:
            Slots of the restored rows, which are the last rows of the state, the oldest first.
        """
        slots = self._ring.load_state_dict(state["ring"])
        self._push_count = int(state["push_count"])
        self._draw.load_state_dict(state["draw"])
        return slots

    @contextlib.contextmanager
    def rows_in(self, journal: RowJournal) -> Iterator[None]:
        """Within the block, `state_dict` and `load_state_dict` store rows of columns in a journal.

        Other rows stay in the state.
        """
        with self._lock:
            self._ring.journal = journal
            try:
                yield
            finally:
                self._ring.journal = None


def taken(items: Items, index: np.ndarray) -> Items:
    """The items at these indices; columns stay columns."""
    if isinstance(items, Columns) and items.is_columnar:
        return items.take(index)
    return [items[i] for i in index.tolist()]


def _of_last_items(
    slots: np.ndarray, n: int, capacity: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Distinct slots, and the indices of the items that are stored there; ``None`` for all items.

    Raises:
        DataError: There is not one slot per item, or a slot is out of range.
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
