"""Wrappers between whole numbers and arrays."""

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


@ENV_WRAPPER_REGISTRY.register("discretise_action")
class DiscretiseActionWrapper(gymnasium.ActionWrapper):
    """A continuous action as choices among `n` values, evenly from the least to the greatest.

    Args:
        n: How many choices there are for each number of the action.
        branches: Whether an action is a list with a choice for each number (MultiDiscrete); else it
            is one choice, for an action of one number.
    """

    def __init__(self, env: gymnasium.Env, n: int = 11, branches: bool = False) -> None:
        super().__init__(as_gymnasium(env))
        if n < 2:
            raise ValueError(f"n is {n}; expected 2 choices or more")
        space = self.env.action_space
        if not isinstance(space, spaces.Box) or not space.is_bounded("both"):
            raise ValueError(f"discretise_action needs actions in a Box with bounds, got {space}")
        if space.low.size != 1 and not branches:
            raise ValueError(
                f"discretise_action needs an action of one number, got {space}; with branches=True "
                "each number is a choice of its own"
            )
        self._shape = space.shape
        # [number, choice]
        self._choices = np.linspace(space.low.ravel(), space.high.ravel(), n, axis=1).astype(
            space.dtype
        )
        self._numbers = np.arange(space.low.size)
        self.action_space = (
            spaces.MultiDiscrete([n] * space.low.size) if branches else spaces.Discrete(n)
        )

    def action(self, action: Any) -> np.ndarray:
        return self._choices[self._numbers, np.ravel(action)].reshape(self._shape)
