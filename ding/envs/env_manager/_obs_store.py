"""The env manager's own copy of every environment's observation."""

import copy
import math
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from operator import itemgetter
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


def layout_bytes(layout: Layout, env_num: int) -> int:
    """Size of the buffer that `ObsColumns` needs."""
    return sum(_leaf_bytes(leaf, env_num) for leaf in tree_leaves(layout))


class ObsColumns:
    """Observations of equal layout in preallocated arrays.

    There are two slots of all environments' observations, written in turns, so that what was
    handed out before a step still holds while the step's outcome is worked on.

    Args:
        layout: See `layout_of`.
        env_num: Number of environments.
        buffer: Memory of `layout_bytes` to live in; the store's own if ``None``.
    """

    def __init__(self, layout: Layout, env_num: int, buffer: Any = None) -> None:
        self.layout = layout
        self.slot = 0
        self._env_num = env_num
        self._all_rows = list(range(env_num))
        memory = np.zeros(layout_bytes(layout, env_num), np.uint8) if buffer is None else buffer
        offset = 0

        def both_slots(leaf: tuple) -> np.ndarray:
            nonlocal offset
            array: np.ndarray = np.ndarray((2, env_num, *leaf[0]), leaf[1], memory, offset)
            offset += _leaf_bytes(leaf, env_num)
            return array

        arrays = tree_map(both_slots, layout)
        # Made once, for making views costs more than the copies.
        self._views = [tree_map(itemgetter(slot), arrays) for slot in (0, 1)]
        self._shape, self._casting = None, _casting(np.dtype(np.float32))
        if isinstance(layout, tuple):
            self._shape, self._casting = layout[0], _casting(np.dtype(layout[1]))
        self._rows = [[_row_of(view, row) for row in self._all_rows] for view in self._views]
        self._joined = [_joined(view) for view in self._views]
        self._sums = [
            [(leaf.reshape(-1).dot, np.ones(leaf.size, leaf.dtype)) for leaf in _floats(view)]
            for view in self._views
        ]

    def write(self, row: int, obs: Any, slot: int | None = None) -> None:
        """Copy the observation of one environment.

        Raises:
            DataError: It has another layout.
        """
        self._write_row(self._rows[self.slot if slot is None else slot][row], obs, row)

    def write_step(self, rows: list[int], observations: Sequence[Any]) -> Any:
        """Copy what a step gave: if it is for all environments in order, into the other slot.

        Returns:
            The observations as columns: a view until the next but one step, or a copy.
        """
        if rows != self._all_rows:
            for row, obs in zip(rows, observations):
                self.write(row, obs)
            return self.gather(rows)
        slot = 1 - self.slot
        joined = self._joined[slot]
        try:
            at_once = [obs.shape for obs in observations].count(self._shape) == self._env_num
            if joined is not None and at_once:
                np.concatenate(observations, out=joined, casting=self._casting)
                self.slot = slot
                return self._views[slot]
        except (AttributeError, TypeError):
            pass  # no arrays, or of another kind: one by one, to say which
        for row, obs in zip(rows, observations):
            self.write(row, obs, slot)
        self.slot = slot
        return self._views[slot]

    def nan_row(self) -> int | None:
        """As `nan_position` of the current slot, in half of its time."""
        for dot, ones in self._sums[self.slot]:
            total = dot(ones)
            if total != total:
                return nan_position(self.view())
        return None

    def write_columns(self, columns: Any) -> Any:
        """Copy a whole step's observations, in columns already, into the other slot."""
        self.slot = 1 - self.slot
        _copy_into(self.view(), columns)
        return self.view()

    def view(self) -> Any:
        """The current slot, uncopied."""
        return self._views[self.slot]

    def gather(self, rows: Sequence[int] | np.ndarray) -> Any:
        """A copy of some rows."""
        return take_rows(self.view(), rows)

    def row(self, row: int, copied: bool = True) -> Any:
        """One environment's observation."""
        view = self._rows[self.slot][row]
        return copy_columns(view) if copied else view

    def _write_row(self, target: Any, obs: Any, row: int) -> None:
        if isinstance(target, dict):
            if not isinstance(obs, Mapping) or obs.keys() != target.keys():
                raise _mismatch(row, obs, self.layout)
            for key, part in target.items():
                self._write_row(part, obs[key], row)
            return
        if np.shape(obs) != target.shape:
            raise _mismatch(row, obs, self.layout)
        try:
            np.copyto(target, obs, casting=_casting(target.dtype))
        except TypeError as error:
            raise _mismatch(row, obs, self.layout) from error


