from .arrays import (
    IdColumn as IdColumn,
    IndexedColumn as IndexedColumn,
)
from .buffer.deque_buffer import (
    DequeBuffer as DequeBuffer,
)
from .columns import (
    Columns as Columns,
    as_columns as as_columns,
)
from .dataset import (
    create_dataset as create_dataset,
    offline_data_save_type as offline_data_save_type,
)
from .shm_buffer import (
    ShmBuffer as ShmBuffer,
    ShmBufferContainer as ShmBufferContainer,
)
from .tree import (
    tree_join as tree_join,
    tree_length as tree_length,
    tree_map as tree_map,
    tree_rows as tree_rows,
    tree_take as tree_take,
)
