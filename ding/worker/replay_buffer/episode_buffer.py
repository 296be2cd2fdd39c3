"""Replay of whole episodes."""

from ding.utils.registry_factory import BUFFER_REGISTRY
from ding.worker.replay_buffer.naive_buffer import NaiveReplayBuffer


@BUFFER_REGISTRY.register("episode")
class EpisodeReplayBuffer(NaiveReplayBuffer):
    """Each item is an episode: a list of transitions, or their ``Columns``.

    As in other buffers, `push` treats a list as a list of items: wrap a single episode in a list;
    of a list of training samples, each one becomes an item.
    """

    _columnar = False

    @property
    def episode_len(self) -> list[int]:
        """Number of transitions of each stored episode, the oldest first."""
        with self._lock:
            return [len(episode) for episode in self._ring.peek(self._ring.by_age())]
