"""Replay buffers: one ring of columns, and ways to draw from it."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "advanced_buffer": ["AdvancedReplayBuffer"],
        "base_buffer": ["DequeBufferWrapper", "IBuffer", "create_buffer", "get_buffer_cls"],
        "episode_buffer": ["EpisodeReplayBuffer"],
        "naive_buffer": ["ElasticReplayBuffer", "NaiveReplayBuffer", "SequenceReplayBuffer"],
    },
)
