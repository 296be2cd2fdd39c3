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
    logp, entropy = categorical(data.logit, data.action)
    assert entropy is not None
    return _losses(data, logp, entropy)


def a2c_error_continuous(data: Any) -> a2c_loss:
    """Losses with independent normal distributions.

    Args:
        data: ``a2c_data``: ``logit`` is a dict of ``mu`` and ``sigma`` ``[B, A]``, ``action``
            ``[B, A]``, the rest ``[B]``.
    """
    return _losses(data, *normal(data.logit, data.action))


def _losses(data: Any, logp: torch.Tensor, entropy: torch.Tensor) -> a2c_loss:
    return a2c_loss(
        -weighted_mean(logp * data.adv, data.weight),
        weighted_mean((data.return_ - data.value).pow(2), data.weight),
        weighted_mean(entropy, data.weight),
    )
