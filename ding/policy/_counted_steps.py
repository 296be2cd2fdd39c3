"""Which samples of a replay buffer were drawn before."""

from collections.abc import Mapping
from typing import Any

import torch


class CountedSteps:
    """The steps that some statistics have seen, so that each counts once however often it is drawn.

    A step is forgotten when it has left the buffer for certain.

    Args:
        buffer_size: How many samples the buffers hold.
    """

    def __init__(self, buffer_size: int) -> None:
        # Steps are first drawn in another order than they came: the one that was drawn first may
        # outlive a buffer of others.
        self._most = 2 * buffer_size
        self._steps: dict[int, None] = {}

    def take_new(self, step_ids: torch.Tensor | None) -> torch.Tensor | slice:
        """Remember steps.

        Args:
            step_ids: int64 ``[B]``, or None where samples have none: then all are new.

        Returns:
            Index of those that are new; of a step that comes twice, the first.
        """
        if step_ids is None:
            return slice(None)
        places = []
        for place, step in enumerate(step_ids.tolist()):
            if step not in self._steps:
                self._steps[step] = None
                places.append(place)
        while len(self._steps) > self._most:
            del self._steps[next(iter(self._steps))]
        return torch.tensor(places, dtype=torch.int64, device=step_ids.device)

    def state_dict(self) -> dict[str, Any]:
        """The steps, oldest first."""
        return {"steps": torch.tensor(list(self._steps), dtype=torch.int64)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._steps = dict.fromkeys(state["steps"].tolist())
