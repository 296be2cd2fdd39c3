from .columns import (
    Columns as Columns,
    as_columns as as_columns,
)
from .id_column import (
    IdColumn as IdColumn,
)
from .tree import (
    tree_length as tree_length,
    tree_map as tree_map,
    tree_take as tree_take,
)
from .buffer.deque_buffer import (
    DequeBuffer as DequeBuffer,
)
from .shm_buffer import (
    ShmBuffer as ShmBuffer,
    ShmBufferContainer as ShmBufferContainer,
)
