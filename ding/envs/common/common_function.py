"""Small functions that environments' features, actions and pictures are made with."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import torch

from ding.torch_utils import one_hot
from ding.utils.errors import DingError
from ding.utils.file_helper import put_in_place, temporary_name

Array = TypeVar("Array", np.ndarray, torch.Tensor)

__all__ = ["affine_transform", "div_func", "div_one_hot", "save_frames_as_gif"]


def affine_transform(
    data: Array,
    action_clip: bool = True,
    alpha: Array | float | None = None,
    beta: Array | float | None = None,
    min_val: Array | float | None = None,
    max_val: Array | float | None = None,
) -> Array:
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


def div_func(
    inputs: torch.Tensor, other: torch.Tensor | float, unsqueeze_dim: int = 1
) -> torch.Tensor:
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


def save_frames_as_gif(frames: Sequence[np.ndarray], path: str | Path, fps: float = 20) -> None:
    """Write frames, each ``[H, W, 3]`` uint8, as a GIF that repeats.

    Raises:
        DingError: pillow is not installed.
        ValueError: There are no frames.
    """
    if not len(frames):
        raise ValueError(f"no frames to save as {path}")
    try:
        from PIL import Image
    except ImportError as error:
        raise DingError('a GIF needs pillow: pip install "ding[video]"') from error
    images = [Image.fromarray(np.asarray(frame, np.uint8)) for frame in frames]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    part = temporary_name(str(path))
    images[0].save(
        part,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=round(1000 / fps),
        loop=0,
    )
    put_in_place(part, str(path), durable=False)
