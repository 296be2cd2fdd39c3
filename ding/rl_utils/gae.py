"""Generalised advantage estimation (Schulman et al. 2016)."""

from collections import namedtuple
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from ding.rl_utils.nstep import scan_back, scan_back_numpy
from ding.utils.types import Tree

gae_data = namedtuple("gae_data", ["value", "next_value", "reward", "done", "traj_flag"])


def gae(data: gae_data, gamma: float = 0.99, lambda_: float = 0.97) -> torch.Tensor:
    """Generalised advantage estimates (Schulman et al. 2016) of trajectories.

    Args:
        data: ``gae_data`` with ``value``, ``next_value`` and ``reward`` of shape ``[T]`` or
            ``[T, B]`` (values ``[T, B, A]`` for A agents). ``done`` masks the bootstrap value;
            ``traj_flag`` marks the last row of each trajectory, where the recursion stops, by
            default ``done``. Both may be ``None``, for trajectories without an end.
        gamma: Discount factor.
        lambda_: Trace decay: 0 is the one-step TD error, 1 the full return.

    Returns:
        Advantages in the shape of ``value``.

    Example:

        >>> import torch
        >>> from ding.rl_utils import gae, gae_data
        >>> value = torch.zeros(3)
        >>> gae(gae_data(value, value, torch.ones(3), None, None), gamma=0.5, lambda_=1.0)
        tensor([1.7500, 1.5000, 1.0000])
    """
    value, next_value, reward, done, traj_flag = data
    if traj_flag is None:
        traj_flag = done
    per_agent = value.dim() == reward.dim() + 1
    if per_agent:
        reward = reward.unsqueeze(-1)
    factor = torch.full_like(value, gamma * lambda_)
    if done is not None:
        next_value = next_value * (1 - _like(done, value, per_agent))
    if traj_flag is not None:
        factor = factor * (1 - _like(traj_flag, value, per_agent))
    return scan_back(reward + gamma * next_value - value, factor)


def shape_fn_gae(args: Sequence[Tree], kwargs: Mapping[str, Tree]) -> list[int]:
    """``[T, B]`` of a call of `gae`."""
    return list((args[0] if args else kwargs["data"])[2].shape)


def _like(flag: torch.Tensor, value: torch.Tensor, per_agent: bool) -> torch.Tensor:
    flag = flag.to(value.dtype)
    return flag.unsqueeze(-1) if per_agent else flag


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
        next_value: V of each row's ``next_obs``, in the same shape; not used where ``done``.
        reward: ``[N]``, shared by all agents; or ``[N, agents]``.
        done: ``[N]``, true where the episode terminated; a truncated trajectory bootstraps from
            ``next_value``.
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
    # Advantages do not cross the end of a trajectory, even if it was only truncated.
    factor[np.cumsum(lengths) - 1] = 0
    return scan_back_numpy(delta, factor, int(lengths.max())).astype(np.float32).reshape(given)


def _column(numbers: np.ndarray) -> np.ndarray:
    """Reshape ``[N, 1]`` to ``[N]``; in float64, for precision in long sums."""
    column = np.asarray(numbers, dtype=np.float64)
    return column.reshape(-1) if column.ndim == 2 and column.shape[1] == 1 else column
