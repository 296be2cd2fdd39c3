"""What every replay buffer offers, and how a config becomes one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from easydict import EasyDict

from ding.data.buffer.deque_buffer_wrapper import DequeBufferWrapper as DequeBufferWrapper
from ding.data.kinds import Item, Items, State
from ding.utils.class_config import class_config
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import BUFFER_REGISTRY


class IBuffer(ABC):
    """A place where training data waits to be learned from."""

    config: ClassVar[dict[str, Any]] = {}

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)

    @abstractmethod
    def push(self, data: Items | Item, cur_collector_envstep: int) -> None:
        """Store one item, or each item of a list (``Columns`` are a list of rows)."""

    @abstractmethod
    def update(self, info: Mapping[str, Any]) -> None:
        """Take in what learning told about sampled items, such as their priorities."""

    @abstractmethod
    def sample(self, batch_size: int, cur_learner_iter: int) -> Items | None:
        """`batch_size` items, or None when there are too few."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all items."""

    @abstractmethod
    def count(self) -> int:
        """Number of items that can be sampled."""

    @abstractmethod
    def save_data(self, file_name: str) -> None:
        """Write the items into a file."""

    @abstractmethod
    def load_data(self, file_name: str) -> None:
        """Push the items of a file that `save_data` wrote."""

    @abstractmethod
    def state_dict(self) -> State:
        """All that a buffer needs to go on as this one would."""

    @abstractmethod
    def load_state_dict(self, _state_dict: State) -> None:
        """Go on where the buffer stood that gave this state."""


# It lives in a lower layer, which does not know this interface.
IBuffer.register(DequeBufferWrapper)


def create_buffer(cfg: EasyDict, *args: object, **kwargs: object) -> IBuffer:
    """Build the registered buffer ``cfg.type``; ``cfg.import_names`` are imported first.

    With ``cfg.multi_buffer`` there is one of them for each section of ``cfg`` that has a
    ``replay_buffer_size``.
    """
    import_module(cfg.get("import_names", []))
    kind = "multi" if cfg.get("multi_buffer", False) else cfg.type
    buffer: IBuffer = BUFFER_REGISTRY.build(kind, cfg, *args, **kwargs)
    return buffer


def get_buffer_cls(cfg: EasyDict) -> type[IBuffer]:
    """The registered buffer class ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    return BUFFER_REGISTRY.get(cfg.type)  # type: ignore[return-value]
