"""N-step returns of batches and trajectories, and vectorised backward scans."""

from collections import namedtuple

import numpy as np
import torch

from ding.utils.types import Tree

nstep_return_data = namedtuple("nstep_return_data", ["reward", "next_value", "done"])


def nstep_return(
    data: nstep_return_data,
    gamma: float | list[float],
    nstep: int,
    value_gamma: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sum of the discounted rewards and the discounted next value.

    Args:
        data: ``nstep_return_data``: ``reward`` ``[nstep, B]``, ``next_value`` ``[B, *]``,
            ``done`` ``[B]`` or ``None``.
        gamma: Discount factor, or a list with one per sample.
        nstep: Number of rewards.
        value_gamma: Discount of the next value ``[B]``; by default ``gamma ** nstep``.

    Returns:
        In the shape of ``next_value``.
    """
    reward, next_value, done = data
    if len(reward) != nstep:
        raise ValueError(f"got {len(reward)} rewards per sample, expected nstep={nstep}")
    discount: Tree = gamma
    if isinstance(gamma, list | tuple | torch.Tensor):
        discount = torch.as_tensor(gamma, dtype=reward.dtype, device=reward.device)
    total = reward[0]
    for step in range(1, nstep):
        total = total + discount**step * reward[step]
    factor = discount**nstep if value_gamma is None else value_gamma
    if done is not None:
        # The operator `1 - done` calls a wrapper of torch that costs more time.
        factor = factor * torch.rsub(done.to(next_value.dtype), 1)
    if isinstance(factor, torch.Tensor):
        factor = widen(factor, next_value)
    return widen(total, next_value) + factor * next_value


def widen(per_sample: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Append dimensions of size 1 so that ``[B]`` broadcasts to ``[B, *]``."""
    extra = like.dim() - per_sample.dim()
    if per_sample.dim() == 0 or extra <= 0:
        return per_sample
    return per_sample.reshape(*per_sample.shape, *[1] * extra)


def weighted_mean(error: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """Mean of weight ``[B]`` times error ``[B, *]``."""
    return error.mean() if weight is None else (error * widen(weight, error)).mean()


def of_action(values: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """Select the values of actions: ``[..., N]`` and int64 ``[...]`` to ``[...]``."""
    return values.gather(-1, action.unsqueeze(-1)).squeeze(-1)


def scan_back(delta: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Solve ``x[t] = delta[t] + factor[t] * x[t + 1]`` with ``x[T] = 0``.

    Recursive doubling: after pass k, every ``x[t]`` contains the first ``2**k`` terms of its sum.
    log2(T) passes over whole tensors replace T small steps.

    Args:
        delta: ``[T, *]``.
        factor: ``[T, *]``, same shape.
    """
    length, span = len(delta), 1
    while span < length:
        head = torch.addcmul(delta[:-span], factor[:-span], delta[span:])
        delta = torch.cat([head, delta[-span:]])
        # The last factors are not used again: there are no terms beyond the end.
        factor = torch.cat([factor[:-span] * factor[span:], torch.zeros_like(factor[-span:])])
        span *= 2
    return delta


def scan_back_numpy(delta: np.ndarray, factor: np.ndarray, longest: int) -> np.ndarray:
    """``scan_back`` for arrays, which are both overwritten.

    Args:
        longest: Maximum length of a trajectory, which limits the number of passes.
    """
    span = 1
    while span < min(longest, len(delta)):
        delta[:-span] += factor[:-span] * delta[span:]
        factor[:-span] *= factor[span:]
        factor[-span:] = 0
        span *= 2
    return delta


def nstep_columns(
    reward: np.ndarray,
    done: np.ndarray,
    next_obs: object,
    lengths: np.ndarray,
    nstep: int,
    gamma: float,
) -> dict[str, np.ndarray]:
    """Compute the n-step window that begins at each row.

    A window ends at the end of its trajectory, or where the episode terminated, if that is earlier.

    Args:
        reward: ``[N]`` or ``[N, 1]``.
        done: bool ``[N]``, true where the episode terminated; false if it was truncated.
        next_obs: Not used, so that callers can pass all columns of a trajectory; gather it with
            ``next_index``.
        lengths: ``[n_traj]``, lengths of the consecutive trajectories.
        nstep: Length of a full window.

    Returns:
        ``reward`` float32 ``[N, nstep]``, zeros after a window's end; ``next_index`` int64 ``[N]``,
        the last row of each window; ``done`` ``[N]`` of that row; ``value_gamma`` float32 ``[N]``,
        gamma to the power of the window's length.
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


def _last_rows(done: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """For each row, the last row of its episode within its trajectory, ``[N]``."""
    is_last = done.astype(bool)
    # Truncation ends a window like termination; they only differ in `done`.
    is_last[np.cumsum(lengths) - 1] = True
    last = np.flatnonzero(is_last)
    return np.repeat(last, np.diff(last, prepend=-1))
