"""Temporal-difference errors of state and action values.

A data tuple's ``weight`` may be ``None`` (all samples have weight 1). No gradients flow into
targets. ``done`` may be bool or float. Functions that return a pair return the loss (the mean of
weight times error) and the errors ``[B]``, which can be used as priorities.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from ding.rl_utils.dist_td import (
    dist_1step_td_data,
    dist_1step_td_error,
    dist_nstep_td_data,
    dist_nstep_td_error,
    qrdqn_nstep_td_data,
    qrdqn_nstep_td_error,
    shape_fn_dntd,
    shape_fn_qrdqn,
)
from ding.rl_utils.nstep import nstep_return, nstep_return_data, of_action, scan_back, weighted_mean
from ding.rl_utils.value_rescale import value_inv_transform, value_transform
from ding.utils.types import Tree

__all__ = [
    "dist_1step_td_data",
    "dist_1step_td_error",
    "dist_nstep_td_data",
    "dist_nstep_td_error",
    "generalized_lambda_returns",
    "nstep_return",
    "nstep_return_data",
    "q_1step_td_data",
    "q_1step_td_error",
    "q_nstep_sql_td_error",
    "q_nstep_td_data",
    "q_nstep_td_error",
    "q_nstep_td_error_with_rescale",
    "q_v_1step_td_data",
    "q_v_1step_td_error",
    "qrdqn_nstep_td_data",
    "qrdqn_nstep_td_error",
    "shape_fn_dntd",
    "shape_fn_qntd",
    "shape_fn_qntd_rescale",
    "shape_fn_qrdqn",
    "shape_fn_td_lambda",
    "td_lambda_data",
    "td_lambda_error",
    "v_1step_td_data",
    "v_1step_td_error",
    "v_nstep_td_data",
    "v_nstep_td_error",
]

q_1step_td_data = namedtuple(
    "q_1step_td_data", ["q", "next_q", "act", "next_act", "reward", "done", "weight"]
)
q_v_1step_td_data = namedtuple("q_v_1step_td_data", ["q", "v", "act", "reward", "done", "weight"])
v_1step_td_data = namedtuple("v_1step_td_data", ["v", "next_v", "reward", "done", "weight"])
v_nstep_td_data = namedtuple(
    "v_nstep_td_data", ["v", "next_n_v", "reward", "done", "weight", "value_gamma"]
)
q_nstep_td_data = namedtuple(
    "q_nstep_td_data",
    ["q", "next_n_q", "action", "next_n_action", "reward", "done", "weight"],
)
td_lambda_data = namedtuple("td_lambda_data", ["value", "reward", "weight"])

Loss = tuple[torch.Tensor, torch.Tensor]


class _SquaredError(nn.MSELoss):
    """``nn.MSELoss(reduction="none")`` for equal shapes: torch's own module first broadcasts, which
    adds two nodes to the graph and takes as long as the error."""

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if input.shape != target.shape:
            return super().forward(input, target)
        return (input - target).square()


_SQUARED_ERROR = _SquaredError(reduction="none")


def q_1step_td_error(
    data: q_1step_td_data, gamma: float, criterion: nn.Module = _SQUARED_ERROR
) -> torch.Tensor:
    """Loss of one-step Q-learning; returns only the weighted mean.

    Args:
        data: ``q_1step_td_data``: ``q`` and ``next_q`` ``[B, N]``, actions int64 ``[B]``,
            ``reward`` and ``done`` ``[B]``.
    """
    q, next_q, act, next_act, reward, done, weight = data
    return_ = nstep_return_data(reward.unsqueeze(0), of_action(next_q, next_act), done)
    return _loss(criterion, of_action(q, act), nstep_return(return_, gamma, 1), weight)[0]


def q_v_1step_td_error(
    data: q_v_1step_td_data, gamma: float, criterion: nn.Module = _SQUARED_ERROR
) -> Loss:
    """One-step TD error with the next state's value ``v`` ``[B]`` in ``q_v_1step_td_data``."""
    q, v, act, reward, done, weight = data
    target = nstep_return(nstep_return_data(reward.unsqueeze(0), v, done), gamma, 1)
    return _loss(criterion, of_action(q, act), target, weight)


