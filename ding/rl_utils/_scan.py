"""First-order linear recurrences backwards in time, without a loop over time."""

import numpy as np
import torch


def scan_back(delta: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Solve ``x[t] = delta[t] + factor[t] * x[t + 1]`` with ``x[T] = 0``.

    Recursive doubling: after pass k every ``x[t]`` holds the first ``2**k`` terms of its sum, so
    that log2(T) passes over whole tensors replace T small steps.

    Args:
        delta: ``[T, *]``.
        factor: ``[T, *]``, same shape.
    """
    length, span = len(delta), 1
    while span < length:
        head = torch.addcmul(delta[:-span], factor[:-span], delta[span:])
        delta = torch.cat([head, delta[-span:]])
        # Beyond the end there is nothing to add: those factors are never used again.
        factor = torch.cat([factor[:-span] * factor[span:], torch.zeros_like(factor[-span:])])
        span *= 2
    return delta


def scan_back_numpy(delta: np.ndarray, factor: np.ndarray, longest: int) -> np.ndarray:
    """``scan_back`` over arrays, in place in both.

    Args:
        longest: No run of non-zero factors is longer; fewer passes do then.
    """
    span = 1
    while span < min(longest, len(delta)):
        delta[:-span] += factor[:-span] * delta[span:]
        factor[:-span] *= factor[span:]
        factor[-span:] = 0
        span *= 2
    return delta
