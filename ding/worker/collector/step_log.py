"""Records the environments' steps in preallocated columns."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import NamedTuple

import numpy as np

from ding.data import IndexedColumn, tree_map
from ding.utils.errors import DataError
from ding.utils.types import Tree

#: Number of steps of all environments that are stored before space is reused.
_MIN_ROWS = 24


class Ended(NamedTuple):
    """Trajectories that ended, in order of their end.

    Attributes:
        cells: Cells of their transitions, one trajectory after the other, int64 ``[N]``.
        following: Cells of the next observations, int64 ``[N]``.
        lengths: Number of transitions of each trajectory, int64 ``[M]``.
        env_ids: Environment of each trajectory, int64 ``[M]``.
    """

    cells: np.ndarray
    following: np.ndarray
    lengths: np.ndarray
    env_ids: np.ndarray


class StepLog:
    """A growing array of cells: one environment's observation and its consequences, at one step.

    Each cell contains the number of its trajectory. The next observation of a cell is stored in the
    trajectory's next cell, so that each observation is written once; the final observation gets a
    separate cell, which belongs to no trajectory. Appended values are copied. Cells are not
    overwritten before `drop_ended` reuses them; memory of observations that `transitions` returned
    as indices is never overwritten. Each player has columns over the same cells.
    """

    def __init__(self, env_num: int, players: int = 1) -> None:
        self._env_num = env_num
        self._players: list[dict[str, Tree]] = [{} for _ in range(players)]
        self._capacity = 0  # allocated cells
        self._used = 0
        self._kept = 0  # cells that the last compaction kept
        self._numbers = np.zeros(0, np.int64)  # trajectory of each cell; 0: none
        self._running = np.arange(env_num) + 1  # running trajectory of each environment
        self._next_number = env_num + 1
        # Ended trajectories, in order: their environments, numbers and final cells.
        self._ended: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._given: set[int] = set()  # players whose observations were returned as indices

    def append(self, env_ids: np.ndarray, columns: Sequence[Mapping[str, Tree]]) -> None:
        """Write a step; a column is widened if its values need it: float32 to float64.

        Args:
            env_ids: Environments that have acted, int64 ``[n]``.
            columns: For each player: arrays ``[n, ...]``, nested dicts of arrays, or one number for
                all environments.

        Raises:
            DataError: The columns differ from those of earlier steps.
        """
        for stored, given in zip(self._players, columns):
            if given.keys() != stored.keys():
                self._allocate(stored, given)
        cells = self._new_cells(self._running[env_ids])
        for stored, given in zip(self._players, columns):
            for name, values in given.items():
                # The usual case, an array of the same dtype: saves five calls per step.
                if type(values) is np.ndarray and values.dtype == stored[name].dtype:
                    stored[name][cells] = values
                else:
                    _write(stored, name, cells, values)

    def end(self, env_ids: np.ndarray, obs: Sequence[Tree]) -> None:
        """End the trajectories of environments after their last appended step; ``obs`` contains
        each player's final observations."""
        cells = self._new_cells(np.zeros_like(env_ids))
        for stored, values in zip(self._players, obs):
            _write(stored, "obs", cells, values)
        finals = np.arange(cells.start, cells.stop)
        self._ended.append((env_ids, self._running[env_ids], finals))
        self.forget(env_ids)

    def forget(self, env_ids: np.ndarray | slice) -> None:
        """Drop the running trajectories of environments, and begin new ones."""
        count = len(self._running[env_ids])
        self._running[env_ids] = np.arange(self._next_number, self._next_number + count)
        self._next_number += count

    def add_missing(self, name: str, like: np.ndarray, value: float) -> None:
        """Add a column of the dtype of `like`; existing cells get `value`."""
        for stored in self._players:
            if name not in stored and self._used:
                # The memory of existing cells is uninitialised.
                stored[name] = self._empty(like)
                stored[name][: self._used] = value

    def _new_cells(self, numbers: np.ndarray) -> slice:
        start, self._used = self._used, self._used + len(numbers)
        if self._used > self._capacity:
            self._grow(start)
        self._numbers[start : self._used] = numbers
        return slice(start, self._used)

    def ended(self) -> Ended | None:
        """The trajectories that ended since `drop_ended`; ``None`` if there are none."""
        if not self._ended:
            return None
        env_ids, numbers, finals = map(np.concatenate, zip(*self._ended))
        # Running trajectories sort last. A smaller dtype sorts faster.
        count = len(numbers)
        places = np.full(self._next_number, count, np.min_scalar_type(-count - 1))
        places[numbers] = np.arange(count)
        of_cells = places[self._numbers[: self._used]]
        lengths = np.bincount(of_cells, minlength=count)[:count]
        ends = lengths.cumsum()
        cells = of_cells.argsort(kind="stable")[: ends[-1]]
        following = np.empty_like(cells)
        following[:-1] = cells[1:]
        following[ends - 1] = finals
        return Ended(cells, following, lengths, env_ids)

    def transitions(self, player: int, ended: Ended, indexed: bool = False) -> dict[str, Tree]:
        """A player's columns of trajectories that ended, ``[N, ...]``, with ``next_obs``.

        ``indexed`` returns both observations as `IndexedColumn`, over memory that is not
        overwritten any more.
        """
        stored = dict(self._players[player])
        obs = stored.pop("obs")
        columns: dict[str, Tree] = tree_map(lambda leaf: leaf.take(ended.cells, axis=0), stored)
        places = {"obs": ended.cells, "next_obs": ended.following}
        if not indexed:
            for name, cells in places.items():
                columns[name] = tree_map(methodcaller("take", cells, axis=0), obs)
            return columns
        whole = tree_map(lambda leaf: leaf[: self._used], obs)
        for name, cells in places.items():
            columns[name] = tree_map(partial(IndexedColumn, index=cells), whole)
        self._given.add(player)
        return columns

    def drop_ended(self) -> None:
        """Drop all ended trajectories; cells of running ones move to the beginning."""
        self._ended = []
        # At most as many cells are moved as were added since the last compaction.
        if self._used <= 2 * self._kept + _MIN_ROWS * self._env_num:
            return
        numbers = np.zeros(self._next_number, np.int64)
        numbers[self._running] = np.arange(self._env_num) + 1
        self._running = np.arange(self._env_num) + 1
        self._next_number = self._env_num + 1
        numbers = numbers[self._numbers[: self._used]]
        cells = numbers.nonzero()[0]
        self._used = self._kept = len(cells)
        self._numbers[: self._used] = numbers[cells]

        def moved(leaf: np.ndarray, is_given: bool) -> np.ndarray:
            # Samples that were returned as indices still read the old array.
            to = np.empty_like(leaf) if is_given else leaf
            to[: len(cells)] = leaf.take(cells, axis=0)
            if leaf.dtype == object:
                to[len(cells) :] = None  # releases rows
            return to

        for player, stored in enumerate(self._players):
            for name, column in stored.items():
                is_given = name == "obs" and player in self._given
                stored[name] = tree_map(partial(moved, is_given=is_given), column)
        self._given.clear()

    def _grow(self, used: int) -> None:
        self._capacity = 2 * max(self._used, _MIN_ROWS * self._env_num)

        def larger(leaf: np.ndarray) -> np.ndarray:
            to = np.empty((self._capacity, *leaf.shape[1:]), leaf.dtype)
            to[:used] = leaf[:used]
            return to

        self._numbers = larger(self._numbers)
        for stored in self._players:
            stored.update({name: tree_map(larger, col) for name, col in stored.items()})

    def _allocate(self, stored: dict[str, Tree], columns: Mapping[str, Tree]) -> None:
        if self._used:
            count = np.count_nonzero(self._numbers[: self._used])
            raise DataError(
                f"columns {', '.join(columns)} came after {count} transitions of "
                f"{', '.join(stored)}: a policy must return the same outputs at each step"
            )
        stored.clear()
        stored.update({name: tree_map(self._empty, col) for name, col in columns.items()})

    def _empty(self, like: Tree) -> np.ndarray:
        like = np.asarray(like)
        return np.empty((self._capacity, *like.shape[1:]), like.dtype)


def _write(stored: dict[str, Tree], name: str, cells: slice, values: Tree) -> None:
    store = stored[name]
    if isinstance(store, dict):
        for part in store:
            _write(store, part, cells, values[part])
        return
    dtype = getattr(values, "dtype", store.dtype)
    if dtype != store.dtype:
        wide = np.promote_types(store.dtype, dtype)
        if wide != store.dtype:
            stored[name] = store = store.astype(wide)
    store[cells] = values
