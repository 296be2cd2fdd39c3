"""Big observations written once, although two rows refer to each of them."""

from typing import Any, NamedTuple

import numpy as np
import torch

from ding.data.frame_store import MIN_FRAME_BYTES

#: Most rows between an observation and the one that follows it (n-step returns).
_FARTHEST = 8


class Repeat(NamedTuple):
    """Next observations without those that are the observation of a later row.

    Attributes:
        step: How many rows later.
        rows: Numbers of the rows whose next observation is none of them; int64 [k].
        rest: Their next observations.
    """

    step: int
    rows: np.ndarray
    rest: np.ndarray | torch.Tensor


def find_repeat(first: Any, second: Any) -> Repeat | None:
    """What is left of the next observations `second`; None if it is not worth it.

    Args:
        first: Observations, trajectories one after the other; array or tensor [n, ...].
    """
    if type(first) is not type(second) or not isinstance(first, np.ndarray | torch.Tensor):
        return None
    if first.shape != second.shape or first.dtype != second.dtype or len(first) < 2:
        return None
    if first.nbytes < MIN_FRAME_BYTES * len(first):
        return None
    a, b = _words(first), _words(second)
    if a is None or b is None:
        return None
    for step in range(1, min(_FARTHEST, len(a) - 1) + 1):
        # The first two rows tell, unless both end trajectories.
        if any((b[i] == a[i + step]).all() for i in range(min(2, len(a) - step))):
            same = np.zeros(len(a), bool)
            same[:-step] = (b[:-step] == a[step:]).all(axis=1)
            rows = np.flatnonzero(~same)
            return None if 2 * len(rows) > len(a) else Repeat(step, rows, second[rows])
    return None


def put_back(first: Any, repeat: Repeat) -> Any:
    """The next observations.

    Raises:
        ValueError, IndexError, TypeError: The parts do not fit each other.
    """
    step, rows, rest = repeat
    n = len(first)
    if type(step) is not int or not 0 < step < n or len(rows) != len(rest):
        raise ValueError(f"next observations {step} rows later, {len(rows)} numbers, {len(rest)}")
    whole = np.zeros(n, bool)
    whole[: n - step] = whole[rows] = True
    alike = rest.dtype == first.dtype and rest.shape[1:] == first.shape[1:]
    if not whole.all() or not alike:
        raise ValueError("next observations are missing")
    second: Any = (
        torch.empty_like(first) if isinstance(first, torch.Tensor) else np.empty_like(first)
    )
    second[: n - step] = first[step:]
    second[rows] = rest
    return second


def _words(frames: np.ndarray | torch.Tensor) -> np.ndarray | None:
    """Bytes of each frame, eight at a time if possible; None for what numpy has no type for."""
    if isinstance(frames, torch.Tensor):
        try:
            frames = frames.detach().numpy()
        except (TypeError, RuntimeError):
            return None
    if frames.dtype.hasobject:
        return None
    raw = np.ascontiguousarray(frames).reshape(len(frames), -1).view(np.uint8)
    return raw.view(np.uint64) if raw.shape[1] % 8 == 0 else raw
