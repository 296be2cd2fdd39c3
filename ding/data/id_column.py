"""A column of ids that become strings only when a row is looked at."""

from typing import Any, overload

import numpy as np

from ding.utils.errors import DataError


class IdColumn:
    """Ids of the form ``<prefix>_<number>``, held as numbers.

    Args:
        prefix: What stands before the underscore in each id.
        numbers: int64 ``[N]``.
    """

    __slots__ = ("numbers", "prefix")

    def __init__(self, prefix: str, numbers: np.ndarray) -> None:
        self.prefix = prefix
        self.numbers = np.asarray(numbers, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: Any) -> "IdColumn": ...

    def __getitem__(self, index: Any) -> "str | IdColumn":
        picked = self.numbers[index]
        if np.ndim(picked) == 0:
            return f"{self.prefix}_{int(picked)}"
        return IdColumn(self.prefix, picked)

    def copy(self) -> "IdColumn":
        return IdColumn(self.prefix, self.numbers.copy())

    def tolist(self) -> list[str]:
        prefix = self.prefix
        return [f"{prefix}_{number}" for number in self.numbers.tolist()]

    def __repr__(self) -> str:
        return f"IdColumn({self.prefix!r}, {self.numbers!r})"


def id_numbers(ids: Any, prefix: str) -> np.ndarray:
    """Numbers of the ids that have this prefix, -2 for others; int64 [n].

    Raises:
        DataError: Something that is no id.
    """
    if isinstance(ids, IdColumn):
        return ids.numbers if ids.prefix == prefix else np.full(len(ids), -2)
    start = f"{prefix}_"
    cut = len(start)
    try:
        return np.array([int(i[cut:]) if i.startswith(start) else -2 for i in ids], dtype=np.int64)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"replay_unique_id must be ids such as '{start}7': {error}") from error
