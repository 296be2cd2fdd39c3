"""N-step returns over batches."""

from collections import namedtuple
from typing import Any

import torch

nstep_return_data = namedtuple("nstep_return_data", ["reward", "next_value", "done"])


def nstep_return(
    data: Any, gamma: float | list, nstep: int, value_gamma: torch.Tensor | None = None
) -> torch.Tensor:
    """Discounted rewards plus the discounted next value.

    Args:
        data: ``nstep_return_data``: ``reward`` ``[nstep, B]``, ``next_value`` ``[B, *]``,
            ``done`` ``[B]`` or ``None``.
        gamma: Discount factor, or a list with one per sample.
        nstep: Number of rewards.
        value_gamma: Discount of the next value ``[B]``; gamma to the ``nstep`` by default.

    Returns:
        In the shape of ``next_value``.
    """
    reward, next_value, done = data
    if len(reward) != nstep:
        raise ValueError(f"got {len(reward)} rewards per sample, expected nstep={nstep}")
    discount: Any = gamma
    if isinstance(gamma, list | tuple | torch.Tensor):
        discount = torch.as_tensor(gamma, dtype=reward.dtype, device=reward.device)
    total = reward[0]
    for step in range(1, nstep):
        total = total + discount**step * reward[step]
    factor = discount**nstep if value_gamma is None else value_gamma
    if done is not None:
        factor = factor * (1 - done.to(next_value.dtype))
    if isinstance(factor, torch.Tensor):
        factor = widen(factor, next_value)
    return widen(total, next_value) + factor * next_value


def widen(per_sample: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Append dimensions of one until ``[B]`` broadcasts over ``[B, *]``."""
    extra = like.dim() - per_sample.dim()
    if per_sample.dim() == 0 or extra <= 0:
        return per_sample
    return per_sample.reshape(*per_sample.shape, *[1] * extra)


def weighted_mean(error: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """Mean of weight ``[B]`` times error ``[B, *]``."""
    return error.mean() if weight is None else (error * widen(weight, error)).mean()


def of_action(values: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """The values of the actions that were done: ``[..., N]`` and int64 ``[...]`` to ``[...]``."""
    return values.gather(-1, action.unsqueeze(-1)).squeeze(-1)
