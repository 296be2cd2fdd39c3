"""Prioritised replay with limits on use, age and throughput."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from easydict import EasyDict

from ding.data.arrays import IdColumn, Item, Items, State, gathered
from ding.data.buffer.monitors import summarise_samples
from ding.data.buffer.prioritised_buffer import PrioritisedBuffer, as_iters
from ding.data.buffer.rate_limiter import ThruputController
from ding.data.columns import Columns, as_columns
from ding.data.priorities import checked_priorities
from ding.utils.errors import DataError
from ding.utils.registry_factory import BUFFER_REGISTRY

#: Keys that the buffer adds to sampled items; it drops them from pushed ones.
_OWN = frozenset({"replay_unique_id", "replay_buffer_idx", "use", "staleness", "priority", "IS"})

_ONE = np.ones(1, np.float32)

Facts = dict[str, np.ndarray | IdColumn]


def to_positive_index(idx: int | None, size: int) -> int | None:
    """Convert a slice bound that counts from the end to one from the start; None stays None."""
    return idx if idx is None or idx >= 0 else size + idx


def without_limits(cfg: EasyDict, size: int) -> EasyDict:
    """The settings for a buffer of another size, without limits on sampling: for a fixed set of
    items, such as demonstrations."""
    usual = AdvancedReplayBuffer.default_config()
    limits = ("max_use", "max_staleness", "thruput_controller")
    return EasyDict(cfg, replay_buffer_size=size, **{name: usual[name] for name in limits})


@BUFFER_REGISTRY.register("advanced")
class AdvancedReplayBuffer(PrioritisedBuffer):
    """Prioritised replay buffer (Schaul et al. 2016) with limits on use and staleness.

    Sampled items have these additional keys: ``replay_unique_id`` and ``replay_buffer_idx`` (to
    be passed to `update`), ``use`` (how often sampled), ``staleness`` (learner
    iterations since the policy that collected it, -1 if it has no ``collect_iter``), ``priority``,
    and ``IS``, the importance weight (at most 1).

    Args:
        cfg: ``replay_buffer_size``, ``max_use``, ``max_staleness``, ``alpha``, ``beta``,
            ``anneal_step`` and others of ``default_config``.
        tb_logger: Writer of scalars that the caller owns.
        exp_name: Folder of the run.
        instance_name: Prefix of the log, and of items' ids.

    Example:

        >>> from ding.worker import AdvancedReplayBuffer
        >>> cfg = AdvancedReplayBuffer.default_config()
        >>> cfg.update(replay_buffer_size=100)
        >>> buffer = AdvancedReplayBuffer(cfg)
        >>> buffer.push([{"reward": float(i)} for i in range(10)], cur_collector_envstep=10)
        >>> batch = buffer.sample(4, cur_learner_iter=0)
        >>> keys = "replay_unique_id", "replay_buffer_idx"
        >>> ids = {key: [row[key] for row in batch] for key in keys}
        >>> buffer.update({**ids, "priority": [0.5, 1.0, 2.0, 0.1]})
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

    def _set_up(self) -> None:
        super()._set_up()
        cfg = self._cfg
        self._max_use, self._max_staleness = cfg.max_use, cfg.max_staleness
        self._beta = float(cfg.beta)
        self._beta_step = (1.0 - self._beta) / cfg.anneal_step if cfg.anneal_step else 0.0
        self._controller = ThruputController(cfg.thruput_controller)
        self._min_ratio = cfg.thruput_controller.sample_min_limit_ratio
        attr = cfg.monitor.sampled_data_attr
        self._attr_freq = attr.print_freq or math.inf
        self._recent: deque[Facts] = deque(maxlen=int(attr.average_range))
        self._sample_count = 0

    def _thruput_cfg(self) -> EasyDict:
        return self._cfg.monitor.periodic_thruput

    # ------------------------------------------------------------------ push

    def push(self, data: Items | Item, cur_collector_envstep: int = -1) -> None:
        """Store one item (a mapping), or each item of a list.

        A new item gets its own ``priority`` if it has one, otherwise the highest so far.

        Raises:
            DataError: An item is not a mapping, or a priority is NaN, infinite or negative; nothing
                is stored then.
        """
        with self._lock:
            if self._controller.enabled:
                total = len(data) if isinstance(data, list) else 1
                allowed, reason = self._controller.can_push(total)
                if not allowed:
                    # Not raised: collection continues, and the learner catches up meanwhile.
                    self._log.refuse("push", reason)
                    return
                self._log.served("push")
                self._controller.history_push_count += total
            self._push(data)

    def _push(self, data: Items | Item) -> None:
        """Store items, without the buffer's own keys except priorities."""
        if not isinstance(data, list):
            if isinstance(data, Mapping) and _OWN.isdisjoint(data):
                self._store(data, iters=as_iters([data.get("collect_iter", -1)]))
            else:
                self._push_rows([data])
            return
        batch = data if isinstance(data, Columns) else None
        if batch is None and self._ring.is_columnar:
            batch = as_columns(data)
        stored = None if batch is None else batch.stored()
        if batch is None or stored is None:
            self._push_rows(data.copied_rows() if isinstance(data, Columns) else data)
            return
        given = {
            name: gathered(stored[name][0])
            for name in ("collect_iter", "priority")
            if name in stored
        }
        iters = as_iters(given.get("collect_iter", np.full(len(batch), -1)))
        priorities = None
        if not _OWN.isdisjoint(stored):
            if "priority" in given:
                priorities = checked_priorities(given["priority"], len(batch))
            batch = Columns.of_stored({key: col for key, col in stored.items() if key not in _OWN})
        self._store(batch, priorities, iters)

    def _push_rows(self, rows: Sequence[Item]) -> None:
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise DataError(
                    f"item {i} of {len(rows)} is of type {type(row).__name__}: the advanced buffer "
                    f"takes mappings, as it adds keys; use type='naive' for other items"
                )
        given = [row.get("priority") for row in rows]
        priorities = None
        if any(value is not None for value in given):
            # New items should be sampled at least once (Schaul et al. 2016, algorithm 1, line 6).
            highest = self._priorities.highest
            filled = [highest if value is None else value for value in given]
            priorities = checked_priorities(filled, len(rows))
        kept = [{k: v for k, v in row.items() if k not in _OWN} for row in rows]
        self._store(kept, priorities, as_iters([row.get("collect_iter", -1) for row in rows]))

    # ------------------------------------------------------------------ sample

    def sample(
        self,
        size: int,
        cur_learner_iter: int,
        sample_range: slice | None = None,
    ) -> Items | None:
        """Draw items with probability proportional to priority ** alpha, in `size` strata.

        Args:
            size: Number of items.
            cur_learner_iter: The learner's iteration, for staleness.
            sample_range: Draw only from these items, counted from the oldest:
                ``slice(-10, None)`` selects the newest ten.

        Returns:
            ``Columns`` if the items are columnar, otherwise a list, independent of the buffer.
            None if there are too few items, or the throughput limits forbid sampling.
        """
        with self._lock:
            self._remove_stale(cur_learner_iter)
            among = None if sample_range is None else self._ring.by_age()[sample_range]
            available = self._ring.count if among is None else len(among)
            if not self._can_sample(size, available, among):
                return None
            priorities = self._priorities
            slots = priorities.draw(self._draw, size, among)
            distinct = priorities.all_equal and size <= available
            has_limit = self._max_use != float("inf")
            if has_limit and not distinct:
                slots = self._within_max_use(slots, among)
            # If all priorities are equal, all weights are 1: skip two copies per sample.
            weighed = None
            if not priorities.all_equal:
                weighed = priorities.of(slots), priorities.weights(slots, self._beta, among)
            use = self._count_use(slots, distinct)
            if self._beta < 1.0:
                self._beta = min(1.0, self._beta + self._beta_step)
            numbers, iters = self._ring.numbers.take(slots), self._collect_iter.take(slots)

            def facts() -> Facts:
                priority, weight = weighed or (_ONE.repeat(size), _ONE.repeat(size))
                return {
                    "replay_unique_id": IdColumn(self._instance_name, numbers),
                    "replay_buffer_idx": slots,
                    "use": use,
                    "staleness": _staleness(iters, cur_learner_iter),
                    "priority": priority,
                    "IS": weight,
                }

            data = self._ring.take(slots, facts)
            self._monitor.note(sampled=size)
            self._note_facts(facts, cur_learner_iter)
            if has_limit:
                # Last, since the batch above is gathered from these slots.
                self._remove(np.unique(slots[self._use[slots] >= self._max_use]))
            return data

    def _can_sample(self, size: int, available: int, among: np.ndarray | None) -> bool:
        needed = size * self._min_ratio
        if available < needed or available < 1:
            self._log.refuse("sample", f"{needed:g} items needed, {available} there")
            return False
        if size > available and self._max_use != float("inf"):
            uses = int(self._uses_left(self._ring.slots() if among is None else among).sum())
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
        """How often each slot may still be sampled."""
        return np.ceil(self._max_use - self._use[slots]).astype(np.int64)

    def _within_max_use(self, slots: np.ndarray, among: np.ndarray | None) -> np.ndarray:
        """Replace items that a batch contains more often than ``max_use`` allows.

        The remaining uses of all items must suffice for the batch.
        """
        while (over := _repeats(slots) >= self._uses_left(slots)).any():
            all_slots = self._ring.slots() if among is None else among
            drawn = np.bincount(slots[~over], minlength=self.replay_buffer_size)
            others = all_slots[self._uses_left(all_slots) > drawn[all_slots]]
            slots = slots.copy()
            slots[over] = self._priorities.draw(self._draw, int(over.sum()), others)
        return slots

    def _count_use(self, slots: np.ndarray, distinct: bool) -> np.ndarray:
        """Count the items sampled now; returns how often each was sampled, int64 [n]."""
        if not distinct:
            np.add.at(self._use, slots, 1)
            return self._use.take(slots)
        use = self._use.take(slots)
        use += 1
        self._use[slots] = use
        return use

    def _note_facts(self, facts: Callable[[], Facts], cur_iter: int) -> None:
        """Every ``print_freq`` samples (0: never), log statistics of the last ``average_range``."""
        self._sample_count += 1
        left = -self._sample_count % self._attr_freq
        if left < self._recent.maxlen:  # type: ignore[operator]
            self._recent.append(facts())
            if left == 0:
                for name, value in summarise_samples(self._recent).items():
                    self._log.add_scalar(f"{self._log.group}_iter/{name}", value, cur_iter)
                self._recent.clear()

    def _remove_stale(self, cur_iter: int) -> None:
        if self._max_staleness == float("inf"):
            return
        age = cur_iter - self._collect_iter  # -1 in empty slots and for items of unknown age
        self._remove(np.flatnonzero((self._collect_iter >= 0) & (age > self._max_staleness)))

    @property
    def alpha(self) -> float:
        """Exponent of the priorities in the sampling probabilities."""
        return self._priorities.alpha

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        with self._lock:
            self._priorities.alpha = alpha

    @property
    def beta(self) -> float:
        """Exponent of the importance weights ``IS``; anneals to 1 over ``anneal_step``."""
        return self._beta

    @beta.setter
    def beta(self, beta: float) -> None:
        self._beta = beta

    # ------------------------------------------------------------------ state

    def state_dict(self) -> State:
        with self._lock:
            return {
                **super().state_dict(),
                "sample_count": self._sample_count,
                "beta": self._beta,
                "first_beta": float(self._cfg.beta),
            }

    def load_state_dict(self, _state_dict: State, deepcopy: bool = False) -> None:
        """Restore a buffer's saved state.

        Args:
            deepcopy: Ignored: loaded data is always copied, except for objects inside items.
        """
        super().load_state_dict(_state_dict)

    _entries = (*PrioritisedBuffer._entries, "sample_count", "first_beta", "beta")

    def _load(self, state: State) -> np.ndarray:
        slots = super()._load(state)
        self._sample_count = int(state["sample_count"])
        if state["first_beta"] == self._cfg.beta:  # a changed config overrides the saved value
            self._beta = float(state["beta"])
        # The limit may be lower than in the run that saved the state.
        self._remove(slots[self._use[slots] >= self._max_use])
        return slots


def _staleness(iters: np.ndarray, cur_iter: int) -> np.ndarray:
    """Iterations since ``iters``; -1 where unknown."""
    staleness = cur_iter - iters
    # For few numbers, `argmin` is several times faster than a reduction.
    if len(iters) and iters[iters.argmin()] < 0:
        staleness[iters < 0] = -1
    return staleness


def _repeats(slots: np.ndarray) -> np.ndarray:
    """How often each slot occurs before its own position, int64 ``[n]``."""
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    first = np.searchsorted(ordered, ordered)
    repeats = np.empty(len(slots), np.int64)
    repeats[order] = np.arange(len(slots)) - first
    return repeats
