"""Generalised advantage estimation (Schulman et al. 2016)."""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ding.rl_utils._scan import scan_back

gae_data = namedtuple("gae_data", ["value", "next_value", "reward", "done", "traj_flag"])


def gae(data: Any, gamma: float = 0.99, lambda_: float = 0.97) -> torch.Tensor:
    """Advantages of trajectories.

    Args:
        data: ``gae_data`` with ``value``, ``next_value`` and ``reward`` of shape ``[T]`` or
            ``[T, B]`` (values ``[T, B, A]`` for A agents). ``done`` masks the bootstrap value;
            ``traj_flag`` marks each trajectory's last row, where the recursion stops, and is
            ``done`` when ``None``. Either may be ``None``: then nothing ends within.
        gamma: Discount factor.
        lambda_: Weight of longer estimates: 0 is the one-step error, 1 the full return.

    Returns:
        Advantages in the shape of ``value``.
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


def shape_fn_gae(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """``[T, B]`` of a call of `gae`."""
    return list((args[0] if args else kwargs["data"])[2].shape)


def _like(flag: torch.Tensor, value: torch.Tensor, per_agent: bool) -> torch.Tensor:
    flag = flag.to(value.dtype)
    return flag.unsqueeze(-1) if per_agent else flag
