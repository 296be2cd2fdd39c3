"""Losses of advantage actor-critic (Mnih et al. 2016)."""

from collections import namedtuple
from typing import Any

import torch

from ding.rl_utils._log_prob import categorical, normal
from ding.rl_utils.nstep import weighted_mean

a2c_data = namedtuple("a2c_data", ["logit", "action", "value", "adv", "return_", "weight"])
a2c_loss = namedtuple("a2c_loss", ["policy_loss", "value_loss", "entropy_loss"])


def a2c_error(data: Any) -> a2c_loss:
    """Losses with a categorical policy.

    Args:
        data: ``a2c_data``: ``logit`` ``[B, N]``, ``action`` int64 ``[B]``, the rest ``[B]``;
            ``weight`` may be ``None``.

    Returns:
        Scalars to be minimised, but ``entropy_loss`` is the entropy itself.
    """
    logit, action, *_ = data
    logp, entropy = categorical(logit, action)
    assert entropy is not None
    return _losses(data, logp, entropy)


def a2c_error_continuous(data: Any) -> a2c_loss:
    """Losses with independent normal distributions.

    Args:
        data: ``a2c_data``: ``logit`` is a dict of ``mu`` and ``sigma`` ``[B, A]``, ``action``
            ``[B, A]``, the rest ``[B]``.
    """
    mu_sigma, action, *_ = data
    return _losses(data, *normal(mu_sigma, action))


def _losses(data: Any, logp: torch.Tensor, entropy: torch.Tensor) -> a2c_loss:
    _, _, value, adv, return_, weight = data
    return a2c_loss(
        -weighted_mean(logp * adv, weight),
        weighted_mean((return_ - value).pow(2), weight),
        weighted_mean(entropy, weight),
    )
