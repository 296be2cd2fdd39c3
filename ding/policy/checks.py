"""Stops bad numbers before they reach weights."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from ding.utils.errors import DataError


def check_loss(policy: Any, loss: float, batch: Mapping[str, Any]) -> None:
    """Refuse a loss that is NaN or infinite, before the optimiser's step.

    Raises:
        DataError: Names the policy and the columns of ``batch`` that are not finite.
    """
    if math.isfinite(loss):
        return
    bad = sorted(_not_finite(batch))
    cause = (
        f"its batch has NaN or infinite values in {', '.join(bad)}: mend the environment or the "
        "wrapper that they come from"
        if bad
        else "its batch is finite, so the network diverged: lower learn.learning_rate or clip "
        "gradients"
    )
    raise DataError(
        f"{type(policy).__name__}: the loss is {loss}; {cause}. The weights are as they were "
        "before this update"
    )


def _not_finite(batch: Mapping[str, Any], path: str = "") -> list[str]:
    names = []
    for name, value in batch.items():
        if isinstance(value, Mapping):
            names += _not_finite(value, f"{path}{name}.")
        elif isinstance(value, torch.Tensor) and not bool(torch.isfinite(value).all()):
            names.append(f"{path}{name}")
    return names


def floats(values: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Scalars for the log, by name; see `to_floats`."""
    return dict(zip(values, to_floats(*values.values())))


def to_floats(*values: torch.Tensor) -> list[float]:
    """Scalars for the log, in one transfer where they are on another device."""
    if values[0].device.type == "cpu":
        return [value.item() for value in values]  # cheaper than stacking them
    return torch.stack([value.detach() for value in values]).tolist()
