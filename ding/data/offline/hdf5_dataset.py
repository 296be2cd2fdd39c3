"""Data sets in HDF5 files, as D4RL has them."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from ding.data.columns import Columns, as_columns
from ding.data.offline.fields import read_fields
from ding.data.offline.transition_dataset import TransitionDataset, data_path
from ding.data.tree import tree_map, tree_paths
from ding.utils.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    ConfigError,
    DataError,
)
from ding.utils.file_helper import temporary_name
from ding.utils.registry_factory import DATASET_REGISTRY

_MAGIC = b"\x89HDF\r\n\x1a\n"


@DATASET_REGISTRY.register("hdf5")
class HDF5Dataset(TransitionDataset):
    """A file with an array for each column: ``obs, action, reward, done, next_obs``.

    The names that D4RL has (``observations``, ``actions``, ``rewards``, ``terminals``,
    ``timeouts``, ``next_observations``) will do as well; a group of arrays is an observation of
    several parts. Needs the extra ``hdf5``.

    Args:
        cfg: The path, or a config with ``policy.collect.data_path`` or ``policy.learn.data_path``.

    Raises:
        ConfigError: No path, or h5py is not installed.
        CheckpointError: The file cannot be read, or is cut short.
        DataError: It holds no transitions.
    """

    def __init__(self, cfg: str | Mapping[str, Any]) -> None:
        super().__init__(read_hdf5(data_path(cfg)))


def is_hdf5(path: str) -> bool:
    """Whether a file is there and begins as HDF5 files do."""
    if not os.path.isfile(path):
        return False
    with suppress(OSError), open(path, "rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC
    return False


def read_hdf5(path: str) -> Columns:
    """The transitions of a file; errors as for `HDF5Dataset`."""
    h5py = _h5py()
    if not os.path.exists(path):
        raise CheckpointNotFoundError(f"there is no file {path}")
    try:
        with h5py.File(path, "r") as file:
            if any(name.startswith("episode_") for name in file):
                raise DataError(
                    f"{path} holds episodes, as Minari's files do: set "
                    "policy.collect.data_type='minari' and data_path to the data set's id"
                )
            return read_fields(list(file), lambda name: tree_map(_read, file[name]), path)
    except (OSError, RuntimeError, KeyError) as error:
        # h5py says the first when a file is cut short, and the others when its inside is damaged.
        raise CheckpointError(
            f"{path} cannot be read as HDF5: {error}. It is damaged, cut short or no such file "
            "(policy.collect.data_type)"
        ) from error


def _read(dataset: Any) -> Any:
    return dataset[()]


def write_hdf5(path: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write transitions column by column, under our names; the file appears when it is complete.

    Raises:
        ConfigError: h5py is not installed.
        DataError: Transitions of shapes that differ.
        CheckpointWriteError: Also an `OSError`.
    """
    h5py = _h5py()
    data = as_columns(rows)
    if data is None:
        raise DataError(
            f"{path}: HDF5 takes transitions of one shape, numbers and arrays alone; write them "
            "with data_type='naive'"
        )
    path = os.path.abspath(path)
    temporary = temporary_name(path)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with h5py.File(temporary, "x") as file:
            for name, leaf in tree_paths(data.columns):
                if isinstance(leaf, np.ndarray | torch.Tensor):
                    is_number = name == ("reward",) and leaf.shape[1:] == (1,)
                    array = np.asarray(leaf[:, 0] if is_number else leaf)
                    file.create_dataset("/".join(name), data=array)
        os.replace(temporary, path)
    except OSError as error:
        raise CheckpointWriteError(
            f"cannot write {path}: {error.strerror or error}", error.errno
        ) from error
    finally:
        with suppress(OSError):
            os.remove(temporary)


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ConfigError(
            "policy.collect.data_type='hdf5' needs h5py, which is not installed: "
            'pip install "ding[hdf5]"'
        ) from error
    return h5py
