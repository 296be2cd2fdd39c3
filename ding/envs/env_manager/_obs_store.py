"""The env manager's own copy of every environment's observation.

Callers keep what they get (a collector logs what a policy saw after the step that follows), so no
array that was handed out is written to again: before one row changes, all rows are copied.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from mmap import mmap
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np

from ding.data.tree import tree_leaves, tree_map
from ding.envs.env.answers import brief
from ding.envs.vector_step import Obs, Space
from ding.utils.errors import DataError, EnvDataError

#: What an observation looks like: (shape, dtype) for an array, a dict of layouts for a dict, or:
Layout: TypeAlias = tuple[tuple[int, ...], str] | dict[str, "Layout"]
#: Anything else: a column of such observations is an array of objects.
OBJECT: Layout = ((), "|O")


def layout_of(obs: Obs) -> Layout:
    """The layout of an observation; `OBJECT` unless it is an array, or a nested dict of such."""
    if isinstance(obs, Mapping):
        parts = {key: layout_of(value) for key, value in obs.items()}
        return parts if parts and OBJECT not in parts.values() else OBJECT
    if isinstance(obs, np.ndarray | np.generic) and obs.dtype.kind in "biuf":
        # In this machine's byte order: torch takes no other one.
        return obs.shape, obs.dtype.newbyteorder("=").str
    return OBJECT


class ObsColumns:
    """The latest observations, all of one layout, in arrays ``[env_num, *obs_shape]``.

    Args:
        observations: The first one of each environment.
        space: Whole numbers get columns as wide as it declares them, or of the floats that it does.

    Attributes:
        is_columnar: Whether callers can be given columns, rather than single observations.
    """

    def __init__(self, observations: Sequence[Obs], space: Space | None = None) -> None:
        self.layout = _fit_for_space(reduce(_joint, map(layout_of, observations)), space)
        self.is_columnar = self.layout != OBJECT
        self._all_rows = list(range(len(observations)))
        self._latest = as_columns(self.layout, self._all_rows, observations)
        self._is_held = False  # callers may have these arrays

    def put(
        self, rows: list[int], observations: Sequence[Obs] | Obs, may_differ: bool = False
    ) -> Obs:
        """Store observations of some environments, and return them as columns.

        Args:
            may_differ: Whether they may have other shapes than those so far.

        Raises:
            DataError: They have another layout.
        """
        try:
            columns = as_columns(self.layout, rows, observations)
        except DataError:
            if not isinstance(observations, list | tuple):
                raise
            new = dict(zip(rows, observations))
            # With the rows of the others, so that all fit: a wider number would be cut in a narrow
            # column.
            latest = [new.get(i, old) for i, old in enumerate(each_row(self._latest))]
            refitted = ObsColumns(latest)
            shapes = [tree_map(itemgetter(0), one.layout) for one in (self, refitted)]
            if not may_differ and shapes[0] != shapes[1]:
                raise
            vars(self).update(vars(refitted))
            columns = as_columns(self.layout, rows, observations)
        if rows == self._all_rows:
            # The caller has them, too: they are what the step returns.
            self._latest, self._is_held = columns, True
            return columns
        if self._is_held:
            self._latest, self._is_held = tree_map(np.array, self._latest), False
        put_rows(self._latest, rows, columns)
        return columns

    def view(self) -> Obs:
        """All observations, uncopied; they stay as they are."""
        self._is_held = True
        return self._latest

    def gather(self, rows: Sequence[int] | np.ndarray) -> Obs:
        """A copy of some rows."""
        return take_rows(self._latest, rows)


# ---- columns ----------------------------------------------------------------------------------


def as_columns(layout: Layout, rows: Sequence[int], observations: Sequence[Obs] | Obs) -> Obs:
    """New columns of single observations; what are columns already is not copied.

    Raises:
        DataError: Another layout; of single observations it names the environment.
    """
    try:
        return _as_columns(layout, observations)
    except (TypeError, ValueError, KeyError):
        given = observations if isinstance(observations, list | tuple) else []
        for row, obs in zip(rows, given):
            try:
                _as_columns(layout, [obs])
            except (TypeError, ValueError, KeyError):
                raise EnvDataError(
                    f"env {row} gave as observation {brief(obs)}; the first ones were {layout}: "
                    "observations have to keep their shapes and dtypes",
                    row,
                ) from None
        raise DataError(
            "a vector environment gave observations of layout "
            f"{tree_map(layout_of, observations)}; expected for each environment {layout}"
        ) from None


def _as_columns(layout: Layout, observations: Sequence[Obs] | Obs) -> Obs:
    if isinstance(layout, dict):
        if isinstance(observations, Mapping):
            return {key: _as_columns(part, observations[key]) for key, part in layout.items()}
        if any(not isinstance(obs, Mapping) for obs in observations):
            raise TypeError("no dict")
        if any(obs.keys() != layout.keys() for obs in observations):
            raise ValueError("other keys")
        return {
            key: _as_columns(part, [obs[key] for obs in observations])
            for key, part in layout.items()
        }
    if layout == OBJECT:
        column = np.empty(len(observations), object)
        for position, obs in enumerate(observations):
            # The object may be the environment's own, which it will change.
            column[position] = copy.deepcopy(obs)
        return column
    shape, dtype = layout
    array = np.asarray(observations)
    if not len(array):
        return np.empty((0, *shape), dtype)
    if array.shape[1:] != shape:
        raise ValueError("another shape")
    kind, casting = _kind(dtype)
    return array if array.dtype == kind else array.astype(kind, casting=casting)


@cache
def _kind(dtype: str) -> tuple[np.dtype, Literal["same_kind", "safe"]]:
    """A column's dtype, and what may be written there: floats of any width, integers that fit."""
    kind = np.dtype(dtype)
    return kind, "same_kind" if kind.kind == "f" else "safe"


