"""Data sets of transitions on disk, by the names of their types."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from easydict import EasyDict
from torch.utils.data import Dataset

from ding.data.arrays import Items
from ding.data.columns import Columns
from ding.data.offline.hdf5_dataset import HDF5_ENDINGS, require_h5py, write_hdf5
from ding.data.offline.naive_dataset import NaiveRLDataset, write_naive
from ding.data.offline.trajectories import trajectories
from ding.data.offline.transition_dataset import collect_section, transitions_of
from ding.data.tree import tree_paths
from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import DATASET_REGISTRY
from ding.utils.types import Settings

__all__ = ["NaiveRLDataset", "create_dataset", "describe_dataset", "offline_data_save_type"]


def create_dataset(cfg: Settings, **kwargs: object) -> Dataset[Any]:
    """Build the registered data set ``policy.collect.data_type``, ``naive`` if there is none.

    ``import_names`` of the config are imported first.
    """
    cfg = EasyDict(cfg)
    import_module(cfg.get("import_names", []))
    kind = collect_section(cfg).get("data_type") or "naive"
    return DATASET_REGISTRY.build(kind, cfg=cfg, **kwargs)


def describe_dataset(cfg: str | Settings) -> str:
    """What is in a data set, as text to be printed: counts, returns, shapes, ranges.

    Args:
        cfg: A config as for `create_dataset`; or a path, of the type ``hdf5`` if it ends in
            ``.hdf5`` or ``.h5``, otherwise ``naive``.
    """
    if isinstance(cfg, str):
        kind = "hdf5" if cfg.endswith(HDF5_ENDINGS) else "naive"
        cfg = {"policy": {"collect": {"data_path": cfg, "data_type": kind}}}
    return _described(transitions_of(create_dataset(cfg)))


def _described(data: Items) -> str:
    """Counts, the returns of the trajectories, and each column's shape, type and range.

    Trajectories are transitions that follow each other by their observations; where an episode was
    saved in part, its return is that of the part.
    """
    if not isinstance(data, Columns):
        kinds = sorted({type(item).__name__ for item in data})
        return f"{len(data)} items ({', '.join(kinds)}), not of one shape"
    columns = data.columns
    lines = [f"{len(data)} transitions"]
    if {"obs", "next_obs", "done", "reward"} <= columns.keys():
        order, lengths = trajectories(data)
        reward = np.asarray(columns["reward"], np.float64).reshape(len(data), -1)[:, 0]
        starts = np.cumsum(lengths) - lengths
        returns = np.add.reduceat(reward[order], starts)
        lines[0] += (
            f" in {len(lengths)} trajectories of {lengths.min()} to {lengths.max()} steps; "
            f"returns {returns.mean():.4g} ± {returns.std():.4g} "
            f"({returns.min():.4g} to {returns.max():.4g})"
        )
    lines += [
        _row(".".join(path), np.asarray(leaf))
        for path, leaf in tree_paths(columns)
        if hasattr(leaf, "shape")
    ]
    return "\n".join(lines)


def _row(name: str, array: np.ndarray) -> str:
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    span = f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "nothing finite"
    missing = array.size - finite.size
    bad = f"; {missing} NaN or infinite" if missing else ""
    return f"  {name:<12} {list(array.shape[1:])!s:<14} {array.dtype!s:<8} {span}{bad}"


def offline_data_save_type(
    exp_data: Items, expert_data_path: str, data_type: str = "naive"
) -> None:
    """Write transitions in the form of a type of data set, into the file `saved_path`.

    Raises:
        ConfigError: There is no such type, or it cannot be written.
    """
    path = saved_path(expert_data_path, data_type)
    _SAVERS[data_type](path, exp_data)


def saved_path(path: str, data_type: str) -> str:
    """The file that transitions are saved in: ``path``, or for ``hdf5`` and a path that ends
    otherwise (``a/expert.pkl``) the name that offline configs have, ``a/expert_demos.hdf5``.

    Raises:
        ConfigError: There is no such type, or it cannot be written.
    """
    if data_type not in _SAVERS:
        raise ConfigError(f"data_type {data_type!r} cannot be written, known are {sorted(_SAVERS)}")
    if data_type != "hdf5":
        return path
    require_h5py()
    return path if path.endswith(HDF5_ENDINGS) else f"{os.path.splitext(path)[0]}_demos.hdf5"


_SAVERS: dict[str, Callable[[str, Items], None]] = {"naive": write_naive, "hdf5": write_hdf5}
