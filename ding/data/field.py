"""One column of a store: what it accepts, and what it gives out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ding.data.id_column import IdColumn
from ding.data.indexed_column import IndexedColumn
from ding.data.tree import Path
from ding.utils.errors import DataError

_SCALARS = {"b": bool, "i": int, "f": float}


class Field:
    """One array of the store, and how values enter and leave it.

    Attributes:
        array: ``[capacity, *shape]``; a field whose data a ``FramePair`` keeps has none.
        take: ``(index, axis) -> array``, the gather.
        leave: Makes what was gathered into what callers get; None leaves it an array.
    """

    __slots__ = (
        "array",
        "dtype",
        "leave",
        "path",
        "prefix",
        "scalar",
        "shape",
        "take",
        "torch_dtype",
    )

    def __init__(self, path: Path, sample: Any) -> None:
        self.path = path
        sample = sample.source if isinstance(sample, IndexedColumn) else sample
        self.torch_dtype = sample.dtype if isinstance(sample, torch.Tensor) else None
        self.prefix = sample.prefix if isinstance(sample, IdColumn) else None
        values = as_array(sample)
        if values is None or values.dtype.hasobject:
            raise DataError(f"column {'.'.join(path)!r} holds {type(sample).__name__}, not numbers")
        self.dtype: np.dtype = values.dtype
        self.shape = values.shape[1:]
        self.scalar = None
        if self.torch_dtype is None and self.prefix is None and not self.shape:
            exact = self.dtype.char in "?ld" or self.dtype in (np.int64, np.float64)
            self.scalar = _SCALARS.get(self.dtype.kind) if exact else None
        self.leave = self._leaver()
        self.array: np.ndarray
        self.take: Callable[..., np.ndarray]

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape))

    @property
    def is_usual(self) -> bool:
        """Whether the array's dtype alone tells what kind of values these are."""
        return self.prefix is None and self.torch_dtype is not torch.bfloat16

    def _leaver(self) -> Callable[[np.ndarray], Any] | None:
        if self.prefix is not None:
            prefix = self.prefix
            return lambda numbers: IdColumn(prefix, numbers)
        if self.torch_dtype is None:
            return None
        if self.torch_dtype is torch.bfloat16:
            return lambda array: torch.from_numpy(array).view(torch.bfloat16)
        return torch.from_numpy

    def use(self, array: np.ndarray) -> None:
        self.array, self.take = array, array.take

    def accept(self, value: Any, rows: range) -> np.ndarray | IndexedColumn[np.ndarray] | None:
        """These rows of a batch as an array that can be written as it is, or None."""
        indexed = isinstance(value, IndexedColumn)
        array = self._as_array(value.source if indexed else value)
        if array is None or array.dtype != self.dtype or array.shape[1:] != self.shape:
            return None
        if indexed:
            return IndexedColumn(array, value.index[rows.start : rows.stop])
        return array[rows.start : rows.stop]

    def _as_array(self, value: Any) -> np.ndarray | None:
        """`value` as an array if it is of this field's kind."""
        if self.torch_dtype is not None:
            if not isinstance(value, torch.Tensor) or value.dtype is not self.torch_dtype:
                return None
            try:
                return value.numpy()
            except (TypeError, RuntimeError):
                return _unusual_tensor(value)
        if self.prefix is not None:
            own = isinstance(value, IdColumn) and value.prefix == self.prefix
            return value.numbers if own else None
        return value if isinstance(value, np.ndarray) else None

    def wider(self, value: Any) -> np.dtype | None:
        """The dtype that would hold both what is here and `value`, if there is a lossless one."""
        value = value.source if isinstance(value, IndexedColumn) else value
        if self.torch_dtype is not None or not isinstance(value, np.ndarray):
            return None
        if value.shape[1:] != self.shape or value.dtype.hasobject:
            return None
        common = np.promote_types(self.dtype, value.dtype)
        return common if common in (self.dtype, value.dtype) else None


def as_array(value: Any) -> np.ndarray | None:
    """An array that shares memory with a CPU tensor, an array or ids; None for anything else."""
    if isinstance(value, torch.Tensor):
        try:
            return value.numpy()
        except (TypeError, RuntimeError):
            return _unusual_tensor(value)
    if isinstance(value, IdColumn):
        return value.numbers
    return value if isinstance(value, np.ndarray) else None


def _unusual_tensor(value: torch.Tensor) -> np.ndarray | None:
    if value.device.type != "cpu" or value.layout is not torch.strided:
        return None
    value = value.detach()
    if value.dtype is torch.bfloat16:
        return value.view(torch.int16).numpy()
    try:
        return value.resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError):
        return None
