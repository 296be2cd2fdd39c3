"""Draws the agent's own experience together with an expert's demonstrations."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ding.data import Columns
from ding.data.arrays import IdColumn, Item, Items, id_numbers
from ding.utils.errors import DataError
from ding.worker.replay_buffer.advanced_buffer import AdvancedReplayBuffer
from ding.worker.replay_buffer.multi_buffer import BufferGroup

#: Prefix of the ids of sampled items; the numbers of an expert's items are negative.
_PREFIX = "item"


class DemonstrationBuffer(BufferGroup):
    """Two buffers behind one interface: items are pushed to the first, batches come from both.

    The second one contains demonstrations, which are never evicted. Each has its own priorities.

    Args:
        own: Buffer of own experience, of the type ``advanced``.
        demonstrations: Buffer of demonstrations, of the same type.
        share: Fraction of demonstrations in a batch.
    """

    def __init__(
        self, own: AdvancedReplayBuffer, demonstrations: AdvancedReplayBuffer, share: float
    ) -> None:
        self.own = own
        self.demonstrations = demonstrations
        self._buffers = {"own": own, "demonstrations": demonstrations}
        self._share = share

    @property
    def replay_buffer_size(self) -> int:
        """Capacity for own experience."""
        return self.own.replay_buffer_size

    @property
    def push_count(self) -> int:
        """Number of items of own experience ever pushed."""
        return self.own.push_count

    def push(self, data: Items | Item, cur_collector_envstep: int = -1) -> None:
        self.own.push(data, cur_collector_envstep)

    def sample(self, batch_size: int, cur_learner_iter: int) -> Items | None:
        """A batch, demonstrations first; None if one of the buffers has too few items."""
        of_expert = round(self._share * batch_size)
        if of_expert == 0:
            return self._sample_own(batch_size, cur_learner_iter)
        of_both = self.sample_demonstrations(of_expert, cur_learner_iter)
        if of_expert == batch_size or of_both is None:
            return of_both
        own = self._sample_own(batch_size - of_expert, cur_learner_iter)
        return None if own is None else Columns.concat([of_both, own])

    def _sample_own(self, batch_size: int, cur_learner_iter: int) -> Columns | None:
        data = self.own.sample(batch_size, cur_learner_iter)
        return None if data is None else _labelled(data, lambda number: number)

    def sample_demonstrations(self, batch_size: int, cur_learner_iter: int) -> Columns | None:
        """A batch of demonstrations only."""
        data = self.demonstrations.sample(batch_size, cur_learner_iter)
        # Not -n: item 0 of the two buffers must differ as well.
        return None if data is None else _labelled(data, lambda number: -1 - number)

    def update(self, info: Mapping[str, Any]) -> None:
        """Update the priorities of a batch's items in their buffers."""
        numbers = id_numbers(info["replay_unique_id"], _PREFIX)
        slots = np.asarray(info["replay_buffer_idx"])
        priority = torch.as_tensor(info["priority"])
        for buffer, here, number in (
            (self.own, numbers >= 0, numbers),
            (self.demonstrations, numbers < 0, -1 - numbers),
        ):
            if here.any():
                buffer.update(
                    {
                        "replay_unique_id": IdColumn(buffer._instance_name, number[here]),
                        "replay_buffer_idx": slots[here],
                        "priority": priority[torch.from_numpy(here)],
                    }
                )

    def clear(self) -> None:
        """Remove own experience; demonstrations stay."""
        self.own.clear()

    def count(self) -> int:
        """Number of stored items, including demonstrations."""
        return self.own.count() + self.demonstrations.count()

    def save_data(self, file_name: str) -> None:
        self.own.save_data(file_name)

    def load_data(self, file_name: str) -> None:
        self.own.load_data(file_name)


def _labelled(data: Items, number: Callable[[np.ndarray], np.ndarray]) -> Columns:
    if not isinstance(data, Columns) or not data.is_columnar:
        raise DataError(
            "demonstrations are drawn together with samples of one form, and these differ among "
            "each other: an environment must always give observations of the same shape"
        )
    ids = data.column("replay_unique_id")
    assert isinstance(ids, IdColumn)
    return data.with_columns(replay_unique_id=IdColumn(_PREFIX, number(ids.numbers)))
