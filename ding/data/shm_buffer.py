"""Arrays in shared memory."""

import math
from collections.abc import Mapping
from multiprocessing import RawArray

import numpy as np

from ding.data.tree import tree_map
from ding.utils.errors import DataError
from ding.utils.types import Tree


class ShmBuffer:
    """An array that one process fills and another reads.

    Pass it to a process as an argument when that process is started. The memory is anonymous: it is
    freed when the last process that uses it ends, for whatever reason.

    Args:
        dtype: Dtype of the elements.
        shape: Shape of the array.
        copy_on_get: Whether `get` copies, so that `fill` does not change its result.
        ctype: Ignored; accepted for old scripts.
    """

    def __init__(
        self,
        dtype: type | np.dtype | str,
        shape: tuple[int, ...],
        copy_on_get: bool = True,
        ctype: type | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = tuple(shape)
        self.copy_on_get = copy_on_get
        self.buffer = RawArray("b", max(1, math.prod(self.shape) * self.dtype.itemsize))

    def fill(self, src_arr: np.ndarray) -> None:
        """Copy an array into the memory.

        Raises:
            DataError: The array has another shape, or a dtype that cannot be cast.
        """
        array = np.asarray(src_arr)
        if array.shape != self.shape or not np.can_cast(array.dtype, self.dtype, "same_kind"):
            raise DataError(
                f"an array of shape {array.shape} and dtype {array.dtype} came; the buffer holds "
                f"shape {self.shape} and dtype {self.dtype}"
            )
        np.ndarray(self.shape, self.dtype, self.buffer)[...] = array

    def get(self) -> np.ndarray:
        """The array: a copy, or with ``copy_on_get=False`` a view of the memory."""
        view: np.ndarray = np.ndarray(self.shape, self.dtype, self.buffer)
        return view.copy() if self.copy_on_get else view


class ShmBufferContainer:
    """A `ShmBuffer`, or a (nested) dict of them for dict observations.

    Args:
        dtype: Dtype of all elements, or a mapping with the keys of `shape`.
        shape: A shape, or a (nested) mapping of names to shapes.
        copy_on_get: As for `ShmBuffer`.
    """

    def __init__(self, dtype: Tree, shape: Tree, copy_on_get: bool = True) -> None:
        self._data = _buffers(dtype, shape, copy_on_get)
        self.shape = shape

    def fill(self, src_arr: Tree) -> None:
        """Copy an array, or a mapping of arrays with the keys of `shape`."""
        _fill(self._data, src_arr)

    def get(self) -> Tree:
        """The array or the dict of arrays."""
        return tree_map(lambda buffer: buffer.get(), self._data)


def _buffers(dtype: Tree, shape: Tree, copy_on_get: bool) -> Tree:
    if not isinstance(shape, Mapping):
        return ShmBuffer(dtype, shape, copy_on_get)
    dtypes = dtype if isinstance(dtype, Mapping) else dict.fromkeys(shape, dtype)
    return {key: _buffers(dtypes[key], part, copy_on_get) for key, part in shape.items()}


def _fill(data: Tree, given: Tree) -> None:
    if isinstance(data, ShmBuffer):
        data.fill(given)
        return
    if not isinstance(given, Mapping) or given.keys() != data.keys():
        came = sorted(given) if isinstance(given, Mapping) else type(given).__name__
        raise DataError(f"{came} came; the container holds {sorted(data)}")
    for key, part in data.items():
        _fill(part, given[key])
