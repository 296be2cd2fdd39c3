"""Base class of data sets, their config keys, and normalisation of their observations."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.utils.data import Dataset

from ding.data.arrays import Column, Item, Items
from ding.data.columns import Columns, as_columns
from ding.data.tree import tree_map
from ding.utils.errors import ConfigError, DataError
from ding.utils.settings import at
from ding.utils.types import Settings

#: Config keys for the path of a data set; the first one that is set counts.
PATH_KEYS = (
    *("policy.collect.data_path", "policy.learn.data_path", "policy.learn.dataset_path"),
    "dataset.data_dir_prefix",
)


class TransitionDataset(Dataset[Item]):
    """Transitions in columns, or in a list if they cannot be stored as columns.

    Args:
        data: ``Columns``, or a list of transitions.
    """

    #: Describes the data set used instead of the configured one, for the run's notes.
    adapted: str | None = None

    def __init__(self, data: Items) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Item:
        if not isinstance(self._data, Columns) or not self._data.is_columnar:
            return self._data[idx]
        # Indexing the container would turn all of it into rows.
        columns = self._data.columns_or_none() or {}
        return {name: tree_map(lambda leaf: leaf[idx], column) for name, column in columns.items()}


def transitions_of(dataset: Any) -> Items:
    """All items of a data set: columns if their shapes are equal, otherwise a list."""
    if getattr(type(dataset), "__getitem__", None) is TransitionDataset.__getitem__:
        data = dataset._data
    else:
        data = [dataset[i] for i in range(len(dataset))]
    return as_columns(data) or data


def collect_section(cfg: Settings) -> Settings:
    """``policy.collect`` of a config; empty if it is missing."""
    return (cfg.get("policy") or {}).get("collect") or {}


def path_key(cfg: Settings) -> str | None:
    """The first key of `PATH_KEYS` that is set in a config, or None."""
    return next((key for key in PATH_KEYS if at(cfg, key)), None)


def data_path(cfg: str | Settings) -> str:
    """The data set's path: the config itself if it is a string, or the value of `path_key`.

    Raises:
        ConfigError: There is no path, or it is not a string.
    """
    if isinstance(cfg, str):
        return cfg
    key = path_key(cfg)
    if key is None:
        raise ConfigError(
            f"{PATH_KEYS[0]} is not set (nor {' or '.join(PATH_KEYS[1:])}): give the data set's "
            "file, or the folder of a run, whose replay buffer is taken"
        )
    path = at(cfg, key)
    if not isinstance(path, str):
        raise ConfigError(f"{key} is {path!r}; expected the path of a file or of a run's folder")
    return path


#: Added to each standard deviation (Fujimoto and Gu 2021).
_EPSILON = 1e-3


def moments_of(data: Columns, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean of ``obs`` and standard deviation plus 1e-3, float64 in the shape of an observation.

    Raises:
        DataError: Observations are not a single array.
    """
    obs = data.column("obs")
    if not isinstance(obs, np.ndarray | torch.Tensor):
        raise DataError(
            f"'obs' of {source} is a {type(obs).__name__}, which cannot be normalised: it has to "
            "be one array. Set policy.collect.normalize_states=False"
        )
    array = np.asarray(obs)
    return array.mean(0, dtype=np.float64), array.std(0, dtype=np.float64) + _EPSILON


def normalised(data: Columns, mean: ArrayLike, std: ArrayLike) -> Columns:
    """The data with normalised ``obs`` and ``next_obs``, float32."""
    mean, std = np.asarray(mean, np.float32), np.asarray(std, np.float32)

    def scaled(column: Column) -> torch.Tensor:
        return torch.from_numpy((np.asarray(column, np.float32) - mean) / std)

    names = [name for name in ("obs", "next_obs") if name in data.columns]
    return data.with_columns(**{name: scaled(data.column(name)) for name in names})
