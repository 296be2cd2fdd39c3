"""Small functions that environments' features and actions are made with."""

from typing import Any, cast

import numpy as np
import torch

from ding.envs.common.video import save_frames_as_gif
from ding.torch_utils import one_hot

__all__ = ["affine_transform", "div_func", "div_one_hot", "save_frames_as_gif"]


def affine_transform(
    data: Any,
    action_clip: bool = True,
    alpha: Any = None,
    beta: Any = None,
    min_val: Any = None,
    max_val: Any = None,
) -> Any:
    """``data * alpha + beta``, or ``[-1, 1]`` mapped to ``[min_val, max_val]``.

    Args:
        data: An array or tensor.
        action_clip: Clip `data` to ``[-1, 1]`` before.
        alpha: The factor. Give either `alpha` and perhaps `beta`, or both bounds.
        beta: What is added; 0 if ``None``.
        min_val: What -1 becomes, a number or an array like `data`.
        max_val: What 1 becomes.

    Raises:
        ValueError: Neither `alpha` nor both bounds are given.
    """
    if alpha is None:
        if min_val is None or max_val is None:
            raise ValueError(
                f"affine_transform got alpha=None, min_val={min_val}, max_val={max_val}; "
                "give alpha (and beta), or both min_val and max_val"
            )
        alpha = (max_val - min_val) / 2
        beta = (max_val + min_val) / 2
    if action_clip:
        data = np.clip(data, -1, 1) if isinstance(data, np.ndarray) else data.clip(-1, 1)
    return data * alpha + (0 if beta is None else beta)


def div_func(inputs: torch.Tensor, other: Any, unsqueeze_dim: int = 1) -> torch.Tensor:
    """``inputs / other`` with a dimension of 1 at `unsqueeze_dim`: ``[B]`` becomes ``[B, 1]``."""
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
