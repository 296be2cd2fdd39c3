"""Big arrays whose memory is taken only as they fill up, or that live in files."""

import logging
import os
import tempfile

import numpy as np

_LARGE = 1 << 30

_logger = logging.getLogger("ding.data")


class Preallocator:
    """Gives out uninitialised arrays.

    Args:
        memmap_path: Folder for memory-mapped files, for data larger than memory; None keeps the
            arrays in memory. A file's name is removed as soon as it is mapped, so that its disk
            space is free again when the array is gone, however the process ends.
    """

    def __init__(self, memmap_path: str | None = None) -> None:
        self._folder = memmap_path

    def announce(self, n_bytes: int) -> None:
        """Say how large a store is going to be, before it is."""
        if n_bytes >= _LARGE:
            where = f"in files in {self._folder}" if self._folder else "of memory"
            _logger.warning("replay buffer: up to %.1f GB %s when full", n_bytes / 1e9, where)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, name: str) -> np.ndarray:
        """An uninitialised array; `name` is for errors and files.

        Raises:
            MemoryError: Names the column and its size.
            OSError: The file cannot be made.
        """
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self._folder is not None and n_bytes:
            return self._mapped(shape, dtype, name)
        try:
            return np.empty(shape, dtype)
        except MemoryError as error:
            raise MemoryError(
                f"replay buffer column {name!r} needs {n_bytes / 1e9:.1f} GB: make "
                f"replay_buffer_size smaller, or set memmap_path to a folder on a disk"
            ) from error

    def _mapped(self, shape: tuple[int, ...], dtype: np.dtype, name: str) -> np.ndarray:
        assert self._folder is not None
        os.makedirs(self._folder, exist_ok=True)
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
        handle, file = tempfile.mkstemp(prefix=f"{safe}.", suffix=".bin", dir=self._folder)
        os.close(handle)
        try:
            return np.memmap(file, dtype=dtype, mode="w+", shape=shape).view(np.ndarray)
        finally:
            os.remove(file)
