"""Temporal-difference errors of distributional value functions."""

from collections import namedtuple
from collections.abc import Mapping, Sequence

import torch
from torch.nn import functional as F

from ding.rl_utils.nstep import nstep_return, nstep_return_data, weighted_mean
from ding.utils.types import Tree

dist_1step_td_data = namedtuple(
    "dist_1step_td_data", ["dist", "next_dist", "act", "next_act", "reward", "done", "weight"]
)
dist_nstep_td_data = namedtuple(
    "dist_nstep_td_data",
    ["dist", "next_n_dist", "act", "next_n_act", "reward", "done", "weight"],
)
qrdqn_nstep_td_data = namedtuple(
    "qrdqn_nstep_td_data",
    ["q", "next_n_q", "action", "next_n_action", "reward", "done", "tau", "weight"],
)


def dist_1step_td_error(
    data: dist_1step_td_data, gamma: float, v_min: float, v_max: float, n_atom: int
) -> torch.Tensor:
    """One-step `dist_nstep_td_error` (Bellemare et al. 2017, algorithm 1).

    Args:
        data: `dist_1step_td_data`: ``dist`` and ``next_dist`` ``[B, N, n_atom]``, actions ``[B]``
            int64, ``reward``, ``done`` and ``weight`` (or None) ``[B]``.
        v_min: Value of the first atom.
        v_max: Value of the last atom.
        n_atom: Number of atoms.

    Returns:
        The loss, a scalar.
    """
    dist, next_dist, act, next_act, reward, done, weight = data
    steps = dist_nstep_td_data(dist, next_dist, act, next_act, reward.unsqueeze(0), done, weight)
    return dist_nstep_td_error(steps, gamma, v_min, v_max, n_atom)[0]


def dist_nstep_td_error(
    data: dist_nstep_td_data,
    gamma: float,
    v_min: float,
    v_max: float,
    n_atom: int,
    nstep: int = 1,
    value_gamma: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of categorical value distributions (Bellemare et al. 2017, C51).

    Args:
        data: ``dist_nstep_td_data``: distributions ``[B, N, n_atom]``, actions int64 ``[B]``,
            ``reward`` ``[nstep, B]``, ``done`` ``[B]``, ``weight`` ``[B]`` or ``None``.
        v_min: Value of the first atom.
        v_max: Value of the last atom.
        n_atom: Number of atoms.
        value_gamma: Discount of the next value ``[B]``; by default ``gamma ** nstep``.

    Returns:
        Loss and error per sample ``[B]``.
    """
    dist, next_n_dist, act, next_n_act, reward, done, weight = data
    with torch.no_grad():
        support = torch.linspace(v_min, v_max, n_atom, device=dist.device)
        moved = nstep_return(
            nstep_return_data(reward, support.expand(len(act), n_atom), done),
            gamma,
            nstep,
            value_gamma,
        )
        target = project(_of_action(next_n_dist, next_n_act), moved, v_min, v_max)
    log_p = _of_action(dist, act).clamp(min=torch.finfo(dist.dtype).tiny).log()
    error = -(target * log_p).sum(-1)
    return weighted_mean(error, weight), error


def qrdqn_nstep_td_error(
    data: qrdqn_nstep_td_data,
    gamma: float,
    nstep: int = 1,
    value_gamma: torch.Tensor | None = None,
    kappa: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantile Huber loss (Dabney et al. 2018, QR-DQN).

    Args:
        data: ``qrdqn_nstep_td_data``: quantiles ``[B, N, Q]``, actions int64 ``[B]``,
            ``reward`` ``[nstep, B]``, ``done`` ``[B]``, ``tau`` the quantile fractions of
            ``q``, broadcastable to ``[B, Q, 1]``, ``weight`` ``[B]`` or ``None``.
        value_gamma: Discount of the next value ``[B]``; by default ``gamma ** nstep``.
        kappa: The loss is quadratic up to this error.

    Returns:
        Loss and error per sample ``[B]``: the sum over predicted quantiles of the mean over
        target quantiles.
    """
    q, next_n_q, action, next_n_action, reward, done, tau, weight = data
    with torch.no_grad():
        next_quantiles = _of_action(next_n_q, next_n_action)
        target = nstep_return(
            nstep_return_data(reward, next_quantiles, done), gamma, nstep, value_gamma
        )
    predicted, wanted = torch.broadcast_tensors(
        _of_action(q, action).unsqueeze(2), target.unsqueeze(1)
    )  # [B, Q predicted, Q target]
    huber = F.huber_loss(predicted, wanted, reduction="none", delta=kappa) / kappa
    below = (wanted < predicted).to(q.dtype)
    error = ((tau - below).abs() * huber).mean(2).sum(1)
    return weighted_mean(error, weight), error


def shape_fn_dntd(args: Sequence[Tree], kwargs: Mapping[str, Tree]) -> list[int]:
    """``[nstep, B, N, n_atom]`` of a call of `dist_nstep_td_error` or a similar function."""
    dist, _, _, _, reward, *_ = args[0] if args else kwargs["data"]
    return [len(reward), *dist.shape]


shape_fn_qrdqn = shape_fn_dntd


def project(prob: torch.Tensor, atoms: torch.Tensor, v_min: float, v_max: float) -> torch.Tensor:
    """Distribute the mass of each shifted atom to the two neighbouring fixed atoms.

    Args:
        prob: Probability mass of the shifted atoms, ``[B, n_atom]``.
        atoms: Values of the shifted atoms, ``[B, n_atom]``; clipped to ``[v_min, v_max]``.
        v_min: Value of the first fixed atom.
        v_max: Value of the last fixed atom.

    Returns:
        ``[B, n_atom]``.
    """
    n_atom = prob.shape[1]
    position = (atoms.clamp(v_min, v_max) - v_min) * ((n_atom - 1) / (v_max - v_min))
    # Rounding may move the last atom slightly beyond the end.
    position = position.clamp(0, n_atom - 1)
    lower = position.floor().clamp(max=max(n_atom - 2, 0))
    to_upper = prob * (position - lower)
    index = lower.long()
    result = torch.zeros_like(prob).scatter_add_(1, index, prob - to_upper)
    return result.scatter_add_(1, (index + 1).clamp(max=n_atom - 1), to_upper)


def _of_action(values: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """``[B, N, K]`` and ``[B]`` to ``[B, K]``."""
    return values[torch.arange(len(action), device=action.device), action]
