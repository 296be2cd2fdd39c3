"""Small functions that environments' features are made with."""

from typing import Any, cast

import torch

from ding.envs.common.scaling import affine_transform
from ding.envs.common.video import save_frames_as_gif
from ding.torch_utils import one_hot

__all__ = ["affine_transform", "div_func", "div_one_hot", "save_frames_as_gif"]


def div_func(inputs: torch.Tensor, other: Any, unsqueeze_dim: int = 1) -> torch.Tensor:
    """``inputs / other`` with a dimension of 1 put in at `unsqueeze_dim`.

    Args:
        inputs: Usually ``[B]``, which becomes ``[B, 1]``.
        other: A number, or a tensor that divides the result's shape.
        unsqueeze_dim: Where the new dimension goes.
    """
    return torch.div(inputs.unsqueeze(unsqueeze_dim), other)


def div_one_hot(v: torch.Tensor, max_val: float, ratio: float) -> torch.Tensor:
    """Which step of width `ratio` each value is in, one-hot.

    Args:
        v: ``[B]``, numbers from 0; those beyond `max_val` count as `max_val`.
        max_val: The largest value.
        ratio: The width of a step.

    Returns:
        float32 ``[B, max_val // ratio + 1]``.
    """
    steps = torch.div(v.clamp(max=max_val), ratio, rounding_mode="floor").long()
    hot = one_hot(cast(torch.LongTensor, steps), num=int(max_val // ratio) + 1)
    return hot.float()
