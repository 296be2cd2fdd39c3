"""Which transitions of a data set follow each other."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.data.columns import Columns


def trajectories(data: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Sort transitions into trajectories by their observations.

    A transition is followed by the next one that begins with the observation in which it ended, if
    there is one and it did not end its episode. So steps of several environments may alternate.

    Args:
        data: With ``obs``, ``next_obs`` and ``done``.

    Returns:
        The order of the transitions, int64 ``[N]``, and the lengths of the trajectories, which
        follow each other in that order.
    """
    count = len(data)
    obs, next_obs = _prints(data.column("obs")), _prints(data.column("next_obs"))
    done = np.asarray(data.column("done")).reshape(count).astype(bool)
    after = _successors(obs, next_obs, done)
    first = np.arange(count)
    has_next = after >= 0
    first[after[has_next]] = np.flatnonzero(has_next)
    # The first transition of each one's trajectory, found in steps that double.
    while not np.array_equal(further := first[first], first):
        first = further
    order = np.lexsort((np.arange(count), first))
    return order, np.unique(first, return_counts=True)[1]


def _successors(obs: np.ndarray, next_obs: np.ndarray, done: np.ndarray) -> np.ndarray:
    """For each transition the one that follows, -1 for none; always a later one."""
    count = len(obs)
    after = np.full(count, -1)
    adjacent = np.flatnonzero((next_obs[:-1] == obs[1:]) & ~done[:-1])
    after[adjacent] = adjacent + 1
    taken = np.zeros(count, bool)
    taken[adjacent + 1] = True
    # Of the others, pairs (observation, number) in order: the next one with the same observation.
    _, name = np.unique(np.concatenate([obs, next_obs]), return_inverse=True)
    name = name.reshape(-1)
    free = np.flatnonzero(~taken)
    starts = np.sort(name[:count][free] * count + free)
    ends = np.flatnonzero((after < 0) & ~done)
    found = np.searchsorted(starts, name[count:][ends] * count + ends, side="right")
    there = found < len(starts)
    ends, pairs = ends[there], starts[found[there]]
    same = pairs // count == name[count:][ends]
    # Where two lead to one, the nearer one does: later assignments win.
    ends, targets = ends[same], pairs[same] % count
    nearest = np.full(count, -1)
    nearest[targets] = ends
    ends = nearest[targets := np.flatnonzero(nearest >= 0)]
    after[ends] = targets
    return after


def _prints(column: Any) -> np.ndarray:
    """uint64 [N], the same for the same bytes; for others, as good as never."""
    if isinstance(column, Mapping):
        parts = [_prints(part) * np.uint64(2 * i + 1) for i, part in enumerate(column.values())]
        return np.stack(parts).sum(0, dtype=np.uint64)
    array = np.ascontiguousarray(np.asarray(column))
    raw = array.reshape(len(array), -1).view(np.uint8)
    if raw.shape[1] % 8:
        raw = np.pad(raw, ((0, 0), (0, -raw.shape[1] % 8)))
    words = raw.view(np.uint64)
    weights = np.random.default_rng(0).integers(1 << 63, size=words.shape[1], dtype=np.uint64)
    return np.einsum("ij,j->i", words, weights * np.uint64(2) + np.uint64(1))
