"""What the buffers share whose items have a priority and a number that they are known by."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.columns import Windows
from ding.data.id_column import id_numbers
from ding.data.kinds import State
from ding.data.priorities import Priorities, checked_priorities
from ding.utils.errors import DataError

_UNKNOWN_ITER = np.array(-1)


class PrioritisedBuffer(RingBuffer):
    """Base of buffers in which each item has a priority and a label; made as a `RingBuffer`."""

    #: Name of the config's key for how far priorities count.
    _alpha_key = "alpha"

    def _set_up(self) -> None:
        size = self.replay_buffer_size
        self._slots = self._priorities = Priorities(size, float(self._cfg[self._alpha_key]))
        #: By slot: number of the item, how often it was sampled, and training iteration of the
        #: policy that collected it; -1 if there is none.
        self._number = np.full(size, -1, np.int64)
        self._use = np.full(size, -1, np.int64)
        self._collect_iter = np.full(size, -1, np.int64)
        self._next_number = 0  # never given out twice, also after a clear

    def _store(
        self,
        data: object,
        total: int,
        windows: Windows | None = None,
        priorities: np.ndarray | None = None,
        iters: np.ndarray = _UNKNOWN_ITER,
    ) -> tuple[int, int]:
        """Push one item, or a list of `total` items.

        Args:
            windows: What `data` gave if it is columns and was asked.
            priorities: Float64 [total]; None for the highest so far.
            iters: Iteration of the policy that collected each, int64 [total], or [] for all.
        """
        start, n = super()._store(data, total, windows)
        if priorities is not None:
            slots = np.arange(start, start + n) % self.replay_buffer_size
            self._priorities.update(slots, priorities[total - n :])
        self._next_number += total
        if n < total and iters.ndim:
            iters = iters[total - n :]
        self._label(start, n, self._next_number - n, iters)
        return start, n

    def _label(self, start: int, n: int, number: int, iters: np.ndarray) -> None:
        room = self.replay_buffer_size - start
        if n > room:
            self._label(0, n - room, number + room, iters[room:] if iters.ndim else iters)
            n, iters = room, iters[:room] if iters.ndim else iters
        span = slice(start, start + n)
        self._number[span] = np.arange(number, number + n)
        self._use[span] = 0
        self._collect_iter[span] = iters

    def update(self, info: Mapping[str, Any]) -> None:
        """Give sampled items new priorities.

        Items that have been replaced or removed since are passed over.

        Args:
            info: ``replay_unique_id``, ``replay_buffer_idx`` and ``priority`` of the same length,
                as lists, arrays or tensors; nothing happens if it is empty.

        Raises:
            DataError: NaN, infinite or negative priorities, lists of unequal length, an index
                outside the buffer; nothing is changed then.
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
                same = self._number.take(slots) == numbers
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

    # ------------------------------------------------------------------ items that leave

    def _remove(self, slots: np.ndarray, oldest: bool = False) -> None:
        super()._remove(slots, oldest)
        self._unlabel(slots)

    def _unlabel(self, slots: np.ndarray | slice) -> None:
        for labels in (self._number, self._use, self._collect_iter):
            labels[slots] = -1

    def clear(self) -> None:
        with self._lock:
            super().clear()
            self._unlabel(slice(None))

    # ------------------------------------------------------------------ state

    def state_dict(self) -> State:
        with self._lock:
            filled = slice(self._ring.filled)
            return {
                **super().state_dict(),
                "numbers": self._number[filled].copy(),
                "use": self._use[filled].copy(),
                "collect_iter": self._collect_iter[filled].copy(),
                "next_number": self._next_number,
            }

    def _load(self, state: State) -> np.ndarray:
        order = super()._load(state)
        self._unlabel(slice(None))
        n = len(order)
        self._number[:n] = state["numbers"][order]
        self._use[:n] = state["use"][order]
        self._collect_iter[:n] = state["collect_iter"][order]
        self._next_number = int(state["next_number"])
        return order
