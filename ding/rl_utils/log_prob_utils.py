"""Log-probabilities, entropies and KL divergences from network outputs, in few operations.

For small networks the number of calls dominates the time, and ``torch.distributions`` makes many,
some of them to check its arguments.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ding.rl_utils.nstep import of_action

#: ``(logits [*, T, V], index int64 [*, T]) -> log-probabilities [*, T]``.
LogProbFunction = Callable[[Tensor, Tensor], Tensor]


def efficient_method(logits: Tensor, index: Tensor) -> Tensor:
    """Log-probabilities ``[*, T]`` of ``index``, without computing all log-probabilities.

    Args:
        logits: ``[*, T, V]``.
        index: int64 ``[*, T]`` in ``[0, V)``.
    """
    chosen = logits.gather(-1, index.unsqueeze(-1)).squeeze(-1)
    return chosen - torch.logsumexp(logits, -1)


#: Aliases for old scripts, in which these variants differed in memory use.
naive_method = less_efficient_method = efficient_method


#: Minimum log-probability; practically impossible, even if multiplied by a temperature.
_LEAST = -1e8
_LOG_SQRT_TAU = 0.5 * math.log(2 * math.pi)

#: Parameters of an action distribution: logits ``[*, N]`` of one categorical; a sequence of K such
#: tensors for K independent ones; or ``mu`` and ``sigma`` ``[B, A]`` of a diagonal Gaussian.
Params = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


def log_prob(params: Params, action: Tensor) -> Tensor:
    """Log-probability ``[*]`` of actions.

    Args:
        action: Classes ``[*]``, or ``[*, K]`` for K choices; or real numbers ``[B, A]``, or ``[B]``
            for A = 1. The log-probability is summed over choices or numbers.
    """
    if isinstance(params, Mapping):
        mu, sigma = params["mu"], params["sigma"]
        density = -0.5 * ((action - mu) / sigma).pow(2) - sigma.log() - _LOG_SQRT_TAU
        return _over_numbers(density)
    if not isinstance(params, Tensor):
        return torch.stack([log_prob(part, action[..., k]) for k, part in enumerate(params)]).sum(0)
    return of_action(params.log_softmax(-1), action.long())


def log_prob_and_entropy(params: Params, action: Tensor) -> tuple[Tensor, Tensor]:
    """`log_prob`, and the entropy ``[*]``."""
    if isinstance(params, Mapping):
        entropy = params["sigma"].log() + (0.5 + _LOG_SQRT_TAU)
        # All rows may share one sigma.
        return log_prob(params, action), _over_numbers(entropy.expand_as(params["mu"]))
    if not isinstance(params, Tensor):
        parts = [log_prob_and_entropy(part, action[..., k]) for k, part in enumerate(params)]
        taken, entropies = (torch.stack(column).sum(0) for column in zip(*parts))
        return taken, entropies
    logp = log_probabilities(params)
    return of_action(logp, action.long()), -(logp.exp() * logp).sum(-1)


def log_probabilities(logit: Tensor) -> Tensor:
    """Log-probabilities ``[*, N]`` of all classes. For a masked class (logit -inf) they are finite,
    so that its product with the probability is 0, not NaN."""
    return logit.log_softmax(-1).clamp(min=_LEAST)


def kl(old: Params, new: Params) -> Tensor:
    """KL(old || new) ``[*]`` between two distributions, summed over choices or numbers."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        variance = new["sigma"].pow(2)
        spread = (old["sigma"].pow(2) + (old["mu"] - new["mu"]).pow(2)) / (2 * variance)
        return (new["sigma"].log() - old["sigma"].log() + spread - 0.5).sum(-1)
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        logp = log_probabilities(old)
        return (logp.exp() * (logp - log_probabilities(new))).sum(-1)
    return torch.stack([kl(*pair) for pair in zip(old, new)]).sum(0)  # type: ignore[arg-type]


def split_like(joined: Tensor, params: Params) -> Params:
    """Split the concatenated logits of all choices, as stored in samples, like ``params``."""
    if isinstance(params, list):
        return joined.split([part.shape[-1] for part in params], dim=-1)
    return joined


def _over_numbers(values: Tensor) -> Tensor:
    return values.sum(-1) if values.dim() > 1 else values
