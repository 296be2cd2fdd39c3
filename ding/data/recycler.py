"""Big outputs in memory that was used before: fresh pages cost more than the copying."""

import ctypes
import weakref
from collections import deque
from typing import cast

import numpy as np

#: Smaller arrays come from the allocator's own pools.
_BIG = 1 << 18
_KEPT = 4


class Recycler:
    """Arrays to write a batch into, whose memory comes back when their last user lets go of it.

    Views of an array, and tensors made of it, hold its memory as well: nobody finds other values
    in what he still holds, in any form.
    """

    def __init__(self) -> None:
        self._free: deque[np.ndarray] = deque(maxlen=_KEPT)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        """An uninitialised array, or None where it is not worth it."""
        size = int(np.prod(shape)) * dtype.itemsize
        if size < _BIG:
            return None
        memory = self._free_memory(size)
        # What numpy and torch make of it refer to the lease, and to nothing behind it: when the
        # lease dies, and no sooner, the memory is nobody's.
        lease = (ctypes.c_char * size).from_buffer(memory.data)
        weakref.finalize(lease, self._free.append, memory).atexit = False
        return np.frombuffer(cast("memoryview", lease), dtype).reshape(shape)

    def _free_memory(self, size: int) -> np.ndarray:
        while self._free:
            memory = self._free.pop()
            if len(memory) == size:
                return memory
        return np.empty(size, np.uint8)
