from .advanced_buffer import (
    AdvancedReplayBuffer as AdvancedReplayBuffer,
)
from .base_buffer import (
    DequeBufferWrapper as DequeBufferWrapper,
)
from .base_buffer import (
    IBuffer as IBuffer,
)
from .base_buffer import (
    create_buffer as create_buffer,
)
from .base_buffer import (
    get_buffer_cls as get_buffer_cls,
)
from .episode_buffer import (
    EpisodeReplayBuffer as EpisodeReplayBuffer,
)
from .naive_buffer import (
    ElasticReplayBuffer as ElasticReplayBuffer,
)
from .naive_buffer import (
    NaiveReplayBuffer as NaiveReplayBuffer,
)
from .naive_buffer import (
    SequenceReplayBuffer as SequenceReplayBuffer,
)
