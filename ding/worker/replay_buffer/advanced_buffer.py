"""Prioritised replay with limits on use, age and throughput."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.data.buffer.monitors import SampledDataAttrMonitor
from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.buffer.thruput_control import ThruputController
from ding.data.columns import Columns, as_columns
from ding.data.id_column import IdColumn, id_numbers
from ding.data.priorities import Priorities, checked_priorities
from ding.data.staleness import as_iters, is_stale, oldest_iter
from ding.utils.autolog import TickTime
from ding.utils.errors import DataError
from ding.utils.registry_factory import BUFFER_REGISTRY
from ding.worker.replay_buffer.base_buffer import IBuffer

#: What the buffer itself says about an item; such keys of incoming items are not kept.
_OWN = ("replay_unique_id", "replay_buffer_idx", "use", "staleness", "priority", "IS")
_OWN_SET = frozenset(_OWN)


def to_positive_index(idx: int | None, size: int) -> int | None:
    """A slice bound that counts from the end, counted from the start; None stays None."""
    return idx if idx is None or idx >= 0 else size + idx


@BUFFER_REGISTRY.register("advanced")
class AdvancedReplayBuffer(RingBuffer, IBuffer):
    """Draws items in proportion to their priority; items leave when used up or too old.

    Sampled items carry, beside their own keys: ``replay_unique_id`` and ``replay_buffer_idx`` (to
    be handed back to :meth:`update`), ``use`` (how often sampled), ``staleness`` (learner
    iterations since the policy that collected it, -1 if it has no ``collect_iter``), ``priority``,
    and ``IS``, its importance weight (at most 1).
    """

    config = dict(
        type="advanced",
        replay_buffer_size=4096,
        max_use=float("inf"),
        max_staleness=float("inf"),
        alpha=0.6,
        beta=0.4,
        anneal_step=int(1e5),
        enable_track_used_data=False,
        deepcopy=False,
        thruput_controller=dict(
            push_sample_rate_limit=dict(max=float("inf"), min=0),
            window_seconds=30,
            sample_min_limit_ratio=1,
        ),
        monitor=dict(
            sampled_data_attr=dict(average_range=5, print_freq=200),
            periodic_thruput=dict(seconds=60),
        ),
        # Folder for memory-mapped files, for data larger than memory.
        memmap_path=None,
    )

    def __init__(
        self,
        cfg: dict,
        tb_logger: Any = None,
        exp_name: str | None = "default_experiment",
        instance_name: str | None = "buffer",
    ) -> None:
        super().__init__(EasyDict(cfg), tb_logger, exp_name, instance_name)
        self._configure(self._cfg)

    def _configure(self, cfg: EasyDict) -> None:
        size = self.replay_buffer_size
        self._max_use, self._max_staleness = cfg.max_use, cfg.max_staleness
        self._beta = float(cfg.beta)
        self._beta_step = (1.0 - self._beta) / cfg.anneal_step if cfg.anneal_step else 0.0
        self._priorities = Priorities(size, float(cfg.alpha))
        self._numbers = np.full(size, -1, np.int64)
        self._use = np.zeros(size, np.int64)
        self._collect_iter = np.full(size, -1, np.int64)
        self._next_number = 0
        self._controller = ThruputController(cfg.thruput_controller)
        self._min_ratio = cfg.thruput_controller.sample_min_limit_ratio
        attr = cfg.monitor.sampled_data_attr
        self._attr_span, self._attr_freq = attr.average_range, attr.print_freq
        self._tick = TickTime()
        self._attr_monitor = SampledDataAttrMonitor(self._tick, attr.average_range)
        self._sample_count = 0

    def _thruput_cfg(self) -> EasyDict:
        return self._cfg.monitor.periodic_thruput

    # ------------------------------------------------------------------ push

    def push(self, data: list[Any] | Any, cur_collector_envstep: int = -1) -> None:
        """Store one item (a mapping), or each item of a list.

        New items take their own ``priority`` if they have one, otherwise the highest so far.

        Raises:
            DataError: An item that is no mapping, or a priority that is NaN, infinite or negative;
                nothing is stored then.
        """
        with self._lock:
            total = len(data) if isinstance(data, list) else 1
            if self._controller.enabled:
                allowed, reason = self._controller.can_push(total)
                if not allowed:
                    self._log.refuse("push", reason)
                    self._turn_away(data)
                    return
                self._log.served("push")
                self._controller.history_push_count += total
            if total:
                self._store(*self._split(data, total), total)

    def _split(self, data: Any, total: int) -> tuple[Any, np.ndarray | None, Any]:
        """Items without the buffer's own keys, their priorities, their ``collect_iter``."""
        if isinstance(data, list):
            columnar = isinstance(data, Columns) or self._ring.is_columnar
            batch = as_columns(data) if columnar else None
            return self._split_rows(data) if batch is None else self._split_columns(batch, total)
        if isinstance(data, Mapping) and _OWN_SET.isdisjoint(data):
            return data, None, oldest_iter(data.get("collect_iter"))
        items, priorities, collect_iter = self._split_rows([data])
        return items[0], priorities, oldest_iter(collect_iter[0])

    def _split_columns(self, batch: Columns, total: int) -> tuple[Any, np.ndarray | None, Any]:
        window = batch.window()
        assert window is not None
        columns, rows = window
        given: Any = columns.get("collect_iter")
        collect_iter = -1 if given is None else given[rows.start : rows.stop]
        if _OWN_SET.isdisjoint(columns):
            return batch, None, collect_iter
        columns = batch.columns
        priorities = columns.get("priority")
        if priorities is not None:
            priorities = checked_priorities(priorities, total)
        kept = {name: column for name, column in columns.items() if name not in _OWN_SET}
        return Columns.trusted(kept, total), priorities, collect_iter

    def _split_rows(self, rows: Sequence[Any]) -> tuple[Any, np.ndarray | None, Any]:
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise DataError(
                    f"item {i} of {len(rows)} is of type {type(row).__name__}: the advanced buffer "
                    f"takes mappings, as it adds keys; use type='naive' for other items"
                )
        collect_iter = [row.get("collect_iter", -1) for row in rows]
        if all(_OWN_SET.isdisjoint(row) for row in rows):
            return list(rows), None, collect_iter
        given = [row.get("priority") for row in rows]
        priorities = None
        if any(value is not None for value in given):
            highest = self._priorities.highest
            priorities = checked_priorities(
                [highest if value is None else value for value in given], len(rows)
            )
        kept = [{k: v for k, v in row.items() if k not in _OWN_SET} for row in rows]
        return kept, priorities, collect_iter

    def _store(
        self, data: Any, priorities: np.ndarray | None, collect_iter: Any, total: int
    ) -> None:
        if self._is_watched:
            replaced = self._slots_after_head(total)
            self._discard(replaced[self._priorities.occupied[replaced]])
        before = self._priorities.count
        start, n = self._ring.push(data)
        number = self._next_number + total - n
        self._next_number += total
        self._push_count += total
        iters = as_iters(collect_iter)
        if n < total:
            self._turn_away(data[: total - n])
            iters = iters[-n:] if iters.ndim else iters
            priorities = None if priorities is None else priorities[-n:]
        self._priorities.occupy(start, n, priorities)
        room = self.replay_buffer_size - start
        self._label(start, min(n, room), number, iters)
        if n > room:
            self._label(0, n - room, number + room, iters[room:] if iters.ndim else iters)
        self._monitor.note(pushed=n, removed=before + n - self._priorities.count)

    def _label(self, start: int, n: int, number: int, iters: np.ndarray) -> None:
        span = slice(start, start + n)
        self._numbers[span] = np.arange(number, number + n)
        self._use[span] = 0
        self._collect_iter[span] = iters[:n] if iters.ndim else iters

    # ------------------------------------------------------------------ sample

    def sample(
        self,
        size: int,
        cur_learner_iter: int,
        sample_range: slice | None = None,
        train_iter: int | None = None,
    ) -> list | None:
        """Draw items in proportion to their priority ** alpha, one from each of `size` shares.

        Args:
            size: How many.
            cur_learner_iter: The learner's iteration, for staleness.
            sample_range: Draw only among these items, counted from the oldest on:
                ``slice(-10, None)`` are the newest ten.
            train_iter: Iteration at which the learner will train on them, if that is a later one:
                none of them is older than ``max_staleness`` then.

        Returns:
            ``Columns`` if the items are columnar, otherwise a list, independent of the buffer.
            None if there are too few items, or the throughput limits forbid it.
        """
        with self._lock:
            self._remove_stale(cur_learner_iter)
            among = None
            if sample_range is not None:
                slots = self._ring.by_age()
                among = slots[self._priorities.occupied[slots]][sample_range]
            if train_iter is not None and self._max_staleness != float("inf"):
                among = self._priorities.slots() if among is None else among
                iters = self._collect_iter[among]
                among = among[~is_stale(iters, train_iter, self._max_staleness)]
                if len(among) < max(size * self._min_ratio, 1):
                    return None  # asked early: that is nothing to complain of
            available = self._priorities.count if among is None else len(among)
            if not self._can_sample(size, available, among):
                return None
            slots, weights = self._priorities.draw(self._draw, size, self._beta, among)
            distinct = self._priorities.all_equal and size <= available
            use = self._count_use(slots, distinct)
            has_limit = self._max_use != float("inf")
            if has_limit and not distinct and use.max() >= self._max_use + 1:
                np.subtract.at(self._use, slots, 1)
                slots = self._within_max_use(slots, among)
                weights = self._priorities.weights(slots, self._beta, among)
                use = self._count_use(slots, False)
            if self._beta < 1.0:
                self._beta = min(1.0, self._beta + self._beta_step)
            facts = self._facts(slots, use, weights, cur_learner_iter)
            data = self._ring.take(slots, facts)
            self._monitor.note(sampled=size)
            self._note_facts(facts, cur_learner_iter)
            if has_limit:
                used_up = np.unique(slots[self._use[slots] >= self._max_use])
                self._remove(used_up)
            return data

    def _can_sample(self, size: int, available: int, among: np.ndarray | None) -> bool:
        needed = size * self._min_ratio
        if available < needed or available < 1:
            self._log.refuse("sample", f"{needed:g} items needed, {available} there")
            return False
        if size > available and self._max_use != float("inf"):
            uses = int(self._uses_left(self._priorities.slots() if among is None else among).sum())
            if uses < size:
                self._log.refuse("sample", f"{size} asked for, max_use allows {uses} more")
                return False
        if self._controller.enabled:
            allowed, reason = self._controller.can_sample(size)
            if not allowed:
                self._log.refuse("sample", reason)
                return False
            self._controller.history_sample_count += size
        self._log.served("sample")
        return True

    def _uses_left(self, slots: np.ndarray) -> np.ndarray:
        """How often each may still be sampled."""
        return np.ceil(self._max_use - self._use[slots]).astype(np.int64)

    def _within_max_use(self, slots: np.ndarray, among: np.ndarray | None) -> np.ndarray:
        """Other items in the place of those that a batch holds more often than ``max_use`` allows.

        There must be as many uses left, in all, as are drawn.
        """
        all_slots = self._priorities.slots() if among is None else among
        while (over := _repeats(slots) >= self._uses_left(slots)).any():
            drawn = np.bincount(slots[~over], minlength=self.replay_buffer_size)
            others = all_slots[self._uses_left(all_slots) > drawn[all_slots]]
            slots = slots.copy()
            slots[over], _ = self._priorities.draw(self._draw, int(over.sum()), 0.0, others)
        return slots

    def _count_use(self, slots: np.ndarray, distinct: bool) -> np.ndarray:
        if not distinct:
            np.add.at(self._use, slots, 1)
            return self._use.take(slots)
        use = self._use.take(slots)
        use += 1
        self._use[slots] = use
        return use

    def _facts(
        self, slots: np.ndarray, use: np.ndarray, weights: np.ndarray, cur_iter: int
    ) -> dict[str, Any]:
        collect_iter = self._collect_iter.take(slots)
        staleness = cur_iter - collect_iter
        staleness[collect_iter < 0] = -1
        return {
            "replay_unique_id": IdColumn(self._instance_name, self._numbers.take(slots)),
            "replay_buffer_idx": slots,
            "use": use,
            "staleness": staleness,
            "priority": self._priorities.of(slots),
            "IS": weights,
        }

    def _note_facts(self, facts: Mapping[str, Any], cur_iter: int) -> None:
        """Every ``print_freq`` samples, log the figures of the last ``average_range`` ones."""
        self._sample_count += 1
        position = self._sample_count % self._attr_freq
        if position and position <= self._attr_freq - self._attr_span:
            return
        use, priority, age = facts["use"], facts["priority"], facts["staleness"]
        monitor = self._attr_monitor
        monitor.use_max, monitor.use_avg = int(use.max()), float(use.mean())
        monitor.priority_max, monitor.priority_min = float(priority.max()), float(priority.min())
        monitor.priority_avg = float(priority.mean())
        monitor.staleness_max, monitor.staleness_avg = int(age.max()), float(age.mean())
        self._tick.step()
        if position == 0:
            self._log.scalars("iter", monitor.summary(), cur_iter)

    # ------------------------------------------------------------------ items that leave

    def _remove_stale(self, cur_iter: int) -> None:
        if self._max_staleness == float("inf"):
            return
        stale = is_stale(self._collect_iter, cur_iter, self._max_staleness)
        if stale.any():
            self._remove(np.flatnonzero(stale & self._priorities.occupied))

    def drop_oldest(self, n: int) -> None:
        """Let the n oldest items leave, or all if there are fewer."""
        with self._lock:
            slots = self._ring.by_age()
            self._remove(slots[self._priorities.occupied[slots]][:n])

    def remove_if(self, test: Callable[[list[Any]], np.ndarray]) -> None:
        with self._lock:
            slots = self._priorities.slots()
            if len(slots):
                self._remove(slots[test(self._ring.take(slots))])

    def _remove(self, slots: np.ndarray) -> None:
        if not len(slots):
            return
        self._discard(slots)
        self._ring.drop(slots)
        self._priorities.vacate(slots)
        self._numbers[slots] = self._collect_iter[slots] = -1
        self._monitor.note(removed=len(slots))

    def update(self, info: dict) -> None:
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
        if len(slots) and not 0 <= slots.min() <= slots.max() < self.replay_buffer_size:
            raise DataError(
                f"replay_buffer_idx must be in [0, {self.replay_buffer_size}), "
                f"got {slots.min()} to {slots.max()}"
            )
        with self._lock:
            same = self._numbers.take(slots) == numbers
            if not same.all():
                slots, values = slots[same], values[same]
            self._priorities.update(slots, values)

    def clear(self) -> None:
        with self._lock:
            slots = self._priorities.slots()
            self._discard(slots)
            self._monitor.note(removed=len(slots))
            self._ring.clear()
            self._priorities.clear()
            self._numbers[:] = self._collect_iter[:] = -1
            self._push_count = 0

    def count(self) -> int:
        return self._priorities.count

    @property
    def beta(self) -> float:
        """How far ``IS`` corrects for prioritised drawing; grows to 1 over ``anneal_step``."""
        return self._beta

    @beta.setter
    def beta(self, beta: float) -> None:
        self._beta = beta

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        with self._lock:
            filled = self._ring.filled
            return {
                **super().state_dict(),
                "priorities": self._priorities.state_dict(),
                "numbers": self._numbers[:filled].copy(),
                "use": self._use[:filled].copy(),
                "collect_iter": self._collect_iter[:filled].copy(),
                "next_number": self._next_number,
                "sample_count": self._sample_count,
                "beta": self._beta,
                "first_beta": float(self._cfg.beta),
            }

    def load_state_dict(self, _state_dict: dict[str, Any], deepcopy: bool = False) -> None:
        """Go on where the buffer stood that gave this state.

        Args:
            deepcopy: Not needed: what is loaded is a copy, except for objects inside of items.
        """
        super().load_state_dict(_state_dict)

    def _load(self, state: dict[str, Any]) -> np.ndarray:
        order = super()._load(state)
        n = len(order)
        self._priorities.load_state_dict(state["priorities"], order)
        self._numbers[:] = -1
        for mine, saved in (
            (self._numbers, state["numbers"]),
            (self._use, state["use"]),
            (self._collect_iter, state["collect_iter"]),
        ):
            mine[:n] = saved[order]
        self._next_number = int(state["next_number"])
        self._sample_count = int(state["sample_count"])
        if state["first_beta"] == self._cfg.beta:  # otherwise another one is wanted from now on
            self._beta = float(state["beta"])
        occupied = self._priorities.slots()
        self._remove(occupied[self._use[occupied] >= self._max_use])
        return order


def _repeats(slots: np.ndarray) -> np.ndarray:
    """How often each slot stands before its own place, int64 ``[n]``."""
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    first = np.searchsorted(ordered, ordered)
    repeats = np.empty(len(slots), np.int64)
    repeats[order] = np.arange(len(slots)) - first
    return repeats
