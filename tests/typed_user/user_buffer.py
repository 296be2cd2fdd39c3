"""A user's replay buffer: one that counts how often it is pushed to."""

from typing import Any

from ding.utils import BUFFER_REGISTRY
from ding.worker import AdvancedReplayBuffer


@BUFFER_REGISTRY.register("typed_counting")
class CountingBuffer(AdvancedReplayBuffer):
    """The advanced buffer with a count."""

    pushed = 0

    def push(self, data: list[Any] | Any, cur_collector_envstep: int = -1) -> None:
        self.pushed += 1
        super().push(data, cur_collector_envstep)
