"""The interface of serial collectors, and the row helpers that scripts import from here."""

import copy
import itertools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from easydict import EasyDict

from ding.torch_utils import to_tensor
from ding.utils import SERIAL_COLLECTOR_REGISTRY, import_module
from ding.utils.registry_factory import component
from ding.utils.types import Tree
from ding.worker.collector.serial_part import ISerialPart

INF = float("inf")


class ISerialCollector(ISerialPart):
    """Collects training data with policies that act in environments."""

    @abstractmethod
    def collect(self, per_collect_target: Any) -> Any:
        """Collect a number of samples or episodes, depending on the collector."""

    @property
    def envstep(self) -> int:
        """Environment steps since the last reset, over all environments."""
        raise NotImplementedError(f"{type(self).__name__} does not count environment steps")


def create_serial_collector(cfg: Mapping[str, Any], **kwargs: object) -> ISerialCollector:
    """Build the registered collector ``cfg.type``; ``cfg.import_names`` are imported first.

    Args:
        cfg: The collector's ``type``, and its keys that differ from the defaults.
        kwargs: ``env``, ``policy``, ``tb_logger``, ``exp_name``, ``instance_name``.

    Example:

        >>> from ding.worker import create_serial_collector
        >>> type(create_serial_collector({"type": "sample"})).__name__
        'SampleSerialCollector'
    """
    cls, cfg = component(SERIAL_COLLECTOR_REGISTRY, cfg)
    collector: ISerialCollector = cls(cfg=cfg, **kwargs)
    return collector


def get_serial_collector_cls(cfg: EasyDict) -> type[ISerialCollector]:
    """The registered collector class ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    found: type[ISerialCollector] = SERIAL_COLLECTOR_REGISTRY.get(cfg.type)  # type: ignore[assignment]
    return found


class CachePool:
    """The latest value of each environment; ``deepcopy`` copies values when they are added."""

    def __init__(self, name: str, env_num: int, deepcopy: bool = False) -> None:
        self._name = name
        self._deepcopy = deepcopy
        self._pool: list[Tree] = [None] * env_num

    def update(self, data: dict[int, Tree] | list[Tree]) -> None:
        """Store the values of some environments by id, or of all as a list."""
        if self._deepcopy:
            data = copy.deepcopy(data)
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for env_id, value in items:
            self._pool[env_id] = value

    def __getitem__(self, idx: int) -> Tree:
        return self._pool[idx]

    def reset(self, idx: int) -> None:
        """Remove the value of one environment."""
        self._pool[idx] = None


class TrajBuffer(list[Tree]):
    """The running trajectory of one environment: its newest ``maxlen`` transitions.

    ``None`` or infinity means no limit; ``deepcopy`` copies transitions when they are added.
    """

    def __init__(
        self, maxlen: float | None, *args: Any, deepcopy: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._maxlen = INF if maxlen is None else maxlen
        self._deepcopy = deepcopy

    def append(self, data: Tree) -> None:
        super().append(copy.deepcopy(data) if self._deepcopy else data)
        while len(self) > self._maxlen:
            del self[0]


def to_tensor_transitions(
    data: Sequence[dict[str, Tree]], shallow_copy_next_obs: bool = True
) -> Sequence[dict[str, Tree]]:
    """Convert arrays in transitions to tensors; Python scalars stay unchanged.

    Args:
        data: Consecutive transitions of one environment. Columnar data is returned unchanged: its
            rows already contain tensors.
        shallow_copy_next_obs: Make ``next_obs`` of a transition the ``obs`` object of the next.
    """
    if getattr(data, "is_columnar", False):
        return data
    if not shallow_copy_next_obs or not data or "next_obs" not in data[0]:
        return [to_tensor(row, transform_scalar=False) for row in data]
    rows = [to_tensor(row, ignore_keys=["next_obs"], transform_scalar=False) for row in data]
    for row, following in itertools.pairwise(rows):
        row["next_obs"] = following["obs"]
    rows[-1]["next_obs"] = to_tensor(data[-1]["next_obs"], transform_scalar=False)
    return rows
