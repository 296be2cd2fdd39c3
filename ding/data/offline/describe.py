"""What is in a data set, as text."""

from typing import Any

import numpy as np

from ding.data.columns import Columns
from ding.data.offline.trajectories import trajectories
from ding.data.tree import tree_paths


def describe(data: Columns | list[Any]) -> str:
    """Counts, the returns of the trajectories, and each column's shape, type and range.

    Trajectories are transitions that follow each other by their observations; where an episode was
    saved in part, its return is that of the part.
    """
    if not isinstance(data, Columns):
        kinds = sorted({type(item).__name__ for item in data})
        return f"{len(data)} items ({', '.join(kinds)}), not of one shape"
    columns = data.columns
    lines = [f"{len(data)} transitions"]
    if {"obs", "next_obs", "done", "reward"} <= columns.keys():
        order, lengths = trajectories(data)
        reward = np.asarray(columns["reward"], np.float64).reshape(len(data), -1)[:, 0]
        starts = np.cumsum(lengths) - lengths
        returns = np.add.reduceat(reward[order], starts)
        lines[0] += (
            f" in {len(lengths)} trajectories of {lengths.min()} to {lengths.max()} steps; "
            f"returns {returns.mean():.4g} ± {returns.std():.4g} "
            f"({returns.min():.4g} to {returns.max():.4g})"
        )
    lines += [
        _row(".".join(path), np.asarray(leaf))
        for path, leaf in tree_paths(columns)
        if hasattr(leaf, "shape")
    ]
    return "\n".join(lines)


def _row(name: str, array: np.ndarray) -> str:
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    span = f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "nothing finite"
    missing = array.size - finite.size
    bad = f"; {missing} NaN or infinite" if missing else ""
    return f"  {name:<12} {list(array.shape[1:])!s:<14} {array.dtype!s:<8} {span}{bad}"
