"""What environments did, step by step, in preallocated columns."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ding.data import tree_map
from ding.utils.errors import DataError
from ding.worker.collector.steps import Tree

#: Rows of cells that are not needed any more before their room is.
_MIN_ROWS = 24


class StepLog:
    """A growing list of cells: what one environment showed, and what became of it, at one step.

    A grid with a row for each step and a column for each environment says which cell is whose. The
    observation in an environment's next cell is the one that followed, so that each is written
    once; where a trajectory ends, a cell that is no step holds the observation that it ended with.

    What is appended is copied here. Cells are not written to again before `drop_ended` needs
    their room, and those of observations that others were given never. All players have columns of
    their own, of the same cells.

    Args:
        env_num: Number of environments.
        players: Number of players.
    """

    def __init__(self, env_num: int, players: int = 1) -> None:
        self._env_num = env_num
        self._players: list[dict[str, Tree]] = [{} for _ in range(players)]
        self._is_step = np.ones(0, bool)  # also of cells to come
        self._numbers = np.arange(0)
        self._used = 0
        self._kept = 0  # by the last compaction
        self._grid = np.zeros((0, env_num), np.int64)  # -1 where there is no cell
        self._rows = 0
        # First row of each environment's running trajectory.
        self._starts = np.zeros(env_num, np.int64)
        # Of ended trajectories, in their order: place of the first cell in the flat grid, and rows.
        self._ended: list[tuple[np.ndarray, np.ndarray]] = []
        self._given: set[int] = set()  # players whose observations others have
        self._all_ids: np.ndarray | None = None  # known to be all environments, in order

    # ------------------------------------------------------------------ in

    def append(self, env_ids: np.ndarray, columns: Sequence[Mapping[str, Tree]]) -> None:
        """Write a step; a column becomes as wide as what comes needs: float64 after float32.

        Args:
            env_ids: Who has acted, int64 ``[n]``.
            columns: Of each player: ``[n, ...]``, nested dicts of such, or one number for all.

        Raises:
            DataError: There are other columns than in the steps so far.
        """
        for stored, given in zip(self._players, columns):
            if given.keys() != stored.keys():
                self._allocate(stored, given)
        cells = self._new_cells(env_ids, self._rows, is_step=True)
        for stored, given in zip(self._players, columns):
            for name, values in given.items():
                _write(stored, name, cells, values)

    def note_idle(self, env_ids: np.ndarray, obs: Sequence[Tree]) -> None:
        """Write what environments show that have not acted in the step that was appended last."""
        cells = self._new_cells(env_ids, self._rows - 1, is_step=False)
        for stored, values in zip(self._players, obs):
            _write(stored, "obs", cells, values)

    def end(self, env_ids: np.ndarray, obs: Sequence[Tree]) -> None:
        """With the step that was appended last, trajectories of environments end.

        Args:
            env_ids: int64 ``[n]``.
            obs: Of each player, what they show now.
        """
        row = self._rows
        cells = self._new_cells(env_ids, row, is_step=False)
        for stored, values in zip(self._players, obs):
            _write(stored, "obs", cells, values)
        starts = self._starts[env_ids]
        self._ended.append((starts * self._env_num + env_ids, row + 1 - starts))
        self._starts[env_ids] = row + 1

    def forget(self, env_ids: Sequence[int] | np.ndarray) -> None:
        """Forget the running trajectories of environments."""
        self._starts[env_ids] = self._rows

    def add_missing(self, name: str, like: np.ndarray, value: float) -> None:
        """Have a column from here on, of the kind of `like`; the cells so far get `value`."""
        for stored in self._players:
            if name not in stored and self._used:
                stored[name] = self._empty(like)
                stored[name][: self._used] = value

    def _new_cells(self, env_ids: np.ndarray, row: int, is_step: bool) -> slice:
        start = self._used
        stop = start + len(env_ids)
        if max(stop, row + 1) > len(self._is_step):
            self._grow(max(stop, row + 1))
        if env_ids is self._all_ids:
            self._grid[row] = self._numbers[start:stop]
        else:
            self._grid[row, env_ids] = self._numbers[start:stop]
            is_all = len(env_ids) == self._env_num and (env_ids == np.arange(self._env_num)).all()
            if is_all and not env_ids.flags.writeable:
                self._all_ids = env_ids  # managers give the same one at each step
        if not is_step:
            self._is_step[start:stop] = False
        self._used, self._rows = stop, row + 1
        return slice(start, stop)

    # ------------------------------------------------------------------ out

    def ended(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """The transitions of trajectories that ended, in the order in which they did.

        Returns:
            Cells of the transitions, those of the next observations, int64 ``[N]`` each, and the
            lengths of the trajectories, int64 ``[M]``; ``None`` if none has ended.
        """
        if not self._ended:
            return None
        first, rows = (np.concatenate(parts) for parts in zip(*self._ended))
        stops = rows.cumsum()
        place = np.arange(stops[-1])
        place *= self._env_num
        place += np.repeat(first - (stops - rows) * self._env_num, rows)
        cells = self._grid.reshape(-1).take(place)
        there = cells >= 0
        is_step = self._is_step.take(cells)
        is_step &= there
        lengths = np.add.reduceat(is_step, stops - rows, dtype=np.int64)
        cells, is_step = cells[there], is_step[there]
        # The last cell of a trajectory is no step, so that the next one is the trajectory's own.
        return cells[is_step], cells[1:][is_step[:-1]], lengths

    def columns(self, player: int) -> dict[str, Tree]:
        """Views of a player's columns, nested or not: ``[cells, ...]``."""
        used = self._used
        return {
            name: tree_map(lambda leaf: leaf[:used], col)
            for name, col in self._players[player].items()
        }

    def drop_ended(self, given: Iterable[int] = ()) -> None:
        """Forget all trajectories but the running ones.

        Args:
            given: Players whose observations others have now: they stay as they are.
        """
        self._ended = []
        self._given.update(given)
        # As many are moved as came since then, at most.
        if self._used > 2 * self._kept + _MIN_ROWS * self._env_num:
            self._compact()

    # ------------------------------------------------------------------ memory

    def _compact(self) -> None:
        """Move the cells of running trajectories to the beginning."""
        first = int(self._starts.min())
        grid = self._grid[first : self._rows].copy()
        live = (grid >= 0) & (np.arange(first, self._rows)[:, None] >= self._starts)
        # Those that have not acted since have nothing to keep.
        runs = (live & self._is_step.take(grid)).any(0)
        self._starts[~runs] = self._rows
        live &= runs
        cells = grid[live]
        self._starts -= first
        self._grid[: self._rows] = -1
        self._rows, self._used = len(grid), len(cells)
        self._kept = len(cells)
        self._grid[: self._rows][live] = np.arange(self._used)
        is_step = self._is_step.take(cells)
        self._is_step[:] = True
        self._is_step[: self._used] = is_step
        for player, stored in enumerate(self._players):
            for name, column in stored.items():
                is_given = name == "obs" and player in self._given

                def moved(leaf: np.ndarray, is_given: bool = is_given) -> np.ndarray:
                    to = np.empty_like(leaf) if is_given else leaf
                    to[: len(cells)] = leaf.take(cells, axis=0)
                    return to

                stored[name] = tree_map(moved, column)
        self._given.clear()

    def _grow(self, needed: int) -> None:
        used, capacity = self._used, 2 * max(needed, _MIN_ROWS * self._env_num)

        def larger(leaf: np.ndarray) -> np.ndarray:
            to = np.empty((capacity, *leaf.shape[1:]), leaf.dtype)
            to[:used] = leaf[:used]
            return to

        is_step, self._is_step = self._is_step[:used], np.ones(capacity, bool)
        self._is_step[:used] = is_step
        self._numbers = np.arange(capacity)
        grid = np.full((capacity, self._env_num), -1)
        grid[: self._rows] = self._grid[: self._rows]
        self._grid = grid
        for stored in self._players:
            stored.update({name: tree_map(larger, col) for name, col in stored.items()})

    def _allocate(self, stored: dict[str, Tree], columns: Mapping[str, Tree]) -> None:
        if self._used:
            count = np.count_nonzero(self._is_step[: self._used])
            raise DataError(
                f"columns {', '.join(columns)} came after {count} transitions of "
                f"{', '.join(stored)}: a policy must return the same outputs at each step"
            )
        stored.clear()
        stored.update({name: tree_map(self._empty, col) for name, col in columns.items()})

    def _empty(self, like: Tree) -> np.ndarray:
        like = np.asarray(like)
        return np.empty((len(self._is_step), *like.shape[1:]), like.dtype)


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