def columns_in_memory(layout: Layout, count: int, memory: bytes | memoryview | mmap) -> Obs:
    """Columns ``[count, *obs_shape]`` in `columns_bytes` of memory."""
    offset = 0

    def placed(leaf: tuple[tuple[int, ...], str]) -> np.ndarray:
        nonlocal offset
        array: np.ndarray = np.ndarray((count, *leaf[0]), leaf[1], memory, offset)
        offset += _leaf_bytes(leaf, count)
        return array

    return tree_map(placed, layout)


def columns_bytes(layout: Layout, count: int) -> int:
    return sum(_leaf_bytes(leaf, count) for leaf in tree_leaves(layout))


def _leaf_bytes(leaf: tuple[tuple[int, ...], str], count: int) -> int:
    """A multiple of 64, so that each leaf is aligned."""
    shape, dtype = leaf
    return (count * math.prod(shape) * np.dtype(dtype).itemsize + 63) // 64 * 64


def each_row(columns: Obs) -> list[Obs]:
    """The rows of columns: parts of these, and arrays also of single numbers."""
    if isinstance(columns, dict):
        return [dict(zip(columns, row)) for row in zip(*map(each_row, columns.values()))]
    return (
        list(columns) if columns.dtype.hasobject else [columns[i, ...] for i in range(len(columns))]
    )


def take_rows(columns: Obs, index: Sequence[int] | np.ndarray) -> Obs:
    """Some rows, copied."""

    def rows(leaf: np.ndarray) -> np.ndarray:
        taken = leaf.take(index, 0)
        return copy.deepcopy(taken) if leaf.dtype.hasobject else taken

    return tree_map(rows, columns)


def put_rows(columns: Obs, rows: Sequence[int], new: Obs) -> None:
    """Overwrite some rows of columns that no caller has."""
    if isinstance(columns, dict):
        for key, part in columns.items():
            put_rows(part, rows, new[key])
    else:  # mostly one or a few: numpy takes longer to read a list of indices
        for row, obs in zip(rows, new):
            columns[row] = obs


# ---- layouts ----------------------------------------------------------------------------------


def _fit_for_space(layout: Layout, space: object) -> Layout:
    """`layout` with room where whole numbers come for what the observation space says can come."""
    if isinstance(layout, dict):
        parts = getattr(space, "spaces", {})
        return {key: _fit_for_space(part, parts.get(key)) for key, part in layout.items()}
    declared = getattr(space, "dtype", None)
    if declared is None or np.dtype(declared).kind not in "iuf":
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


def nan_position(columns: Obs) -> int | None:
    """Position of the first row with NaN in columns, ``None`` if there is none."""
    for leaf in tree_leaves(columns):
        if leaf.dtype.hasobject:
            return next((i for i, obs in enumerate(leaf) if holds_nan(obs)), None)
        if _has_nan(leaf):
            return int(np.isnan(leaf).reshape(len(leaf), -1).any(axis=1).argmax())
    return None


def holds_nan(obs: Obs) -> bool:
    """Whether one observation holds NaN; what is no array is not looked into."""
    if type(obs) is np.ndarray:
        return _has_nan(obs)
    return layout_of(obs) != OBJECT and any(_has_nan(np.asarray(a)) for a in tree_leaves(obs))


def _has_nan(leaf: np.ndarray) -> bool:
    return leaf.dtype.kind == "f" and (total := sum_of_squares(leaf)) != total


def sum_of_squares(array: np.ndarray) -> float:
    """The cheapest reduction that shows NaN and infinity: squares do not cancel out."""
    return float(np.vdot(array, array))  # which warns of no overflow
