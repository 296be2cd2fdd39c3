"""What a coordinator does with samples that travel by a comm type of a user's own: remove them."""

import re
from collections.abc import Container, Mapping

from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY, import_module
from ding.utils.errors import ConfigError
from ding.worker.collector.comm.base_comm_collector import BaseCommCollector
from ding.worker.collector.comm.collector_service import CollectorService
from ding.worker.seams import Samples, SampleStore


class CommTypeSamples:
    """A sample store whose samples only the workers of a comm type can put and get.

    Args:
        comm_type: The collectors' class.
        cfg: The config of one of them.
    """

    def __init__(self, comm_type: type[BaseCommCollector], cfg: Mapping[str, object]) -> None:
        self._comm_type, self._cfg = comm_type, EasyDict(cfg)

    def put(self, name: str, samples: Samples) -> int:
        raise ConfigError(f"only a {self._comm_type.__name__} brings samples to their place")

    def get(self, name: str) -> Samples:
        raise ConfigError(f"what a {self._comm_type.__name__} has sent, its learners read")

    def size(self, name: str) -> int | None:
        """It is not known here; collectors may tell it in their metadata."""
        return None

    def remove(self, name: str) -> None:
        self._comm_type.remove_stepdata(self._cfg, name)

    def clear(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> list[str]:
        """Names that nobody has told of are not known here."""
        return []


def samples_of_comm_type(system: Mapping[str, object]) -> SampleStore | None:
    """Where the collectors' samples are, if their comm type has a place of its own for them.

    Args:
        system: The compiled system config, with an entry for each worker.
    """
    for name, entry in system.items():
        if name.startswith("collector") and isinstance(entry, Mapping) and entry.get("type"):
            import_module(entry.get("import_names", []))
            comm_type: object = COMM_COLLECTOR_REGISTRY.get(entry["type"])
            if isinstance(comm_type, type) and issubclass(comm_type, BaseCommCollector):
                is_own = not issubclass(comm_type, CollectorService)
                return CommTypeSamples(comm_type, entry) if is_own else None
            return None
    return None
