"""What environments did, step by step, in preallocated columns."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ding.data import tree_map
from ding.utils.errors import DataError
from ding.worker.collector.steps import Tree

#: The rows, and perhaps the environments, that are written to.
_Place = int | tuple[int, np.ndarray]


class StepLog:
    """A growing table with a row for each step, and in it a cell for each environment.

    The observation in the cell below is the next one, so that each is written once. Where
    trajectories end, a row that is no step holds the observations that they ended with.
    Trajectories are ranges of rows; cells in them where an environment did not act do not count.

    Columns are allocated with the first row, and double when they are full. What is appended is
    copied here. All players have columns of their own, of the same rows.

    Args:
        env_num: Number of environments.
        players: Number of players.
    """

    def __init__(self, env_num: int, players: int = 1) -> None:
        self._env_num = env_num
        self._players: list[dict[str, Tree]] = [{} for _ in range(players)]
        self._acted = np.zeros((0, env_num), bool)
        self._length = 0
        self._all_acted = True  # in every step
        self._all_ids: np.ndarray | None = None  # known to be all environments, in order
        # First row of each environment's running trajectory.
        self._starts = np.zeros(env_num, np.int64)
        # Of ended trajectories, in their order: the first cell, and how many rows there are.
        self._ended: list[tuple[np.ndarray, np.ndarray]] = []

    # ------------------------------------------------------------------ in

    def append(self, env_ids: np.ndarray, columns: Sequence[Mapping[str, Tree]]) -> None:
        """Write a step; a column becomes as wide as what comes needs: float64 after float32.

        Args:
            env_ids: Who has acted, int64 ``[n]``.
            columns: Of each player: ``[n, ...]``, nested dicts of such, or one number for all.

        Raises:
            DataError: There are other columns than in the steps so far.
        """
        row, place = self._next(env_ids)
        for stored, given in zip(self._players, columns):
            if given.keys() != stored.keys():
                self._allocate(stored, given)
            for name, values in given.items():
                _write(stored, name, place, values)
        if place is not row:
            self._acted[row] = self._all_acted = False
        self._acted[place] = True
        self._length = row + 1

    def note_idle(self, env_ids: np.ndarray, obs: Sequence[Tree]) -> None:
        """Write what environments show that have not acted in the step that was appended last."""
        for stored, values in zip(self._players, obs):
            _write(stored, "obs", (self._length - 1, env_ids), values)

    def end(self, env_ids: np.ndarray, shown_ids: np.ndarray, obs: Sequence[Tree]) -> None:
        """With the step that was appended last, trajectories of `env_ids` end.

        Args:
            env_ids: int64 ``[m]``.
            shown_ids: Those that have acted, whose observations these are, int64 ``[n]``.
            obs: Of each player, what they show now.
        """
        row, place = self._next(shown_ids)
        for stored, values in zip(self._players, obs):
            _write(stored, "obs", place, values)
        self._acted[row] = False
        starts = self._starts[env_ids]
        self._ended.append((starts * self._env_num + env_ids, row - starts))
        self._length = row + 1
        self._starts[env_ids] = row + 1

    def forget(self, env_ids: Sequence[int] | np.ndarray) -> None:
        """Forget the running trajectories of environments."""
        self._starts[env_ids] = self._length

    def add_missing(self, name: str, like: np.ndarray, value: float) -> None:
        """Have a column from here on, of the kind of `like`; the steps so far get `value`."""
        for stored in self._players:
            if name not in stored and self._length:
                stored[name] = self._empty(like)
                stored[name][: self._length] = value

    def _next(self, env_ids: np.ndarray) -> tuple[int, _Place]:
        """The row that is written next, and the cells of environments in it."""
        row = self._length
        if row == len(self._acted):
            self._grow()
        if env_ids is self._all_ids:
            return row, row
        if len(env_ids) != self._env_num or (env_ids != np.arange(self._env_num)).any():
            return row, (row, env_ids)
        if not env_ids.flags.writeable:
            self._all_ids = env_ids  # managers give the same one at each step
        return row, row

    # ------------------------------------------------------------------ out

    @property
    def has_ended(self) -> bool:
        """Whether there are trajectories that ended."""
        return bool(self._ended)

    def ended(self) -> tuple[np.ndarray, np.ndarray]:
        """Cells of the transitions of trajectories that ended, in the order in which they did.

        Returns:
            int64 ``[N]`` into :meth:`columns`, with the next observations ``env_num`` further on,
            and the lengths of the trajectories, int64 ``[M]``.
        """
        first, rows = (np.concatenate(parts) for parts in zip(*self._ended))
        stops = rows.cumsum()
        cells = np.arange(stops[-1])
        cells *= self._env_num
        cells += np.repeat(first - (stops - rows) * self._env_num, rows)
        acted = self._acted.reshape(-1).take(cells)
        if acted.all():
            return cells, rows
        return cells[acted], np.add.reduceat(acted, stops - rows, dtype=np.int64)

    def columns(self, player: int) -> dict[str, Tree]:
        """Views of a player's columns, nested or not: ``[rows * env_num, ...]``."""
        length = self._length

        def flat(leaf: np.ndarray) -> np.ndarray:
            return leaf[:length].reshape(-1, *leaf.shape[2:])

        return {name: tree_map(flat, col) for name, col in self._players[player].items()}

    def drop_ended(self, given: Collection[int] = ()) -> None:
        """Forget all trajectories but the running ones.

        Args:
            given: Players whose observations others have now: they are not written to any more.
        """
        self._ended = []
        length = self._length
        for env_id, first in enumerate(() if self._all_acted else self._starts.tolist()):
            if not self._acted[first:length, env_id].any():
                self._starts[env_id] = length  # the idle begin anew, where the log ends
        start = int(self._starts.min())
        kept = length - start
        for player, stored in enumerate(self._players):
            for name in stored if kept else ("obs",):
                is_given = name == "obs" and player in given

                def moved(leaf: np.ndarray, is_given: bool = is_given) -> np.ndarray:
                    to = np.empty_like(leaf) if is_given else leaf
                    to[:kept] = leaf[start:length]
                    return to

                stored[name] = tree_map(moved, stored[name])
        self._acted[:kept] = self._acted[start:length]
        self._starts -= start
        self._length = kept
        self._all_acted = self._all_acted or not kept

    # ------------------------------------------------------------------ memory

    def _allocate(self, stored: dict[str, Tree], columns: Mapping[str, Tree]) -> None:
        if self._length:
            count = np.count_nonzero(self._acted[: self._length])
            raise DataError(
                f"columns {', '.join(columns)} came after {count} transitions of "
                f"{', '.join(stored)}: a policy must return the same outputs at each step"
            )
        stored.clear()
        stored.update({name: tree_map(self._empty, col) for name, col in columns.items()})

    def _empty(self, like: Tree) -> np.ndarray:
        like = np.asarray(like)
        return np.empty((*self._acted.shape, *like.shape[1:]), like.dtype)

    def _grow(self) -> None:
        length, capacity = self._length, max(2 * self._length, 16)

        def larger(leaf: np.ndarray) -> np.ndarray:
            to = np.empty((capacity, *leaf.shape[1:]), leaf.dtype)
            to[:length] = leaf[:length]
            return to

        self._acted = larger(self._acted)
        for stored in self._players:
            stored.update({name: tree_map(larger, col) for name, col in stored.items()})


def _write(stored: dict[str, Tree], name: str, place: _Place, values: Tree) -> None:
    store = stored[name]
    if isinstance(store, dict):
        for part in store:
            _write(store, part, place, values[part])
        return
    dtype = getattr(values, "dtype", store.dtype)
    if dtype != store.dtype:
        wide = np.promote_types(store.dtype, dtype)
        if wide != store.dtype:
            stored[name] = store = store.astype(wide)
    store[place] = values
