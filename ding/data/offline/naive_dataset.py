"""Data sets in the formats of this package."""

import os
from collections.abc import Mapping
from typing import Any

from ding.data.columns import Columns
from ding.data.offline.saved_items import items_of_ring, items_of_run
from ding.data.offline.transition_dataset import TransitionDataset, collect_section, data_path
from ding.utils.errors import DataError
from ding.utils.file_helper import read_file
from ding.utils.registry_factory import DATASET_REGISTRY


@DATASET_REGISTRY.register("naive")
class NaiveRLDataset(TransitionDataset):
    """Transitions that this package has saved.

    They are a file that `ding.entry.collect_demo_data` or a replay buffer's ``save_data`` wrote, or
    the replay buffer of a run, which is named by the run's folder.

    Args:
        cfg: The path, or a config with ``policy.collect.data_path`` or ``policy.learn.data_path``.
            With ``policy.collect.allow_pickle`` pickled objects are read as well: such a file can
            execute any code.

    Raises:
        ConfigError: No path.
        CheckpointError: The file cannot be read.
        DataError: It holds no list, or an empty one.
    """

    def __init__(self, cfg: str | Mapping[str, Any]) -> None:
        path = data_path(cfg)
        allow = not isinstance(cfg, str) and collect_section(cfg).get("allow_pickle", False)
        super().__init__(_read(path, bool(allow)))


def _read(path: str, allow_pickle: bool) -> Columns | list[Any]:
    if os.path.isdir(path):
        data: Any = items_of_run(path)
    else:
        data = read_file(path, allow_pickle=allow_pickle)
    if isinstance(data, dict) and isinstance(data.get("items"), dict):
        data = items_of_ring(data["items"])
    if not isinstance(data, list) or not len(data):
        what = "an empty list" if isinstance(data, list) else f"a {type(data).__name__}"
        raise DataError(f"{path} holds {what}, expected a list of transitions")
    return data
