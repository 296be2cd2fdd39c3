"""Losses of proximal policy optimisation (Schulman et al. 2017).

No gradients flow into the old policy's outputs.
"""

from collections import namedtuple
from collections.abc import Mapping, Sequence

import torch

from ding.rl_utils.log_prob_utils import log_prob, log_prob_and_entropy
from ding.rl_utils.nstep import weighted_mean
from ding.utils.types import Tree

ppo_data = namedtuple(
    "ppo_data",
    [
        "logit_new",
        "logit_old",
        "action",
        "value_new",
        "value_old",
        "adv",
        "return_",
        "weight",
        "logit_pretrained",
    ],
    defaults=(None,),
)
ppo_data_continuous = namedtuple(  # type: ignore[misc]
    "ppo_data_continuous",
    ["mu_sigma_new", "mu_sigma_old", *ppo_data._fields[2:]],
    defaults=(None,),
)
ppo_policy_data = namedtuple(
    "ppo_policy_data",
    ["logit_new", "logit_old", "action", "adv", "weight", "logit_pretrained"],
    defaults=(None,),
)
ppo_policy_data_continuous = namedtuple(
    "ppo_policy_data_continuous",
    ["mu_sigma_new", "mu_sigma_old", "action", "adv", "weight", "logit_pretrained"],
    defaults=(None,),
)
ppo_value_data = namedtuple("ppo_value_data", ["value_new", "value_old", "return_", "weight"])
ppo_loss = namedtuple("ppo_loss", ["policy_loss", "value_loss", "entropy_loss", "kl_div"])
ppo_policy_loss = namedtuple("ppo_policy_loss", ["policy_loss", "entropy_loss", "kl_div"])
ppo_info = namedtuple("ppo_info", ["approx_kl", "clipfrac"])


def shape_fn_ppo(args: Sequence[Tree], kwargs: Mapping[str, Tree]) -> list[int]:
    """``[B, N]`` of a call of ``ppo_error``, or of ``logit_new``."""
    given = args[0] if args else kwargs.get("data", kwargs.get("logit_new"))
    return list((given if isinstance(given, torch.Tensor) else given[0]).shape)


def calculate_kl_div(log_ratio: torch.Tensor, kl_type: str) -> torch.Tensor:
    """Estimate KL(p || q) from samples of p.

    Args:
        log_ratio: ``log p - log q`` of the samples, any shape.
        kl_type: ``k1``: the mean log-ratio, unbiased, may be negative. ``k2``: half the mean square
            of the log-ratio, lower variance. ``k3``: ``1/r - 1 + log r``, unbiased, never negative.

    Returns:
        A scalar.
    """
    if kl_type == "k1":
        return log_ratio.mean()
    if kl_type == "k2":
        return (log_ratio**2).mean() / 2
    if kl_type == "k3":
        return (torch.expm1(-log_ratio) + log_ratio).mean()
    raise ValueError(f"got kl_type {kl_type!r}: expected 'k1', 'k2' or 'k3'")


def ppo_error(
    data: ppo_data,
    clip_ratio: float = 0.2,
    use_value_clip: bool = True,
    dual_clip: float | None = None,
    kl_type: str = "k1",
) -> tuple[ppo_loss, ppo_info]:
    """Policy, value and entropy losses for a categorical or a diagonal Gaussian policy.

    Args:
        data: ``ppo_data``: logits ``[B, N]``, ``action`` int64 ``[B]``, the rest ``[B]``;
            ``weight`` and ``logit_pretrained`` may be ``None``. For A agents, logits are
            ``[B, A, N]`` and ``action`` ``[B, A]``. For actions of K independent choices, each
            ``logit_*`` is a list of K tensors ``[B, N_k]`` and ``action`` is ``[B, K]``. Or
            ``ppo_data_continuous``: ``mu_sigma_*`` are dicts of ``mu`` and ``sigma`` ``[B, A]``,
            ``action`` is ``[B, A]``.
        clip_ratio: Clipping range of the probability ratio around 1.
        use_value_clip: Whether to clip the change of the value as well.
        dual_clip: Lower bound, times ``adv``, of the objective if ``adv < 0`` (Ye et al. 2020).
        kl_type: Estimator of the KL divergence from the pretrained policy.

    Returns:
        Losses to minimise (``entropy_loss`` is the entropy itself); approximate KL divergence and
        fraction of clipped samples, as floats.
    """
    data = ppo_data(*data)
    policy_data = ppo_policy_data(
        data.logit_new, data.logit_old, data.action, data.adv, data.weight, data.logit_pretrained
    )
    policy, info = ppo_policy_error(policy_data, clip_ratio, dual_clip, kl_type=kl_type)
    value_data = ppo_value_data(data.value_new, data.value_old, data.return_, data.weight)
    value_loss = ppo_value_error(value_data, clip_ratio, use_value_clip)
    return ppo_loss(policy.policy_loss, value_loss, policy.entropy_loss, policy.kl_div), info


