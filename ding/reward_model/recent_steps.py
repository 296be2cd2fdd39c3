"""The transitions that a reward model trains on."""

import numpy as np

from ding.utils.errors import require_entries


class RecentSteps:
    """The newest transitions as arrays, from which batches are drawn uniformly.

    Args:
        capacity: The most transitions that are kept.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def add(self, columns: dict[str, np.ndarray]) -> None:
        """Append transitions; the oldest make room."""
        if self._columns:
            columns = {
                name: np.concatenate([self._columns[name], column])
                for name, column in columns.items()
            }
        self._columns = {name: column[-self._capacity :] for name, column in columns.items()}

    def sample(self, size: int) -> dict[str, np.ndarray]:
        """A batch, drawn with replacement by numpy's global generator."""
        rows = np.random.randint(0, len(self), size)
        return {name: column[rows] for name, column in self._columns.items()}

    def clear(self) -> None:
        self._columns = {}

    def state_dict(self) -> dict[str, dict[str, np.ndarray]]:
        return {"columns": dict(self._columns)}

    def load_state_dict(self, state_dict: dict[str, dict[str, np.ndarray]]) -> None:
        require_entries("recent transitions", state_dict, ("columns",))
        self._columns = dict(state_dict["columns"])
