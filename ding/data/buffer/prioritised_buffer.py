"""Base of replay buffers whose items have a priority and an id."""

from collections.abc import Iterable, Mapping

import numpy as np

from ding.data.arrays import Item, Items, State, id_numbers
from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.columns import Columns
from ding.data.priorities import Priorities, checked_priorities
from ding.data.ring import Slots
from ding.utils.errors import DataError
from ding.utils.types import Tree

_UNKNOWN_ITER = np.array(-1)
_LATEST = np.iinfo(np.int64).max


class PrioritisedBuffer(RingBuffer):
    """Base of buffers whose items have a priority and an id; arguments as for `RingBuffer`."""

    #: Config key of the exponent of priorities.
    _alpha_key = "alpha"

    def _set_up(self) -> None:
        self._priorities = Priorities(self._ring, float(self._cfg[self._alpha_key]))
        #: Per slot: how often the item was sampled, and the training iteration of the policy that
        #: collected it; -1 for an empty slot or an unknown iteration.
        self._use = np.full(self.replay_buffer_size, -1, np.int64)
        self._collect_iter = np.full(self.replay_buffer_size, -1, np.int64)

    def _store(
        self,
        data: Items | Item,
        priorities: np.ndarray | None = None,
        iters: np.ndarray = _UNKNOWN_ITER,
    ) -> tuple[Slots, np.ndarray | None]:
        """Push one item, or each item of a list.

        Args:
            priorities: float64 [n]; None for the highest so far.
            iters: Iteration of the policy that collected each item, int64 [n]; a scalar for all.
        """
        slots, kept = super()._store(data)
        self._priorities.begin(slots)
        if priorities is not None:
            given = priorities if kept is None else priorities[kept]
            self._priorities.update(np.asarray(slots), given)
        where = slice(slots.start, slots.stop) if type(slots) is range else slots
        self._use[where] = 0
        self._collect_iter[where] = iters if kept is None or not iters.ndim else iters[kept]
        return slots, kept

    def update(self, info: Mapping[str, Item]) -> None:
        """Set the priorities of sampled items.

        Items that have been replaced or removed since are skipped.

        Args:
            info: ``replay_unique_id``, ``replay_buffer_idx`` and ``priority`` of the same length,
                as lists, arrays or tensors; may be empty.

        Raises:
            DataError: A priority is NaN, infinite or negative, the lengths differ, or an index is
                out of range; no priority is changed then.
        """
        if not info or info.get("priority") is None:
            return
        numbers = id_numbers(info["replay_unique_id"], self._instance_name)
        slots = np.asarray(info["replay_buffer_idx"], dtype=np.int64).reshape(-1)
        values = checked_priorities(info["priority"], len(slots))
        if len(numbers) != len(slots):
            raise DataError(f"{len(numbers)} replay_unique_id came with {len(slots)} indices")
        try:
            with self._lock:
                # `take` raises IndexError for indices that are too large, not for negative ones.
                same = self._ring.numbers.take(slots) == numbers
                if len(slots) and slots[slots.argmin()] < 0:
                    raise IndexError
                if np.count_nonzero(same) < len(same):
                    slots, values = slots[same], values[same]
                self._priorities.update(slots, values)
        except IndexError:
            raise DataError(
                f"replay_buffer_idx must be in [0, {self.replay_buffer_size}), "
                f"got {slots.min()} to {slots.max()}"
            ) from None

    def item_facts(self) -> dict[str, np.ndarray]:
        """`RingBuffer.item_facts` with ``priority`` and ``use`` (how often each was sampled)."""
        with self._lock:
            slots = self._ring.by_age()
            return {
                "number": self._ring.numbers[slots],
                "priority": self._priorities.of(slots),
                "use": self._use[slots],
            }

    def set_newest(self, priority: np.ndarray, use: np.ndarray) -> None:
        """Set the `item_facts` of the items that were pushed last."""
        with self._lock:
            n = min(len(priority), self.count())
            slots = self._ring.of_age(np.arange(self.count() - n, self.count()))
            index = self._ring.numbers[slots] - (self._ring.total - len(priority))
            slots, index = slots[index >= 0], index[index >= 0]  # some items were not stored
            values = checked_priorities(priority[index], len(index))
            # An update creates the trees. Draws are faster without them while all priorities are
            # equal.
            if (self._priorities.of(slots) != values).any():
                self._priorities.update(slots, values)
            self._use[slots] = use[index]

    # ------------------------------------------------------------------ items that leave

    def _remove(self, slots: np.ndarray) -> None:
        super()._remove(slots)
        self._priorities.drop(slots)
        self._use[slots] = self._collect_iter[slots] = -1

    def clear(self) -> None:
        with self._lock:
            super().clear()
            self._priorities.clear()
            self._use[:] = self._collect_iter[:] = -1

    # ------------------------------------------------------------------ state

    def state_dict(self) -> State:
        with self._lock:
            slots = self._ring.by_age()
            return {
                **super().state_dict(),
                "priorities": self._priorities.state_dict(),
                "use": self._use[slots],
                "collect_iter": self._collect_iter[slots],
            }

    _entries = (*RingBuffer._entries, "priorities", "use", "collect_iter")

    def _load(self, state: State) -> np.ndarray:
        slots = super()._load(state)
        self._priorities.load_state_dict(state["priorities"], slots)
        first = len(state["use"]) - len(slots)
        self._use[:] = self._collect_iter[:] = -1
        self._use[slots] = state["use"][first:]
        self._collect_iter[slots] = state["collect_iter"][first:]
        return slots


def as_iters(collect_iter: Tree) -> np.ndarray:
    """``collect_iter`` of items as int64: ``[n]``, or a scalar for all items; -1 where unknown.

    Args:
        collect_iter: An array or tensor ``[n, ...]``, a list with the entry of each item, or one
            number for all items. For an item that is a sequence of steps, the smallest iteration
            counts.
    """
    if type(collect_iter) is np.ndarray and collect_iter.ndim == 1:
        return collect_iter.astype(np.int64, copy=False)
    if isinstance(collect_iter, list):
        collect_iter = [oldest_iter(value) for value in collect_iter]
    iters = np.asarray(collect_iter, dtype=np.int64)
    return iters.min(axis=tuple(range(1, iters.ndim)))


def oldest_iter(collect_iter: Tree) -> int:
    """The smallest ``collect_iter`` of one item, which has one or one per step; -1 if unknown."""
    if type(collect_iter) is int:
        return collect_iter
    if collect_iter is None:
        return -1
    if isinstance(collect_iter, list | tuple):
        return min(map(oldest_iter, collect_iter), default=-1)
    return int(np.asarray(collect_iter).min(initial=_LATEST))


def iters_of(samples: Iterable[Item]) -> np.ndarray | None:
    """``collect_iter`` of rows or columns, int64 ``[n]``; None if no sample has one."""
    columns = samples.columns_or_none() if isinstance(samples, Columns) else None
    if columns is not None:
        found = columns.get("collect_iter")
        return None if found is None else as_iters(found)
    given = [s.get("collect_iter") if isinstance(s, Mapping) else None for s in samples]
    return None if all(value is None for value in given) else as_iters(given)