#: ``ppo_error`` detects the type of action from the logits.
ppo_error_continuous = ppo_error


def ppo_policy_error(
    data: ppo_policy_data,
    clip_ratio: float = 0.2,
    dual_clip: float | None = None,
    entropy_bonus: bool = True,
    kl_type: str = "k1",
) -> tuple[ppo_policy_loss, ppo_info]:
    """The policy and entropy losses of ``ppo_error``.

    Args:
        data: ``ppo_policy_data`` or ``ppo_policy_data_continuous``, shapes as in ``ppo_error``.
        entropy_bonus: Whether to compute the entropy; zero otherwise.
    """
    if dual_clip is not None and dual_clip <= 1:
        raise ValueError(f"got dual_clip={dual_clip}: it must be above 1")
    new, old, action, adv, weight, pretrained = ppo_policy_data(*data)
    if entropy_bonus:
        logp_new, entropy = log_prob_and_entropy(new, action)
    else:
        logp_new, entropy = log_prob(new, action), None
    with torch.no_grad():
        logp_old = log_prob(old, action)
    log_ratio = logp_new - logp_old
    ratio = _per_sample(log_ratio.exp(), adv)
    gain = torch.min(ratio * adv, ratio.clamp(1 - clip_ratio, 1 + clip_ratio) * adv)
    if dual_clip is not None:
        # With a negative advantage, the minimum has no lower bound as the ratio grows.
        gain = torch.where(adv < 0, torch.max(gain, dual_clip * adv), gain)
    zero = gain.new_zeros(())
    entropy_loss = zero if entropy is None else weighted_mean(_per_sample(entropy, adv), weight)
    kl_div = zero
    if pretrained is not None:
        with torch.no_grad():
            logp_pretrained = log_prob(pretrained, action)
        kl_div = calculate_kl_div(logp_new - logp_pretrained, kl_type)
    with torch.no_grad():
        approx_kl = -log_ratio.mean().item()
        clipfrac = ((ratio - 1).abs() > clip_ratio).float().mean().item()
    return (
        ppo_policy_loss(-weighted_mean(gain, weight), entropy_loss, kl_div),
        ppo_info(approx_kl, clipfrac),
    )


def ppo_policy_error_continuous(
    data: ppo_policy_data,
    clip_ratio: float = 0.2,
    dual_clip: float | None = None,
    kl_type: str = "k1",
) -> tuple[ppo_policy_loss, ppo_info]:
    """`ppo_policy_error` for a Gaussian policy, with its entropy; arguments as for `ppo_error`."""
    return ppo_policy_error(data, clip_ratio, dual_clip, kl_type=kl_type)


def ppo_value_error(
    data: ppo_value_data, clip_ratio: float = 0.2, use_value_clip: bool = True
) -> torch.Tensor:
    """Half the mean squared value error.

    Args:
        data: ``ppo_value_data``, each ``[B]``; ``weight`` may be ``None``.
        clip_ratio: Clipping range of the value's change with ``use_value_clip``.
    """
    value_new, value_old, return_, weight = data
    error = (return_ - value_new).pow(2)
    if use_value_clip:
        clipped = value_old + (value_new - value_old).clamp(-clip_ratio, clip_ratio)
        # The larger error, so that a value that has moved away from its target has a gradient.
        error = torch.max(error, (return_ - clipped).pow(2))
    return 0.5 * weighted_mean(error, weight)


def _per_sample(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Average over agents if the advantage is shared by the team."""
    return x.mean(dim=1) if x.dim() > like.dim() else x
