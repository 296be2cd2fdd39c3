"""Sums and moments over the samples of all learners that train one policy together.

Learners average their gradients. The average equals the gradient of one learner with the joint
batch only if all normalisers of a loss (a mean, a deviation, a number of samples) are also computed
over the joint batch. With one learner, each function here computes the local value.

All learners must call these functions in the same order, even if they have no samples.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ding.utils import allreduce_data, get_rank, get_world_size

#: Added to standard deviations before a division.
_EPSILON = 1e-8


class Moments(NamedTuple):
    """Number, mean and variance (divided by n, not n - 1) of all learners' samples; scalars."""

    number: Tensor
    mean: Tensor
    variance: Tensor


def joint_sums(sums: Tensor, joint: bool) -> Tensor:
    """The sum over learners of a tensor of any shape, without gradient.

    Args:
        sums: This learner's tensor; it is not modified.
        joint: Whether learners train together (``policy.multi_gpu``).
    """
    sums = sums.detach()
    if not joint or get_world_size() == 1:
        return sums
    total = allreduce_data(sums.clone(), "sum")
    assert isinstance(total, Tensor)
    return total


def joint_counts(values: Tensor, joint: bool) -> list[int]:
    """Number of ``values`` of each learner."""
    counts = values.new_zeros(get_world_size() if joint else 1, dtype=torch.float64)
    counts[get_rank() if joint else 0] = len(values)
    return [int(one) for one in joint_sums(counts, joint).tolist()]


def joint_moments(values: Tensor, joint: bool) -> Moments:
    """Moments of all elements of float ``values``, any shape; float64."""
    # In double precision, since differences of long sums are small.
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
    """``values`` with mean 0 and deviation 1 (by n - 1); 0 for a single sample."""
    if not joint or get_world_size() == 1:
        deviation, mean = torch.std_mean(values, correction=min(values.numel() - 1, 1))
    else:
        count, mean, variance = joint_moments(values, joint)
        deviation = (variance * count / (count - 1).clamp(min=1)).sqrt()
    return ((values - mean) / (deviation + _EPSILON)).to(values.dtype)
