"""The env manager's own copy of every environment's observation.

It is filled in one way: by `put`. Callers keep what they are given (a collector writes what a
policy saw into its log after the step that follows), so no array that was handed out is written to
again: before one row changes, all rows are copied into another array.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.data.tree import tree_leaves, tree_map
from ding.utils.errors import DataError

# Up to so many numbers, Python adds quicker.
_FEW = 16

#: What an observation looks like: (shape, dtype) for an array, a dict of layouts for a dict, or:
Layout = Any
#: Anything else: a column of such observations is an array of objects.
OBJECT: Layout = ((), "|O")


def layout_of(obs: Any) -> Layout:
    """The layout of an observation; `OBJECT` unless it is an array, or a nested dict of such."""
    if isinstance(obs, Mapping):
        parts = {key: layout_of(value) for key, value in obs.items()}
        return parts if parts and OBJECT not in parts.values() else OBJECT
    if isinstance(obs, np.ndarray | np.generic) and obs.dtype.kind in "biuf":
        return obs.shape, obs.dtype.str
    return OBJECT


class ObsColumns:
    """The latest observations, all of one layout, in arrays ``[env_num, *obs_shape]``.

    Attributes:
        is_columnar: Whether callers can be given columns, rather than single observations.
    """

    def __init__(self, layout: Layout, env_num: int) -> None:
        self.layout = layout
        self.is_columnar = layout != OBJECT
        self._all_rows = list(range(env_num))
        self._latest = empty_columns(layout, env_num)
        for leaf in tree_leaves(self._latest):
            leaf.fill(0)
        self._is_held = False  # callers may have these arrays

    def put(self, rows: list[int], columns: Any) -> None:
        """Store the observations of some environments.

        Args:
            rows: Their ids.
            columns: What `stacked` or `copied` returned.
        """
        if rows == self._all_rows:
            # The caller has them, too: they are what the step returns.
            self._latest, self._is_held = columns, True
            return
        if self._is_held:
            self._latest, self._is_held = copy_columns(self._latest), False
        put_rows(self._latest, rows, columns)

    def stacked(self, rows: Sequence[int], observations: Sequence[Any]) -> Any:
        """Single observations, perhaps the environments' own arrays, as new columns.

        Raises:
            DataError: One has another layout.
        """
        return stacked(self.layout, rows, observations)

    def copied(self, columns: Any) -> Any:
        """Columns, perhaps in memory that a library writes to again, as new columns.

        Raises:
            DataError: They have another layout.
        """
        try:
            return _copied(self.layout, columns)
        except (TypeError, ValueError, KeyError) as error:
            raise DataError(
                f"a vector environment gave observations of layout {tree_map(layout_of, columns)}; "
                f"expected for each environment {self.layout}"
            ) from error

    def view(self) -> Any:
        """All observations, uncopied; they stay as they are."""
        self._is_held = True
        return self._latest

    def gather(self, rows: Sequence[int] | np.ndarray) -> Any:
        """A copy of some rows."""
        return take_rows(self._latest, rows)

    def row(self, row: int, copied: bool = True) -> Any:
        """One environment's observation; without a copy, it is not the caller's to change."""
        return column_row(self._latest if copied else self.view(), row, copied)


def store_for(observations: Sequence[Any], space: Any = None) -> ObsColumns:
    """The store that fits the first observation of each environment, filled with them.

    Args:
        space: Whole numbers get columns as wide as it declares them.
    """
    rows = list(range(len(observations)))
    layout = reduce(_joint, map(layout_of, observations))
    store = ObsColumns(_fit_for_space(layout, space), len(rows))
    store.put(rows, store.stacked(rows, observations))
    return store


# ---- columns ----------------------------------------------------------------------------------


def empty_columns(layout: Layout, count: int, memory: Any = None) -> Any:
    """Columns to be filled, ``[count, *obs_shape]``.

    Args:
        memory: Where they are, `layout_bytes` of it; processes may share it.
    """
    offset = 0

    def placed(leaf: tuple) -> np.ndarray:
        nonlocal offset
        array: np.ndarray = np.ndarray((count, *leaf[0]), leaf[1], memory, offset)
        offset += 0 if memory is None else _leaf_bytes(leaf, count)
        return array

    return tree_map(placed, layout)


def layout_bytes(layout: Layout, count: int) -> int:
    """Size of the memory that ``empty_columns`` needs."""
    return sum(_leaf_bytes(leaf, count) for leaf in tree_leaves(layout))


def _leaf_bytes(leaf: tuple, count: int) -> int:
    """A multiple of 64."""
    shape, dtype = leaf
    return (count * math.prod(shape) * np.dtype(dtype).itemsize + 63) // 64 * 64


def stacked(layout: Layout, rows: Sequence[int], observations: Sequence[Any]) -> Any:
    """New columns of single observations.

    Raises:
        DataError: One has another layout; names the environment.
    """
    try:
        return _stacked(layout, observations)
    except (TypeError, ValueError):
        for row, obs in zip(rows, observations):
            try:
                _stacked(layout, [obs])
            except (TypeError, ValueError) as error:
                came = layout_of(obs)
                raise DataError(
                    f"env {row} gave an observation of layout "
                    f"{type(obs).__name__ if came == OBJECT else came}; the first ones were "
                    f"{layout}. Observations have to keep their shapes and dtypes"
                ) from error
        raise


def _stacked(layout: Layout, observations: Sequence[Any]) -> Any:
    """
    Raises:
        TypeError: A number that may not fit, or no dict.
        ValueError: Another shape, or other keys.
    """
    if not observations:
        return empty_columns(layout, 0)
    if isinstance(layout, dict):
        if any(not isinstance(obs, Mapping) for obs in observations):
            raise TypeError("no dict")
        if any(obs.keys() != layout.keys() for obs in observations):
            raise ValueError("other keys")
        return {
            key: _stacked(part, [obs[key] for obs in observations]) for key, part in layout.items()
        }
    if layout == OBJECT:
        column = np.empty(len(observations), object)
        for position, obs in enumerate(observations):
            column[position] = copy.deepcopy(obs)
        return column
    return _fitted(layout, np.array(observations))


def _copied(layout: Layout, columns: Any) -> Any:
    if isinstance(layout, dict):
        return {key: _copied(part, columns[key]) for key, part in layout.items()}
    return _fitted(layout, np.array(columns))


def _fitted(layout: Layout, column: np.ndarray) -> np.ndarray:
    shape, dtype = layout
    if column.shape[1:] != shape:
        raise ValueError("another shape")
    kind, casting = _kind(dtype)
    return column if column.dtype == kind else column.astype(kind, casting=casting)


@cache
def _kind(dtype: str) -> tuple[np.dtype, Any]:
    """A column's dtype, and what may be written there: floats of any width, integers that fit."""
    kind = np.dtype(dtype)
    return kind, "same_kind" if kind.kind == "f" else "safe"


