"""V-trace: off-policy corrected actor-critic (Espeholt et al. 2018, IMPALA)."""

from collections import namedtuple
from collections.abc import Mapping, Sequence

import torch

from ding.rl_utils.log_prob_utils import log_prob, log_prob_and_entropy
from ding.rl_utils.nstep import scan_back, weighted_mean
from ding.utils.types import Tree

vtrace_data = namedtuple(
    "vtrace_data", ["target_output", "behaviour_output", "action", "value", "reward", "weight"]
)
vtrace_loss = namedtuple("vtrace_loss", ["policy_loss", "value_loss", "entropy_loss"])


def vtrace_nstep_return(
    clipped_rhos: torch.Tensor,
    clipped_cs: torch.Tensor,
    reward: torch.Tensor,
    bootstrap_values: torch.Tensor,
    gamma: float | torch.Tensor = 0.99,
    lambda_: float = 0.95,
) -> torch.Tensor:
    """V-trace value targets (equation 1).

    Args:
        clipped_rhos: Importance weights of the TD errors ``[T, B]``.
        clipped_cs: Importance weights of the trace ``[T, B]``.
        reward: ``[T, B]``.
        bootstrap_values: ``[T + 1, B]``.
        gamma: Discount factor, or one per step ``[T, B]``: 0 where the episode terminated.

    Returns:
        ``[T, B]``.
    """
    values, next_values = bootstrap_values[:-1], bootstrap_values[1:]
    deltas = clipped_rhos * (reward + gamma * next_values - values)
    return values + scan_back(deltas, gamma * lambda_ * clipped_cs)


def vtrace_advantage(
    clipped_pg_rhos: torch.Tensor,
    reward: torch.Tensor,
    return_: torch.Tensor,
    bootstrap_values: torch.Tensor,
    gamma: float | torch.Tensor,
) -> torch.Tensor:
    """Importance-weighted advantages of the policy gradient.

    Args:
        clipped_pg_rhos: Importance weights ``[T, B]``.
        reward: ``[T, B]``.
        return_: Value target of each *next* state ``[T, B]``.
        bootstrap_values: State values, ``[T, B]`` or ``[T + 1, B]``.

    Returns:
        ``[T, B]``.
    """
    return clipped_pg_rhos * (reward + gamma * return_ - bootstrap_values[: len(reward)])


def vtrace_error_discrete_action(
    data: vtrace_data,
    gamma: float | torch.Tensor = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float = 1.0,
    c_clip_ratio: float = 1.0,
    rho_pg_clip_ratio: float = 1.0,
) -> vtrace_loss:
    """Losses for a categorical or a diagonal Gaussian policy.

    Args:
        data: ``vtrace_data``: logits ``[T, B, N]`` of the learned and the behaviour policy and
            ``action`` int64 ``[T, B]``, or dicts of ``mu`` and ``sigma`` ``[T, B, A]`` and
            ``action`` ``[T, B, A]``; ``value`` ``[T + 1, B]``, ``reward`` ``[T, B]``, ``weight``
            ``[T, B]`` or ``None``.
        gamma: Discount factor, or one per step ``[T, B]``: 0 where the episode terminated.
        rho_clip_ratio: Bound of the weights that determine the fixed point.
        c_clip_ratio: Bound of the weights that determine the speed of convergence.
        rho_pg_clip_ratio: Bound of the weights of the policy gradient.

    Returns:
        Scalar losses to minimise; ``entropy_loss`` is the entropy itself.
    """
    target_output, behaviour_output, action, value, reward, weight = data
    logp, entropy = log_prob_and_entropy(target_output, action)
    with torch.no_grad():
        rhos = (logp - log_prob(behaviour_output, action)).exp()
        clips = (rho_clip_ratio, c_clip_ratio, rho_pg_clip_ratio)
        rho, c, rho_pg = (rhos.clamp(max=bound) for bound in clips)
        return_ = vtrace_nstep_return(rho, c, reward, value, gamma, lambda_)
        # r + gamma v[t + 1] estimates the action value (section 4.2); the last v is V.
        next_return = torch.cat([return_[1:], value[-1:]])
        adv = vtrace_advantage(rho_pg, reward, next_return, value, gamma)
    return vtrace_loss(
        -weighted_mean(logp * adv, weight),
        weighted_mean((value[:-1] - return_).pow(2), weight),
        weighted_mean(entropy, weight),
    )


#: The function detects the type of action from the outputs.
vtrace_error_continuous_action = vtrace_error_discrete_action


def shape_fn_vtrace_discrete_action(args: Sequence[Tree], kwargs: Mapping[str, Tree]) -> list[int]:
    """``[T, B, N]`` or ``[T, B, A]`` of a call of a V-trace error function."""
    output = (args[0] if args else kwargs["data"])[0]
    return list((output["mu"] if isinstance(output, Mapping) else output).shape)


shape_fn_vtrace_continuous_action = shape_fn_vtrace_discrete_action
