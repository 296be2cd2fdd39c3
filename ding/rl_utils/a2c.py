"""Losses of advantage actor-critic (Mnih et al. 2016)."""

from collections import namedtuple

from ding.rl_utils.log_prob_utils import log_prob_and_entropy
from ding.rl_utils.nstep import weighted_mean

a2c_data = namedtuple("a2c_data", ["logit", "action", "value", "adv", "return_", "weight"])
a2c_loss = namedtuple("a2c_loss", ["policy_loss", "value_loss", "entropy_loss"])


def a2c_error(data: a2c_data) -> a2c_loss:
    """Losses for a categorical or a diagonal Gaussian policy.

    Args:
        data: ``a2c_data``: ``logit`` ``[B, N]`` and ``action`` int64 ``[B]``, or ``logit`` a dict
            of ``mu`` and ``sigma`` ``[B, A]`` and ``action`` ``[B, A]``; the rest ``[B]``;
            ``weight`` may be ``None``.

    Returns:
        Scalar losses to minimise; ``entropy_loss`` is the entropy itself.
    """
    logit, action, value, adv, return_, weight = data
    logp, entropy = log_prob_and_entropy(logit, action)
    return a2c_loss(
        -weighted_mean(logp * adv, weight),
        weighted_mean((return_ - value).pow(2), weight),
        weighted_mean(entropy, weight),
    )


#: ``a2c_error`` detects the type of action from ``logit``.
a2c_error_continuous = a2c_error