def copy_columns(columns: Any) -> Any:
    """Copies of the arrays in nested dicts."""
    return tree_map(np.array, columns)


def column_row(columns: Any, position: int, copied: bool = True) -> Any:
    """One row of columns."""

    def item(leaf: np.ndarray) -> Any:
        if leaf.dtype.hasobject:
            return copy.deepcopy(leaf[position]) if copied else leaf[position]
        return np.array(leaf[position]) if copied else leaf[position, ...]

    return tree_map(item, columns)


def take_rows(columns: Any, index: Sequence[int] | np.ndarray) -> Any:
    """Some rows, copied."""

    def rows(leaf: np.ndarray) -> np.ndarray:
        taken = leaf.take(index, 0)
        return copy.deepcopy(taken) if leaf.dtype.hasobject else taken

    return tree_map(rows, columns)


def put_rows(columns: Any, rows: Sequence[int], new: Any) -> None:
    """Overwrite some rows of columns that no caller has."""
    if isinstance(columns, dict):
        for key, part in columns.items():
            put_rows(part, rows, new[key])
    else:  # mostly one or a few: numpy takes longer to read a list of indices
        for row, obs in zip(rows, new):
            columns[row] = obs


# ---- layouts ----------------------------------------------------------------------------------


def is_columnar_space(space: Any) -> bool:
    """Whether observations of `space` are arrays or nested dicts of them."""
    if isinstance(space, spaces.Dict):
        return all(is_columnar_space(part) for part in space.spaces.values())
    return isinstance(
        space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    )


def _fit_for_space(layout: Layout, space: Any) -> Layout:
    """`layout` with whole numbers as wide as the observation space says that they can be."""
    if isinstance(layout, dict):
        spaces_of = getattr(space, "spaces", {})
        return {key: _fit_for_space(part, spaces_of.get(key)) for key, part in layout.items()}
    declared = getattr(space, "dtype", None)
    if declared is None or np.dtype(declared).kind not in "iu":
        return layout
    if np.dtype(layout[1]).kind in "fO":
        return layout
    return layout[0], np.promote_types(layout[1], declared).str


def _joint(one: Layout, other: Layout) -> Layout:
    """The layout that takes both; `OBJECT` if there is no narrower one."""
    if one == other:
        return one
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        parts = {key: _joint(part, other[key]) for key, part in one.items()}
        return OBJECT if OBJECT in parts.values() else parts
    if isinstance(one, tuple) and isinstance(other, tuple) and one[0] == other[0]:
        return one[0], np.promote_types(one[1], other[1]).str
    return OBJECT


# ---- NaN --------------------------------------------------------------------------------------


def nan_position(columns: Any) -> int | None:
    """Position of the first row with NaN in columns, ``None`` if there is none."""
    if type(columns) is np.ndarray and columns.dtype.kind == "f" and not _has_nan(columns):
        return None
    for leaf in tree_leaves(columns):
        if leaf.dtype.hasobject:
            return next((i for i, obs in enumerate(leaf) if holds_nan(obs)), None)
        if _has_nan(leaf):
            return int(np.isnan(leaf).reshape(len(leaf), -1).any(axis=1).argmax())
    return None


def holds_nan(obs: Any) -> bool:
    """Whether one observation holds NaN; of what is no array nothing is known."""
    if type(obs) is np.ndarray:
        return _has_nan(obs)
    return layout_of(obs) != OBJECT and any(_has_nan(np.asarray(a)) for a in tree_leaves(obs))


def _has_nan(leaf: np.ndarray) -> bool:
    if leaf.dtype.kind != "f":
        return False
    total = quick_sum(leaf)
    # Infinities may add up to NaN.
    return bool(total != total) and bool(np.isnan(leaf).any())


def quick_sum(array: np.ndarray) -> Any:
    """The cheapest reduction that shows NaN and infinity."""
    flat = array.ravel("K")
    if flat.size <= _FEW:
        return sum(flat.tolist())
    return flat.dot(_ones(flat.dtype.char, flat.size))


@cache
def _ones(dtype: str, size: int) -> np.ndarray:
    return np.ones(size, dtype)