def v_1step_td_error(
    data: v_1step_td_data, gamma: float, criterion: nn.Module = _SQUARED_ERROR
) -> Loss:
    """One-step TD error of a state value.

    Args:
        data: ``v_1step_td_data``, each ``[B]`` (values ``[B, A]`` for A agents); ``done`` may
            be ``None``.
    """
    v, next_v, reward, done, weight = data
    target = nstep_return(nstep_return_data(reward.unsqueeze(0), next_v, done), gamma, 1)
    return _loss(criterion, v, target, weight)


def v_nstep_td_error(
    data: v_nstep_td_data,
    gamma: float,
    nstep: int = 1,
    criterion: nn.Module = _SQUARED_ERROR,
) -> Loss:
    """N-step TD error of a state value.

    Args:
        data: ``v_nstep_td_data``: ``reward`` ``[nstep, B]``, the rest ``[B]``; ``value_gamma`` is
            the discount of ``next_n_v``; ``None`` for ``gamma ** nstep``.
    """
    v, next_n_v, reward, done, weight, value_gamma = data
    return_ = nstep_return_data(reward, next_n_v, done)
    return _loss(criterion, v, nstep_return(return_, gamma, nstep, value_gamma), weight)


def q_nstep_td_error(
    data: q_nstep_td_data,
    gamma: float | list[float],
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: torch.Tensor | None = None,
    criterion: nn.Module = _SQUARED_ERROR,
) -> Loss:
    """Loss of n-step Q-learning.

    Args:
        data: ``q_nstep_td_data``: ``q`` and ``next_n_q`` ``[B, N]``, actions int64 ``[B]``,
            ``reward`` ``[nstep, B]``, ``done`` ``[B]``. For A agents, ``[B, A, N]`` and
            ``[B, A]``; the reward is shared by the team.
        gamma: Discount factor, or a list with one per sample.
        cum_reward: Whether the reward is ``[B]``, already discounted and summed.
        value_gamma: Discount of the next value ``[B]``; by default ``gamma ** nstep``.
        criterion: Loss function without reduction.

    Returns:
        The loss, a mean weighted by ``data.weight``, and the error of each sample, ``[B]``.

    Example:

        >>> import torch
        >>> from ding.rl_utils import q_nstep_td_data, q_nstep_td_error
        >>> q, action = torch.zeros(2, 3), torch.tensor([0, 1])
        >>> data = q_nstep_td_data(q, q, action, action, torch.ones(1, 2), torch.zeros(2), None)
        >>> loss, error_per_sample = q_nstep_td_error(data, gamma=0.99)
        >>> loss, error_per_sample
        (tensor(1.), tensor([1., 1.]))
    """
    q, next_n_q, action, next_n_action, reward, done, weight = data
    next_value = of_action(next_n_q, next_n_action)
    target = _target(reward, next_value, done, gamma, nstep, cum_reward, value_gamma)
    return _loss(criterion, of_action(q, action), target, weight)


def q_nstep_td_error_with_rescale(
    data: q_nstep_td_data,
    gamma: float | list[float],
    nstep: int = 1,
    value_gamma: torch.Tensor | None = None,
    criterion: nn.Module = _SQUARED_ERROR,
    trans_fn: Callable[[torch.Tensor], torch.Tensor] = value_transform,
    inv_trans_fn: Callable[[torch.Tensor], torch.Tensor] = value_inv_transform,
) -> Loss:
    """`q_nstep_td_error` for a network that predicts rescaled values (Pohlen et al. 2018).

    The target is ``trans_fn(reward + gamma ** nstep * inv_trans_fn(next_q))``.
    """
    q, next_n_q, action, next_n_action, reward, done, weight = data
    next_value = inv_trans_fn(of_action(next_n_q, next_n_action))
    target = trans_fn(_target(reward, next_value, done, gamma, nstep, False, value_gamma))
    return _loss(criterion, of_action(q, action), target, weight)


