from .deque_buffer import (
    BufferedData as BufferedData,
    DequeBuffer as DequeBuffer,
)
from .deque_buffer_wrapper import (
    DequeBufferWrapper as DequeBufferWrapper,
)
