"""Data sets of transitions on disk."""

from collections.abc import Callable, Mapping
from typing import Any

from easydict import EasyDict
from torch.utils.data import Dataset

from ding.utils.errors import ConfigError, DataError
from ding.utils.file_helper import read_file, save_file
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import DATASET_REGISTRY


@DATASET_REGISTRY.register("naive")
class NaiveRLDataset(Dataset):
    """A file that holds a list of transitions, as `ding.entry.collect_demo_data` writes it.

    Args:
        cfg: The file's path, or a config with ``policy.collect.data_path``. With
            ``policy.collect.allow_pickle`` pickled objects are read as well: such a file can
            execute any code.

    Raises:
        ConfigError: No path.
        CheckpointError: The file cannot be read.
        DataError: It holds no list, or an empty one.
    """

    def __init__(self, cfg: str | Mapping[str, Any]) -> None:
        collect = dict(data_path=cfg) if isinstance(cfg, str) else _collect_cfg(cfg)
        path = collect.get("data_path")
        if not path:
            raise ConfigError("policy.collect.data_path is not set: give the data set's file")
        data = read_file(path, allow_pickle=bool(collect.get("allow_pickle", False)))
        if not isinstance(data, list) or not data:
            what = "an empty list" if data == [] else f"a {type(data).__name__}"
            raise DataError(f"{path} holds {what}, expected a list of transitions")
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]


def create_dataset(cfg: Mapping[str, Any], **kwargs: Any) -> Dataset:
    """Build the registered data set ``policy.collect.data_type``, ``naive`` if there is none.

    ``import_names`` of the config are imported first.
    """
    cfg = EasyDict(cfg)
    import_module(cfg.get("import_names", []))
    kind = _collect_cfg(cfg).get("data_type", "naive")
    return DATASET_REGISTRY.build(kind, cfg=cfg, **kwargs)


def offline_data_save_type(
    exp_data: list[Any], expert_data_path: str, data_type: str = "naive"
) -> None:
    """Write transitions in the form of a type of data set.

    Raises:
        ConfigError: There is no such type, or it cannot be written.
    """
    if data_type not in _SAVERS:
        raise ConfigError(f"data_type {data_type!r} cannot be written, known are {sorted(_SAVERS)}")
    _SAVERS[data_type](expert_data_path, exp_data)


_SAVERS: dict[str, Callable[[str, Any], None]] = {"naive": save_file}


def _collect_cfg(cfg: Mapping[str, Any]) -> Mapping[str, Any]:
    return cfg.get("policy", {}).get("collect", {})
