"""Data sets in the formats of this package: files of transitions, and replay buffers."""

import os
from collections.abc import Mapping

import numpy as np
import torch

from ding.data.arrays import Column, Items, State
from ding.data.columns import Columns, stack
from ding.data.offline.fields import NAMES, read_fields
from ding.data.offline.hdf5_dataset import is_hdf5, read_hdf5
from ding.data.offline.transition_dataset import (
    TransitionDataset,
    collect_section,
    data_path,
)
from ding.data.ring import Ring
from ding.data.row_journal import RowJournal
from ding.utils.errors import CheckpointError, DataError
from ding.utils.file_helper import read_file, save_file
from ding.utils.registry_factory import DATASET_REGISTRY
from ding.utils.safe_serial import UniformRows
from ding.utils.types import Settings

#: Paths in a run's folder: the run's state, and the rows of its replay buffer.
STATE_FILE = os.path.join("ckpt", "resume.pth.tar")
ROWS_FOLDER = os.path.join("ckpt", "rows")


@DATASET_REGISTRY.register("naive")
class NaiveRLDataset(TransitionDataset):
    """Transitions that this package has saved, or an HDF5 file.

    The path is a file that `ding.entry.collect_demo_data` or a replay buffer's ``save_data`` wrote,
    a file with a dict of arrays that `ding.utils.save_file` wrote (names as in HDF5 files), or the
    folder of a run, whose replay buffer is read.

    Args:
        cfg: The path, or a config with ``policy.collect.data_path`` or ``policy.learn.data_path``.
            With ``policy.collect.allow_pickle`` pickled objects are read as well: such a file can
            execute arbitrary code.

    Raises:
        ConfigError: There is no path.
        CheckpointError: The file cannot be read.
        DataError: The file does not contain transitions.
    """

    def __init__(self, cfg: str | Settings) -> None:
        path = data_path(cfg)
        allow = not isinstance(cfg, str) and collect_section(cfg).get("allow_pickle", False)
        super().__init__(read_saved(path, bool(allow)))


@DATASET_REGISTRY.register("d4rl_trajectory")
class TrajectoryDataset(NaiveRLDataset):
    """As `NaiveRLDataset`, or a list of trajectories: dicts of arrays, names as in HDF5 files."""

    def __init__(self, cfg: str | Settings) -> None:
        super().__init__(cfg)
        data = self._data
        if isinstance(data, Columns) or not isinstance(data[0], Mapping):
            return
        if not any(np.ndim(data[0].get(name, 0)) > 1 for name in NAMES["obs"]):
            return  # transitions
        path = data_path(cfg)
        parts = [read_fields(one, one.__getitem__, f"{path}, {i}") for i, one in enumerate(data)]
        self._data = Columns.concat(parts)


def read_saved(path: str, allow_pickle: bool = False) -> Items:
    """The transitions of a file or of a run's folder; errors as for `NaiveRLDataset`."""
    if is_hdf5(path):
        return read_hdf5(path)
    if os.path.isdir(path):
        data: object = items_of_run(path)
    else:
        data = read_file(path, allow_pickle=allow_pickle, columns=True)
    if isinstance(data, UniformRows):
        try:
            return Columns(_columns_of(data))
        except DataError:
            return data.rows()
    if isinstance(data, dict) and isinstance(data.get("items"), dict):
        data = items_of_ring(data["items"])
    if isinstance(data, dict) and any(_is_array(data.get(name)) for name in NAMES["obs"]):
        return read_fields(data, data.__getitem__, path)
    if not isinstance(data, list) or not len(data):
        what = "an empty list" if isinstance(data, list) else f"a {type(data).__name__}"
        raise DataError(f"{path} holds {what}, expected a list of transitions")
    return data


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray | torch.Tensor)


def _columns_of(rows: UniformRows) -> dict[str, Column]:
    """The columns of a file; lists are stacked.

    Raises:
        DataError: A list cannot be stacked.
    """
    found: dict[str, Column] = {}
    for name, column in rows.columns.items():
        if isinstance(column, UniformRows):
            column = _columns_of(column)
        elif isinstance(column, list):
            column = stack(column, name)
        found[name] = column
    return found


def items_of_ring(state: State, rows_folder: str | None = None) -> Items:
    """The items of a saved ring, the oldest first.

    Args:
        state: Result of `Ring.state_dict`.
        rows_folder: Folder of the rows that are not in the state.

    Raises:
        DataError: It is not such a state, it is from another version, or it declares more rows than
            are stored.
        CheckpointError: The rows are damaged.
    """
    try:
        ring = Ring(max(len(state["slots"]), 1), columnar=state["objects"] is None)
        if rows_folder is not None:
            ring.journal = RowJournal(rows_folder)
        ring.load_state_dict(state)
        return ring.take(ring.by_age())
    except (DataError, CheckpointError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, MemoryError, RuntimeError) as error:
        raise DataError(
            "its state is not that of a replay buffer of this version: "
            f"{type(error).__name__}: {error}"
        ) from error


def items_of_run(folder: str) -> Items:
    """The items in the replay buffer of a run, from its saved state.

    Raises:
        DataError: The folder is not that of a run, or the run has no replay buffer.
        CheckpointError: The state or the rows are damaged.
    """
    path = os.path.join(folder, STATE_FILE)
    if not os.path.exists(path):
        raise DataError(
            f"{folder} is no folder of a run: it has no {STATE_FILE}. Expected one, or a file of "
            "transitions"
        )
    state = read_file(path)
    buffer = state.get("buffer") if isinstance(state, Mapping) else None
    if not isinstance(buffer, Mapping) or "ring" not in buffer:
        raise DataError(
            f"the run {folder} has no replay buffer: expected one of an off-policy policy (serial)"
        )
    return items_of_ring(buffer["ring"], os.path.join(folder, ROWS_FOLDER))


def write_naive(path: str, data: Items) -> None:
    """Write transitions, or any list of plain data, as a list.

    Raises:
        CheckpointWriteError: The file cannot be written; also an `OSError`.
        TypeError: The data contains an object that cannot be stored safely.
    """
    columns = data.columns_or_none() if isinstance(data, Columns) else None
    save_file(path, list(data) if columns is None else _rows_of(columns))


def _rows_of(columns: Mapping[str, Column]) -> UniformRows:
    return UniformRows(
        {
            name: _rows_of(column)
            if isinstance(column, Mapping)
            else (column if isinstance(column, np.ndarray | torch.Tensor) else column.tolist())
            for name, column in columns.items()
        }
    )
