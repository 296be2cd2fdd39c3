from .advanced_buffer import (
    AdvancedReplayBuffer as AdvancedReplayBuffer,
)
from .base_buffer import (
    DequeBufferWrapper as DequeBufferWrapper,
    IBuffer as IBuffer,
    create_buffer as create_buffer,
    get_buffer_cls as get_buffer_cls,
)
from .episode_buffer import (
    EpisodeReplayBuffer as EpisodeReplayBuffer,
)
from .naive_buffer import (
    ElasticReplayBuffer as ElasticReplayBuffer,
    NaiveReplayBuffer as NaiveReplayBuffer,
    SequenceReplayBuffer as SequenceReplayBuffer,
)
