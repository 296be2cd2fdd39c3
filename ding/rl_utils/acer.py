"""Losses of actor-critic with experience replay (Wang et al. 2017), for discrete actions."""

from collections.abc import Sequence

import torch

from ding.rl_utils.nstep import scan_back


def acer_policy_error(
    q_values: torch.Tensor,
    q_retraces: torch.Tensor,
    v_pred: torch.Tensor,
    target_logit: torch.Tensor,
    actions: torch.Tensor,
    ratio: torch.Tensor,
    c_clip_ratio: float = 10.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Policy loss with truncated importance weights, and the bias correction (equation 9).

    Gradients flow only into ``target_logit``.

    Args:
        q_values: ``[T, B, N]``.
        q_retraces: Targets of ``compute_q_retraces``, ``[T, B, 1]``.
        v_pred: State values ``[T, B, 1]``.
        target_logit: Log-probabilities of the learned policy ``[T, B, N]``.
        actions: int64 ``[T, B]``.
        ratio: Importance weights (learned over behaviour policy) of all actions, ``[T, B, N]``.
        c_clip_ratio: Upper bound of the importance weights.

    Returns:
        Two losses ``[T, B, 1]`` to minimise.
    """
    index = actions.long().unsqueeze(-1)
    with torch.no_grad():
        weight = ratio.gather(-1, index).clamp(max=c_clip_ratio)
        gain = weight * (q_retraces - v_pred)
        # max(0, (ρ - c) / ρ), as an expectation over the actions of the learned policy.
        beyond = (1 - c_clip_ratio / ratio).clamp(min=0)
        correction = target_logit.exp() * beyond * (q_values - v_pred)
    actor_loss = -gain * target_logit.gather(-1, index)
    return actor_loss, -(correction * target_logit).sum(-1, keepdim=True)


def acer_value_error(
    q_values: torch.Tensor, q_retraces: torch.Tensor, actions: torch.Tensor
) -> torch.Tensor:
    """Half the squared error of the values of the executed actions, ``[T, B, 1]``.

    Args:
        q_values: ``[T, B, N]``.
        q_retraces: ``[T, B, 1]``, without gradients.
        actions: int64 ``[T, B]``.
    """
    q_value = q_values.gather(-1, actions.long().unsqueeze(-1))
    return 0.5 * (q_retraces.detach() - q_value).pow(2)


def acer_trust_region_update(
    actor_gradients: Sequence[torch.Tensor],
    target_logit: torch.Tensor,
    avg_logit: torch.Tensor,
    trust_region_value: float,
) -> list[torch.Tensor]:
    """Project gradients so that the policy stays close to the average policy (equation 12).

    With the logits as the statistics of the policy, the result is the gradient ``z`` closest to the
    given one for which the KL divergence between the average and the learned policy grows by at
    most ``trust_region_value``, to first order.

    Args:
        actor_gradients: Gradients of the objective with respect to the logits, ``[*, N]`` each.
        target_logit: Logits of the learned policy ``[*, N]``.
        avg_logit: Logits of the average policy ``[*, N]``.
        trust_region_value: The bound δ.
    """
    with torch.no_grad():
        growth = target_logit.softmax(-1) - avg_logit.softmax(-1)
        # If the policies are equal, the divergence does not grow and the gradient is unchanged.
        square = growth.pow(2).sum(-1, keepdim=True).clamp(min=torch.finfo(growth.dtype).tiny)
        updated = []
        for gradient in actor_gradients:
            excess = (growth * gradient).sum(-1, keepdim=True) - trust_region_value
            updated.append(gradient - (excess / square).clamp(min=0) * growth)
        return updated


def compute_q_retraces(
    q_values: torch.Tensor,
    v_pred: torch.Tensor,
    rewards: torch.Tensor,
    actions: torch.Tensor,
    weights: torch.Tensor,
    ratio: torch.Tensor,
    gamma: float = 0.9,
    lambda_: float = 1.0,
) -> torch.Tensor:
    """Retrace targets for the values of the executed actions.

    Args:
        q_values: ``[T + 1, B, N]``.
        v_pred: State values under the learned policy ``[T + 1, B, 1]``.
        rewards: ``[T, B]``.
        actions: int64 ``[T, B]``.
        weights: Weight of the value after each step, ``[T, B]``: 0 where the episode terminated.
        ratio: Importance weights of all actions, ``[T, B, N]``.
        lambda_: Decay of the trace.

    Returns:
        ``[T + 1, B, 1]``; the last one is ``v_pred`` of the last state.
    """
    with torch.no_grad():
        index = actions.long().unsqueeze(-1)
        discount = gamma * weights
        q_value = q_values[:-1].gather(-1, index).squeeze(-1)
        trace = lambda_ * ratio.gather(-1, index).squeeze(-1).clamp(max=1)
        # Weight of the next step's target in the target of each step.
        factor = torch.cat([discount[:-1] * trace[1:], torch.zeros_like(discount[-1:])])
        delta = rewards + discount * v_pred[1:, :, 0]
        delta[:-1] -= factor[:-1] * q_value[1:]
        return torch.cat([scan_back(delta, factor).unsqueeze(-1), v_pred[-1:]])
