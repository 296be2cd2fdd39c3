"""Observations of a data set less their mean, divided by their standard deviation."""

from typing import Any

import numpy as np
import torch

from ding.data.columns import Columns
from ding.utils.errors import DataError

#: Added to each standard deviation, as by Fujimoto and Gu (2021).
_EPSILON = 1e-3


def moments_of(data: Columns, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of ``obs``, float64 in the shape of an observation; none is 0.

    Raises:
        DataError: Observations are no single array.
    """
    obs = data.column("obs")
    if not isinstance(obs, np.ndarray | torch.Tensor):
        raise DataError(
            f"'obs' of {source} is a {type(obs).__name__}, which cannot be normalised: it has to "
            "be one array. Set policy.collect.normalize_states=False"
        )
    array = np.asarray(obs)
    return array.mean(0, dtype=np.float64), array.std(0, dtype=np.float64) + _EPSILON


def normalised(data: Columns, mean: Any, std: Any) -> Columns:
    """The data with ``obs`` and ``next_obs`` normalised, float32."""
    mean, std = np.asarray(mean, np.float32), np.asarray(std, np.float32)

    def scaled(column: Any) -> torch.Tensor:
        return torch.from_numpy((np.asarray(column, np.float32) - mean) / std)

    names = [name for name in ("obs", "next_obs") if name in data.columns]
    return data.with_columns(**{name: scaled(data.column(name)) for name in names})
