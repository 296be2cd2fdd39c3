"""Training data as columns, and what stores it."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "columns": ["Columns", "as_columns"],
        "id_column": ["IdColumn"],
        "tree": ["tree_length", "tree_map", "tree_take"],
        "buffer.deque_buffer": ["DequeBuffer"],
        "shm_buffer": ["ShmBuffer", "ShmBufferContainer"],
    },
)
