from .chunk_file import (
    SharedFolder as SharedFolder,
    chunk_content as chunk_content,
    chunk_name as chunk_name,
    chunk_pattern as chunk_pattern,
    parse_chunk as parse_chunk,
    read_chunk as read_chunk,
    write_chunk as write_chunk,
)
