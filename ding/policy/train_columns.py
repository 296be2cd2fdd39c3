"""How training samples look as columns, whoever made them."""

import numpy as np
import torch

from ding.data import Columns, tree_map
from ding.policy._types import Arrays, Tree

#: Columns that stay Python scalars in rows; every other array becomes a tensor.
_SCALAR_COLUMNS = frozenset({"done", "collect_iter", "traj_flag", "step_id"})

#: Columns that rows hold as arrays of shape ``(1,)`` where they are one number per sample.
_VECTOR_COLUMNS = frozenset({"action", "value", "adv"})

#: Columns with one number per sample, in whatever shape rows bring it.
_ONE_NUMBER = frozenset(
    {
        *("reward", "done", "traj_flag", "step_id", "value", "adv", "value_gamma", "weight", "IS"),
        *("collect_iter", "return", "priority_IS", "is_expert", "done_1step"),
    }
)


def sample_columns(columns: Arrays) -> Columns:
    """Samples whose arrays readers get as tensors, but for flags and counters: in rows, those are
    scalars.

    ``action``, ``value`` and ``adv`` of one number per sample become ``[N, 1]``.
    """
    vectors = columns.keys() & _VECTOR_COLUMNS
    columns = {**columns, **{name: tree_map(_as_vectors, columns[name]) for name in vectors}}
    return Columns.of_arrays(columns, columns.keys() - _SCALAR_COLUMNS)


def _as_vectors(col: Tree) -> Tree:
    return col[:, None] if getattr(col, "ndim", 0) == 1 and col.dtype != object else col


def flatten_numbers(columns: Arrays) -> Arrays:
    """``[N, 1]`` columns of what is one number per sample as ``[N]``; the others as they are.

    Rows carry such a number as a scalar or as an array of shape ``(1,)``. An action, or a part of
    one, is one number if it is an index; a float action of one dimension stays ``[N, 1]``.
    """

    flat = dict(columns)
    for name, column in columns.items():
        # Of one dimension, mostly: to ask for that is quicker than to compare shapes.
        if name in _ONE_NUMBER and getattr(column, "ndim", 1) == 2 and column.shape[1] == 1:
            flat[name] = column[:, 0]
    if "action" in columns:
        flat["action"] = tree_map(_flat_index, columns["action"])
    return flat


def _flat_index(col: Tree) -> Tree:
    if getattr(col, "ndim", 1) != 2 or col.shape[1] != 1:
        return col
    is_float = col.is_floating_point() if isinstance(col, torch.Tensor) else col.dtype.kind == "f"
    return col if is_float else col[:, 0]


def as_tensor(leaf: Tree) -> Tree:
    """An array as a tensor that shares its memory; whatever else as it is."""
    return torch.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf
