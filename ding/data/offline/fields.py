"""The names that other formats have for the columns of transitions."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import torch

from ding.data.columns import Columns
from ding.data.tree import tree_length, tree_map, tree_take
from ding.utils.errors import DataError

#: Our name, and what D4RL, Minari and others call it.
NAMES: Mapping[str, tuple[str, ...]] = {
    "obs": ("obs", "observations", "observation", "states"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards"),
    "done": ("done", "dones", "terminals", "terminations", "terminated"),
    "next_obs": ("next_obs", "next_observations", "next_observation", "next_states"),
}
#: Of transitions of several steps.
_OPTIONAL = ("value_gamma",)
#: Where an episode was cut off; its last observation may be lost.
_CUTS = ("timeouts", "truncations", "truncated", "timeout")


def read_fields(there: Collection[str], read: Callable[[str], Any], source: str) -> Columns:
    """Columns of transitions out of what a file has, one at a time.

    Without observations of what came next, they are those of the next transition; transitions after
    which none is known (the last one, and those where an episode was cut off) are left out.

    Args:
        there: Names of the file's fields.
        read: A field by its name.
        source: The file, for messages.

    Raises:
        DataError: There is no field that is known, or fields differ in their lengths.
    """
    found = {
        ours: next((name for name in names if name in there), None) for ours, names in NAMES.items()
    }
    found |= {name: name for name in _OPTIONAL if name in there}
    columns = {ours: read(name) for ours, name in found.items() if name is not None}
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
        cut = next((name for name in _CUTS if name in there), None)
        is_cut = np.zeros(len(columns["done"]), bool) if cut is None else np.ravel(read(cut)) != 0
        columns = _with_next_obs(columns, is_cut.astype(bool))
    return Columns({name: tree_map(as_column, column) for name, column in columns.items()})


def _with_next_obs(columns: dict[str, Any], is_cut: np.ndarray) -> dict[str, Any]:
    done = columns["done"]
    count = len(done)
    # After an end nobody looks at what comes next.
    known = done | ~is_cut
    known[-1] = done[-1]
    kept = np.flatnonzero(known)
    following = np.where(done[kept], kept, np.minimum(kept + 1, count - 1))
    next_obs = tree_take(columns["obs"], following)
    return {**{name: tree_take(part, kept) for name, part in columns.items()}, "next_obs": next_obs}


def as_plain(leaf: Any) -> np.ndarray:
    """An array, floats in 32 bits."""
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def as_index(leaf: np.ndarray) -> np.ndarray:
    """Whole numbers in 64 bits, as torch wants indices."""
    return leaf.astype(np.int64) if leaf.dtype.kind in "iu" else leaf


def as_column(leaf: Any) -> Any:
    """A tensor that shares the memory."""
    # Flags stay arrays, as in what collectors give.
    return leaf if leaf.dtype == bool else torch.from_numpy(np.ascontiguousarray(leaf))
