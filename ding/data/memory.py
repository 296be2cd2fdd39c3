"""Memory for large arrays: allocated as they fill up, memory-mapped, or reused."""

import ctypes
import logging
import os
import tempfile
import weakref
from collections import deque
from typing import cast

import numpy as np

#: The allocator serves smaller arrays from its own pools.
_BIG = 1 << 18
_KEPT = 4
_LARGE = 1 << 30
_logger = logging.getLogger("ding.data")


def allocate(
    shape: tuple[int, ...], dtype: np.dtype, name: str, folder: str | None = None
) -> np.ndarray:
    """An uninitialised array.

    Args:
        name: Name of the column, for errors and files.
        folder: Folder for a memory-mapped file, for data larger than memory. The file is unlinked
            as soon as it is mapped, so that its disk space is freed with the array, however the
            process ends.

    Raises:
        MemoryError: There is too little memory.
        OSError: The file cannot be created.
    """
    n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if folder is None or not n_bytes:
        try:
            return np.empty(shape, dtype)
        except MemoryError as error:
            raise MemoryError(
                f"replay buffer column {name!r} needs {n_bytes / 1e9:.1f} GB: make "
                f"replay_buffer_size smaller, or set memmap_path to a folder on a disk"
            ) from error
    os.makedirs(folder, exist_ok=True)
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    handle, file = tempfile.mkstemp(prefix=f"{safe}.", suffix=".bin", dir=folder)
    os.close(handle)
    try:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape).view(np.ndarray)
    finally:
        os.remove(file)


def warn_if_large(n_bytes: int, folder: str | None) -> None:
    """Warn if a replay buffer will take 1 GiB or more of memory or disk."""
    if n_bytes >= _LARGE:
        where = f"in files in {folder}" if folder else "of memory"
        _logger.warning("replay buffer: up to %.1f GB %s when full", n_bytes / 1e9, where)


class Recycler:
    """Arrays for batches, whose memory is reused once the last reference to it is gone.

    Newly allocated pages cost more time than the copy. Views of an array and tensors over it are
    references to its memory as well, so an array that is still in use is never overwritten.
    """

    def __init__(self) -> None:
        self._free: deque[np.ndarray] = deque(maxlen=_KEPT)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        """An uninitialised array, or None if it is so small that reuse does not pay off."""
        size = int(np.prod(shape)) * dtype.itemsize
        if size < _BIG:
            return None
        memory = np.empty(0, np.uint8)
        while self._free and len(memory) != size:
            memory = self._free.pop()
        if len(memory) != size:
            memory = np.empty(size, np.uint8)
        # Arrays and tensors over the memory refer to the lease only: once the lease is collected,
        # the memory is free.
        lease = (ctypes.c_char * size).from_buffer(memory.data)
        weakref.finalize(lease, self._free.append, memory).atexit = False
        return np.frombuffer(cast("memoryview", lease), dtype).reshape(shape)