class ObjectStore:
    """Observations of any kind, kept as deep copies."""

    layout = None

    def __init__(self, env_num: int) -> None:
        self._obs: list[Any] = [None] * env_num

    def view(self) -> list[Any]:
        return self._obs

    def write(self, row: int, obs: Any) -> None:
        self._obs[row] = copy.deepcopy(obs)

    def write_step(self, rows: list[int], observations: Sequence[Any]) -> list[Any]:
        for row, obs in zip(rows, observations):
            self.write(row, obs)
        return self.gather(rows)

    def gather(self, rows: Sequence[int]) -> list[Any]:
        return [self._obs[row] for row in rows]

    def row(self, row: int, copied: bool = True) -> Any:
        return copy.deepcopy(self._obs[row]) if copied else self._obs[row]


def store_for(observations: Sequence[Any]) -> ObsColumns | ObjectStore:
    """The store that fits the first observation of each environment, filled with them."""
    layout = reduce(_joint, map(layout_of, observations))
    store: ObsColumns | ObjectStore
    if layout is not None:
        store = ObsColumns(layout, len(observations))
    else:
        store = ObjectStore(len(observations))
    for row, obs in enumerate(observations):
        store.write(row, obs)
    return store


def fit_for_space(layout: Layout, space: Any) -> Layout:
    """`layout` with whole numbers as wide as the observation space says that they can be."""
    if isinstance(layout, dict):
        spaces_of = getattr(space, "spaces", {})
        return {key: fit_for_space(part, spaces_of.get(key)) for key, part in layout.items()}
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


def _copy_into(target: Any, columns: Any) -> None:
    if isinstance(target, dict):
        for key, part in target.items():
            _copy_into(part, columns[key])
    else:
        np.copyto(target, columns, casting="same_kind")


def copy_columns(columns: Any) -> Any:
    """Copies of the arrays in nested dicts; a list of observations is its owner's already."""
    return columns if isinstance(columns, list) else tree_map(np.array, columns)


def column_row(columns: Any, position: int) -> Any:
    """A copy of one row of columns; an item of a list of observations is copied deeply."""
    if isinstance(columns, list):
        return copy.deepcopy(columns[position])
    return tree_map(lambda leaf: np.array(leaf[position]), columns)


def take_rows(columns: Any, index: Sequence[int] | np.ndarray) -> Any:
    """Some rows, copied."""
    return tree_map(lambda leaf: leaf.take(index, 0), columns)


def put_row(columns: Any, position: int, obs: Any) -> None:
    """Overwrite one row of columns."""
    _copy_into(_row_of(columns, position), obs)


def nan_position(columns: Any) -> int | None:
    """Position of the first row with NaN in columns, ``None`` if there is none."""
    if isinstance(columns, list):
        return next((i for i, obs in enumerate(columns) if holds_nan(obs)), None)
    for leaf in (columns,) if type(columns) is np.ndarray else tree_leaves(columns):
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


def _casting(dtype: np.dtype) -> Any:
    """What may be written into a column: floats of any width; whole numbers that fit for sure."""
    return "same_kind" if dtype.kind == "f" else "safe"


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


def _floats(view: Any) -> list[np.ndarray]:
    return [leaf for leaf in tree_leaves(view) if leaf.dtype.kind == "f"]


def _joined(view: Any) -> np.ndarray | None:
    """The array that is filled by putting all environments' arrays end to end."""
    if isinstance(view, dict) or view.ndim < 2:
        return None
    return view.reshape(-1, *view.shape[2:])


def _row_of(view: Any, row: int) -> Any:
    # Scalars too are to be views: `leaf[row]` of a flat leaf would be a number.
    return tree_map(lambda leaf: leaf[row : row + 1].reshape(leaf.shape[1:]), view)


def _leaf_bytes(leaf: tuple, env_num: int) -> int:
    """Of both slots, a multiple of 64."""
    shape, dtype = leaf
    size = 2 * env_num * math.prod(shape) * np.dtype(dtype).itemsize
    return (size + 63) // 64 * 64


def _mismatch(row: int, obs: Any, layout: Layout) -> DataError:
    came = layout_of(obs)
    return DataError(
        f"env {row} gave an observation of layout {came or type(obs).__name__}; the first ones "
        f"were {layout}. Observations have to keep their shapes and dtypes"
    )