def q_nstep_sql_td_error(
    data: q_nstep_td_data,
    gamma: float,
    alpha: float,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: torch.Tensor | None = None,
    criterion: nn.Module = _SQUARED_ERROR,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loss of n-step soft Q-learning (Haarnoja et al. 2017).

    Args:
        data: ``q_nstep_td_data``; ``next_n_action`` is not used.
        alpha: Temperature: the next value is ``alpha * logsumexp(next_n_q / alpha)``.

    Returns:
        The loss, the errors ``[B]`` and the next values ``[B]``.
    """
    q, next_n_q, action, _, reward, done, weight = data
    next_value = alpha * torch.logsumexp(next_n_q / alpha, dim=-1)
    target = _target(reward, next_value, done, gamma, nstep, cum_reward, value_gamma)
    loss, error = _loss(criterion, of_action(q, action), target, weight)
    return loss, error, next_value.detach()


def td_lambda_error(data: td_lambda_data, gamma: float = 0.9, lambda_: float = 0.8) -> torch.Tensor:
    """Half the mean squared error between values and their lambda-returns.

    Args:
        data: ``td_lambda_data``: ``value`` ``[T + 1, B]``, ``reward`` and ``weight`` ``[T, B]``.
    """
    value, reward, weight = data
    with torch.no_grad():
        return_ = generalized_lambda_returns(value, reward, gamma, lambda_)
    return 0.5 * weighted_mean((return_ - value[:-1]).pow(2), weight)


def generalized_lambda_returns(
    bootstrap_values: torch.Tensor,
    rewards: torch.Tensor,
    gammas: float | torch.Tensor,
    lambda_: float | torch.Tensor,
    done: torch.Tensor | None = None,
) -> torch.Tensor:
    """``G[t] = r[t] + gamma * ((1 - lambda) * V[t + 1] + lambda * G[t + 1])``, ``G[T] = V[T]``.

    Args:
        bootstrap_values: V, ``[T + 1, B]``.
        rewards: ``[T, B]``.
        gammas: Discount factor, a number or ``[T, B]``.
        lambda_: A number or ``[T, B]``.
        done: ``[T, B]``; the discount of these steps is zero.

    Returns:
        ``[T, B]``.
    """
    next_values = bootstrap_values[1:]
    gamma = torch.as_tensor(gammas, dtype=rewards.dtype, device=rewards.device).expand_as(rewards)
    if done is not None:
        gamma = gamma * (1 - done.to(rewards.dtype))
    factor = gamma * lambda_
    delta = rewards + (gamma - factor) * next_values
    # The scan assumes a return of zero after the last step; add the last value instead.
    last = delta[-1:] + factor[-1:] * next_values[-1:]
    return scan_back(torch.cat([delta[:-1], last]), factor)


#: ``[nstep, B, N]`` of a call of `q_nstep_td_error`, with or without rescaled values.
shape_fn_qntd = shape_fn_qntd_rescale = shape_fn_dntd


def shape_fn_td_lambda(args: Sequence[Tree], kwargs: Mapping[str, Tree]) -> list[int]:
    """``[T, B]`` of a call of `td_lambda_error`."""
    return list((args[0] if args else kwargs["data"])[1].shape)


def _target(
    reward: torch.Tensor,
    next_value: torch.Tensor,
    done: torch.Tensor,
    gamma: float | list[float],
    nstep: int,
    cum_reward: bool,
    value_gamma: torch.Tensor | None,
) -> torch.Tensor:
    if not cum_reward:
        return_ = nstep_return_data(reward, next_value, done)
        return nstep_return(return_, gamma, nstep, value_gamma)
    if value_gamma is None:
        value_gamma = torch.as_tensor(gamma, device=reward.device) ** nstep
    summed = nstep_return_data(reward.unsqueeze(0), next_value, done)
    return nstep_return(summed, gamma, 1, value_gamma)


def _loss(
    criterion: nn.Module, value: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None
) -> Loss:
    error = criterion(value, target.detach())
    return weighted_mean(error, weight), error
