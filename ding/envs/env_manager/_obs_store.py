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

# What an observation looks like: (shape, dtype) for an array, a dict of layouts for a dict.
Layout = Any


def layout_of(obs: Any) -> Layout | None:
    """The layout of an observation that columns can hold; ``None`` for any other."""
    if isinstance(obs, Mapping):
        parts = {key: layout_of(value) for key, value in obs.items()}
        return parts if parts and None not in parts.values() else None
    if isinstance(obs, np.ndarray | np.generic) and obs.dtype.kind in "biuf":
        return obs.shape, obs.dtype.str
    return None


class ObsColumns:
    """The latest observations, all of one layout, in arrays ``[env_num, *obs_shape]``.

    Args:
        layout: See `layout_of`.
        env_num: Number of environments.
    """

    def __init__(self, layout: Layout, env_num: int) -> None:
        self.layout = layout
        self._all_rows = list(range(env_num))
        self._latest = tree_map(np.zeros_like, _empty(layout, env_num))
        self._is_held = False  # callers may have these arrays

    def put(self, rows: list[int], columns: Any) -> None:
        """Take in observations.

        Args:
            rows: Ids of their environments.
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
        if copied:
            return column_row(self._latest, row)
        return tree_map(lambda leaf: leaf[row, ...], self.view())


class ObjectStore:
    """The latest observations, of any kind, as a list."""

    layout = None

    def __init__(self, env_num: int) -> None:
        self._latest: list[Any] = [None] * env_num

    def put(self, rows: list[int], columns: list[Any]) -> None:
        for row, obs in zip(rows, columns):
            self._latest[row] = obs

    def stacked(self, rows: Sequence[int], observations: Sequence[Any]) -> list[Any]:
        return [copy.deepcopy(obs) for obs in observations]

    def row(self, row: int, copied: bool = True) -> Any:
        return copy.deepcopy(self._latest[row]) if copied else self._latest[row]


class SharedRows:
    """Memory through which processes hand on observations: each writes those of its environments.

    What was read is a copy, so a row may be written again as soon as it was read.

    Args:
        layout: Of each observation.
        env_num: Number of environments.
        memory: At least `layout_bytes` of it.
    """

    def __init__(self, layout: Layout, env_num: int, memory: Any) -> None:
        self._layout, self._env_num = layout, env_num
        offset = 0

        def placed(leaf: tuple) -> np.ndarray:
            nonlocal offset
            array: np.ndarray = np.ndarray((env_num, *leaf[0]), leaf[1], memory, offset)
            offset += _leaf_bytes(leaf, env_num)
            return array

        self._arrays = tree_map(placed, layout)

    def write(self, rows: list[int], observations: Sequence[Any]) -> None:
        """
        Raises:
            DataError: One has another layout.
        """
        put_rows(self._arrays, rows, stacked(self._layout, rows, observations))

    def read(self, rows: list[int]) -> Any:
        """Columns of some environments."""
        if len(rows) == self._env_num and rows == sorted(rows):
            return copy_columns(self._arrays)
        return take_rows(self._arrays, rows)


def layout_bytes(layout: Layout, env_num: int) -> int:
    """Size of the memory that `SharedRows` needs."""
    return sum(_leaf_bytes(leaf, env_num) for leaf in tree_leaves(layout))


def store_for(observations: Sequence[Any], space: Any = None) -> ObsColumns | ObjectStore:
    """The store that fits the first observation of each environment, filled with them.

    Args:
        space: Whole numbers get columns as wide as it declares them.
    """
    rows = list(range(len(observations)))
    layout = reduce(_joint, map(layout_of, observations))
    store: ObsColumns | ObjectStore = ObjectStore(len(rows))
    if layout is not None:
        store = ObsColumns(_fit_for_space(layout, space), len(rows))
    store.put(rows, store.stacked(rows, observations))
    return store


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
                came = layout_of(obs) or type(obs).__name__
                raise DataError(
                    f"env {row} gave an observation of layout {came}; the first ones were "
                    f"{layout}. Observations have to keep their shapes and dtypes"
                ) from error
        raise


def _fit_for_space(layout: Layout, space: Any) -> Layout:
    """`layout` with whole numbers as wide as the observation space says that they can be."""
    if isinstance(layout, dict):
        spaces_of = getattr(space, "spaces", {})
        return {key: _fit_for_space(part, spaces_of.get(key)) for key, part in layout.items()}
    declared = getattr(space, "dtype", None)
    if declared is None or np.dtype(declared).kind not in "iu" or np.dtype(layout[1]).kind == "f":
        return layout
    return layout[0], np.promote_types(layout[1], declared).str


def is_columnar_space(space: Any) -> bool:
    """Whether observations of `space` are arrays or nested dicts of them."""
    if isinstance(space, spaces.Dict):
        return all(is_columnar_space(part) for part in space.spaces.values())
    return isinstance(
        space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    )


def copy_columns(columns: Any) -> Any:
    """Copies of the arrays in nested dicts."""
    return tree_map(np.array, columns)


def column_row(columns: Any, position: int) -> Any:
    """A copy of one row of columns; an item of a list of observations is copied deeply."""
    if isinstance(columns, list):
        return copy.deepcopy(columns[position])
    return tree_map(lambda leaf: np.array(leaf[position]), columns)


def take_rows(columns: Any, index: Sequence[int] | np.ndarray) -> Any:
    """Some rows, copied."""
    return tree_map(lambda leaf: leaf.take(index, 0), columns)


def put_rows(columns: Any, rows: Sequence[int], new: Any) -> None:
    """Overwrite some rows of columns that no caller has."""
    if isinstance(columns, dict):
        for key, part in columns.items():
            put_rows(part, rows, new[key])
    else:  # mostly one or a few: numpy takes longer to read a list of indices
        for row, obs in zip(rows, new):
            columns[row] = obs


def nan_position(columns: Any) -> int | None:
    """Position of the first row with NaN in columns, ``None`` if there is none."""
    if type(columns) is np.ndarray and not _has_nan(columns):
        return None
    if isinstance(columns, list):
        return next((i for i, obs in enumerate(columns) if holds_nan(obs)), None)
    for leaf in tree_leaves(columns):
        if _has_nan(leaf):
            return int(np.isnan(leaf).reshape(len(leaf), -1).any(axis=1).argmax())
    return None


def holds_nan(obs: Any) -> bool:
    """Whether one observation holds NaN; of what is no array nothing is known."""
    if type(obs) is np.ndarray:
        return _has_nan(obs)
    return layout_of(obs) is not None and any(_has_nan(np.asarray(a)) for a in tree_leaves(obs))


def _has_nan(leaf: np.ndarray) -> bool:
    if leaf.dtype.kind != "f":
        return False
    total = quick_sum(leaf)
    # Infinities may add up to NaN.
    return bool(total != total) and bool(np.isnan(leaf).any())


def quick_sum(array: np.ndarray) -> Any:
    """The cheapest reduction that tells of NaN and infinity."""
    flat = array.ravel("K")
    if flat.size <= _FEW:
        return sum(flat.tolist())
    return flat.dot(_ones(flat.dtype.char, flat.size))


@cache
def _ones(dtype: str, size: int) -> np.ndarray:
    return np.ones(size, dtype)


# ---- layouts and trees ------------------------------------------------------------------------


def _joint(one: Layout | None, other: Layout | None) -> Layout | None:
    """The layout that takes both; ``None`` if there is none."""
    if one == other:
        return one
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        parts = {key: _joint(part, other[key]) for key, part in one.items()}
        return None if None in parts.values() else parts
    if isinstance(one, tuple) and isinstance(other, tuple) and one[0] == other[0]:
        return one[0], np.promote_types(one[1], other[1]).str
    return None


def _empty(layout: Layout, count: int) -> Any:
    return tree_map(lambda leaf: np.empty((count, *leaf[0]), leaf[1]), layout)


def _stacked(layout: Layout, observations: Sequence[Any]) -> Any:
    """
    Raises:
        TypeError: A number that may not fit, or no dict.
        ValueError: Another shape, or other keys.
    """
    if not observations:
        return _empty(layout, 0)
    if isinstance(layout, dict):
        if any(not isinstance(obs, Mapping) for obs in observations):
            raise TypeError("no dict")
        if any(obs.keys() != layout.keys() for obs in observations):
            raise ValueError("other keys")
        return {
            key: _stacked(part, [obs[key] for obs in observations]) for key, part in layout.items()
        }
    shape, dtype = layout
    try:
        shapes = [obs.shape for obs in observations]
    except AttributeError:  # lists, or numbers of Python
        observations = [np.asarray(obs) for obs in observations]
        shapes = [obs.shape for obs in observations]
    if shapes.count(shape) < len(shapes):
        raise ValueError("another shape")
    kind, casting = _kind(dtype)
    if not shape:
        return np.stack(observations, dtype=kind, casting=casting)
    joined = np.concatenate(observations, dtype=kind, casting=casting)
    return joined.reshape(len(shapes), *shape)


def _copied(layout: Layout, columns: Any) -> Any:
    if isinstance(layout, dict):
        return {key: _copied(part, columns[key]) for key, part in layout.items()}
    shape, dtype = layout
    array = np.asarray(columns)
    if array.shape[1:] != shape:
        raise ValueError("another shape")
    kind, casting = _kind(dtype)
    return array.astype(kind, casting=casting)


@cache
def _kind(dtype: str) -> tuple[np.dtype, Any]:
    """A column's dtype, and what may be written there: floats of any width, integers that fit."""
    kind = np.dtype(dtype)
    return kind, "same_kind" if kind.kind == "f" else "safe"


def _leaf_bytes(leaf: tuple, env_num: int) -> int:
    """A multiple of 64."""
    shape, dtype = leaf
    size = env_num * math.prod(shape) * np.dtype(dtype).itemsize
    return (size + 63) // 64 * 64
