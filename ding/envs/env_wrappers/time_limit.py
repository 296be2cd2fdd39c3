"""Wrappers that change what a step is: how often it repeats, and how many there are."""

from typing import Any

import gymnasium

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

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        total: Any = 0.0
        for _ in range(self.action_repeat):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total = total + reward
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info
