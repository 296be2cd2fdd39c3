"""Log-probabilities and entropies in few operations.

Small networks spend their time on calls, and ``torch.distributions`` makes many, some of them to
check its arguments.
"""

import math
from collections.abc import Mapping, Sequence

import torch

_LOG_SQRT_TAU = 0.5 * math.log(2 * math.pi)


#: Logits ``[*, N]`` of one choice, or one tensor for each of K independent choices.
Logits = torch.Tensor | Sequence[torch.Tensor]


def categorical_log_prob(logit: Logits, action: torch.Tensor) -> torch.Tensor:
    """Log-probability of classes ``[*]`` under logits ``[*, N]``.

    Of K independent choices (a sequence of logits, ``action`` ``[*, K]``) it is their sum.
    """
    if not isinstance(logit, torch.Tensor):
        parts = [categorical_log_prob(part, action[..., k]) for k, part in enumerate(logit)]
        return torch.stack(parts).sum(0)
    return logit.log_softmax(-1).gather(-1, action.long().unsqueeze(-1)).squeeze(-1)


def categorical(
    logit: Logits, action: torch.Tensor, need_entropy: bool = True
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """`categorical_log_prob`, and the entropy ``[*]``."""
    if not isinstance(logit, torch.Tensor):
        parts = [categorical(part, action[..., k], need_entropy) for k, part in enumerate(logit)]
        entropies = [entropy for _, entropy in parts if entropy is not None]
        return (
            torch.stack([taken for taken, _ in parts]).sum(0),
            torch.stack(entropies).sum(0) if need_entropy else None,
        )
    logp = logit.log_softmax(-1)
    taken = logp.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)
    if not need_entropy:
        return taken, None
    # A masked class has logit -inf or the like: its share of the entropy is 0, not NaN.
    finite = logp.clamp(min=torch.finfo(logp.dtype).min)
    return taken, -(finite.exp() * finite).sum(-1)


def normal_log_prob(mu_sigma: Mapping[str, torch.Tensor], action: torch.Tensor) -> torch.Tensor:
    """Log-density of ``[B, A]`` actions, summed over A. One-dimensional actions have A = 1."""
    mu, sigma = mu_sigma["mu"], mu_sigma["sigma"]
    density = -0.5 * ((action - mu) / sigma).pow(2) - sigma.log() - _LOG_SQRT_TAU
    return density.sum(-1) if density.dim() > 1 else density


def normal(
    mu_sigma: Mapping[str, torch.Tensor], action: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """``normal_log_prob`` and the entropy, summed over A."""
    sigma = mu_sigma["sigma"]
    entropy = sigma.log() + (0.5 + _LOG_SQRT_TAU)
    if entropy.shape != mu_sigma["mu"].shape:  # one sigma for all
        entropy = entropy.expand_as(mu_sigma["mu"])
    return (
        normal_log_prob(mu_sigma, action),
        entropy.sum(-1) if entropy.dim() > 1 else entropy,
    )


def categorical_kl(old: Logits, new: Logits) -> torch.Tensor:
    """KL(old || new) ``[*]`` of categorical distributions; of K independent choices their sum."""
    if not isinstance(new, torch.Tensor):
        return torch.stack([categorical_kl(*pair) for pair in zip(old, new)]).sum(0)
    assert isinstance(old, torch.Tensor)
    logp = old.log_softmax(-1)
    return (logp.exp() * (logp - new.log_softmax(-1))).sum(-1)


def normal_kl(old: Mapping[str, torch.Tensor], new: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """KL(old || new) of independent normal distributions ``[B, A]``, summed over A."""
    variance = new["sigma"].pow(2)
    spread = (old["sigma"].pow(2) + (old["mu"] - new["mu"]).pow(2)) / (2 * variance)
    return (new["sigma"].log() - old["sigma"].log() + spread - 0.5).sum(-1)
