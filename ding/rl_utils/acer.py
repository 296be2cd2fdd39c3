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
    """The policy's loss with truncated importance weights, and the correction of their bias.

    Equation 9 of the paper. Only ``target_logit`` gets a gradient.

    Args:
        q_values: ``[T, B, N]``.
        q_retraces: See ``compute_q_retraces``; ``[T, B, 1]``.
        v_pred: Values of the states ``[T, B, 1]``.
        target_logit: Log-probabilities of the learned policy ``[T, B, N]``.
        actions: int64 ``[T, B]``.
        ratio: Probability of each action now over that at the time, ``[T, B, N]``.
        c_clip_ratio: Bound of the importance weights.

    Returns:
        Two losses ``[T, B, 1]``, to be minimised.
    """
    index = actions.long().unsqueeze(-1)
    with torch.no_grad():
        weight = ratio.gather(-1, index).clamp(max=c_clip_ratio)
        gain = weight * (q_retraces - v_pred)
        # (ρ - c) / ρ where that is positive, for all actions as the policy would choose them.
        beyond = (1 - c_clip_ratio / ratio).clamp(min=0)
        correction = target_logit.exp() * beyond * (q_values - v_pred)
    actor_loss = -gain * target_logit.gather(-1, index)
    return actor_loss, -(correction * target_logit).sum(-1, keepdim=True)


def acer_value_error(
    q_values: torch.Tensor, q_retraces: torch.Tensor, actions: torch.Tensor
) -> torch.Tensor:
    """Half the squared error of the values of the actions that were done, ``[T, B, 1]``.

    Args:
        q_values: ``[T, B, N]``.
        q_retraces: ``[T, B, 1]``; no gradient flows into them.
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
    """Take from gradients what leads too far away from the average policy.

    Equation 12 of the paper, with the logits as the statistics of the policy: the gradient ``z``
    nearest to the given one for which the divergence of the average policy from the learned one
    grows by no more than ``trust_region_value``, to first order.

    Args:
        actor_gradients: Of the objective, with respect to the logits, ``[*, N]`` each.
        target_logit: Logits of the learned policy ``[*, N]``.
        avg_logit: Logits of the average policy ``[*, N]``.
        trust_region_value: The bound δ.
    """
    with torch.no_grad():
        growth = target_logit.softmax(-1) - avg_logit.softmax(-1)
        # The policies may be equal: then nothing grows, and nothing is taken away.
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
    """Targets of the values of the actions that were done.

    Args:
        q_values: ``[T + 1, B, N]``.
        v_pred: Values of the states under the learned policy ``[T + 1, B, 1]``.
        rewards: ``[T, B]``.
        actions: int64 ``[T, B]``.
        weights: Of what follows each step, ``[T, B]``: 0 where the episode terminated.
        ratio: Probability of each action now over that at the time, ``[T, B, N]``.
        lambda_: Weight of longer corrections.

    Returns:
        ``[T + 1, B, 1]``; the last is ``v_pred`` of the last state.
    """
    with torch.no_grad():
        index = actions.long().unsqueeze(-1)
        discount = gamma * weights
        q_value = q_values[:-1].gather(-1, index).squeeze(-1)
        trace = lambda_ * ratio.gather(-1, index).squeeze(-1).clamp(max=1)
        # What the target of each step takes over from that of the next one.
        factor = torch.cat([discount[:-1] * trace[1:], torch.zeros_like(discount[-1:])])
        delta = rewards + discount * v_pred[1:, :, 0]
        delta[:-1] -= factor[:-1] * q_value[1:]
        return torch.cat([scan_back(delta, factor).unsqueeze(-1), v_pred[-1:]])
