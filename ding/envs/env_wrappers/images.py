"""Wrappers that bring pictures into the form that networks read."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY

from .gym_to_gymnasium import as_gymnasium


@ENV_WRAPPER_REGISTRY.register("channel_first")
class ChannelFirstWrapper(gymnasium.ObservationWrapper):
    """Pictures ``[H, W, C]`` as ``[C, H, W]``."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        space = self.env.observation_space
        if not isinstance(space, spaces.Box) or len(space.shape) != 3:
            raise ValueError(f"channel_first needs pictures [H, W, C], got {space}")
        low, high = (np.moveaxis(bound, 2, 0) for bound in (space.low, space.high))
        self.observation_space = spaces.Box(low, high, dtype=space.dtype.type)

    def observation(self, obs: Any) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis(obs, 2, 0))
