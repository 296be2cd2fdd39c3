"""Collector workers whose samples and weights are transported by a user's methods."""

import re
from abc import abstractmethod
from collections.abc import Container, Mapping
from typing import Any

from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY, import_module
from ding.utils.errors import ConfigError
from ding.worker.collector.comm.collector_service import CollectorService
from ding.worker.messages import Json
from ding.worker.seams import Samples, SampleStore


class BaseCommCollector(CollectorService):
    """Base class of comm types: three methods in place of a run's sample and weight stores.

    Args:
        cfg: The worker's config: ``name``, ``resource``, and what the comm type reads.
    """

    #: Whether only its workers find the samples; otherwise they are in the engine's store.
    has_own_samples = True

    def __init__(self, cfg: Mapping[str, object]) -> None:
        super().__init__(cfg)

    @abstractmethod
    def get_policy_update_info(self, path: str) -> Any:
        """The newest published state of a policy, as its ``load_state_dict`` takes it, with the
        training iteration as ``iter``.

        Raises:
            FileNotFoundError: None was published yet (or return ``None``).
        """

    @abstractmethod
    def send_stepdata(self, stepdata: Any, *args: Any) -> None:  # type: ignore[override]
        """Store samples for learners: define it as ``send_stepdata(path, stepdata)``, of their
        name and the samples."""

    @abstractmethod
    def send_metadata(self, metadata: Mapping[str, Json]) -> None:
        """Report samples that were sent; ``metadata['data_id']`` names them.

        ``super().send_metadata(metadata)`` keeps the message until the coordinator asks for it,
        with task and buffer added, and waits while there are too many.
        """
        super().send_metadata(metadata)

    @classmethod
    def remove_stepdata(cls, cfg: EasyDict, path: str) -> None:
        """Remove the samples named ``path``, which may be missing.

        Also called in the coordinator's process. Without it, samples are never removed. ``cfg`` is
        the worker's config.
        """

    def _drop(self, data_id: str) -> None:
        self.remove_stepdata(self._cfg, data_id)


def create_comm_collector(cfg: EasyDict) -> BaseCommCollector:
    """Build the registered comm collector ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    collector: BaseCommCollector = COMM_COLLECTOR_REGISTRY.build(cfg.type, cfg=cfg)
    return collector


class CommTypeSamples:
    """A comm type as the coordinator's sample store, which only removes."""

    def __init__(self, comm_type: type[BaseCommCollector], cfg: Mapping[str, object]) -> None:
        self._comm_type, self._cfg = comm_type, EasyDict(cfg)

    def put(self, name: str, samples: Samples) -> int:
        raise ConfigError(f"only a {self._comm_type.__name__} stores samples")

    def get(self, name: str) -> Samples:
        raise ConfigError(f"only learners read what a {self._comm_type.__name__} has sent")

    def size(self, name: str) -> int | None:
        return None

    def remove(self, name: str) -> None:
        self._comm_type.remove_stepdata(self._cfg, name)

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        return []


def samples_of_comm_type(system: Mapping[str, object]) -> SampleStore | None:
    """The collectors' samples, if their comm type does not use the engine's store.

    ``system`` is the compiled system config, with an entry for each worker.
    """
    for name, entry in system.items():
        if name.startswith("collector") and isinstance(entry, Mapping) and entry.get("type"):
            import_module(entry.get("import_names", []))
            comm_type: object = COMM_COLLECTOR_REGISTRY.get(entry["type"])
            if isinstance(comm_type, type) and issubclass(comm_type, BaseCommCollector):
                return CommTypeSamples(comm_type, entry) if comm_type.has_own_samples else None
            return None
    return None
