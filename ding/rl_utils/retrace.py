"""Retrace: off-policy corrected action values (Munos et al. 2016)."""

import torch

from ding.rl_utils._scan import scan_back


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
        gamma: Discount factor.
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
