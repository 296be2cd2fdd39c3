from .chunk_cache import (
    ChunkCache as ChunkCache,
)
from .chunk_file import (
    chunk_columns as chunk_columns,
    chunk_name as chunk_name,
    chunk_pattern as chunk_pattern,
    chunk_tensors as chunk_tensors,
    read_chunk as read_chunk,
    write_chunk as write_chunk,
)
from .folder import (
    SharedFolder as SharedFolder,
)
