"""Sums and moments over the samples of all learners that train one policy together.

Learners average their gradients. That is the gradient of one learner with the joint batch only if
whatever a loss is normalised by (a mean, a deviation, a number of samples) is that of the joint
batch, too. With one learner each function here computes the plain local value.

All learners must call these functions in the same order, also those that have no samples.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ding.utils import allreduce_data, get_rank, get_world_size

#: Added to deviations that values are divided by.
_EPSILON = 1e-8


class Moments(NamedTuple):
    """Number, mean and variance (by n, not n - 1) of the samples of all learners; scalars."""

    number: Tensor
    mean: Tensor
    variance: Tensor


def joint_sums(sums: Tensor, joint: bool) -> Tensor:
    """The sum over learners of a tensor of any shape, without gradient.

    Args:
        sums: What this learner has; it stays as it is.
        joint: Whether learners train together (``policy.multi_gpu``).
    """
    sums = sums.detach()
    if not joint or get_world_size() == 1:
        return sums
    total = allreduce_data(sums.clone(), "sum")
    assert isinstance(total, Tensor)
    return total


def joint_counts(values: Tensor, joint: bool) -> list[int]:
    """How many ``values`` each learner has."""
    counts = values.new_zeros(get_world_size() if joint else 1, dtype=torch.float64)
    counts[get_rank() if joint else 0] = len(values)
    return [int(one) for one in joint_sums(counts, joint).tolist()]


def joint_moments(values: Tensor, joint: bool) -> Moments:
    """Moments of all elements of float ``values``, any shape; float64."""
    # In double precision, as small differences of long sums are taken.
    flat = values.detach().double().flatten()
    count, total = joint_sums(torch.stack([flat.new_tensor(flat.numel()), flat.sum()]), joint)
    mean = total / count
    squares = joint_sums((flat - mean).square().sum(), joint)
    return Moments(count, mean, squares / count)


def joint_mean(values: Tensor, joint: bool) -> Tensor:
    """The mean of all elements of ``values``, a scalar of their dtype, without gradient."""
    if not joint:
        return values.detach().mean()
    count = values.new_tensor(values.numel())
    total, count = joint_sums(torch.stack([values.detach().sum(), count]), joint)
    return total / count


def normalised(values: Tensor, joint: bool) -> Tensor:
    """``values`` with mean 0 and deviation 1 (by n - 1); of a single sample 0."""
    if not joint or get_world_size() == 1:
        deviation, mean = torch.std_mean(values, correction=min(values.numel() - 1, 1))
    else:
        count, mean, variance = joint_moments(values, joint)
        deviation = (variance * count / (count - 1).clamp(min=1)).sqrt()
    return ((values - mean) / (deviation + _EPSILON)).to(values.dtype)
