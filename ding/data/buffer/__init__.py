"""Buffers, and the parts that they are made of."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "deque_buffer": ["BufferedData", "DequeBuffer"],
        "deque_buffer_wrapper": ["DequeBufferWrapper"],
    },
)
