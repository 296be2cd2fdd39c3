"""Reads transitions from fields with the names of D4RL, Minari and other formats."""

import logging
from collections.abc import Callable, Collection, Mapping

import numpy as np
import torch
from numpy.typing import ArrayLike

from ding.data.arrays import Column
from ding.data.columns import Columns
from ding.data.tree import tree_leaves, tree_length, tree_map, tree_take
from ding.utils.errors import DataError

_logger = logging.getLogger(__name__)

#: Column names of this package, and the names in D4RL, Minari and other formats.
NAMES: Mapping[str, tuple[str, ...]] = {
    "obs": ("obs", "observations", "observation", "states"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards"),
    "done": ("done", "dones", "terminals", "terminations", "terminated"),
    "next_obs": ("next_obs", "next_observations", "next_observation", "next_states"),
}
#: Column of n-step transitions.
_OPTIONAL = ("value_gamma",)
#: Fields that mark truncated episodes, whose last observation may be missing.
_CUTS = ("timeouts", "truncations", "truncated", "timeout")


def read_fields(
    there: Collection[str],
    read: Callable[[str], Column],
    source: str,
) -> Columns:
    """Read the columns of transitions from the fields of a file, one at a time.

    If the file has no next observations, ``next_obs`` is the observation of the next transition.
    Transitions without one (the last transition, and those where an episode was truncated) are left
    out. If the file does not mark truncations, a warning is logged, because the last transition of
    a truncated episode then gets the first observation of the next episode.

    Args:
        there: Names of the file's fields.
        read: Returns a field by its name.
        source: The file, for messages.

    Raises:
        DataError: No field is known, or the fields differ in length.
    """
    found = {
        ours: next((name for name in names if name in there), None) for ours, names in NAMES.items()
    }
    found |= {name: name for name in _OPTIONAL if name in there}
    columns = {
        ours: _numbers(read(name), name, source) for ours, name in found.items() if name is not None
    }
    if not columns:
        raise DataError(
            f"{source} has no transitions, but {', '.join(sorted(there)) or 'nothing'}; expected "
            + ", ".join(f"{ours} (or {names[1]})" for ours, names in NAMES.items())
        )
    lengths = {found[ours]: tree_length(column) for ours, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the fields of {source} differ in their lengths: {lengths}")
    if not next(iter(lengths.values())):
        raise DataError(f"{source} is empty: its fields have no rows")
    columns = {name: tree_map(as_plain, column) for name, column in columns.items()}
    if "action" in columns:
        columns["action"] = tree_map(as_index, columns["action"])
    if "done" in columns:
        columns["done"] = np.asarray(columns["done"]).reshape(-1).astype(bool)
    if "obs" in columns and "next_obs" not in columns and "done" in columns:
        done = np.asarray(columns["done"])
        cut = next((name for name in _CUTS if name in there), None)
        if cut is not None:
            is_cut = np.asarray(_numbers(read(cut), cut, source)).ravel() != 0
        else:
            _warn_of_glue(done, source)
            is_cut = np.zeros(len(done), bool)
        columns = _with_next_obs(columns, is_cut.astype(bool))
    return Columns({name: tree_map(as_column, column) for name, column in columns.items()})


def _numbers(column: Column, name: str, source: str) -> Column:
    """The column, if it consists of rows of numbers.

    Raises:
        DataError: It contains something other than numbers, or is a single value.
    """
    for leaf in tree_leaves(column):
        array = np.asarray(leaf)
        if array.dtype.kind not in "biuf":
            raise DataError(f"{source}: {name!r} holds {array.dtype}, expected numbers")
        if not array.ndim:
            raise DataError(f"{source}: {name!r} is one value, expected rows")
    return column


def _warn_of_glue(done: np.ndarray, source: str) -> None:
    ends = np.flatnonzero(done)
    longest = int(np.diff(ends, prepend=-1, append=len(done) - 1).max())
    _logger.warning(
        "%s: %d rows without next_observations and without timeouts. The next observation of each "
        "row is taken from the row after it, unless an episode terminated there (%d rows; the "
        "longest run without one has %d rows): where time limits ended episodes, the last row of "
        "one is glued to the first of the next. Add next_observations, or timeouts, to the file",
        *(source, len(done), len(ends), longest),
    )


def _with_next_obs(columns: Mapping[str, Column], is_cut: np.ndarray) -> dict[str, Column]:
    done = np.asarray(columns["done"])
    count = len(done)
    # The next observation of a terminal step is never used.
    known = done | ~is_cut
    known[-1] = done[-1]
    kept = np.flatnonzero(known)
    following = np.where(done[kept], kept, np.minimum(kept + 1, count - 1))
    next_obs = tree_take(columns["obs"], following)
    return {**{name: tree_take(part, kept) for name, part in columns.items()}, "next_obs": next_obs}


def as_plain(leaf: ArrayLike) -> np.ndarray:
    """As an array; floats become float32."""
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def as_index(leaf: np.ndarray) -> np.ndarray:
    """Integers become int64, which torch requires for indices."""
    return leaf.astype(np.int64) if leaf.dtype.kind in "iu" else leaf


def as_column(leaf: np.ndarray | torch.Tensor) -> np.ndarray | torch.Tensor:
    """As a tensor that shares the memory; flags stay arrays, as in collected data."""
    array = np.asarray(leaf)
    return array if array.dtype == bool else torch.from_numpy(np.ascontiguousarray(array))
