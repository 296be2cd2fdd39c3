"""Linear maps of actions and the like to other ranges."""

from typing import Any

import numpy as np


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
