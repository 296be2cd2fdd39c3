"""Data sets of transitions on disk, by the names of their types."""

from collections.abc import Callable, Mapping
from typing import Any

from easydict import EasyDict
from torch.utils.data import Dataset

from ding.data.offline.describe import describe
from ding.data.offline.hdf5_dataset import write_hdf5
from ding.data.offline.naive_dataset import NaiveRLDataset, write_naive
from ding.data.offline.transition_dataset import collect_section, transitions_of
from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import DATASET_REGISTRY

__all__ = ["NaiveRLDataset", "create_dataset", "describe_dataset", "offline_data_save_type"]


def create_dataset(cfg: Mapping[str, Any], **kwargs: Any) -> Dataset[Any]:
    """Build the registered data set ``policy.collect.data_type``, ``naive`` if there is none.

    ``import_names`` of the config are imported first.
    """
    cfg = EasyDict(cfg)
    import_module(cfg.get("import_names", []))
    kind = collect_section(cfg).get("data_type") or "naive"
    return DATASET_REGISTRY.build(kind, cfg=cfg, **kwargs)


def describe_dataset(cfg: str | Mapping[str, Any]) -> str:
    """What is in a data set, as text to be printed: counts, returns, shapes, ranges.

    Args:
        cfg: A config as for `create_dataset`; or a path, of the type ``hdf5`` if it ends in
            ``.hdf5`` or ``.h5``, otherwise ``naive``.
    """
    if isinstance(cfg, str):
        kind = "hdf5" if cfg.endswith((".hdf5", ".h5")) else "naive"
        cfg = {"policy": {"collect": {"data_path": cfg, "data_type": kind}}}
    return describe(transitions_of(create_dataset(cfg)))


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


_SAVERS: dict[str, Callable[[str, Any], None]] = {"naive": write_naive, "hdf5": write_hdf5}
