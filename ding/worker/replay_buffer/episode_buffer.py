"""Replay of whole episodes."""

from collections.abc import Mapping
from typing import Any

from ding.data.columns import Columns
from ding.utils.registry_factory import BUFFER_REGISTRY
from ding.worker.replay_buffer.naive_buffer import NaiveReplayBuffer


@BUFFER_REGISTRY.register("episode")
class EpisodeReplayBuffer(NaiveReplayBuffer):
    """Each item is an episode: a list of transitions, or their ``Columns``."""

    _columnar = False

    def push(self, data: list[Any] | Any, cur_collector_envstep: int = -1) -> None:
        """Store episodes, or a single one (a list of transitions)."""
        single = isinstance(data, Columns) or (
            isinstance(data, list) and data and isinstance(data[0], Mapping)
        )
        super().push([data] if single else data, cur_collector_envstep)

    @property
    def episode_len(self) -> list[int]:
        """Number of transitions of each stored episode, the oldest first."""
        with self._lock:
            return [len(episode) for episode in self._ring.peek(self._ring.by_age())]
