from .chunk_cache import (
    ChunkCache as ChunkCache,
)
from .chunk_file import (
    chunk_columns as chunk_columns,
)
from .chunk_file import (
    chunk_name as chunk_name,
)
from .chunk_file import (
    chunk_pattern as chunk_pattern,
)
from .chunk_file import (
    chunk_tensors as chunk_tensors,
)
from .chunk_file import (
    read_chunk as read_chunk,
)
from .chunk_file import (
    write_chunk as write_chunk,
)
from .folder import (
    SharedFolder as SharedFolder,
)
