"""Builds and writes data sets of transitions by the name of their type."""

import os
from collections.abc import Callable
from typing import Any

from easydict import EasyDict
from torch.utils.data import Dataset

from ding.data.arrays import Items
from ding.data.offline.hdf5_dataset import HDF5_ENDINGS, require_h5py, write_hdf5
from ding.data.offline.naive_dataset import NaiveRLDataset, write_naive
from ding.data.offline.transition_dataset import collect_section
from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import DATASET_REGISTRY
from ding.utils.types import Settings

__all__ = ["NaiveRLDataset", "create_dataset", "offline_data_save_type"]


def create_dataset(cfg: Settings, **kwargs: object) -> Dataset[Any]:
    """Build the registered data set type ``policy.collect.data_type``, by default ``naive``.

    The modules in the config's ``import_names`` are imported first.
    """
    cfg = EasyDict(cfg)
    import_module(cfg.get("import_names", []))
    kind = collect_section(cfg).get("data_type") or "naive"
    return DATASET_REGISTRY.build(kind, cfg=cfg, **kwargs)


def offline_data_save_type(
    exp_data: Items, expert_data_path: str, data_type: str = "naive"
) -> None:
    """Write transitions in the format of a data set type, to the file `saved_path` returns.

    Raises:
        ConfigError: The type is unknown or cannot be written.
    """
    path = saved_path(expert_data_path, data_type)
    _SAVERS[data_type](path, exp_data)


def saved_path(path: str, data_type: str) -> str:
    """The file in which transitions are saved: ``path``. For ``hdf5``, a path with another ending
    (``a/expert.pkl``) becomes the name that offline configs use, ``a/expert_demos.hdf5``.

    Raises:
        ConfigError: The type is unknown or cannot be written.
    """
    if data_type not in _SAVERS:
        raise ConfigError(f"data_type {data_type!r} cannot be written, known are {sorted(_SAVERS)}")
    if data_type != "hdf5":
        return path
    require_h5py()
    return path if path.endswith(HDF5_ENDINGS) else f"{os.path.splitext(path)[0]}_demos.hdf5"


_SAVERS: dict[str, Callable[[str, Items], None]] = {"naive": write_naive, "hdf5": write_hdf5}
