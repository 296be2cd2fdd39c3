"""N-step windows and advantages over columns of consecutive trajectories."""

from typing import Any

import numpy as np

from ding.rl_utils._scan import scan_back_numpy


def nstep_columns(
    reward: np.ndarray,
    done: np.ndarray,
    next_obs: Any,
    lengths: np.ndarray,
    nstep: int,
    gamma: float,
) -> dict[str, np.ndarray]:
    """Make an n-step window of every row.

    A window ends at its trajectory's end, or where an episode terminated, if that comes first.

    Args:
        reward: ``[N]`` or ``[N, 1]``.
        done: bool ``[N]``, true where the episode terminated; false at a mere cut.
        next_obs: Not read: gather it with ``next_index``. Here so that a caller can hand on all
            of a trajectory's columns.
        lengths: ``[n_traj]``, lengths of the trajectories, which follow each other.
        nstep: Length of a full window.
        gamma: Discount factor.

    Returns:
        ``reward`` float32 ``[N, nstep]``, zeros after a window's end; ``next_index`` int64
        ``[N]``, the row whose ``next_obs`` the window leads to; ``done`` ``[N]`` of that row;
        ``value_gamma`` float32 ``[N]``, gamma to the number of steps taken.
    """
    reward = np.asarray(reward, dtype=np.float32).reshape(-1)
    done = np.asarray(done).reshape(-1)
    count = len(reward)
    rows = np.arange(count)
    if nstep == 1:
        next_index = rows
    else:
        next_index = np.minimum(rows + nstep - 1, _last_rows(done, lengths))
    window = rows[:, None] + np.arange(nstep)
    inside = window <= next_index[:, None]
    rewards = np.where(inside, reward[np.minimum(window, count - 1)], np.float32(0))
    return {
        "reward": rewards,
        "next_index": next_index,
        "done": done[next_index],
        "value_gamma": (gamma ** np.arange(nstep + 1)).astype(np.float32)[next_index - rows + 1],
    }


def gae_columns(
    value: np.ndarray,
    next_value: np.ndarray,
    reward: np.ndarray,
    done: np.ndarray,
    lengths: np.ndarray,
    gamma: float,
    lambda_: float,
) -> np.ndarray:
    """Generalised advantage estimates (Schulman et al. 2016) of consecutive trajectories.

    Args:
        value: V of each row's ``obs``, ``[N]``; or ``[N, agents]``.
        next_value: V of each row's ``next_obs``, likewise; not used where ``done``.
        reward: ``[N]``, the team's; or ``[N, agents]``.
        done: ``[N]``, true where the episode terminated; a cut bootstraps from ``next_value``.
        lengths: ``[n_traj]``, lengths of the trajectories.

    Returns:
        float32, in the shape of ``value``.
    """
    given = np.shape(value)
    value = _column(value)
    shape = (len(value), -1) if value.ndim > 1 else -1
    next_value, reward = (_column(col).reshape(shape) for col in (next_value, reward))
    alive = 1.0 - np.asarray(done, dtype=np.float64).reshape(shape)
    delta = reward + gamma * alive * next_value - value
    factor = gamma * lambda_ * alive
    lengths = np.asarray(lengths)
    factor[np.cumsum(lengths) - 1] = 0
    return scan_back_numpy(delta, factor, int(lengths.max())).astype(np.float32).reshape(given)


def _column(numbers: np.ndarray) -> np.ndarray:
    """``[N, 1]`` as ``[N]``; in double precision, as long sums are made of them."""
    column = np.asarray(numbers, dtype=np.float64)
    return column.reshape(-1) if column.ndim == 2 and column.shape[1] == 1 else column


def _last_rows(done: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """For each row, the last one of its episode within its trajectory. ``[N]``"""
    is_last = done.astype(bool)
    is_last[np.cumsum(lengths) - 1] = True
    last = np.flatnonzero(is_last)
    return np.repeat(last, np.diff(last, prepend=-1))
