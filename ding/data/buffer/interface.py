"""What every replay buffer offers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from ding.data.kinds import Item, Items, State
from ding.utils.class_config import Configurable


class IBuffer(Configurable, ABC):
    """A place where training data waits to be learned from."""

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
