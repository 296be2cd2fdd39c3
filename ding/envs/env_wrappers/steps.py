"""Wrappers that change what an action means, how often it repeats, and how many steps there are."""

import math
from collections.abc import Iterator, Sequence

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.envs.vector_step import Action, EnvStep, Reward, Space
from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY

from .gym_to_gymnasium import as_gymnasium


@ENV_WRAPPER_REGISTRY.register("time_limit")
class TimeLimitWrapper(gymnasium.wrappers.TimeLimit):
    """Truncates an episode after `max_limit` steps."""

    keeps_return = True

    def __init__(self, env: gymnasium.Env, max_limit: int) -> None:
        if max_limit < 1:
            raise ValueError(f"max_limit is {max_limit}; expected 1 or more steps")
        super().__init__(as_gymnasium(env), max_limit)
        self.max_limit = max_limit


@ENV_WRAPPER_REGISTRY.register("action_repeat")
class ActionRepeatWrapper(gymnasium.Wrapper):
    """Takes each action `action_repeat` times, or until the episode ends, and sums the rewards."""

    keeps_return = True

    def __init__(self, env: gymnasium.Env, action_repeat: int = 1) -> None:
        if action_repeat < 1:
            raise ValueError(f"action_repeat is {action_repeat}; expected 1 or more")
        super().__init__(as_gymnasium(env))
        self.action_repeat = action_repeat

    def step(self, action: Action) -> EnvStep:
        total: Reward = 0.0
        for _ in range(self.action_repeat):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total = total + reward
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info


@ENV_WRAPPER_REGISTRY.register("discretize_action")
class DiscretizeActionWrapper(gymnasium.ActionWrapper):
    """Makes a continuous action a choice among evenly spaced numbers.

    Args:
        bins: How many there are, including the bounds of the space: one count, or one for each
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
                "there is a choice for each number"
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

    def action(self, action: Action) -> np.ndarray:
        values = self._low + self._step * np.asarray(action).ravel()
        return values.reshape(self._shape).astype(self._dtype)


@ENV_WRAPPER_REGISTRY.register("flatten_action")
class FlattenActionWrapper(gymnasium.ActionWrapper):
    """Makes an action of choices, in any structure, one list of choices that count from 0.

    A Discrete space with another ``start`` becomes ``Discrete(n)``. MultiBinary, MultiDiscrete with
    a ``start``, and Tuple and Dict of all these become one MultiDiscrete, in their order.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        self._given = self.env.action_space
        counts = _choices(self._given)
        is_one = isinstance(self._given, spaces.Discrete)
        self.action_space = (
            spaces.Discrete(counts[0]) if is_one else spaces.MultiDiscrete(np.array(counts))
        )

    def action(self, action: Action) -> Action:
        return _structured(self._given, iter(np.ravel(action).tolist()))


def counts_otherwise(space: Space) -> bool:
    """Whether actions are choices, but not in the form in which policies number them."""
    return isinstance(space, spaces.MultiBinary) or bool(np.any(getattr(space, "start", 0)))


def _choices(space: Space) -> list[int]:
    """How many choices each part of an action has."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return space.nvec.ravel().tolist()
    if isinstance(space, spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    if isinstance(space, spaces.Tuple | spaces.Dict):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return [count for part in parts for count in _choices(part)]
    raise ValueError(
        f"flatten_action needs choices (Discrete, MultiDiscrete, MultiBinary), got {space}; map "
        "numbers by gymnasium.wrappers.TransformAction in a function of env.env_wrapper"
    )


def _structured(space: Space, choices: Iterator[int]) -> Action:
    """An action of `space` from the next choices."""
    if isinstance(space, spaces.Discrete):
        return int(space.start) + next(choices)
    if isinstance(space, spaces.Dict):
        return {name: _structured(part, choices) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_structured(part, choices) for part in space.spaces)
    flat = np.array([next(choices) for _ in range(math.prod(space.shape or ()))], np.int64)
    start = getattr(space, "start", 0)
    return (flat.reshape(space.shape) + start).astype(space.dtype)
