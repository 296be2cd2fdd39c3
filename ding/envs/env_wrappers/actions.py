"""Wrappers that change actions."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY

from .gym_to_gymnasium import as_gymnasium


@ENV_WRAPPER_REGISTRY.register("discretize_action")
class DiscretizeActionWrapper(gymnasium.ActionWrapper):
    """Lets a choice among so many evenly spaced numbers stand for each dimension of the action.

    Args:
        bins: How many, the bounds of the space among them: one number, or one for each dimension.
    """

    def __init__(self, env: gymnasium.Env, bins: int | Sequence[int] = 11) -> None:
        super().__init__(as_gymnasium(env))
        space = self.env.action_space
        if not isinstance(space, spaces.Box) or not space.is_bounded("both"):
            raise ValueError(f"discretize_action needs actions with finite bounds, got {space}")
        counts = np.broadcast_to(np.asarray(bins), space.low.size)
        if (counts < 2).any():
            raise ValueError(f"discretize_action got bins={bins}; expected 2 or more")
        self._shape, self._dtype = space.shape, space.dtype
        self._low = space.low.ravel().astype(np.float64)
        self._step = (space.high.ravel() - self._low) / (counts - 1)
        self.action_space = spaces.MultiDiscrete(counts)

    def action(self, action: Any) -> np.ndarray:
        values = self._low + self._step * np.asarray(action).ravel()
        return values.reshape(self._shape).astype(self._dtype)
