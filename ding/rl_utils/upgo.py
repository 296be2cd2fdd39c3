"""Upgoing policy updates (Vinyals et al. 2019, "Grandmaster level in StarCraft II", AlphaStar)."""

import torch
from torch import Tensor
from torch.nn import functional as F


def tb_cross_entropy(logit: Tensor, label: Tensor, mask: Tensor | None = None) -> Tensor:
    """Cross-entropy ``[T, B]`` of labels, averaged over further dimensions.

    Args:
        logit: ``[T, B, N]`` or ``[T, B, K, N]``.
        label: int64 ``[T, B]`` or ``[T, B, K]``.
        mask: ``[T, B, K]``, 0 for labels that are ignored.
    """
    entropy = F.cross_entropy(logit.flatten(0, -2), label.flatten(), reduction="none")
    entropy = entropy.view(label.shape)
    if mask is not None:
        entropy = entropy * mask
    return entropy if entropy.dim() == 2 else entropy.flatten(2).mean(-1)


def upgo_returns(rewards: Tensor, bootstrap_values: Tensor) -> Tensor:
    """Returns ``[T, B]`` along the trajectory as long as it is better than expected.

    ``G_t = r_t + G_{t+1}`` if ``r_{t+1} + V_{t+2} >= V_{t+1}``, else ``r_t + V_{t+1}``.

    Args:
        rewards: ``[T, B]``.
        bootstrap_values: V, ``[T + 1, B]``.
    """
    following = bootstrap_values[1:]
    goes_up = rewards + following >= bootstrap_values[:-1]
    returns, value = [], following[-1]
    for step in range(len(rewards) - 1, -1, -1):
        value = rewards[step] + value
        returns.append(value)
        value = torch.where(goes_up[step], value, bootstrap_values[step])
    return torch.stack(returns[::-1])


def upgo_loss(
    target_output: Tensor,
    rhos: Tensor,
    action: Tensor,
    rewards: Tensor,
    bootstrap_values: Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """Scalar policy gradient loss with the advantages ``rho (G - V)``.

    Args:
        target_output: Logits of the learned policy, ``[T, B, N]`` (``[T, B, K, N]``).
        rhos: Clipped importance ratios, ``[T, B]``.
        action: int64 ``[T, B]`` (``[T, B, K]``).
        rewards: ``[T, B]``.
        bootstrap_values: ``[T + 1, B]``.
        mask: See `tb_cross_entropy`.
    """
    with torch.no_grad():
        advantage = rhos * (upgo_returns(rewards, bootstrap_values) - bootstrap_values[:-1])
    return (advantage * tb_cross_entropy(target_output, action, mask)).mean()
