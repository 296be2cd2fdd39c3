"""What a learner asks of a loader."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any


class IDataLoader(ABC):
    """An endless iterator of batches that has to be closed."""

    @abstractmethod
    def __next__(self) -> Any:
        """The next batch."""

    @abstractmethod
    def __iter__(self) -> Iterator:
        """The loader itself."""

    @abstractmethod
    def close(self) -> None:
        """Stop loading; may be called more than once."""
