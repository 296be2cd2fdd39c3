"""How old items are: by the training iteration of the policy that collected them."""

from collections.abc import Iterable, Mapping

import numpy as np

from ding.data.arrays import Item
from ding.data.columns import Columns
from ding.utils.types import Tree

_LATEST = np.iinfo(np.int64).max


def as_iters(collect_iter: Tree) -> np.ndarray:
    """``collect_iter`` of items as int64: ``[n]``, or one for all of them; -1 where unknown.

    Args:
        collect_iter: An array or tensor ``[n, ...]``, a list with whatever each item has, or one
            number for all items. An item that is a sequence has one for each of its steps, and is
            as old as the oldest.
    """
    if type(collect_iter) is np.ndarray and collect_iter.ndim == 1:
        return collect_iter.astype(np.int64, copy=False)
    if isinstance(collect_iter, list):
        collect_iter = [oldest_iter(value) for value in collect_iter]
    iters = np.asarray(collect_iter, dtype=np.int64)
    return iters.reshape(len(iters), -1).min(axis=1) if iters.ndim > 1 else iters


def oldest_iter(collect_iter: Tree) -> int:
    """``collect_iter`` of one item, a number or one for each of its steps; -1 if unknown."""
    if type(collect_iter) is int:
        return collect_iter
    if collect_iter is None:
        return -1
    if isinstance(collect_iter, list | tuple):
        return min(map(oldest_iter, collect_iter), default=-1)
    return int(np.asarray(collect_iter).min(initial=_LATEST))


def iters_of(samples: Iterable[Item]) -> np.ndarray | None:
    """``collect_iter`` of samples, rows or columns, int64 ``[n]``; None if they have none."""
    columns = samples.columns_or_none() if isinstance(samples, Columns) else None
    if columns is not None:
        found = columns.get("collect_iter")
        return None if found is None else as_iters(found)
    given = [s.get("collect_iter") if isinstance(s, Mapping) else None for s in samples]
    return None if all(value is None for value in given) else as_iters(given)
