"""Wrappers between whole numbers and arrays."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY

from .gym_to_gymnasium import as_gymnasium


@ENV_WRAPPER_REGISTRY.register("one_hot_obs")
class OneHotObsWrapper(gymnasium.ObservationWrapper):
    """The number of a state as float32 ``[n]``, 1 at the state and 0 elsewhere."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        space = self.env.observation_space
        if not isinstance(space, spaces.Discrete):
            raise ValueError(f"one_hot_obs needs observations that are one number, got {space}")
        self._start = int(space.start)
        self._rows = np.eye(int(space.n), dtype=np.float32)
        self.observation_space = spaces.Box(0.0, 1.0, (int(space.n),), np.float32)

    def observation(self, obs: Any) -> np.ndarray:
        return self._rows[int(obs) - self._start].copy()


@ENV_WRAPPER_REGISTRY.register("taxi_obs")
class TaxiObsWrapper(gymnasium.ObservationWrapper):
    """Taxi's state as float32 ``[34]``: one-hot cell (25), passenger's place (5), goal (4)."""

    _SIZES = (5, 5, 5, 4)  # row, column, passenger, goal; the last one counts up first

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        self.observation_space = spaces.Box(0.0, 1.0, (34,), np.float32)

    def observation(self, obs: Any) -> np.ndarray:
        row, column, passenger, goal = np.unravel_index(int(obs), self._SIZES)
        features = np.zeros(34, np.float32)
        features[[5 * row + column, 25 + passenger, 30 + goal]] = 1
        return features


@ENV_WRAPPER_REGISTRY.register("discretize_action")
class DiscretizeActionWrapper(gymnasium.ActionWrapper):
    """Lets choices among evenly spaced numbers stand for a continuous action.

    Args:
        bins: How many there are, the bounds of the space among them: one number, or one for each
            number of the action.
        branches: Whether an action is a list with a choice for each number (MultiDiscrete); else it
            is one choice, for an action of one number.
    """

    def __init__(
        self, env: gymnasium.Env, bins: int | Sequence[int] = 11, branches: bool = True
    ) -> None:
        super().__init__(as_gymnasium(env))
        space = self.env.action_space
        if not isinstance(space, spaces.Box) or not space.is_bounded("both"):
            raise ValueError(f"discretize_action needs actions with finite bounds, got {space}")
        if space.low.size != 1 and not branches:
            raise ValueError(
                f"discretize_action needs an action of one number, got {space}; with branches=True "
                "each number is a choice of its own"
            )
        counts = np.broadcast_to(np.asarray(bins), space.low.size)
        if (counts < 2).any():
            raise ValueError(f"discretize_action got bins={bins}; expected 2 or more")
        self._shape, self._dtype = space.shape, space.dtype
        self._low = space.low.ravel().astype(np.float64)
        self._step = (space.high.ravel() - self._low) / (counts - 1)
        self.action_space = (
            spaces.MultiDiscrete(counts) if branches else spaces.Discrete(int(counts[0]))
        )

    def action(self, action: Any) -> np.ndarray:
        values = self._low + self._step * np.asarray(action).ravel()
        return values.reshape(self._shape).astype(self._dtype)
