"""What the auxiliary phase of phasic policy gradient learns from."""

from typing import Any

import torch

from ding.data import tree_join, tree_map
from ding.policy._types import Obs

#: Larger memories are no part of a checkpoint.
_MOST_BYTES = 1 << 26


class AuxiliaryMemory:
    """Observations, in the form in which they came, and their returns ``[N]``, on the CPU."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        #: How many policy phases there were since the last auxiliary phase.
        self.phases = 0

    def add(self, obs: Obs, returns: torch.Tensor) -> None:
        """Copy the observations and returns of one policy phase."""
        part = {"obs": obs, "return": returns}
        self._parts.append(tree_map(lambda leaf: torch.as_tensor(leaf).cpu().clone(), part))
        self.phases += 1

    def take(self) -> tuple[Any, torch.Tensor]:
        """All of it; the memory is empty then."""
        parts, self._parts, self.phases = self._parts, [], 0
        joined: Any = tree_join(torch.cat, parts)
        return joined["obs"], joined["return"]

    def state_dict(self) -> dict[str, Any]:
        """A memory of more than 64 MiB is left out: what goes on from it begins with none."""
        return {"phases": self.phases, "parts": self._parts if self._size <= _MOST_BYTES else []}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.phases, self._parts = state["phases"], list(state["parts"])

    @property
    def _size(self) -> int:
        sizes: list[int] = []
        tree_map(
            lambda leaf: sizes.append(leaf.numel() * leaf.element_size()),
            dict(enumerate(self._parts)),
        )
        return sum(sizes)
