"""Big outputs in memory that was used before: fresh pages cost more than the copying."""

import sys

import numpy as np

#: Smaller arrays come from the allocator's own pools.
_BIG = 1 << 18
_KEPT = 4
# The list that keeps an array, the loop's variable and the argument of `getrefcount`.
_OWN_REFERENCES = 3


class Recycler:
    """Arrays to write a batch into, given out again once nobody else refers to them.

    A tensor made with ``torch.from_numpy`` and a view both refer to the array, so what a caller
    still holds in any form is never written to.
    """

    def __init__(self) -> None:
        self._kept: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        """An uninitialised array, or None where it is not worth it."""
        if int(np.prod(shape)) * dtype.itemsize < _BIG:
            return None
        for array in self._kept:
            if sys.getrefcount(array) == _OWN_REFERENCES and array.shape == shape:
                return array
        fresh = np.empty(shape, dtype)
        # Whoever asks for another size, or holds on to everything, gets fresh memory.
        self._kept = [*self._kept[-_KEPT + 1 :], fresh]
        return fresh
