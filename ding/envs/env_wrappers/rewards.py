"""Wrappers that change or count rewards."""

from typing import Any

import gymnasium
import numpy as np

from ding.utils.default_helper import RunningMeanStd
from ding.utils.registry_factory import ENV_WRAPPER_REGISTRY

from .gym_to_gymnasium import as_gymnasium


@ENV_WRAPPER_REGISTRY.register("eval_episode_return")
class EvalEpisodeReturnWrapper(gymnasium.Wrapper):
    """Puts the sum of the rewards that it sees in ``info['eval_episode_return']`` at the end.

    Put it inside the wrappers that shape rewards to report the return of the game itself.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))
        self._return: Any = 0.0

    def reset(self, **kwargs: Any) -> tuple[Any, dict]:
        self._return = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._return += reward
        if terminated or truncated:
            info = {**info, "eval_episode_return": self._return}
        return obs, reward, terminated, truncated, info


@ENV_WRAPPER_REGISTRY.register("clip_reward")
class ClipRewardWrapper(gymnasium.Wrapper):
    """Replaces each reward by its sign."""

    reward_range = (-1.0, 1.0)

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(as_gymnasium(env))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, float(np.sign(float(reward))), terminated, truncated, info


@ENV_WRAPPER_REGISTRY.register("delay_reward")
class DelayRewardWrapper(gymnasium.Wrapper):
    """Gives the rewards of `delay_reward_step` steps at once, and what is left at the end.

    In between the reward is 0. A delay of 0 or 1 changes nothing.
    """

    def __init__(self, env: gymnasium.Env, delay_reward_step: int = 0) -> None:
        if delay_reward_step < 0:
            raise ValueError(f"delay_reward_step is {delay_reward_step}; expected 0 or more")
        super().__init__(as_gymnasium(env))
        self._delay = delay_reward_step
        self._steps = 0
        self._held: Any = 0.0

    def reset(self, **kwargs: Any) -> tuple[Any, dict]:
        self._steps = 0
        self._held = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        self._held = self._held + reward
        reward = 0.0
        if terminated or truncated or self._steps >= self._delay:
            reward, self._held, self._steps = self._held, 0.0, 0
        return obs, reward, terminated, truncated, info


@ENV_WRAPPER_REGISTRY.register("reward_norm")
class RewardNormWrapper(gymnasium.Wrapper):
    """Divides each reward by the running standard deviation of the discounted return so far.

    The mean is kept, as taking it away would change what is optimal.
    """

    # Before this many steps the estimate is too rough to divide by.
    _WARM_UP = 30

    def __init__(self, env: gymnasium.Env, reward_discount: float = 0.99) -> None:
        super().__init__(as_gymnasium(env))
        self.rms = RunningMeanStd(shape=(1,))
        self._discount = reward_discount
        self._count = 0
        self._return = 0.0

    def reset(self, **kwargs: Any) -> tuple[Any, dict]:
        self._return = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._count += 1
        self._return = self._return * self._discount + float(reward)
        self.rms.update(np.array([[self._return]]))
        if self._count > self._WARM_UP:
            reward = float(reward) / max(float(self.rms.std[0]), 1e-8)
        return obs, reward, terminated, truncated, info

    def state_dict(self) -> dict[str, Any]:
        return {"rms": self.rms.state_dict(), "count": self._count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rms.load_state_dict(state_dict["rms"])
        self._count = state_dict["count"]
