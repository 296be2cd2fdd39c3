"""Data sets in HDF5 files, such as those of D4RL."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ding.data.arrays import Column
from ding.data.columns import Columns, as_columns
from ding.data.offline.fields import read_fields
from ding.data.offline.transition_dataset import TransitionDataset, data_path
from ding.data.tree import tree_paths
from ding.utils.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    ConfigError,
    DataError,
)
from ding.utils.file_helper import open_regular, put_in_place, temporary_name
from ding.utils.registry_factory import DATASET_REGISTRY
from ding.utils.system_helper import available_memory
from ding.utils.types import Settings

if TYPE_CHECKING:
    import h5py

#: Endings of HDF5 file names.
HDF5_ENDINGS = (".hdf5", ".h5")
_MAGIC = b"\x89HDF\r\n\x1a\n"
#: Maximum ratio of a data set's size to its stored size: deflate reaches 1,032. Data sets up to
#: `_SMALL` bytes may exceed it, because HDF5 does not store fill values.
_MOST_COMPRESSED = 1100
_SMALL = 64 << 20
_MOST_NODES, _DEEPEST = 100_000, 8


@DATASET_REGISTRY.register("hdf5")
class HDF5Dataset(TransitionDataset):
    """A data set in an HDF5 file, one array per column: ``obs, action, reward, done, next_obs``.

    The names of D4RL (``observations``, ``actions``, ``rewards``, ``terminals``, ``timeouts``,
    ``next_observations``) are supported as well; a group of arrays is a dict observation. Needs the
    extra ``hdf5``.

    Args:
        cfg: The path, or a config with ``policy.collect.data_path`` or ``policy.learn.data_path``.

    Raises:
        ConfigError: There is no path, or h5py is not installed.
        CheckpointError: The file cannot be read, or is truncated.
        DataError: The file does not contain transitions.
    """

    def __init__(self, cfg: str | Settings) -> None:
        super().__init__(read_hdf5(data_path(cfg)))


def is_hdf5(path: str) -> bool:
    """Whether a file exists and begins with the signature of HDF5."""
    with suppress(OSError), open_regular(path) as stream:
        return stream.read(len(_MAGIC)) == _MAGIC
    return False


def read_hdf5(path: str) -> Columns:
    """The transitions of a file; errors as for `HDF5Dataset`."""
    with _opened(path) as file:
        if any(name.startswith("episode_") for name in file.names):
            raise DataError(
                f"{path} holds episodes, as Minari's files do: set "
                "policy.collect.data_type='minari' and data_path to the data set's id"
            )
        return read_fields(file.names, file.read, path)


def check_hdf5(path: str) -> None:
    """Check a file before another library reads it; errors as for `HDF5Dataset`."""
    with _opened(path) as file:
        for name in file.names:
            file.check(name)


@contextmanager
def _opened(path: str) -> Iterator["_File"]:
    h5py = require_h5py()
    if not os.path.exists(path):
        raise CheckpointNotFoundError(f"there is no file {path}")
    try:
        with open_regular(path) as stream:  # opening a FIFO would block
            size = os.fstat(stream.fileno()).st_size
        with h5py.File(path, "r") as file:
            yield _File(h5py, file, path, size)
    except (DataError, CheckpointError):
        raise
    except Exception as error:  # h5py raises various errors for a truncated or damaged file
        cause = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CheckpointError(
            f"{path} cannot be read as HDF5: {cause}. It is damaged, cut short or no such file "
            "(policy.collect.data_type)"
        ) from error


class _File:
    """The data sets of an untrusted file. Nothing outside the file is read, and the memory used is
    limited by the stored size.

    Attributes:
        names: Names of the fields.
    """

    def __init__(self, h5py: ModuleType, file: "h5py.File", path: str, size: int) -> None:
        self._h5py, self._root, self._path, self._size = h5py, file, path, size
        self._memory = available_memory()
        self._nodes = 0
        self.names = list(file)

    def read(self, name: str) -> Column:
        """A field: an array, or a dict of arrays."""
        return self._visit(self._root, name, name, self._read_array)

    def check(self, name: str) -> None:
        """Raise a `DataError` if `read` would refuse the field for its size or place."""
        self._visit(self._root, name, name, self._check_size)

    def _visit(
        self,
        group: "h5py.Group",
        key: str,
        name: str,
        visit: Callable[["h5py.Dataset", str], object],
    ) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES or name.count("/") > _DEEPEST:
            raise DataError(f"{self._path}: {name!r} is nested too deeply, or in itself")
        if not isinstance(group.get(key, getlink=True), self._h5py.HardLink):
            raise DataError(f"{self._path}: {name!r} is a link, which is not followed")
        node = group[key]
        if isinstance(node, self._h5py.Group):
            return {inner: self._visit(node, inner, f"{name}/{inner}", visit) for inner in node}
        if not isinstance(node, self._h5py.Dataset):
            raise DataError(f"{self._path}: {name!r} is a type, expected a data set")
        return visit(node, name)

    def _read_array(self, dataset: "h5py.Dataset", name: str) -> np.ndarray:
        if dataset.dtype.kind not in "biuf":
            is_text = self._h5py.check_string_dtype(dataset.dtype) is not None
            kind = "text" if is_text else dataset.dtype
            raise DataError(f"{self._path}: data set {name!r} holds {kind}, expected numbers")
        self._check_size(dataset, name)
        array: np.ndarray = dataset[()]
        return array

    def _check_size(self, dataset: "h5py.Dataset", name: str) -> None:
        layout = dataset.id.get_create_plist()
        if layout.get_external_count() or layout.get_layout() == self._h5py.h5d.VIRTUAL:
            raise DataError(f"{self._path}: data set {name!r} is stored in other files")
        if dataset.shape is None:
            raise DataError(f"{self._path}: data set {name!r} is empty, expected rows")
        width = dataset.dtype.itemsize
        declared = math.prod(dataset.shape) * width
        at_once = max(declared, math.prod(dataset.chunks or ()) * width)
        stored = min(dataset.id.get_storage_size(), self._size)
        what = f"{self._path}: data set {name!r} of shape {dataset.shape} and {dataset.dtype}"
        if at_once > max(_SMALL, _MOST_COMPRESSED * stored):
            raise DataError(f"{what} declares {at_once} bytes, but {stored} are stored for it")
        if at_once > self._memory:
            raise DataError(
                f"{what} needs {at_once} bytes of memory, but {self._memory} are available"
            )
        self._memory -= declared


def write_hdf5(path: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Write transitions column by column; the file appears once it is complete.

    Data sets and the structure of the file have the checksums of HDF5.

    Raises:
        ConfigError: h5py is not installed.
        DataError: The shapes of the transitions differ.
        CheckpointWriteError: The file cannot be written; also an `OSError`.
    """
    h5py = require_h5py()
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
        with h5py.File(temporary, "x", libver=("v110", "latest")) as file:
            for place, leaf in tree_paths(data.columns):
                if isinstance(leaf, np.ndarray | torch.Tensor):
                    is_number = place == ("reward",) and leaf.shape[1:] == (1,)
                    array = np.asarray(leaf[:, 0] if is_number else leaf)
                    file.create_dataset("/".join(place), data=array, fletcher32=array.size > 0)
        put_in_place(temporary, path)
    except OSError as error:
        raise CheckpointWriteError(
            f"cannot write {path}: {error.strerror or error}", error.errno
        ) from error
    finally:
        with suppress(OSError):
            os.remove(temporary)


def require_h5py() -> ModuleType:
    """Import h5py.

    Raises:
        ConfigError: h5py is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise ConfigError(
            "policy.collect.data_type='hdf5' needs h5py, which is not installed: "
            'pip install "ding[hdf5]"'
        ) from error
    return h5py
