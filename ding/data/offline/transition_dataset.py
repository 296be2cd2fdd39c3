"""What all kinds of data sets are, their keys in configs, and their observations normalised."""

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

#: Where configs have the path of a data set; the first that is set counts.
PATH_KEYS = (
    *("policy.collect.data_path", "policy.learn.data_path", "policy.learn.dataset_path"),
    "dataset.data_dir_prefix",
)


class TransitionDataset(Dataset[Item]):
    """Transitions in columns; of kinds that have no columns, a list.

    Args:
        data: ``Columns``, or a list of transitions.
    """

    #: What was taken in place of what the config names, for the run's notes.
    adapted: str | None = None

    def __init__(self, data: Items) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Item:
        if not isinstance(self._data, Columns) or not self._data.is_columnar:
            return self._data[idx]
        # Not through the container, which would turn all of it into rows.
        columns = self._data.columns_or_none() or {}
        return {name: tree_map(lambda leaf: leaf[idx], column) for name, column in columns.items()}


def transitions_of(dataset: Any) -> Items:
    """All items of a data set: columns where they have one shape, otherwise a list."""
    if getattr(type(dataset), "__getitem__", None) is TransitionDataset.__getitem__:
        data = dataset._data
    else:
        data = [dataset[i] for i in range(len(dataset))]
    return as_columns(data) or data


def collect_section(cfg: Settings) -> Settings:
    """``policy.collect`` of a config, which may lack it."""
    return (cfg.get("policy") or {}).get("collect") or {}


def path_key(cfg: Settings) -> str | None:
    """The key under which a config has its data set's path, if there is one."""
    return next((key for key in PATH_KEYS if at(cfg, key)), None)


def data_path(cfg: str | Settings) -> str:
    """The data set's path: the config itself, or what is under the first of the keys.

    Raises:
        ConfigError: There is none.
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


def normalised(data: Columns, mean: ArrayLike, std: ArrayLike) -> Columns:
    """The data with ``obs`` and ``next_obs`` normalised, float32."""
    mean, std = np.asarray(mean, np.float32), np.asarray(std, np.float32)

    def scaled(column: Column) -> torch.Tensor:
        return torch.from_numpy((np.asarray(column, np.float32) - mean) / std)

    names = [name for name in ("obs", "next_obs") if name in data.columns]
    return data.with_columns(**{name: scaled(data.column(name)) for name in names})
