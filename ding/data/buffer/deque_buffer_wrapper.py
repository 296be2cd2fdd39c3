"""The buffer type `deque`: uniform or prioritised replay under a short config."""

from collections.abc import Callable
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.id_column import IdColumn, id_numbers
from ding.data.priorities import Priorities, checked_priorities
from ding.utils.errors import DataError
from ding.utils.registry_factory import BUFFER_REGISTRY


@BUFFER_REGISTRY.register("deque")
class DequeBufferWrapper(RingBuffer):
    """Keeps the newest items. Sampled items carry ``IS`` if the config asks for it.

    With ``priority`` they also carry ``replay_unique_id`` and ``replay_buffer_idx``. Priorities are
    given back with these, or without them for the last sample as a whole, in its order.
    """

    config = dict(
        type="deque",
        replay_buffer_size=10000,
        deepcopy=False,
        enable_track_used_data=False,
        periodic_thruput_seconds=60,
        priority=False,
        priority_IS_weight=False,
        priority_power_factor=0.6,
        IS_weight_power_factor=0.4,
        IS_weight_anneal_train_iter=int(1e5),
        # Folder for memory-mapped files, for data larger than memory.
        memmap_path=None,
    )

    def __init__(
        self,
        cfg: EasyDict,
        tb_logger: Any = None,
        exp_name: str | None = "default_experiment",
        instance_name: str | None = "buffer",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name)
        cfg = self._cfg
        self._priorities = Priorities(self.replay_buffer_size, float(cfg.priority_power_factor))
        self._pushes = np.zeros(self.replay_buffer_size, np.int64)
        self._next_push = 0  # never given out twice, also after a clear
        self._last = (np.empty(0, np.int64), np.empty(0, np.int64))

    def push(self, data: list[Any] | Any, cur_collector_envstep: int = -1) -> None:
        """Store one item, or each item of a list. The oldest items make room."""
        total = len(data) if isinstance(data, list) else 1
        if not total:
            return
        with self._lock:
            if self._is_watched:
                replaced = self._slots_after_head(total)
                self._discard(replaced[self._priorities.occupied[replaced]])
            before = self.count()
            start, n = self._ring.push(data)
            if n < total:
                self._turn_away(data[: total - n])
            slots = (start + np.arange(n)) % self.replay_buffer_size
            self._pushes[slots] = self._next_push + np.arange(total - n, total)
            self._next_push += total
            self._push_count += total
            self._priorities.occupy(start, n)
            self._monitor.note(pushed=n, removed=before + n - self.count())

    def sample(
        self, size: int, cur_learner_iter: int = 0, sample_range: slice | None = None
    ) -> list | None:
        """Draw items, in proportion to their priority if the config says so.

        Args:
            size: How many.
            cur_learner_iter: The learner's iteration; the importance weights depend on it.
            sample_range: Draw only among these items, counted from the oldest on.

        Returns:
            ``Columns`` if the items are columnar, otherwise a list; None if there are too few.
        """
        with self._lock:
            among = None if sample_range is None else self._by_age()[sample_range]
            available = self.count() if among is None else len(among)
            if available < max(size, 1):
                self._log.refuse("sample", f"{size} asked for, {available} there")
                return None
            self._log.served("sample")
            beta = self._beta(cur_learner_iter)
            slots, weights = self._priorities.draw(self._draw, size, beta, among)
            self._last = (slots, self._pushes[slots])
            self._monitor.note(sampled=size)
            facts: dict[str, Any] | None = {"IS": weights} if self._cfg.priority_IS_weight else None
            if self._cfg.priority:
                ids = IdColumn(self._instance_name, self._pushes[slots])
                facts = {**(facts or {}), "replay_unique_id": ids, "replay_buffer_idx": slots}
            return self._ring.take(slots, facts)

    def _beta(self, cur_iter: int) -> float:
        first = float(self._cfg.IS_weight_power_factor)
        part = min(cur_iter / max(self._cfg.IS_weight_anneal_train_iter, 1), 1.0)
        return first + (1.0 - first) * part

    def update(self, info: dict) -> None:
        """Set the priorities of sampled items, if the config has ``priority``.

        Raises:
            DataError: NaN, infinite or negative priorities, or not one for each item; an index
                outside the buffer.
        """
        if not self._cfg.priority or not info or info.get("priority") is None:
            return
        with self._lock:
            slots, pushes = self._last
            if "replay_unique_id" in info:
                pushes = id_numbers(info["replay_unique_id"], self._instance_name)
                slots = np.asarray(info["replay_buffer_idx"], dtype=np.int64).reshape(-1)
                if (
                    len(pushes) != len(slots)
                    or ((slots < 0) | (slots >= self._ring.capacity)).any()
                ):
                    raise DataError(
                        f"replay_buffer_idx must be in [0, {self._ring.capacity}), one for each "
                        f"replay_unique_id: {len(slots)} came with {len(pushes)} ids"
                    )
            values = checked_priorities(info["priority"], len(slots))
            same = self._priorities.occupied[slots] & (self._pushes[slots] == pushes)
            self._priorities.update(slots[same], values[same])

    def clear(self) -> None:
        with self._lock:
            self._discard(self._priorities.slots())
            self._monitor.note(removed=self.count())
            self._ring.clear()
            self._priorities.clear()
            self._push_count = 0

    def drop_oldest(self, n: int) -> None:
        """Let the n oldest items leave, or all if there are fewer."""
        with self._lock:
            self._remove(self._by_age()[:n])

    def remove_if(self, test: Callable[[list[Any]], np.ndarray]) -> None:
        with self._lock:
            slots = self._priorities.slots()
            if len(slots):
                self._remove(slots[test(self._ring.take(slots))])

    def _remove(self, slots: np.ndarray) -> None:
        self._discard(slots)
        self._ring.drop(slots)
        self._priorities.vacate(slots)
        self._monitor.note(removed=len(slots))

    def _by_age(self) -> np.ndarray:
        slots = self._ring.by_age()
        return slots[self._priorities.occupied[slots]]

    def count(self) -> int:
        return self._priorities.count

    def state_dict(self) -> dict[str, Any]:
        with self._lock:
            pushes = self._pushes[: self._ring.filled].copy()
            return {
                **super().state_dict(),
                "priorities": self._priorities.state_dict(),
                "pushes": pushes,
                "next_push": self._next_push,
            }

    def _load(self, state: dict[str, Any]) -> np.ndarray:
        order = super()._load(state)
        self._priorities.load_state_dict(state["priorities"], order)
        self._pushes[: len(order)] = state["pushes"][order]
        self._next_push = int(state["next_push"])
        self._last = (np.empty(0, np.int64), np.empty(0, np.int64))
        return order
