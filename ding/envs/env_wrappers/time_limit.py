"""A limit on the length of episodes."""

from typing import Any

import gymnasium

from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY

from .gym_to_gymnasium import as_gymnasium


@ENV_WRAPPER_REGISTRY.register("time_limit")
class TimeLimitWrapper(gymnasium.Wrapper):
    """Truncates an episode after `max_limit` steps."""

    keeps_return = True

    def __init__(self, env: gymnasium.Env, max_limit: int) -> None:
        if max_limit < 1:
            raise ValueError(f"max_limit is {max_limit}; expected 1 or more steps")
        super().__init__(as_gymnasium(env))
        self.max_limit = max_limit
        self._steps = 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict]:
        self._steps = 0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        return obs, reward, terminated, truncated or self._steps >= self.max_limit, info
