"""The buffer type `deque`: uniform or prioritised replay with a short config."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ding.data.arrays import IdColumn, Item, Items, State
from ding.data.buffer.prioritised_buffer import PrioritisedBuffer
from ding.utils.registry_factory import BUFFER_REGISTRY


@BUFFER_REGISTRY.register("deque")
class DequeBufferWrapper(PrioritisedBuffer):
    """Replay buffer of the newest items.

    Sampled items contain the importance weight ``IS`` if ``priority_IS_weight`` is set, and
    ``replay_unique_id`` and ``replay_buffer_idx`` if ``priority`` is set. `update` takes priorities
    with these two, or without them for all items of the last sample, in order.
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
        # Folder for memory-mapped files, if the data is larger than memory.
        memmap_path=None,
    )

    _alpha_key = "priority_power_factor"
    #: Ids and slots of the last sample's items.
    _last: Mapping[str, np.ndarray | IdColumn] = MappingProxyType(
        {
            "replay_unique_id": IdColumn("", np.empty(0, np.int64)),
            "replay_buffer_idx": np.empty(0, np.int64),
        }
    )

    def sample(
        self, size: int, cur_learner_iter: int = 0, sample_range: slice | None = None
    ) -> Items | None:
        """Draw items, in proportion to their priorities (equal without ``priority``).

        Args:
            size: Number of items.
            cur_learner_iter: The learner's iteration; the importance weights depend on it.
            sample_range: Draw only from these items; 0 is the oldest.

        Returns:
            ``Columns`` if the items are columnar, otherwise a list; None if there are too few.
        """
        with self._lock:
            among = None if sample_range is None else self._ring.by_age()[sample_range]
            available = self.count() if among is None else len(among)
            if not self._enough(size, available, size):
                return None
            slots = self._priorities.draw(self._draw, size, among)
            numbers = self._ring.numbers.take(slots)
            ids = IdColumn(self._instance_name, numbers)
            self._last = {"replay_unique_id": ids, "replay_buffer_idx": slots}
            self._monitor.note(sampled=size)
            facts: dict[str, np.ndarray | IdColumn] = {}
            if self._cfg.priority_IS_weight:
                beta = self._beta(cur_learner_iter)
                facts["IS"] = self._priorities.weights(slots, beta, among)
            if self._cfg.priority:
                facts.update(self._last)
            return self._ring.take(slots, (lambda: facts) if facts else None)

    def _beta(self, cur_iter: int) -> float:
        first = float(self._cfg.IS_weight_power_factor)
        part = min(cur_iter / max(self._cfg.IS_weight_anneal_train_iter, 1), 1.0)
        return first + (1.0 - first) * part

    def update(self, info: Mapping[str, Item]) -> None:
        """Set the priorities of sampled items, if the config has ``priority``.

        Raises:
            DataError: A priority is NaN, infinite or negative, their number differs from that of
                the items, or an index is out of range.
        """
        if self._cfg.priority and info:
            super().update(info if "replay_unique_id" in info else {**self._last, **info})

    def _load(self, state: State) -> np.ndarray:
        # The ids of an earlier sample refer to other rows in the loaded state.
        self._last = type(self)._last
        return super()._load(state)
