"""A column that names rows of an array by their numbers, until somebody needs them copied."""

from typing import Any, Generic, TypeVar

import numpy as np
import torch

Array = TypeVar("Array", np.ndarray, torch.Tensor)


class IndexedColumn(Generic[Array]):
    """Row i is ``source[index[i]]``.

    An observation is both one row's ``obs`` and another's ``next_obs``. Given as two of these over
    one source, ``source`` is copied straight to where the rows are kept, and big observations are
    not searched for equal ones::

        frames = torch.cat([log.obs, log.final_obs])  # [M, ...]
        buffer.push(
            Columns(
                {
                    "obs": IndexedColumn(frames, at),
                    "next_obs": IndexedColumn(frames, following),
                    "action": action,
                    "reward": reward,
                    "done": done,
                }
            )
        )

    To readers of ``Columns.columns`` it is the array that it stands for.

    Args:
        source: Array or tensor ``[M, ...]``; not to be written to any more.
        index: int64 ``[N]``, in ``[0, M)``.
        names: int64 ``[M]``, a number for rows of ``source`` that may come again in another
            source, as an observation in which one trajectory is cut and the next one begins; equal
            ones have one number, -1 is none. A buffer looks there for big observations that it has.
    """

    __slots__ = ("index", "names", "source")

    def __init__(self, source: Array, index: np.ndarray, names: np.ndarray | None = None) -> None:
        self.source: Array = source
        self.index = index
        self.names = names

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.index), *self.source.shape[1:])

    @property
    def dtype(self) -> Any:
        return self.source.dtype

    def __getitem__(self, rows: slice) -> "IndexedColumn[Array]":
        return IndexedColumn(self.source, self.index[rows], self.names)

    def has_source_of(
        self: "IndexedColumn[np.ndarray]", other: "IndexedColumn[np.ndarray]"
    ) -> bool:
        """Whether both name rows of the same memory."""
        mine, theirs = self.source.__array_interface__, other.source.__array_interface__
        return all(mine[fact] == theirs[fact] for fact in ("data", "shape", "strides", "typestr"))

    def gathered(self) -> Array:
        """The array that this stands for, a copy."""
        if isinstance(self.source, torch.Tensor):
            return self.source[torch.from_numpy(self.index)]
        return self.source.take(self.index, 0)

    def __repr__(self) -> str:
        return f"IndexedColumn({len(self)} of {len(self.source)} rows)"
