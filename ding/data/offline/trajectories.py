"""Finds the trajectories in a data set of transitions."""

import numpy as np

from ding.data.arrays import Column
from ding.data.columns import Columns
from ding.data.frame_store import bytes_of
from ding.data.tree import tree_leaves


def trajectories(data: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Sort transitions into trajectories by their observations.

    The successor of a transition that is not ``done`` is the next transition whose ``obs`` equals
    its ``next_obs``. The steps of several environments may therefore alternate.

    Args:
        data: Transitions with ``obs``, ``next_obs`` and ``done``.

    Returns:
        The order of the transitions, int64 ``[N]``, trajectory by trajectory, and the lengths of
        the trajectories in that order.
    """
    count = len(data)
    obs, next_obs = _prints(data.column("obs")), _prints(data.column("next_obs"))
    done = np.asarray(data.column("done")).reshape(count).astype(bool)
    after = _successors(obs, next_obs, done)
    first = np.arange(count)
    has_next = after >= 0
    first[after[has_next]] = np.flatnonzero(has_next)
    # Find the first transition of each trajectory by pointer doubling.
    while not np.array_equal(further := first[first], first):
        first = further
    order = np.lexsort((np.arange(count), first))
    return order, np.unique(first, return_counts=True)[1]


def in_trajectories(
    data: Columns, keeps_order: bool = False
) -> tuple[dict[str, Column], np.ndarray]:
    """Transitions of a data set, trajectory by trajectory, and the lengths of the trajectories.

    ``reward`` becomes float32 ``[N]``, ``done`` bool ``[N]``.

    Args:
        keeps_order: Do not reorder the transitions: a trajectory ends where the next transition
            does not continue it.
    """
    if keeps_order:
        obs, next_obs = _prints(data.column("obs")), _prints(data.column("next_obs"))
        done = np.asarray(data.column("done")).reshape(len(data)).astype(bool)
        breaks = np.flatnonzero((next_obs[:-1] != obs[1:]) | done[:-1]) + 1
        columns, lengths = data.columns, np.diff(np.concatenate([[0], breaks, [len(data)]]))
    else:
        order, lengths = trajectories(data)
        columns = data.take(order).columns
    columns = {**columns}
    for name, kind in (("reward", np.float32), ("done", bool)):
        if name in columns:
            columns[name] = np.asarray(columns[name]).reshape(len(data), -1)[:, 0].astype(kind)
    return columns, lengths


def _successors(obs: np.ndarray, next_obs: np.ndarray, done: np.ndarray) -> np.ndarray:
    """The index of each transition's successor, which is always a later one; -1 for none."""
    count = len(obs)
    after = np.full(count, -1)
    adjacent = np.flatnonzero((next_obs[:-1] == obs[1:]) & ~done[:-1])
    after[adjacent] = adjacent + 1
    taken = np.zeros(count, bool)
    taken[adjacent + 1] = True
    # For the others: sort pairs (observation, index) and find the next pair with equal observation.
    _, name = np.unique(np.concatenate([obs, next_obs]), return_inverse=True)
    name = name.reshape(-1)
    free = np.flatnonzero(~taken)
    starts = np.sort(name[:count][free] * count + free)
    ends = np.flatnonzero((after < 0) & ~done)
    found = np.searchsorted(starts, name[count:][ends] * count + ends, side="right")
    there = found < len(starts)
    ends, pairs = ends[there], starts[found[there]]
    same = pairs // count == name[count:][ends]
    # If two transitions have the same successor, the nearer one gets it: later assignments win.
    ends, targets = ends[same], pairs[same] % count
    nearest = np.full(count, -1)
    nearest[targets] = ends
    ends = nearest[targets := np.flatnonzero(nearest >= 0)]
    after[ends] = targets
    return after


def _prints(column: Column) -> np.ndarray:
    """Hashes of observations of one or several arrays, int64 [N]."""
    leaves = [bytes_of(np.asarray(leaf)) for leaf in tree_leaves(column)]
    prints = [hash(b"".join(row.tobytes() for row in rows)) for rows in zip(*leaves)]
    return np.array(prints, np.int64)


class TrajectoryPieces:
    """Pieces of trajectories with returns-to-go; one piece begins at each transition.

    Args:
        data: Transitions with ``obs, action, reward, next_obs, done``; one-step rewards.
        length: Number of steps of a piece; steps beyond the end of a trajectory are padding.

    Attributes:
        returns: Returns of whole trajectories, float64 ``[n]``.
    """

    def __init__(self, data: Columns, length: int) -> None:
        order, lengths = trajectories(data)
        reward = np.asarray(data.column("reward"), np.float64).reshape(len(order), -1)[order, 0]
        ends = np.cumsum(lengths)
        self._end = np.repeat(ends, lengths)
        self._time = np.arange(len(order)) - np.repeat(ends - lengths, lengths)
        # The sum from here to the end of the data, minus the sum from the trajectory's end.
        later = np.append(np.cumsum(reward[::-1])[::-1], 0.0)
        self._rtg = (later[:-1] - later[self._end]).astype(np.float32)
        self.returns = later[ends - lengths] - later[ends]
        self._obs, self._action = (
            np.asarray(data.column(name))[order] for name in ("obs", "action")
        )
        self._length = length

    def __len__(self) -> int:
        return len(self._end)

    def take(self, index: np.ndarray) -> Columns:
        """Pieces by the index of their first transition, in the order of `trajectories`.

        Returns:
            ``obs, action, rtg, timestep`` and ``mask`` (False for padding), each
            ``[B, length, ...]``.
        """
        steps = index[:, None] + np.arange(self._length)
        mask = steps < self._end[index][:, None]
        steps = np.minimum(steps, self._end[index][:, None] - 1)
        arrays = {"obs": self._obs, "action": self._action, "rtg": self._rtg}
        arrays["timestep"] = self._time
        return Columns({**{k: v[steps] for k, v in arrays.items()}, "mask": mask})
